# SPDX-License-Identifier: Apache-2.0
"""Our callbacks are removed and added again and again, beside threads that train, throw, and use torch.profiler, with forks and a loader's workers in
between. Prints where torch.profiler's list is not the one that it has alone. `lean_stress.py SEED TIMES`. Without execution traces: beside
threads that train PyTorch 2.13 crashes when one ends, also without us."""
import contextlib
import ctypes
import os
import random
import sys
import threading

import torch
from torch.profiler import ProfilerActivity, profile

with open("/proc/self/maps", encoding="utf-8") as maps:
    library = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libstepscope" in line))
torch.set_num_threads(1)
stop, problems, turns = False, [], []


def again(work):
    """In a thread, until it is stopped. A fork comes between two turns of each: PyTorch's locks are nobody's then."""
    turn = threading.Lock()
    turns.append(turn)

    def run():
        while not stop:
            with turn:
                work()
    return threading.Thread(target=run)


def work():
    x = torch.ones(4, requires_grad=True)
    for _ in range(10):
        (x * 2).sum().backward()


def trains():
    w = torch.ones(8, requires_grad=True)
    for _ in range(10):
        (w * 2 + torch.ones(8)).relu().sum().backward()
        w.grad = None


def throws():
    x = torch.ones(3, requires_grad=True)

    def hook(grad):
        raise ValueError("in a hook")
    for _ in range(10):
        y = x * 2
        y.register_hook(hook)
        try:
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        except RuntimeError:
            pass
        try:
            y.sum().backward()
        except ValueError:
            pass


def profiled():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work()
    return sorted(event.name for event in prof.events())


def profiles():
    if profiled() != alone:
        problems.append("torch.profiler")


def forks():
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        problems.append("a forked child")


def loads():
    for batch in torch.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=1):
        batch + 1


def switch(chosen):
    library.stepscope_torch_stop()
    torch.ones(3) + 1
    if chosen.random() < 0.5:
        work()
    library.stepscope_torch_want_inputs(chosen.randrange(2))
    library.stepscope_torch_start()
    torch.ones(3) + 1
    if chosen.random() < 0.5:
        work()


alone = [profiled() for _ in range(3)][-1]
threads = [again(work) for work in (trains, trains, throws, profiles)]
for thread in threads:
    thread.start()
random.seed(sys.argv[1])
for at in range(int(sys.argv[2])):
    switch(random)
    if at % 50 == 0:
        with contextlib.ExitStack() as held:
            for turn in turns:
                held.enter_context(turn)
            forks()
            loads()
stop = True
for thread in threads:
    thread.join()
library.stepscope_torch_stop()
print(*problems)
