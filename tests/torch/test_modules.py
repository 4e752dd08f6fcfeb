# SPDX-License-Identifier: Apache-2.0
"""Modules: the calls that hooks of the program's own see are those that we record, operators lie in the right ones, and whatever else looks at
modules finds them as without us."""
import json
import re
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, check_python_ids, environment, every_python, export, run, run_ranks, table, version, warm

PROGRAM = HERE / "modules.py"


def calls(events):
    found = [event for event in events if event["name"].startswith("nn.Module: ")]
    return sorted(found, key=lambda event: (event["ts"], -event["dur"]))


@pytest.mark.parametrize("model", ["gpt", "conv", "lstm"])
@every_python
def test_the_calls_that_the_programs_own_hooks_see(tmp_path, python, model):
    done = warm(tmp_path, python, PROGRAM, "stamp", model)
    assert done.returncode == 0, done.stderr
    events = export(tmp_path)
    assert check_python_ids(events) == (0, len(calls(events)))
    ours, theirs = calls(events), json.loads((tmp_path / "calls.json").read_text())
    assert [event["name"][len("nn.Module: "):] for event in ours] == [path for path, _, _ in theirs]
    for event, (_, start, end) in zip(ours, theirs):
        assert event["dur"] >= (end - start) / 1000 * 0.999 - 1, "our span is around the hooks' stamps"
    check_operators(events, ours)
    check_tables(tmp_path, theirs)


def check_operators(events, modules):
    """The innermost module around each forward operator that only one kind of module calls."""
    only = {"aten::linear": ("qkv", "out", "mlp.0", "mlp.2", "3", "5"), "aten::layer_norm": ("norm1", "norm2"), "aten::lstm": ("0",),
            "aten::embedding": ("0",), "aten::conv2d": ("0",), "aten::max_pool2d": ("3",)}
    seen, is_lstm = 0, any(event["name"] == "aten::lstm" for event in events)
    for event in events:
        if event["name"] not in only or event.get("ph") != "X" or (is_lstm and event["name"] == "aten::linear"):
            continue
        around = [module for module in modules if module["tid"] == event["tid"] and module["ts"] <= event["ts"] and
                  event["ts"] + event["dur"] <= module["ts"] + module["dur"] + 0.002]
        innermost = min(around, key=lambda module: module["dur"])["name"].split(": ")[1]
        assert innermost.endswith(only[event["name"]]), (event["name"], innermost)
        seen += 1
    assert seen


def check_tables(tmp_path, theirs):
    rows = {row["module"]: row for row in table(tmp_path, "modules")}
    assert {path: row["calls"] for path, row in rows.items()} == {path: sum(one[0] == path for one in theirs) for path in rows}
    assert list(rows) == list(dict.fromkeys(path for path, _, _ in theirs)), "in the order of the calls"
    root = next(iter(rows.values()))
    assert root["depth"] == 0 and root["backward_ns"] > 0
    assert sum(row["forward_self_ns"] for row in rows.values()) == root["forward_ns"]
    assert sum(row["backward_self_ns"] for row in rows.values()) == root["backward_ns"]
    with_weights = [row for row in rows.values() if row["module"].endswith(("qkv", "out", "mlp.0", "mlp.2"))]
    assert all(row["backward_self_ns"] > 0 for row in with_weights)
    steps = table(tmp_path, "steps")
    assert len(steps) == 2 and all(row["forward_ns"] > 0 and row["backward_ns"] > 0 for row in steps)


@every_python
def test_what_a_checkpoint_computes_again_is_told_apart(tmp_path, python):
    done = warm(tmp_path, python, PROGRAM, "checkpoint")
    assert done.returncode == 0, done.stderr
    rows = {row["module"]: row for row in table(tmp_path, "modules")}
    assert list(rows) == ["Checked", "inner", "inner.0", "inner.1", "head"]
    assert all(row["calls"] == 2 for row in rows.values())
    assert all(rows[path]["recompute_ns"] > 0 for path in ("inner.0", "inner.1"))
    assert rows["head"]["recompute_ns"] is None and rows["Checked"]["recompute_ns"] is None


REENTRANT = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
kept = {} if torch.__version__.startswith("1.") else {"use_reentrant": True}
class Checked(nn.Sequential):
    def forward(self, x):
        return checkpoint(super().forward, x, **kept)
model = Checked(*(nn.Linear(512, 512) for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(6):
    model(torch.ones(512, 512, requires_grad=True)).sum().backward()
    optimizer.step()
"""


@every_python
def test_what_is_computed_again_is_counted_once(tmp_path, python):
    """A backward inside of a backward: with either counted twice the modules have more time than the steps."""
    done = warm(tmp_path, python, "-c", REENTRANT)
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path, "modules")
    assert any(row["recompute_ns"] for row in rows) and 0.3 < sum(row["self_ratio"] for row in rows) <= 1


FORCES = """
import torch
from torch import nn
class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 1))
    def forward(self, x):
        return torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)[0]
model = Forces()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(6):
    model(torch.ones(512, 256, requires_grad=True)).pow(2).mean().backward()
    optimizer.step()
