# SPDX-License-Identifier: Apache-2.0
"""The same steps recorded by us and by torch.profiler at once: the same operators with the same inputs, in the same order, and the same
allocations."""
import json
import subprocess
from collections import Counter

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, export, table, warm


def slices(events):
    """Complete slices of the thread of the range "window" that lie in it, by start, outer ones first."""
    found = [event for event in events if event.get("ph") == "X" and isinstance(event.get("dur"), (int, float))]
    window = next(event for event in found if event["name"] == "window")
    end = window["ts"] + window["dur"]
    inside = [event for event in found if event is not window and event["tid"] == window["tid"] and
              event["pid"] == window["pid"] and window["ts"] <= event["ts"] and event["ts"] + event["dur"] <= end + 0.002]
    return sorted(inside, key=lambda event: (event["ts"], -event["dur"]))


def is_torchs(event):
    """Not one of the steps, phases and Python's garbage collections that we add."""
    ours = ("stepscope::", "ProfilerStep#", "garbage collection ")
    return event.get("cat") in ("cpu_op", "user_annotation") and not event["name"].startswith(ours)


KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Sequence number", "Fwd thread id")


def details(events):
    """What is known of each operator beyond its name."""
    return [(event["name"], {key: event["args"][key] for key in KEYS if key in event["args"]}) for event in events
            if event["cat"] == "cpu_op"]


def as_told(ours, theirs):
    """Our details without what this PyTorch's profiler does not tell: 2.0 no values, 2.1 not what is in lists of tensors, 2.3 no strides."""
    told = set().union(*(args for _, args in theirs))
    has_lists = any(sizes and isinstance(sizes[0], list) for _, args in theirs for sizes in args.get("Input Dims", ()))
    for _, args in ours:
        if not has_lists and "Input type" in args:
            args["Input Dims"] = [[] if kind == "TensorList" else sizes for kind, sizes in zip(args["Input type"], args["Input Dims"])]
        if "Concrete Inputs" not in told and "Input type" in args:
            args["Input type"] = [kind.replace("ScalarList", "") for kind in args["Input type"]]
        for key in {"Input Strides", "Concrete Inputs"} - told:
            args.pop(key, None)
    return ours


def have_order(events):
    """Times of whole microseconds, which 1.13 to 2.3 write, have lost it for short operators."""
    return any(event["ts"] % 1 for event in events)


def counted(parts):
    return Counter(map(str, parts))


def links(events):
    """Places, among the slices of the window, of each operator and the node of the backward that it made."""
    inside = [event for event in slices(events) if is_torchs(event)]
    places, ends = {(event["tid"], event["ts"]): at for at, event in enumerate(inside)}, {}
    for event in events:
        if event.get("cat") == "fwdbwd":
            ends.setdefault(event["id"], {})[event["ph"]] = places.get((event["tid"], event["ts"]))
    return sorted((end["s"], end["f"]) for end in ends.values() if None not in end.values())


def numbers(events):
    return [event["args"]["Ev Idx"] for event in events if "Ev Idx" in event.get("args", {})]


def allocations(events):
    """Address and bytes of each, negative when it is released, while the range "window" lasts."""
    window = next(event for event in events if event["name"] == "window" and event.get("ph") == "X")
    found = [event for event in events if event["name"] == "[memory]" and
             window["ts"] <= event["ts"] <= window["ts"] + window["dur"]]
    return [(event["args"]["Addr"], event["args"]["Bytes"]) for event in sorted(found, key=lambda event: event["ts"])]


