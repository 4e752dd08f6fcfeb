# SPDX-License-Identifier: Apache-2.0
"""What a program may do with those functions of PyTorch that we stand around while operators are not recorded: prints what came of it, which
must be the same without us. Used by test_switching.py."""
import asyncio
import contextlib
import copy
import json
import pickle
import threading

import torch
from torch.autograd.profiler import record_function
from torch.utils.checkpoint import checkpoint

ENGINE = torch.autograd.Variable._execution_engine
said = {}


def outcome(work, *arguments):
    try:
        return repr(work(*arguments))
    except BaseException as problem:  # noqa: B036  all that comes of it
        return f"{type(problem).__name__}: {str(problem)[:100]}"


def leaf(size=3):
    return torch.ones(size, requires_grad=True)


def train():
    """Behind this the functions are looked at, where operators are not recorded."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def functions():
    for function in (type(ENGINE).run_backward, torch._amp_update_scale_, record_function.__enter__, record_function.__exit__):
        yield [repr(type(function)), function.__name__, function.__qualname__, function.__doc__, repr(getattr(function, "__text_signature__", None))]
    yield outcome(lambda: pickle.loads(pickle.dumps(torch._amp_update_scale_)) is torch._amp_update_scale_)
    yield outcome(lambda: pickle.loads(pickle.dumps(record_function.__enter__)) is record_function.__enter__)
    yield outcome(lambda: copy.copy(record_function("x")).name)
    yield outcome(lambda: type(copy.deepcopy(record_function("x"))))


read = []


class Reads(record_function):
    @property
    def name(self):
        read.append(1)
        return "reads"

    @name.setter
    def name(self, _):
        pass


class Raises(Reads):
    name = property(lambda self: {}["mine"], lambda self, value: None)


class Odd(str):
    def encode(self, *_, **__):
        raise OSError


def within(kind, name):
    with kind(name):
        return torch.ones(2).sum().item()


def nameless():
    record = record_function("gone")
    del record.name
    with record:
        pass


def pieces(count=3):
    with record_function("pieces"):
        for _ in range(count):
            yield torch.ones(1).item()


async def waits(number):
    with record_function(f"waits {number}"):
        await asyncio.sleep(0)
        torch.ones(2).neg()
        await asyncio.sleep(0)


async def wait():
    await asyncio.gather(*map(waits, range(5)))


def ranges():
    yield [outcome(within, kind, "x") for kind in (Reads, Raises)] + [len(read)]
    yield [outcome(within, record_function, name) for name in (Odd("x"), 5, None, b"x", "\udc80", "nul\0", "e" * 5000)]
    yield outcome(nameless)
    yield outcome(record_function("decorated")(torch.neg), torch.ones(2))
    yield list(zip(pieces(), pieces()))
    asyncio.run(wait())
    with contextlib.ExitStack() as stack:
        for number in range(3):
            stack.enter_context(record_function(f"stacked {number}"))
    halves = pieces()
    next(halves)
    thread = threading.Thread(target=halves.close)
    thread.start()
    thread.join()
    future = torch.futures.Future()
    with record_function("future") as record:
        after = record._call_end_callbacks_on_future(future)
    future.set_result(torch.ones(1))
    yield str(after.wait())


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("mine")


def twice():
    loss = (leaf() ** 2).sum()
    loss.backward()
    loss.backward()


def directly(is_positional):
    """As Megatron does."""
    x = leaf()
    arguments = {"tensors": ((x * 2).sum(),), "grad_tensors": (torch.ones([]),), "keep_graph": False, "create_graph": False, "inputs": (),
                 "allow_unreachable": True, "accumulate_grad": True}
    ENGINE.run_backward(*arguments.values()) if is_positional else ENGINE.run_backward(**arguments)
    return x.grad


def in_hook():
    x, inner = leaf(), leaf()

    def hook(_):
        with torch.enable_grad():
            (inner * 2).sum().backward()
    x.register_hook(hook)
    (x * 2).sum().backward()
    return inner.grad


def again():
    x = leaf()
    checkpoint(lambda y: (y * 3).sum(), x, use_reentrant=True).backward()
    return x.grad


def double():
    x = leaf()
    gradient, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    gradient.sum().backward()
    return x.grad


def in_threads():
    sums = []

    def work():
        x = leaf()
        for _ in range(20):
            (x * 2).sum().backward()
        sums.append(x.grad.sum().item())
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sums


def transforms():
    if not hasattr(torch, "func"):
        return None
    square = lambda x: (x ** 2).sum()  # noqa: E731
    return [torch.func.grad(square)(torch.ones(2)), torch.func.vmap(torch.func.grad(square))(torch.ones(2, 2)),
            torch.func.jacrev(lambda x: x ** 2)(torch.ones(2)), torch.func.grad(torch.func.grad(square))(torch.ones([]))]


def backwards():
    yield [outcome(lambda: Fails.apply(leaf()).sum().backward()), outcome(lambda: leaf().backward()), outcome(twice),
           outcome(lambda: torch.ones(3).sum().backward()), outcome(ENGINE.run_backward), outcome(ENGINE.run_backward, 1, 2, 3),
           outcome(torch._amp_update_scale_), outcome(torch._amp_update_scale_, 1, 2)]
    yield [outcome(work) for work in (in_hook, again, double, in_threads, transforms)] + [outcome(directly, way) for way in (False, True)]


@torch.jit.script
def scripted(x):
    with torch.autograd.profiler.record_function("scripted"):
        return x * 2


if __name__ == "__main__":
    train()
    for part in (functions, ranges, backwards):
        said[part.__name__] = list(part())
    said["scripted"] = [outcome(scripted, torch.ones(2)), str(scripted.graph)]
    train()
    print(json.dumps(said, indent=1))
