# SPDX-License-Identifier: Apache-2.0
"""The same steps recorded by us and by torch.profiler at once: the same operators, in the same nesting."""
import json

import pytest

from torch_tools import HERE, every_python, export, run


def slices(events):
    """Complete slices of the thread of the range "window" that lie in it, by start, outer ones first."""
    found = [event for event in events if event.get("ph") == "X" and isinstance(event.get("dur"), (int, float))]
    window = next(event for event in found if event["name"] == "window")
    end = window["ts"] + window["dur"]
    inside = [event for event in found if event is not window and event["tid"] == window["tid"] and
              event["pid"] == window["pid"] and window["ts"] <= event["ts"] and event["ts"] + event["dur"] <= end + 0.002]
    return sorted(inside, key=lambda event: (event["ts"], -event["dur"]))


def nesting(events):
    """(depth, name) of each slice."""
    ends, result = [], []
    for event in slices(events):
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        result.append((len(ends), event["name"]))
        ends.append(event["ts"] + event["dur"])
    return result


def theirs(tmp_path):
    trace = json.loads((tmp_path / "theirs.json").read_text())
    return trace["traceEvents"] if isinstance(trace, dict) else trace


@pytest.mark.parametrize("model", ["gpt", "conv", "lstm", "sparse"])
@every_python
def test_the_same_operators_as_torch_profiler(tmp_path, python, model):
    done = run(tmp_path, python, HERE / "models.py", model)
    assert done.returncode == 0, done.stderr
    ours = [event for event in export(tmp_path) if event.get("cat") in ("cpu_op", "user_annotation") and
            event["name"] not in ("forward", "backward", "optimizer", "data", "evaluation") and
            not event["name"].startswith("ProfilerStep#")]
    names = lambda events: [event["name"] for event in slices(events)]
    assert names(ours) == names(theirs(tmp_path))
