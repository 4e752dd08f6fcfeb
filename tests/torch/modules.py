# SPDX-License-Identifier: Apache-2.0
"""Trains one of the models of models.py with hooks of its own that stamp each call of a module, into calls.json; or does with modules what
must come out the same with us and without. Used by test_modules.py."""
import copy
import io
import json
import pickle
import sys
import threading
import time
import traceback
import warnings
import weakref

import torch
from torch import nn

import models

STEPS = 2


def paths(model):
    return {id(module): name or type(model).__name__ for name, module in model.named_modules()}


def stamp():
    """Each call as [path, start, end], in the order of their starts."""
    model, data = getattr(models, sys.argv[2])()
    names, calls, open_calls = paths(model), [], []

    def before(module, arguments):
        calls.append([names[id(module)], time.monotonic_ns(), 0])
        open_calls.append(calls[-1])

    def after(module, arguments, result):
        open_calls.pop()[2] = time.monotonic_ns()

    for module in model.modules():
        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        model(data()).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    with open("calls.json", "w", encoding="utf-8") as file:
        json.dump(calls, file)


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        kept = {"use_reentrant": False} if not torch.__version__.startswith("1.") else {}
        return self.head(torch.utils.checkpoint.checkpoint(self.inner, x, **kept))


def checkpoint():
    import torch.utils.checkpoint
    model = Checked()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        model(torch.ones(2, 4, requires_grad=True)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(4, 4)

    def forward(self, x, fails):
        x = self.part(x)
        if fails:
            raise KeyError("mine")
        return x


class Asked(nn.Module):
    """Its mode is a property, as in what torch.compile makes."""

    times = 0

    @property
    def training(self):
        Asked.times += 1
        raise KeyboardInterrupt

    @training.setter
    def training(self, value):
        pass

    def forward(self, x):
        return x


def owned():
    """What has parts, and what the parts are in."""
    part = nn.Linear(4, 4)
    whole = nn.ModuleDict({"part": part, "other": nn.ModuleList([part, nn.ReLU()])})
    before = sys.getrefcount(part), sys.getrefcount(whole)
    whole.again, whole["part"] = part, part
    part(torch.ones(1, 4))
    print(before, sys.getrefcount(part), sys.getrefcount(whole), sorted(vars(part)), pickle.loads(pickle.dumps(whole)))
    print(repr(copy.deepcopy(whole)), list(whole.state_dict()))
    part.whole = whole  # each has the other
    part(torch.ones(1, 4))
    del part.whole
    print(whole.again is part, len(list(whole.named_modules())))
    gone = weakref.ref(whole), weakref.ref(part)
    del whole
    print(gone[0]() is None, sys.getrefcount(part))
    del part
    print(gone[1]() is None)


def oddities():
    """Everything is printed: it must be the same without us."""
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    owned()
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Fails()))
    x = torch.randn(3, 4)
    fails = model[1][1]
    for is_failing in (False, True, False):
        try:
            print(fails(x, is_failing).sum().item().hex())
        except KeyError as problem:
            print(repr(problem), [(entry.name, entry.lineno) for entry in traceback.extract_tb(problem.__traceback__)])
    print(Asked()(x) is x, Asked.times)
    plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    plain(x)
    copied = copy.deepcopy(plain)
    print(sorted(vars(copied)) == sorted(vars(nn.Sequential())), torch.equal(pickle.loads(pickle.dumps(plain))[0].weight, copied[0].weight))
    traced, scripted = torch.jit.trace(plain, x), torch.jit.script(plain)
    print(str(traced.graph), scripted.code, traced(x).sum().item().hex(), scripted(x).sum().item().hex())
    torch.jit.save(scripted, io.BytesIO())
    print(torch.fx.symbolic_trace(plain).code)
    print(nn.DataParallel(plain)(x).sum().item().hex())
    results = []
    threads = [threading.Thread(target=lambda: results.append(plain(x).sum().item())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(set(results)))
    if hasattr(torch, "func"):
        parameters = dict(plain.named_parameters())
        gradient = torch.func.grad(lambda values, one: torch.func.functional_call(plain, values, (one,)).sum())
        print([value.shape for value in torch.func.vmap(gradient, (None, 0))(parameters, x).values()])
    print(nn.Module.__call__.__qualname__, nn.modules.module._global_forward_hooks, nn.modules.module._global_backward_hooks)


def compiled():
    """Frames, graphs, breaks and recompilations, printed."""
    import torch._dynamo
    from torch._dynamo.utils import counters

    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.hooked = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.hooked.register_forward_hook(lambda module, arguments, result: result + 1)

        def forward(self, x):
            x = self.first(x)
            self.last = self.first
            torch._dynamo.graph_break()
            return self.hooked(self.second(x).relu())

    for make in (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Broken):
        torch.manual_seed(1)
        model = make()
        whole = torch.compile(model, backend="eager")
        function = torch.compile(lambda x: model(x) * 2, backend="eager")
        for rows in (2, 3, 5, 3):
            print(whole(torch.ones(rows, 4)).sum().item().hex(), function(torch.ones(rows, 4)).sum().item().hex())
        model(torch.ones(2, 4))
    for name in ("frames", "stats", "graph_break", "unimplemented", "recompiles"):
        print(name, sorted((str(key), count) for key, count in counters[name].items()))


def ddp():
    import torch.distributed as dist
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    for _ in range(STEPS):
        model(torch.ones(2, 4)).sum().backward()
    dist.barrier()
    dist.destroy_process_group()


globals()[sys.argv[1]]()
