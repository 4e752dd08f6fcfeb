# SPDX-License-Identifier: Apache-2.0
"""Lines of Python: each operator's stack is the one that the program itself saw, in code of every kind; nothing else changes."""
import json
import re

import pytest

from torch_tools import HERE, check_python_ids, every_python, export, run, table

KEPT = 128
LIBRARIES = re.compile(r".*/(?:site-packages|dist-packages|lib/python3[0-9.]*)/")


def short(place):
    file, line, name = place
    return f"{LIBRARIES.sub('', file)}({line}): {name}"


def read_stacks(tmp_path):
    """By the size of its input, the Python functions around each `neg`, outermost first."""
    slices = [event for event in export(tmp_path) if event.get("ph") == "X"]
    functions, found = {}, {}
    for event in slices:
        if event.get("cat") == "python_function" and event["args"].get("stepscope reconstructed"):  # not the modules
            functions.setdefault(event["tid"], []).append(event)
    for threads in functions.values():
        threads.sort(key=lambda event: (event["ts"], -event["dur"], event["args"]["Python id"]))
    for thread, events in functions.items():
        negs = sorted((event for event in slices if event["name"] == "aten::neg" and event["tid"] == thread), key=lambda e: e["ts"])
        open_ones, following = [], iter(events)
        event = next(following, None)
        for neg in negs:
            while event is not None and event["ts"] <= neg["ts"]:
                open_ones.append(event)
                event = next(following, None)
            open_ones = [one for one in open_ones if one["ts"] + one["dur"] >= neg["ts"] + neg["dur"] - 0.0005]
            found[neg["args"]["Input Dims"][0][0]] = [one["name"] for one in open_ones]
    return found


def expected(chain):
    names = [short(place) for place in chain]
    return names if len(names) <= KEPT else ["(more frames)"] + names[-KEPT:]


@pytest.mark.parametrize("case", ["kinds", "recursion", "codes", "threads", "forks"])
@every_python
def test_stacks_are_those_that_the_program_saw(tmp_path, python, case):
    done = run(tmp_path, python, HERE / "lines.py", case, options=["--with", "lines,shapes"])
    assert done.returncode == 0, done.stderr
    truth = json.loads((tmp_path / "truth.json").read_text())
    found = read_stacks(tmp_path)
    assert len(found) == len(truth)
    for size, chain in enumerate(truth, 1):
        assert found[size] == expected(chain), size


MODEL = """
import sys, torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        hidden = self.first(x).relu()
        return x + self.second(hidden)

torch.manual_seed(1)
model = nn.Sequential(Block(), Block())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(8, 32)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 20:
        print(loss.item().hex())
print(sum(p.sum().item() for p in model.parameters()).hex())
"""


