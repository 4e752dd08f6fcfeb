# SPDX-License-Identifier: Apache-2.0
"""Our callbacks are removed and added again and again, beside threads that train, throw, and use torch.profiler, with forks and a loader's workers in
between. Prints where another observer's list is not the one that it has alone, or has not all that it should. `lean_stress.py SEED TIMES`: only ours come
and go; `lean_stress.py SEED TIMES all`: so do torch.profiler, autograd's profilers and execution traces, in random order, each whatever the others do, and
it prints how often work() ran while ours were there. Then no other thread uses torch.profiler, and an execution trace begins and ends while none runs an
operator: else PyTorch 2.13 crashes, also without us."""
import contextlib
import ctypes
import json
import os
import random
import sys
import tempfile
import threading
from collections import Counter

import torch
import torch.autograd.profiler_legacy
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

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
    return sorted(names_of(prof))


def names_of(prof):
    """As they come: what PyTorch 2.3 makes of them lacks some, others each time."""
    if isinstance(prof, torch.autograd.profiler_legacy.profile):
        return [event.name for event in prof.function_events]
    return [event.name() for event in getattr(prof, "profiler", prof).kineto_results.events()]


def profiles():
    if profiled() != alone[-1]:
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


class Observer:
    """On or off. While it is on it sees all that work() does in the main thread."""

    def __init__(self):
        self.is_on, self.works = False, 0

    def toggle(self):
        self.is_on = not self.is_on
        (self.begin if self.is_on else self.end)()
        self.works = 0

    def check(self, names, is_all=True):
        """Its list, from begin to end; of all threads there may be more."""
        counts = Counter(names)
        found = [counts["aten::mul"] / 20, counts["MulBackward0"] / 10]
        if found != [self.works] * 2 if is_all else min(found) < self.works:
            problems.append(f"{type(self).__name__}: {found} of {self.works}")


class Ours(Observer):
    """Its list is read by the test. There from the start."""

    def __init__(self):
        self.is_on, self.works, self.all_works = True, len(alone), 0

    def begin(self):
        library.stepscope_torch_want_inputs(random.randrange(2))
        library.stepscope_torch_start()

    def end(self):
        library.stepscope_torch_stop()
        self.all_works += self.works


class Profiler(Observer):
    """Of three kinds, one at a time: PyTorch wants that."""

    def begin(self):
        self.profiler = random.choice((lambda: profile(activities=[ProfilerActivity.CPU], record_shapes=True), torch.autograd.profiler.profile,
                                       torch.autograd.profiler_legacy.profile))()
        self.profiler.__enter__()

    def end(self):
        self.profiler.__exit__(None, None, None)
        self.check(names_of(self.profiler))


class Trace(Observer):
    """Of all threads."""

    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        with all_held():
            self.observer = ExecutionTraceObserver().register_callback(f"{self.folder.name}/trace.json")
            self.observer.start()

    def end(self):
        with all_held():
            self.observer.stop()
            self.observer.unregister_callback()
        with self.folder, open(f"{self.folder.name}/trace.json", encoding="utf-8") as file:
            self.check((node["name"] for node in json.load(file)["nodes"]), is_all=False)


@contextlib.contextmanager
def all_held():
    """No other thread runs an operator."""
    with contextlib.ExitStack() as held:
        for turn in turns:
            held.enter_context(turn)
        yield


def toggle_all(times):
    every = ours, _, _ = (Ours(), Profiler(), Trace())
    for at in range(times):
        random.choices(every, weights=(4, 4, 1))[0].toggle()
        for _ in range(random.randrange(3)):
            work()
            for each in every:
                each.works += 1
        beside(at)
    for each in every:
        if each.is_on:
            each.toggle()
    print(ours.all_works)


def switch_ours(times):
    for at in range(times):
        switch(random)
        beside(at)


def beside(at):
    if at % 50 == 0:
        with all_held():
            forks()
            loads()


alone = [profiled() for _ in range(3)]
is_all = sys.argv[3:] == ["all"]
threads = [again(work) for work in (trains, trains, throws, *(() if is_all else (profiles,)))]
for thread in threads:
    thread.start()
random.seed(sys.argv[1])
(toggle_all if is_all else switch_ours)(int(sys.argv[2]))
stop = True
for thread in threads:
    thread.join()
library.stepscope_torch_stop()
print(*problems)
