# SPDX-License-Identifier: Apache-2.0
"""The main thread trains and switches the recording on and off in random order, in profilers of PyTorch's, or beside threads that train, throw
and profile themselves, or fork: `switching.py alone|threads|forks ROUNDS SEED [bare]` prints what must be the same without us. Used by test_switching.py."""
import contextlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading

import torch
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

if sys.argv[4:] == ["bare"]:  # which ours would not be: a window starts a recording
    class stepscope:  # noqa: N801
        step = staticmethod(lambda number=0: contextlib.nullcontext())
        profile = staticmethod(lambda: type("", (), {"start": lambda self: None, "stop": lambda self: None})())
else:
    import stepscope

Observer = getattr(torch.profiler, "ExecutionTraceObserver", None)  # since 2.1
FORKS = multiprocessing.get_context("fork")
problems, told = [], {}
is_over = threading.Event()


def guarded(work):
    def run():
        try:
            work()
        except BaseException as problem:  # noqa: B036  it would be lost with its thread
            problems.append(f"{work.__name__}: {problem!r}")
    return run


def net(seed):
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def trains(model, optimizer, number):
    optimizer.zero_grad()
    with record_function("forward"):
        loss = model(torch.full((4, 8), number / 100)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def train_in_thread():
    model = net(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    told["losses of a thread"] = [trains(model, optimizer, number).hex() for number in range(rounds)]


class Mine(Exception):
    pass


class Raising(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise Mine


def throw():
    caught, x = 0, torch.ones(3, requires_grad=True)
    for _ in range(rounds):
        try:
            with record_function("throws"):
                Raising.apply(x).sum().backward()
        except Mine:
            caught += 1
        try:
            torch.ones(2) @ torch.ones(3)
        except RuntimeError:
            caught += 1
    told["caught"] = caught


def shape_of(event):
    return [event.name, str(event.input_shapes), event.count]


def profiled():
    """Each time the same work, so the same events, for PyTorch's three profilers."""
    model = net(2)
    optimizer, seen = torch.optim.SGD(model.parameters(), lr=1e-3), set()
    for number in range(max(rounds // 20, 1)):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as one:
            trains(model, optimizer, number)
        with torch.autograd.profiler.profile() as other:
            trains(model, optimizer, number)
        seen.update(json.dumps(sorted(map(shape_of, events))) for events in (one.events(), other.function_events))
    told["events of a profiler"] = sorted(seen)


def operate():
    x = torch.ones(1000)
    while not is_over.is_set():
        x.neg().abs()


def fork():
    """A child that calls operators and one that trains, each in a process with busy threads."""
    codes = []
    for number in range(max(rounds // 50, 1)):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                torch.set_num_threads(1)
                model = net(3)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
                for step in range(number % 3 * 2):
                    with stepscope.step():
                        trains(model, optimizer, step)
                torch.ones(3).neg()
                code = 0
            finally:
                os._exit(code)
        codes.append(os.waitpid(child, 0)[1])
        process = FORKS.Process(target=torch.ones, args=(3,))
        process.start()
        process.join()
        codes.append(process.exitcode)
    told["ends of children"] = sorted(set(codes))


def batches():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context="fork")
    told["batches"] = [sum(batch[0].sum().item() for batch in loader) for _ in range(max(rounds // 100, 1))]


class Switches:
    """Steps, windows that overlap, and nothing; what trains here is the program's own loop."""

    def __init__(self, seed):
        self.choose, self.model, self.windows, self.losses = random.Random(seed), net(4), [], []
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)

    def train(self, number):
        self.losses.append(trains(self.model, self.optimizer, number).hex())

    def next(self, number):
        what = self.choose.randrange(6)
        if what < 3:
            with stepscope.step(number):
                self.train(number)
        elif what == 3 and len(self.windows) < 4:
            self.windows.append(stepscope.profile())
            self.windows[-1].start()
        elif self.windows:
            self.windows.pop(self.choose.randrange(len(self.windows))).stop()
        with record_function("between"):
            self.train(number)

    def end(self):
        for window in self.windows:
            window.stop()
        told["losses"] = self.losses


def switch(switches):
    for number in range(rounds):
        switches.next(number)
    switches.end()


def traced(work):
    """Names of what PyTorch's own callbacks for all threads see; threads that run operators while these go crash it, also without us."""
    with tempfile.TemporaryDirectory() as folder:
        observer = Observer().register_callback(f"{folder}/trace.json")
        observer.start()
        work()
        observer.stop()
        observer.unregister_callback()
        with open(f"{folder}/trace.json", encoding="utf-8") as file:
            return sorted(node["name"] for node in json.load(file)["nodes"])


def switch_in_profilers(switches):
    events, nodes = [], []
    for first in range(0, rounds, 10):
        some = lambda: [switches.next(number) for number in range(first, first + 10)]  # noqa: B023, E731
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            some()
        events.append(sorted(map(shape_of, prof.events())))
        with torch.autograd.profiler.profile() as prof:
            some()
        events.append(sorted(map(shape_of, prof.function_events)))
        nodes.append(traced(some) if Observer else len(some()))
    switches.end()
    told.update({"events": events, "nodes": nodes})


KINDS = {"alone": (), "threads": (train_in_thread, throw, profiled, operate), "forks": (train_in_thread, operate, fork, batches)}

if __name__ == "__main__":
    kind, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    helpers = [threading.Thread(target=guarded(work), daemon=True) for work in KINDS[kind]]
    for helper in helpers:
        helper.start()
    guarded(lambda: (switch if helpers else switch_in_profilers)(Switches(seed)))()
    is_over.set()
    for helper in helpers:
        helper.join()
    print(json.dumps({"problems": problems, **told}, sort_keys=True))