"""


@every_python
def test_a_backward_in_a_call_is_counted_once(tmp_path, python):
    done = warm(tmp_path, python, "-c", FORCES)
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path, "modules")
    (model,) = [row for row in rows if row["module"] == "Forces"]
    assert 0.3 < sum(row["self_ratio"] for row in rows) <= 1 and model["forward_self_ns"] < model["forward_ns"] / 2


THREADS = """
import threading, torch
from torch import nn
def train():
    model = nn.Linear(64, 64)
    for _ in range(10):
        model(torch.ones(512, 64)).sum().backward()
optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1e-3)
model = nn.Sequential(nn.Linear(2, 2))
for _ in range(3):
    model(torch.ones(2, 2)).sum().backward()
    threads = [threading.Thread(target=train) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    optimizer.step()
"""


@every_python
def test_shares_are_of_the_threads_that_carry_steps(tmp_path, python):
    done = run(tmp_path, python, "-c", THREADS)
    assert done.returncode == 0, done.stderr
    rows = {row["module"]: row for row in table(tmp_path, "modules")}
    assert rows["Linear"]["self_ratio"] == 0 and rows["Linear"]["calls"] == 240 and rows["Sequential"]["self_ratio"] > 0


ALONE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
        self.scale_of_what_the_convolution_gave = nn.Linear(36, 36)
        count = self.scale_of_what_the_convolution_gave(self.features(torch.zeros(1, 1, 5, 8)).flatten(1)).numel()  # as constructors do
        self.head = nn.Linear(count, 3)
    def forward(self, x):
        return self.head(self.scale_of_what_the_convolution_gave(self.features(x).flatten(1)))
class Wrapper(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
    def forward(self, x):
        return self.net(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(1, 1, 5, 8)).sum().backward()
    optimizer.step()
    Wrapper(net)(torch.ones(1, 1, 5, 8))
"""


def printed(tmp_path, *options):
    return subprocess.run([STEPSCOPE, "report", "run", "--by", "module", *options], cwd=tmp_path, timeout=60, env=environment(COLUMNS=60),
                          capture_output=True, text=True, check=True).stdout


def tells_owners(python):
    """PyTorch does from 2.0 on."""
    return not version(python).startswith("1.")


def counted(tmp_path, python, program):
    """Calls by module."""
    (tmp_path / "program.py").write_text(program)
    done = warm(tmp_path, python, "program.py")
    assert done.returncode == 0, done.stderr
    return {row["module"]: row["calls"] for row in table(tmp_path, "modules")}


PARTS = """
import torch
from torch import nn
class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.decoder = nn.Linear(8, 2)
model, x = Seq2Seq(), torch.ones(3, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    model.decoder(model.encoder(x)).sum().backward()
    optimizer.step()
"""
REPLACED = PARTS + """
for _ in range(2):
    train()
probe = nn.Sequential(model.encoder, nn.Linear(8, 1))  # has it, too, but came later, and goes
del probe
model.decoder = nn.Sequential(nn.Linear(8, 2))
train()
"""


@every_python
def test_parts_of_a_model_that_is_never_called(tmp_path, python):
    rows = counted(tmp_path, python, REPLACED)
    if tells_owners(python):
        assert rows == {"encoder": 3, "encoder.0": 3, "encoder.1": 3, "decoder": 3, "decoder.0": 1}
    else:
        assert rows == {"Sequential": 3, "0": 3, "1": 3, "Linear": 2, "Sequential#2": 1, "Sequential#2.0": 1}


COPIED = PARTS + """
import copy, pickle
model = copy.deepcopy(model) if IS_COPY else pickle.loads(pickle.dumps(model))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    train()
"""


@pytest.mark.parametrize("is_copy", [True, False], ids=["a copy", "loaded whole"])
@every_python
def test_parts_of_a_copy(tmp_path, python, is_copy):
    rows = counted(tmp_path, python, f"IS_COPY = {is_copy}" + COPIED)
    assert rows == {"encoder": 2, "encoder.0": 2, "encoder.1": 2, "decoder": 2}


WRAPPED = PARTS + """
import os, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
if PART:
    model.encoder = nn.parallel.DistributedDataParallel(model.encoder)
    train()
else:
    whole = nn.parallel.DistributedDataParallel(model)
    x = whole.module.encoder(x)
    whole.module.decoder(x).sum().backward()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("is_part", [True, False], ids=["a part is wrapped", "the whole is wrapped"])
@every_python
def test_parts_of_a_wrapped_model(tmp_path, python, is_part):
    if not tells_owners(python):
        pytest.skip("PyTorch 1.13 does not tell whose part a module is")
    rows = counted(tmp_path, python, f"PART = {is_part}" + WRAPPED)
    wrapper = {"encoder (DistributedDataParallel)": 1} if is_part else {}
    assert rows == {**wrapper, "encoder": 1, "encoder.0": 1, "encoder.1": 1, "decoder": 1}


SAME_CLASS = """
import copy, torch
from torch import nn
class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(4, size)
    def forward(self, x):
        return self.fc(x)
class Trainer:  # PyTorch does not know of what lies in it
    def __init__(self):
        self.student, self.critics = Net(4), [Net(1), nn.Linear(4, 1)]
        self.teacher = copy.deepcopy(self.student)
trainer, x = Trainer(), torch.ones(3, 4)
optimizer = torch.optim.SGD(trainer.student.parameters(), lr=0.1)
for _ in range(3):
    y = trainer.student(x)
    loss = (y - trainer.teacher(x)).pow(2).sum()
    for critic in trainer.critics:
        loss = loss + critic(y).sum()
    loss.backward()
    optimizer.step()
"""


@every_python
def test_models_of_one_class_are_told_apart(tmp_path, python):
    rows = counted(tmp_path, python, SAME_CLASS)
    assert rows == {"Net": 3, "fc": 3, "Net#2": 3, "Net#2.fc": 3, "Net#3": 3, "Net#3.fc": 3, "Linear": 3}
    text = printed(tmp_path)
    assert "\n  Net  " in text and "\n  Net#2  " in text and text.count("\n    fc  ") == 3, text
    assert {"nn.Module: Net", "nn.Module: Net#2", "nn.Module: Net#3"} <= {event["name"] for event in export(tmp_path)}


KNOWN = """
import torch
from torch import nn
from stepscope import _modules
lasting = nn.ModuleList(nn.Identity() for _ in range(100))
lasting.last, x = None, torch.ones(1)
for _ in range(15000):
    lasting.last = nn.Sequential(nn.Identity())
    lasting.last[0](x)
owners = _modules._owners
print(len(owners.fresh) < 9000, len(owners.found) < 9000, owners.place(lasting[99]) == (lasting, '99'),
      owners.place(lasting.last[0]) == (lasting, 'last.0'))
"""


@every_python
def test_what_is_gone_is_forgotten(tmp_path, python):
    if not tells_owners(python):
        pytest.skip("PyTorch 1.13 does not tell whose part a module is")
    assert warm(tmp_path, python, "-c", KNOWN).stdout == "True True True True\n"


@every_python
def test_what_was_called_alone_before_its_model_has_its_path_in_it(tmp_path, python):
    """But a model that was trained already keeps its paths when it is called within another one, lest it be two rows."""
    (tmp_path / "alone.py").write_text(ALONE)
    done = warm(tmp_path, python, "alone.py")
    assert done.returncode == 0, done.stderr
    names = [event["name"][len("nn.Module: "):] for event in calls(export(tmp_path))]
    if tells_owners(python):
        assert names[:4] == ["features", "features.0", "features.1", "scale_of_what_the_convolution_gave"]
    else:
        assert names[:4] == ["Sequential", "0", "1", "Linear"], "nobody could know then"
    once = ["Net", "features", "features.0", "features.1", "scale_of_what_the_convolution_gave", "head"]
    assert names[4:] == 3 * (once + ["Wrapper"] + once)
    text = printed(tmp_path)
    assert "\n  Net  " in text and "\n    features  " in text and "\n      0  " in text, "a tree"
    text = printed(tmp_path, "--sort", "calls")
    assert "\n  features.0  " in text, "in another order paths are whole"
    assert "\n  ~what_the_convolution_gave  " in text, "or their ends"


@every_python
def test_whatever_else_looks_at_modules_finds_them_as_without_us(tmp_path, python):
    done = run(tmp_path, python, PROGRAM, "oddities")
    bare = subprocess.run([python, PROGRAM, "oddities"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300,
                          check=False)
    assert bare.returncode == 0, bare.stderr
    assert done.stdout == bare.stdout and "KeyError('mine')" in done.stdout
    assert table(tmp_path, "ledger") == [] or all(row["what"] != "unmatched end" for row in table(tmp_path, "ledger"))


@every_python
def test_a_compiler_sees_the_same(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("PyTorch 1.13 has no torch.compile")
    done = run(tmp_path, python, PROGRAM, "compiled")
    bare = subprocess.run([python, PROGRAM, "compiled"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300,
                          check=False)
    assert bare.returncode == 0, bare.stderr
    assert done.stdout == bare.stdout and "unique_graphs" in done.stdout and "graph_break []" not in done.stdout
    ours, theirs = (re.sub(r"^\[[-0-9]+ [:,0-9]+\] ", "", text, flags=re.M).splitlines() for text in (done.stderr, bare.stderr))  # 2.1 logs the time
    assert [line for line in ours if not line.startswith("stepscope: ")] == theirs


@every_python
def test_wrappers_are_no_part_of_the_path(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("Debian's torchrun 1.13 cannot start ranks under its Python 3.11, with or without us")
    done = run_ranks(tmp_path, python, "-m", "torch.distributed.run", "--nproc_per_node", "2", PROGRAM, "ddp", env={"OMP_NUM_THREADS": 1})
    assert done.returncode == 0, done.stderr
    rows = {row["module"]: row["calls"] for row in table(tmp_path, "modules")}
    assert rows == {"DistributedDataParallel": 4, "Sequential": 4, "0": 4, "1": 4}
