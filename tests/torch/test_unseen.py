# SPDX-License-Identifier: Apache-2.0
"""What a program's own tools see of us: nothing. Each test runs a program with us and without, and what it prints is the same."""
import re

import pytest

from test_start import plain
from torch_tools import PACKAGE, every_python, run, table

TOOLS = """
import cProfile, gc, pstats, sys, torch
from torch.utils.data import DataLoader, TensorDataset

seen = set()

def ours():
    return sorted(str(place) for place in tuple(seen) if sys.argv[1] in str(place) or "stepscope._native" in str(place))

def note(frame, event, argument):
    if event == "call":
        seen.add((frame.f_code.co_filename, frame.f_code.co_name))
    elif event == "c_call":
        seen.add((argument.__module__, argument.__qualname__))
    return note

def in_worker(number):
    sys.setprofile(note)

class Ending(TensorDataset):  # the last thing that a worker does
    def __getitem__(self, index):
        value = super().__getitem__(index)
        if torch.utils.data.get_worker_info():
            return value[0], torch.tensor(len(ours()))
        return value[0], torch.tensor(0)

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
found = 0

def train(workers):
    global found
    loader = DataLoader(Ending(torch.randn(32, 8)), batch_size=8, num_workers=workers, worker_init_fn=in_worker if workers else None,
                        multiprocessing_context="fork" if workers else None)
    for batch, count in loader:
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found += count.sum().item()
    fresh = torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Linear(2, 1))  # modules that nobody has seen
    torch.optim.SGD(fresh.parameters(), lr=0.1).step()
    fresh(torch.ones(1, 8))
    gc.collect()
    print(loss.item().hex())

def look(tool):
    seen.clear()
    {"profile": sys.setprofile, "trace": sys.settrace}[tool](note)
    train(0), train(2)
    sys.setprofile(None), sys.settrace(None)
    print(tool, len(seen) > 100, ours())

train(0)
look("profile")
look("trace")
profiler = cProfile.Profile()
profiler.enable()
train(0), train(2)
profiler.disable()
seen = {(file, name) for file, _, name in pstats.Stats(profiler).stats}
print("cProfile", len(seen) > 100, ours())
if hasattr(sys, "monitoring"):
    seen.clear()
    tool, kinds = 4, sys.monitoring.events
    sys.monitoring.use_tool_id(tool, "test")
    sys.monitoring.register_callback(tool, kinds.PY_START, lambda code, offset: seen.add((code.co_filename, code.co_name)))
    sys.monitoring.set_events(tool, kinds.PY_START)
    train(0), train(2)
    sys.monitoring.set_events(tool, 0)
    print("monitoring", len(seen) > 100, ours())
print("in workers", found)
"""


@pytest.mark.parametrize("options", [(), ("--with", "shapes,memory,lines")], ids=["plain", "all"])
@every_python
def test_profilers_and_debuggers_see_nothing_of_ours(tmp_path, python, options):
    (tmp_path / "tools.py").write_text(TOOLS)
    ours, theirs = run(tmp_path, python, "tools.py", PACKAGE, options=options), plain(tmp_path, python, "tools.py", PACKAGE)
    assert ours.returncode == theirs.returncode == 0, ours.stderr
    assert ours.stdout == theirs.stdout
    assert theirs.stdout.count("True []") >= 3 and theirs.stdout.endswith("in workers 0\n")


BY_HAND = """
import sys, torch

class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        print(function)
        return super().__torch_function__(function, types, arguments, keywords or {})

others = [torch.ones(8, 8).as_subclass(Loud), torch.ones(8, 8, device="meta"), torch.eye(8).to_sparse(), torch.nn.parameter.UninitializedParameter()]
torch.manual_seed(0)
weights = [torch.randn(8, 8).requires_grad_(), torch.zeros(8).requires_grad_()]
momentum = [torch.zeros_like(weight) for weight in weights]
seen = []

def note(frame, event, argument):
    seen.append((event, frame.f_code.co_name))
    return note

def train():
    for _ in range(6):
        loss = torch.nn.functional.linear(torch.randn(4, 8), *weights).pow(2).mean()
        loss.register_hook(lambda gradient: None)
        loss.backward()
        with torch.no_grad():
            for weight, kept in zip(weights, momentum):
                kept.mul_(0.9).add_(weight.grad)
                weight -= 0.1 * kept
                weight.grad = None

{"profile": sys.setprofile, "trace": sys.settrace, "none": lambda note: None}[sys.argv[1]](note)
train()
sys.setprofile(None), sys.settrace(None)
print(seen)
print(sum(weight.sum() for weight in weights).item().hex())
"""


@pytest.mark.parametrize("tool", ["none", "profile", "trace"])
@every_python
def test_looking_at_all_tensors_of_a_program_is_not_seen(tmp_path, python, tool):
    """Which is done where no optimizer is PyTorch's."""
    ours = run(tmp_path, python, "-c", BY_HAND, tool, options=["--with", "memory"])
    assert ours.returncode == 0 and ours.stdout == plain(tmp_path, python, "-c", BY_HAND, tool).stdout, ours.stderr
    peaks = {row["category"]: row["peak_bytes"] for row in table(tmp_path, "memory")}
    if tool != "profile":  # its function runs first, in the middle of the call
        assert peaks["parameter"] == peaks["optimizer state"] == 4 * (8 * 8 + 8)


