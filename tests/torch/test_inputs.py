# SPDX-License-Identifier: Apache-2.0
"""Inputs of every kind as torch.profiler tells them, those that are not to be trusted, operators that throw, and values that change."""
import json

import pytest

from test_operators import details, is_torchs, slices
from torch_tools import HERE, every_python, export, run, table, version, warm


@pytest.mark.parametrize("work", ["tensors", "lists", "values", "throwing"])
@every_python
def test_inputs_as_torch_profiler(tmp_path, python, work):
    done = warm(tmp_path, python, HERE / "odd.py", work, options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    ours = slices(event for event in export(tmp_path) if is_torchs(event))
    trace = json.loads((tmp_path / "theirs.json").read_text())
    assert not [event for event in ours if event["args"].get("open")]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("open", "unmatched end")]
    if isinstance(trace, dict):
        assert details(ours) == details(slices(trace["traceEvents"]))
        return
    assert len(ours) > 50  # 1.13: its list has names alone
    for event in ours:
        args = event["args"]
        parts = [len(args[key]) for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs") if key in args]
        assert len(parts) in (0, 4) and len(set(parts)) <= 1, event


@every_python
def test_what_is_not_trusted_has_no_sizes(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("no torch.func before 2.0")
    done = run(tmp_path, python, HERE / "odd.py", "untrusted", options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    dims = [event["args"].get("Input Dims") for event in export(tmp_path) if event["name"] == "aten::neg"]
    assert [[]] in dims and len(dims) >= 3


CHANGING = """
import torch
x = torch.ones(3)
for step in range(1000):
    torch.mul(x, step + 0.5)
    torch.full((2,), step)
    torch.neg(x)
"""


@every_python
def test_values_that_change_do_not_fill_the_recording(tmp_path, python):
    done = warm(tmp_path, python, "-c", CHANGING, options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    events = export(tmp_path)
    fills = [event["args"] for event in events if event["name"] == "aten::full"]
    known = [args["Concrete Inputs"][1] for args in fills if "Concrete Inputs" in args]
    assert len(fills) == 1000 and 8 <= len(known) <= 17 and known == [str(step) for step in range(len(known))]
    assert all(args["Input Dims"] == [[]] * len(args["Input type"]) for args in fills)
    negations = [event["args"] for event in events if event["name"] == "aten::neg"]
    assert all(args["Input Dims"] == [[3]] and args["Concrete Inputs"] == [""] for args in negations[-1000:])
    facts = json.loads((tmp_path / "ours.json").read_text())["metadata"]
    assert facts["torch.inputs whose values change from call to call"] == "left out"
