# SPDX-License-Identifier: Apache-2.0
"""Operators from every kind of Python code, each with a size of its own; truth.json says which stack called it. `lines.py CASE`"""
import contextlib
import functools
import gc
import json
import os
import sys
import threading

import torch
from torch import nn

truth = []
lock = threading.Lock()


def here():
    """The next size. What follows on the caller's line has the stack that is noted."""
    frame, chain = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        chain.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    with lock:
        truth.append(chain[::-1])
        return len(truth)


class Leaf(nn.Module):
    def forward(self, x):
        torch.zeros(here()).neg()
        return x * 2


class Tree(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.below = nn.Sequential(*[Tree(depth - 1) if depth else Leaf() for _ in range(2)])

    def forward(self, x):
        torch.zeros(here()).neg()
        return self.below(x)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.zeros(here()).neg()
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        torch.zeros(here()).neg()
        with torch.enable_grad():
            inner = torch.ones(2, requires_grad=True)
            inner.sum().backward()
        torch.zeros(here()).neg()
        return gradient * 2


def decorate(function):
    @functools.wraps(function)
    def wrapped():
        torch.zeros(here()).neg()
        return function()
    return wrapped


@decorate
def decorated():
    (torch.zeros(here()).neg(),
     torch.zeros(here()).neg(),
     )


def numbers(depth):
    torch.zeros(here()).neg()
    if depth:
        yield from numbers(depth - 1)
    yield torch.zeros(here()).neg()
    torch.zeros(here()).neg()


def deep(depth):
    return torch.zeros(here()).neg() if depth == 0 else deep(depth - 1)


class Dies:
    def __del__(self):
        torch.zeros(here()).neg()


class Sees(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        torch.zeros(here()).neg()
        return super().__torch_function__(function, types, arguments, keywords or {})


def leaf():
    torch.zeros(here()).neg()


def in_dead_frames():
    """A range is begun in frames that are gone when it holds operators; one of these functions puts its callee exactly where they were."""
    space = {"leaf": leaf}
    for count in range(80):
        exec(f"def sized():\n  {' = '.join(f'x{i}' for i in range(count + 1))} = 0\n  leaf()\n  return [leaf() for _ in [0]]", space)
        with torch.autograd.profiler.record_function("a range"):
            leaf()
            space["sized"]()


def kinds():
    in_dead_frames()
    for _ in range(3):
        torch.zeros(here()).neg()
        torch.zeros(here()).neg()
    Tree(2)(torch.ones(2))
    [torch.zeros(here()).neg() for _ in range(3)]
    (lambda: torch.zeros(here()).neg())()
    sorted([2, 1], key=lambda x: torch.zeros(here()).neg().sum().item())
    decorated()
    list(numbers(3))
    with torch.autograd.profiler.record_function("a range"):
        torch.zeros(here()).neg()
        with contextlib.suppress(ValueError), torch.no_grad():
            torch.zeros(here()).neg()
            raise ValueError
        with torch.autograd.profiler.record_function("inside"):
            deep(2)
            torch.zeros(here()).neg()
    x = torch.ones(3, requires_grad=True)
    handle = x.register_hook(lambda gradient: torch.zeros(here()).neg().sum() * gradient)
    Twice.apply(Twice.apply(x)).sum().backward()
    handle.remove()
    Sees(torch.ones(2)).add(1)
    first, second = Dies(), Dies()
    first.other, second.other = second, first
    del first, second
    gc.collect()
    exec("torch.zeros(here()).neg()\n\n\ndef made():\n  torch.zeros(here()).neg()\nmade()", globals())


def recursion():
    for depth in (5, 120, 126, 127, 128, 129, 300):
        deep(depth)


def codes():
    """Code objects that die and leave their place to others, alike but for their name, or their line, or their file."""
    for i in range(10000):
        exec(compile("\n" * (i % 7) + "def f%d(): torch.zeros(here()).neg()\nf%d()" % (i // 7 % 3, i // 7 % 3), "made %d.py" % (i % 5), "exec"),
             {"torch": torch, "here": here})


def threads():
    def work():
        for _ in range(50):
            kinds_of_thread()

    def kinds_of_thread():
        torch.zeros(here()).neg()
        deep(3)
        exec(compile("torch.zeros(here()).neg()", "in a thread.py", "exec"))
    several = [threading.Thread(target=work) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()


def turns():
    """One in this process and one, with the same stacks, in a child."""
    for turn in range(2):
        child = os.fork() if turn else None
        if child:
            os.waitpid(child, 0)
            with open("child.json", encoding="utf-8") as file:
                truth[:] = json.load(file)
            break
        torch.zeros(here()).neg()
        deep(3)
        if turn:
            with open("child.json", "w", encoding="utf-8") as file:
                json.dump(truth, file)
            os._exit(0)


class Turns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        turns()
        return x * 2


def forks():
    """A child has none of its parent's stacks and inputs, and may be made inside of an operator."""
    for size in range(1, 20):
        torch.zeros(size).abs()
    turns()
    Turns.apply(torch.ones(2, requires_grad=True))
    torch.zeros(here()).neg()


def main():
    torch.manual_seed(1)
    {"kinds": lambda: (kinds(), kinds()), "recursion": recursion, "codes": codes, "threads": threads,
     "forks": forks}[sys.argv[1]]()
    with open("truth.json", "w", encoding="utf-8") as file:
        json.dump(truth, file)


main()
