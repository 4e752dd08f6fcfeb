# SPDX-License-Identifier: Apache-2.0
"""Inputs of every kind as torch.profiler tells them, those that are not to be trusted, operators that throw, and values that change."""
import json
import subprocess

import pytest

from test_operators import as_told, counted, details, have_order, is_torchs, slices
from torch_tools import HERE, environment, every_python, export, run, table, version, warm


@pytest.mark.parametrize("work", ["types", "tensors", "lists", "values", "throwing"])
@every_python
def test_inputs_as_torch_profiler(tmp_path, python, work):
    done = warm(tmp_path, python, HERE / "odd.py", work, options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    ours = slices(event for event in export(tmp_path) if is_torchs(event))
    trace = json.loads((tmp_path / "theirs.json").read_text())
    assert not [event for event in ours if event["args"].get("open")]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("open", "unmatched end")]
    if isinstance(trace, dict):
        theirs = slices(trace["traceEvents"])
        arranged = list if have_order(theirs) else counted
        assert arranged(as_told(details(ours), details(theirs))) == arranged(details(theirs))
        return
    assert len(ours) > 50  # 1.13: its list has names alone
    for event in ours:
        args = event["args"]
        parts = [len(args[key]) for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs") if key in args]
        assert len(parts) in (0, 4) and len(set(parts)) <= 1, event


NAMES = {"torch.quint8": "c10::quint8", "torch.qint8": "c10::qint8", "torch.qint32": "c10::qint32", "torch.float32": "float",
         "torch.float64": "double"}


@every_python
def test_other_kinds_of_tensors_have_sizes(tmp_path, python):
    """Quantised, of oneDNN, sparse of each layout."""
    done = warm(tmp_path, python, HERE / "odd.py", "known", options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    known = [json.loads(line) for line in done.stdout.splitlines()]
    found = [event["args"] for event in export(tmp_path) if event["name"] == "aten::is_same_size"][-len(known):]
    assert len(known) >= 13
    assert [(args["Input Dims"], args["Input Strides"], args["Input type"]) for args in found] == \
        [([sizes] * 2, [strides] * 2, [NAMES[kind]] * 2) for sizes, strides, kind in known]


ONCE = """
import sys, warnings
import torch
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    torch.ones(2, 2).to_sparse_csr()
print([(warning.category.__name__, str(warning.message)[:10]) for warning in seen], len(warnings.filters))
"""


@every_python
def test_pytorchs_own_warning_of_a_kind_is_left_to_the_program(tmp_path, python):
    """It comes once in a process, where the first such tensor is made."""
    alone = subprocess.run([python, "-c", ONCE], env=environment(), capture_output=True, text=True, check=True, timeout=300)
    done = run(tmp_path, python, "-c", ONCE, options=["--with", "shapes"])
    assert (done.returncode, done.stdout) == (0, alone.stdout) and "beta" not in done.stderr


@every_python
def test_what_is_not_trusted_has_no_sizes(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("no torch.func before 2.0")
    done = run(tmp_path, python, HERE / "odd.py", "untrusted", options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    dims = [event["args"].get("Input Dims") for event in export(tmp_path) if event["name"] == "aten::neg"]
    assert [[]] in dims and len(dims) >= 2


@every_python
def test_what_computes_its_sizes_has_none_and_no_operations(tmp_path, python):
    done = run(tmp_path, python, HERE / "odd.py", "computing", options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    events = export(tmp_path)
    ranges = {event["name"]: event["ts"] for event in events if event["name"] in ("None", "strides", "sizes")}
    outer = {name: next(event["args"] for event in events if event["name"] == "aten::mul" and event["ts"] >= start)
             for name, start in ranges.items()}
    assert outer["None"]["Input Dims"] == [[3, 5], []]
    assert [outer[name]["Input Dims"] for name in ("strides", "sizes")] == [[[], []]] * 2
    rows = [row for row in table(tmp_path, "ops") if row["name"] == "aten::mul"]
    assert sum(row["profiler_flops"] or 0 for row in rows) == 15 + 3 * 15  # and those of what lies in them


CHANGING = """
import torch
x = torch.ones(3)
for step in range(1000):
    torch.mul(x, step + 0.5)
    torch.full((2,), step)
    torch.neg(x)
    torch.linspace(step % 3, step + 0.5, 5)
for step in range(1000):
    torch.arange(step % 7, 20 + step // 7 % 7, 1 + step // 49 % 7)
"""


@every_python
def test_values_that_change_do_not_fill_the_recording(tmp_path, python):
    done = warm(tmp_path, python, "-c", CHANGING, options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    events = export(tmp_path)
    values = {name: [event["args"]["Concrete Inputs"] for event in events if event["name"] == f"aten::{name}"]
              for name in ("full", "linspace", "arange", "neg")}
    fills = values["full"]
    assert len(fills) == 1000 and {fill[0] for fill in fills} == {"[2]"}
    assert [fill[1] for fill in fills] == [str(step) for step in range(16)] + [""] * 984
    between = [each for each in values["linspace"] if len(each) == 7]  # it calls another one of its name
    assert [each[0] for each in between] == [str(step % 3) for step in range(1000)] and {each[2] for each in between} == {"5"}
    assert [each[1] for each in between[:10]] == [f"{step}.5" for step in range(10)] and {each[1] for each in between[30:]} == {""}
    ranges = [tuple(each[:3]) for each in values["arange"] if len(each) == 7]
    assert len(ranges) == 1000 and 16 <= len(set(ranges)) <= 80
    assert values["neg"][-1000:] == [[""]] * 1000
    facts = json.loads((tmp_path / "ours.json").read_text())["metadata"]
    assert facts["torch.inputs whose values change from call to call"] == "left out"
