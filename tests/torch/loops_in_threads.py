# SPDX-License-Identifier: Apache-2.0
"""Training loops that move from thread to thread, and two at once: as loops.py."""
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from loops import Sleep, Step, facts, loader, main, net, plain, train
from loops_of_optimizers import train_gan


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def check(model):
    with torch.no_grad():
        for (batch,) in loader(2):
            model(batch).pow(2).mean().item()


def thread_per_epoch():
    """The main thread makes the optimizer, and evaluates after each."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def epoch():
        for (batch,) in loader(4):
            with Step():
                train(model, optimizer, batch)

    for _ in range(3):
        in_thread(epoch)
        check(model)


def gan_in_threads():
    """Two optimizers and no loader; a thread has two steps, and the main thread has some, too."""
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    g, d = (torch.optim.Adam(network.parameters()) for network in (generator, critic))

    def two():
        for _ in range(2):
            with Step():
                train_gan(generator, critic, g, d)

    for run in (in_thread, in_thread, lambda function: function(), in_thread):
        run(two)


def pool_per_epoch():
    """A pool of one thread, made anew for each epoch, and an optimizer with it. The thread evaluates."""
    model = net()

    def epoch():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (batch,) in loader(3):
            with Step():
                train(model, optimizer, batch)
        check(model)

    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(epoch).result()


def thread_per_step():
    """Three threads take turns, a step each; the main thread reads the batches."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches, done = [queue.Queue() for _ in range(3)], queue.Queue()

    def work(of):
        for batch in iter(of.get, None):
            with Step():
                train(model, optimizer, batch)
            done.put(None)

    threads = [threading.Thread(target=work, args=[each]) for each in batches]
    for thread in threads:
        thread.start()
    for i, (batch,) in enumerate(loader(8)):
        batches[i % 3].put(batch)
        done.get()
    for each, thread in zip(batches, threads):
        each.put(None)
        thread.join()


class SlowTower(nn.Linear):
    def forward(self, x):
        time.sleep(0.03)
        return super().forward(x)


def forward_in_threads():
    """Two towers, each in a thread of its own; the loss, its backward and the step are the main thread's."""
    towers = nn.ModuleList([SlowTower(16, 4), SlowTower(16, 4)])
    optimizer = torch.optim.SGD(towers.parameters(), lr=0.1)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            batch = torch.randn(8, 16)
            with Step():
                outputs = [each.result() for each in [pool.submit(tower, batch) for tower in towers]]
                loss = sum(outputs).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def replicas_in_threads():
    """Each part of a batch has its forward and its backward in a thread of its own, into the same gradients; the main thread steps."""
    model = SlowTower(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def gradients(part):
        model(part).pow(2).mean().backward()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            with Step():
                list(pool.map(gradients, torch.randn(8, 16).split(4)))
                optimizer.step()
                optimizer.zero_grad()


def ensemble():
    """Two trainings at once: the second thread is in the middle of a step while the first makes several, and the other way round."""
    turns = [threading.Event() for _ in range(4)]

    def member(steps, waits):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(steps):
            loss = model(torch.randn(8, 16)).pow(2).mean()
            for mine, other in waits.get(i, ()):
                turns[mine].set()
                turns[other].wait()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    threads = [threading.Thread(target=member, args=[5, {1: [(0, 1)], 3: [(2, 3)]}]),
               threading.Thread(target=member, args=[3, {1: [(1, 0)], 2: [(3, 2)]}])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    facts["calls"] = [5, 3]


def backward_in_thread():
    """As with a GPU, where another thread works on the gradients."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(8)):
        loss = Sleep.apply(model(batch)).pow(2).mean()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
        if i % 2 == 1:
            with Step():
                optimizer.step()
                optimizer.zero_grad()


def in_a_thread():
    """The main thread only evaluates."""
    thread = threading.Thread(target=plain)
    thread.start()
    model = net()
    with torch.no_grad():
        for (batch,) in loader(10):
            model(batch)
    thread.join()


if __name__ == "__main__":
    main(globals())