@pytest.mark.parametrize("model", ["gpt", "conv", "lstm", "sparse", "functorch"])
@every_python
def test_the_same_operators_as_torch_profiler(tmp_path, python, model):
    done = warm(tmp_path, python, HERE / "models.py", model, options=["--with", "memory,shapes"])
    assert done.returncode == 0, done.stderr
    exported = export(tmp_path)
    assert len(numbers(exported)) == len(set(numbers(exported)))
    assert not [row for row in table(tmp_path, "ledger") if row["what"] == "unmatched end"]
    found = slices(event for event in exported if is_torchs(event))
    ours = [event["name"] for event in found]
    trace = json.loads((tmp_path / "theirs.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    theirs = slices(events)
    arranged = list if have_order(theirs) else counted
    assert arranged(ours) == arranged(event["name"] for event in theirs)
    if isinstance(trace, list):  # 1.13 without Kineto: names alone
        return
    assert arranged(as_told(details(found), details(theirs))) == arranged(details(theirs))
    assert arranged(allocations(exported)) == arranged(allocations(events))
    if arranged is list:
        assert links(exported) == links(events) != []


SCRIPTED = """
import torch
from collections import Counter
from torch.profiler import ProfilerActivity, profile, record_function
@torch.jit.script
def twice(x):
    return x * 2 + x
traced = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.ones(2, 3))
with profile(activities=[ProfilerActivity.CPU]) as prof, record_function("window"):
    for _ in range(4):
        twice(torch.ones(3))
        traced(torch.ones(2, 3))
counts = Counter(event.name for event in prof.events())
print([counts[name] for name in ("twice", "forward", "aten::addmm")])
"""


@every_python
def test_functions_of_torchscript_are_recorded(tmp_path, python):
    """As torch.profiler does, which follows the same scope."""
    (tmp_path / "scripted.py").write_text(SCRIPTED)
    done = warm(tmp_path, python, "scripted.py")
    assert (done.returncode, done.stdout) == (0, "[4, 4, 4]\n"), done.stderr
    events = export(tmp_path)
    window = next(event for event in events if event["name"] == "window")
    within = Counter(event["name"] for event in events if event.get("cat") == "cpu_op" and event["tid"] == window["tid"]
                     and window["ts"] <= event["ts"] <= window["ts"] + window["dur"])
    assert [within[name] for name in ("twice", "forward", "aten::addmm")] == [4, 4, 4]


PASSING = """
import gc, torch
x = torch.ones(2)
for number in range(20):
    library = torch.library.Library("mine", "DEF")
    library.define(f"op{number:02d}(Tensor a) -> Tensor")
    library.impl(f"op{number:02d}", lambda a: a + 1, "CPU")
    for _ in range(number + 1):
        getattr(torch.ops.mine, f"op{number:02d}")(x)
    if hasattr(library, "_destroy"):
        library._destroy()
    del library
    gc.collect()
"""


@every_python
def test_an_operator_in_the_place_of_one_that_went_has_its_own_name(tmp_path, python):
    """The next one's schema comes to lie where the last one's was."""
    (tmp_path / "passing.py").write_text(PASSING)
    done = warm(tmp_path, python, "passing.py")
    assert done.returncode == 0, done.stderr
    mine = [event["name"] for event in export(tmp_path) if event["name"].startswith("mine::")]
    assert Counter(mine) == {f"mine::op{number:02d}": number + 1 for number in range(20)}


STATIC = """
import io, torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x * 2 + x).relu()
from torch.jit.mobile import _load_for_lite_interpreter
scripted = torch.jit.script(Model().eval())
static = torch._C._jit_to_static_module(torch.jit.freeze(scripted)._c)
lite = _load_for_lite_interpreter(io.BytesIO(scripted._save_to_buffer_for_lite_interpreter()))
for name, model in (("static", static), ("lite", lite)):
    with torch.no_grad(), torch.profiler.record_function(name):
        for _ in range(4):
            model(torch.ones(3))
"""


def operators_within(events, name):
    (around,) = [event for event in events if event["name"] == name]
    return Counter(event["name"] for event in events if event.get("cat") == "cpu_op" and around["ts"] <= event["ts"] <= around["ts"] + around["dur"])


@every_python
def test_the_static_runtime_is_recorded_by_its_own_names(tmp_path, python):
    """It calls most operators without PyTorch's dispatcher; the interpreter for phones calls all of them with it."""
    (tmp_path / "static.py").write_text(STATIC)
    done = warm(tmp_path, python, "static.py", options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    events = export(tmp_path)
    static, lite = (operators_within(events, name) for name in ("static", "lite"))
    its = [f"static runtime: {name}" for name in ("forward", "aten::mul", "aten::add", "aten::sigmoid", "aten::relu")]
    assert [static[name] for name in its] == [4] * 5 and not static["aten::sigmoid"]
    assert [lite[name] for name in ("aten::add", "aten::sigmoid", "aten::relu")] == [4] * 3 and not lite[its[1]]
    torchs = subprocess.run([STEPSCOPE, "report", "run", "--style", "torch", "--limit", "-1"], cwd=tmp_path, timeout=60, env=environment(),
                            capture_output=True, text=True, check=True).stdout
    assert "aten::mul" in torchs and "static runtime" not in torchs


SCHEDULED = """
import torch
from torch.profiler import ProfilerActivity, profile, schedule
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2)) as prof:
    for _ in range(4):
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        prof.step()
"""


@every_python
def test_a_step_of_torchs_profiler_is_exported_once(tmp_path, python):
    """It writes ranges around the steps that it counts, and one that is empty behind the last."""
    (tmp_path / "scheduled.py").write_text(SCHEDULED)
    done = warm(tmp_path, python, "scheduled.py")
    assert done.returncode == 0, done.stderr
    names = [event["name"] for event in export(tmp_path) if event["name"].startswith("ProfilerStep#")]
    assert names == [f"ProfilerStep#{row['step']}" for row in table(tmp_path, "steps")] and len(names) == 4


DEEP = """
import contextlib, torch
with contextlib.ExitStack() as stack:
    for level in range(300):
        stack.enter_context(torch.profiler.record_function(f"level {level}"))
    torch.ones(2)
"""


@every_python
def test_what_lies_too_deep_is_counted(tmp_path, python):
    done = warm(tmp_path, python, "-c", DEEP)
    assert done.returncode == 0, done.stderr
    names = {event["name"] for event in export(tmp_path)}
    dropped = sum(row["count"] for row in table(tmp_path, "ledger") if row["what"] == "dropped")
    assert "level 255" in names and "level 256" not in names
    assert dropped >= 300 - 256 + 1