SPARSE = """
import sys, torch
from torch.utils._python_dispatch import TorchDispatchMode

class Names(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        print(function)
        return function(*arguments, **(keywords or {}))

torch.manual_seed(0)
table = torch.nn.Embedding(500, 16, sparse=True)
optimizer = torch.optim.SparseAdam(table.parameters())
def train():
    table(torch.tensor([1, 2, 2])).pow(2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
for _ in range(2):
    train()
with Names():
    train()
train()
if len(sys.argv) > 1:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        train()
    print(sorted((row.key, row.count) for row in prof.key_averages() if row.key.startswith("aten::_")))
print(table.weight.sum().item().hex())
"""


@every_python
def test_looking_at_sparse_gradients_runs_no_operator(tmp_path, python):
    """None that a mode or a profiler would see; and yet they are found."""
    ours = run(tmp_path, python, "-c", SPARSE, "profiled", options=["--with", "memory"])
    assert ours.stdout == plain(tmp_path, python, "-c", SPARSE, "profiled").stdout, ours.stderr
    assert "aten.add" in ours.stdout and "('aten::_" in ours.stdout
    peaks = {row["category"]: row["peak_bytes"] for row in table(tmp_path, "memory")}
    assert 3 * 16 * 4 + 3 * 8 <= peaks["gradient"] < 1000


WRAPPERS = """
import torch
from torch.utils._pytree import tree_map

class Scaled(torch.Tensor):  # as libraries make them that quantize: no memory of its own
    __slots__ = ["scale"]

    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=True)

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        print("dispatch", function)
        unwrap = lambda value: value.inner * value.scale if isinstance(value, cls) else value
        return function(*tree_map(unwrap, arguments), **tree_map(unwrap, keywords or {}))

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        print("function", getattr(function, "__name__", "?"))
        with torch._C.DisableTorchFunction():
            return function(*arguments, **(keywords or {}))

    def __getattr__(self, name):
        print("attribute", name)
        raise AttributeError(name)

    @property
    def _local_tensor(self):
        print("property")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, 8))
        self.register_buffer("packed", Scaled(torch.ones(64, 64), torch.ones(64, 1)).requires_grad_(False))

    def modules(self):
        print("modules")
        return super().modules()

    def forward(self, x):
        return x @ self.weight

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    print("step", step)
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@every_python
def test_no_code_of_the_programs_tensors_runs(tmp_path, python):
    ours = run(tmp_path, python, "-c", WRAPPERS, options=["--with", "memory,shapes"])
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == plain(tmp_path, python, "-c", WRAPPERS).stdout
    peaks = {row["category"]: row["peak_bytes"] for row in table(tmp_path, "memory")}
    assert peaks["buffer"] == 4 * (64 * 64 + 64)


STATE = """
import gc, logging, os, signal, sys, threading, torch, warnings
lowest = os.open("/dev/null", os.O_RDONLY)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
torch.manual_seed(3)
loader = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2, num_workers=2, multiprocessing_context="fork")
batches = iter(loader)
for batch in batches:
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print({thread.name for thread in threading.enumerate()} - {"QueueFeederThread"}, threading.Thread(target=int).name, lowest)
print(gc.get_threshold(), gc.isenabled(), gc.get_debug(), sys.getswitchinterval(), sys.getrecursionlimit(), os.umask(0o22))
for module in (sys, threading):
    print([getattr(module, name) is getattr(module, f"__{name}__") for name in dir(module) if f"__{name}__" in dir(module)])
print(sys.gettrace(), sys.getprofile(), sys.path[1:], sys.flags, [getattr(finder, "__name__", type(finder)) for finder in sys.meta_path], len(sys.path_hooks))
print(warnings.filters, warnings.showwarning.__module__, logging.root.handlers, logging.root.level, sorted(logging.root.manager.loggerDict))
print([(number, signal.getsignal(number)) for number in signal.valid_signals() if callable(signal.getsignal(number)) or number < 32])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL))
print(torch.get_rng_state().sum(), torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.get_num_interop_threads())
print(sorted(name for name in sys.modules if not name.startswith(("stepscope", "encodings."))))
print(sorted(vars(model)), sorted(vars(optimizer)), sorted(vars(batches)), sorted(set(os.environ) - {"PYTHONPATH"} - {name for name in os.environ if "STEPSCOPE" in name}))
"""


def lines_of(text):
    return [re.sub("0x[0-9a-f]+", "ADDRESS", line) for line in text.splitlines()]


@every_python
def test_the_rest_of_the_interpreter_is_as_without_us(tmp_path, python):
    """Also where a warning is an error, and each descriptor that is left open one."""
    (tmp_path / "state.py").write_text(STATE)
    command = [python, "-X", "dev", "-W", "error", "state.py"]
    ours, theirs = run(tmp_path, *command, options=["--with", "shapes,memory,lines"]), plain(tmp_path, *command)
    assert ours.returncode == theirs.returncode == 0, ours.stderr
    assert lines_of(ours.stdout) == lines_of(theirs.stdout)
    assert "".join(line for line in ours.stderr.splitlines(True) if not line.startswith("stepscope: ")) == theirs.stderr
