# SPDX-License-Identifier: Apache-2.0
"""Programs of many kinds, for test_lean.py: `lean_programs.py known` runs all of them, `lean_programs.py NAME...` these, `lean_programs.py SEED...` a
random choice of them for each seed, in random order, some in threads. Prints losses and gradients to the bit: of all so far, after each program or seed."""
import ctypes
import gc
import hashlib
import json
import random
import sys
import tempfile
import threading

import torch
from torch import nn

gc.disable()
torch.set_num_threads(1)
told = hashlib.sha256()


def tell(*tensors):
    for tensor in tensors:
        told.update(tensor.detach().contiguous().numpy().tobytes())


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in backward")


class Local:
    """What each thread has of its own."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=False)
        self.lstm = nn.LSTM(8, 8)
        self.data = torch.randn(4, 8)
        self.follow = torch.compile(lambda x: (self.model(x) * 2).relu(), backend="aot_eager")


def step(mine):
    mine.optimizer.zero_grad()
    loss = mine.model(mine.data).pow(2).mean()
    loss.backward()
    tell(loss, *(each.grad for each in mine.model.parameters()))
    mine.optimizer.step()


def throws(mine):
    for _ in range(20):
        try:
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        except RuntimeError:
            pass
        tell(torch.ones(2) + 1)


def custom(mine):
    x = torch.ones(3, requires_grad=True)
    Twice.apply(x).sum().backward()
    tell(x.grad)


def backward_throws(mine):
    x = torch.ones(3, requires_grad=True)
    for _ in range(5):
        try:
            Fails.apply(x * 3).sum().backward()
        except ValueError:
            pass
    (x * 2).sum().backward()
    tell(x.grad)


def hook_throws(mine):
    def hook(grad):
        raise ValueError("in a hook")
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    try:
        y.exp().sum().backward()
    except ValueError:
        pass
    tell(y)


def make_records(is_on):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        library = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libtorch_cpu" in line))
    library._ZN2at20enableRecordFunctionEb(ctypes.c_bool(is_on))


class Silences(torch.autograd.Function):
    """Behind its node the engine sets what was before."""
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        make_records(False)
        return grad * 2


def records_off(mine):
    make_records(False)
    custom(mine)
    make_records(True)
    custom(mine)
    x = torch.ones(3, requires_grad=True)
    Silences.apply(x * 3).sum().backward()
    custom(mine)
    tell(x.grad)


def vmapped(mine):
    tell(torch.func.vmap(lambda a: (a * 2).sum())(torch.ones(3, 4)))
    tell(torch.func.grad(lambda a: (a * a).sum())(torch.ones(4)))


@torch.jit.script
def script(x):
    for _ in range(3):
        x = x * 2 + 1
    return x


def scripted(mine):
    tell(script(torch.ones(3)))


def checkpointed(mine):
    from torch.utils.checkpoint import checkpoint
    x = torch.ones(4, 8, requires_grad=True)
    checkpoint(mine.model, x, use_reentrant=True).sum().backward()
    checkpoint(mine.model, x, use_reentrant=False).sum().backward()
    tell(x.grad)


def hooks(mine):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    torch.autograd.grad((x * x).sum(), x, create_graph=True)[0].sum().backward()
    tell(x.grad)


def some_inputs(mine):
    """Nodes that the engine works on, but does not call."""
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    tell(*torch.autograd.grad((x * y).exp().sum(), [x]))
    (x * y).sum().backward(inputs=[y])
    tell(y.grad)


def nested(mine):
    """A backward in a node of one."""
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                x = torch.ones(3, requires_grad=True)
                (x * 3).sum().backward()
            return grad + x.grad
    x = torch.ones(3, requires_grad=True)
    Inner.apply(x).sum().backward()
    tell(x.grad)


def lists(mine):
    torch._foreach_add_([torch.ones(2) for _ in range(5)], 1.0)
    tell(torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 2)))
    torch.cat([torch.ones(2)] * 9).chunk(3)


def dispatch_mode(mine):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    with Mode():
        tell(torch.ones(2) + 1)


def recurrent(mine):
    mine.lstm(torch.ones(3, 2, 8))[0].sum().backward()
    tell(*(each.grad for each in mine.lstm.parameters()))


def compiled(mine):
    mine.model.zero_grad()
    mine.follow(mine.data).sum().backward()
    tell(*(each.grad for each in mine.model.parameters()))


def saved_hooks(mine):
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1):
        (x * x).exp().sum().backward()
    tell(x.grad)


def tell_names(prof):
    """As they come: what PyTorch 2.3 makes of them lacks some, others each time."""
    told.update(str(sorted(event.name() for event in prof.kineto_results.events())).encode())


def profiled(mine):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        custom(mine)
    tell_names(prof.profiler)


def profiled_by_autograd(mine):
    with torch.autograd.profiler.profile() as prof:
        some_inputs(mine)
    tell_names(prof)


def traced(mine):
    """An observer of all threads."""
    from torch.profiler import ExecutionTraceObserver
    with tempfile.TemporaryDirectory() as folder:
        observer = ExecutionTraceObserver().register_callback(f"{folder}/trace.json")
        observer.start()
        custom(mine)
        nested(mine)
        observer.stop()
        observer.unregister_callback()
        with open(f"{folder}/trace.json", encoding="utf-8") as file:
            told.update(str([node["name"] for node in json.load(file)["nodes"]]).encode())


def detected(mine):
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        (x * 2).sum().backward()
    tell(x.grad)


def one_rank(mine):
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    rank = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
    for _ in range(2):
        rank(mine.data).pow(2).mean().backward()
    tell(*(each.grad for each in rank.parameters()))


IN_THREADS = [step, throws, custom, backward_throws, hook_throws, vmapped, scripted, checkpointed, hooks, some_inputs, nested, lists, dispatch_mode,
              recurrent, saved_hooks]
PROGRAMS = [*IN_THREADS, records_off, compiled, profiled, profiled_by_autograd, traced, detected, one_rank]


def in_thread(programs, seed):
    """One thread at a time, so that numbers of threads and order are the same each time."""
    def work():
        mine = Local(seed)
        for program in programs:
            program(mine)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def run_random(seed):
    chosen = random.Random(seed)
    mine = Local(seed)
    for _ in range(chosen.randint(6, 14)):
        if chosen.random() < 0.2:
            in_thread(chosen.choices(IN_THREADS, k=chosen.randint(1, 4)), chosen.randint(1, 99))
        else:
            chosen.choice(PROGRAMS)(mine)


def main():
    with torch.autograd.profiler.record_function("all programs"):
        if sys.argv[1] == "known":
            mine = Local(1)
            for program in PROGRAMS:
                for _ in range(2):
                    program(mine)
                print(program.__name__, told.hexdigest())
            in_thread(IN_THREADS, 2)
        elif not sys.argv[1].isdigit():
            mine = Local(1)
            for program in sys.argv[1:]:
                globals()[program](mine)
        else:
            for seed in sys.argv[1:]:
                run_random(int(seed))
                print(seed, told.hexdigest())
    print(told.hexdigest())


main()