def train(tmp_path, python, steps, *options):
    (tmp_path / "train.py").write_text(MODEL)
    done = run(tmp_path, python, "train.py", steps, options=options, timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout


@every_python
def test_lines_have_their_forward_and_its_backward(tmp_path, python):
    train(tmp_path, python, 5, "--with", "lines")
    rows = {row["source"]: row for row in table(tmp_path, "lines")}
    for source in ("hidden = self.first(x).relu()", "return x + self.second(hidden)", "loss = model(torch.randn(8, 32)).pow(2).mean()"):
        assert rows[source]["issued_ns"] > 0 and rows[source]["backward_ns"] > 0, source
        assert rows[source]["line"] == f"train.py:{MODEL[:MODEL.index(source)].count(chr(10)) + 1}"
    assert rows["hidden = self.first(x).relu()"]["function"] in ("Block.forward", "forward")
    assert rows["optimizer.step()"]["backward_ns"] == 0 < rows["optimizer.step()"]["issued_ns"]
    cost = [row for row in table(tmp_path, "cost") if row["stacks_ns"]]
    assert cost and cost[0]["stacks_ns"] < cost[0]["cpu_ns"]
    total = sum(row["self_ns"] for row in rows.values())
    assert total == sum(row["issued_ns"] + row["backward_ns"] for row in rows.values())
    # what accumulates gradients has no forward, and belongs to who started the backward
    assert 0 < rows["loss.backward()"]["issued_ns"] < total


# what they say is the same whatever lies outside of the steps
OF_STEPS = ("step_time", "phases", "step_breakdown", "ops", "modules", "top_modules", "lines", "stacks", "operator_patterns", "facts", "ledger")


@every_python
def test_all_steps_by_their_numbers_are_all_steps(tmp_path, python):
    """Threads say before the first step who they are, which links from forward to backward need."""
    train(tmp_path, python, 5, "--with", "lines,shapes")
    for name in OF_STEPS:
        assert table(tmp_path, name) == table(tmp_path, name, "--steps", "0-4"), name
    assert table(tmp_path, "modules", "--steps", "2-3")[0]["backward_ns"] > 0
    flows, few = ([event for event in export(tmp_path, *options) if event.get("cat") == "fwdbwd"] for options in ((), ("--steps", "2-3")))
    assert flows and 5 * len(few) == 2 * len(flows)


def around(event, slices):
    """Names of what it lies in, outermost first; its own last."""
    end = event["ts"] + event["dur"]
    found = [one for one in slices if one["tid"] == event["tid"] and one["ts"] <= event["ts"] and end <= one["ts"] + one["dur"] + 0.0005]
    return [one["name"] for one in sorted(found, key=lambda one: -one["dur"])]


@every_python
def test_a_module_lies_in_the_frame_that_calls_it_and_its_forward_in_it(tmp_path, python):
    train(tmp_path, python, 3, "--with", "lines")
    events = export(tmp_path)
    functions, modules = check_python_ids(events)
    assert functions > modules == 3 * 7
    slices = [event for event in events if event.get("ph") == "X" and (event["cat"] == "cpu_op" or event["cat"] == "python_function")]
    source = lambda text: MODEL[:MODEL.index(text)].count("\n") + 1
    linears = [event for event in slices if event["name"] == "aten::linear"]
    assert len(linears) == 3 * 4
    for number, event in enumerate(sorted(linears, key=lambda one: one["ts"])):
        names = [name for name in around(event, slices) if not re.match(r"torch/nn/modules/module|.*_call_impl", name)]
        names = [re.sub(r" (?:Block|Sequential|Linear)\.forward$", " forward", name) for name in names]
        names = [re.sub(r"^torch/.*/(\w+\.py)\(\d+\)", r"\1", name) for name in names]
        block, part = divmod(number % 4, 2)
        line = source("x + self.second") if part else source("hidden = ")
        assert names == [f"train.py({source('loss = ')}): <module>", "nn.Module: Sequential", "container.py: forward",
                         f"nn.Module: {block}", f"train.py({line}): forward", f"nn.Module: {block}.{'second' if part else 'first'}",
                         "linear.py: forward", "aten::linear"]


@every_python
def test_results_are_the_same_and_names_do_not_grow_with_the_steps(tmp_path, python):
    known, printed = [], []
    for steps in (50, 1000):
        folder = tmp_path / str(steps)
        folder.mkdir()
        printed.append(train(folder, python, steps, "--with", "lines"))
        known.append({row["stack"] for row in table(folder, "stacks")})
        lost = [row for row in table(folder, "ledger") if row["what"] == "dropped"]
        assert not lost
    assert known[0] == known[1]
    bare = tmp_path / "bare"
    bare.mkdir()
    assert printed[0] == train(bare, python, 50)
    assert not table(bare, "lines")


# each leaves the others alone: pitfalls of observers, with lines
HARMLESS = {
    "fork beside busy threads": """
import os, threading, torch
over, begun = False, set()
def work():
    while not over:
        torch.ones(8).neg()
        begun.add(threading.get_ident())
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
# PyTorch itself takes a lock in each thread's first operator, which a fork would leave taken in the child
torch.ones(8).neg()
while len(begun) < 2:
    pass
for i in range(10):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            torch.ones(8).neg()
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
over = True
[thread.join() for thread in threads]
""",
    "short threads": """
import resource, threading, torch
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def run(count):
    for _ in range(count):
        thread = threading.Thread(target=lambda: torch.ones(2).neg())
        thread.start()
        thread.join()
run(300)
before = peak()
run(1500)
assert peak() - before < 8192, peak() - before
""",
    "start and stop beside busy threads": """
import threading, torch
from stepscope import _native
over = False
def work():
    while not over:
        (lambda: torch.ones(8).neg())()
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
for i in range(1000):
    _native.torch_stop()
    _native.torch_want_lines(i % 2 == 0)
    _native.torch_start()
over = True
[thread.join() for thread in threads]
""",
    "the other profiler": """
import torch
from torch.profiler import ProfilerActivity, profile
for _ in range(3):
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        torch.ones(8).neg()
    assert any(event.name == "aten::neg" for event in prof.events())
""",
    "operators that throw, and deep recursion that ends": """
import sys, torch
def deep():
    torch.ones(2).neg()
    deep()
for _ in range(1000):
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError:
        pass
for _ in range(3):
    try:
        deep()
    except RuntimeError:  # RecursionError is one, and PyTorch 1.13 makes a plain one of it
        pass
""",
}


@pytest.mark.parametrize("what", HARMLESS)
@every_python
def test_harmless(tmp_path, python, what):
    (tmp_path / "program.py").write_text(HARMLESS[what])
    done = run(tmp_path, python, "program.py", options=["--with", "lines"], timeout=400)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert any(row["line"].startswith("program.py:") for row in table(tmp_path, "lines"))


LIE = """
import sys
real = sys._getframe
def tell(depth=0):
    is_asked = real(1).f_code.co_filename.endswith("stepscope/_lines.py")
    return real(depth + (2 if is_asked else 1))
sys._getframe = tell
import torch
torch.ones(2)
"""


@every_python
def test_one_difference_and_lines_are_off(tmp_path, python):
    (tmp_path / "program.py").write_text(LIE)
    done = run(tmp_path, python, "program.py", options=["--with", "lines"])
    assert done.returncode == 0 and not done.stdout
    fact = next(row["value"] for row in table(tmp_path, "facts") if row["key"] == "torch.lines")
    assert re.match("a stack was read as '.*', but this Python reports '.*'", fact)
    assert not table(tmp_path, "lines")
    assert any(event["name"] == "aten::ones" for event in export(tmp_path))
