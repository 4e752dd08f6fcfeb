# SPDX-License-Identifier: Apache-2.0
"""Lines of Python: each operator's stack is the one that the program itself saw, in code of every kind; nothing else changes."""
import json
import re

import pytest

from torch_tools import HERE, every_python, export, run, table

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
        if event.get("cat") == "python_function":
            assert event["args"]["stepscope reconstructed"] is True
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


@pytest.mark.parametrize("case", ["kinds", "recursion", "codes", "threads"])
@every_python
def test_stacks_are_those_that_the_program_saw(tmp_path, python, case):
    done = run(tmp_path, python, HERE / "lines.py", case, options=["--with", "lines,shapes"])
    assert done.returncode == 0, done.stderr
    truth = json.loads((tmp_path / "truth.json").read_text())
    found = read_stacks(tmp_path)
    assert len(found) == len(truth)
    for size, chain in enumerate(truth, 1):
        assert found[size] == expected(chain), size
