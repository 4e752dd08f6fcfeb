# SPDX-License-Identifier: Apache-2.0
"""Records that overlap without one being in the other: under modes of the dispatcher, which begin and end ranges inside of operators, by
hand, in coroutines, and with an end in another thread."""
import json
import subprocess

import pytest

from test_schedule import differences
from test_steps import NEWER, script
from torch_tools import STEPSCOPE, environment, every_python, table, version, warm

NAMES = ["plain", "two_workers", "evaluation_per_epoch", "gan", "lbfgs", "optimizer_in_hook", "nested_ranges", "prefetch"]
PHASES = ("data", "forward", "backward", "optimizer", "evaluation", "checkpoint")
# 1.13 gives operators no sequence numbers under a mode, by which a forward is known.
OLD_PHASES = ("backward", "optimizer")


def record(tmp_path, python, name, mode, *options):
    """What the script stamped, its steps, and which phases each of them has."""
    is_old = version(python).startswith("1.")
    if is_old and (name in NEWER or mode == "counting"):
        pytest.skip(f"1.13 has no {NEWER.get(name, 'FlopCounterMode')}")
    done = warm(tmp_path, python, script(name), name, mode, options=options)
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    phases = [{phase for phase in (OLD_PHASES if is_old else PHASES) if step[f"{phase}_ns"]} for step in steps]
    return json.loads(done.stdout.splitlines()[-1]), steps, phases


def expected(python):
    return {"backward", "optimizer"} if version(python).startswith("1.") else {"data", "forward", "backward", "optimizer"}


def check_ledger(tmp_path):
    sentences = [row["sentence"] for row in table(tmp_path, "ledger")]
    assert not [each for each in sentences if "number of steps" in each or "no start" in each or "were open" in each], sentences
    assert not differences(tmp_path)


@pytest.mark.parametrize("name", NAMES)
@every_python
def test_a_loop_in_a_mode_is_the_same(tmp_path, python, name):
    for folder in "without", "with":
        (tmp_path / folder).mkdir()
    _, _, phases = record(tmp_path / "without", python, name, "none")
    truth, steps, in_mode = record(tmp_path / "with", python, name, "passing")
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert in_mode == phases
    check_ledger(tmp_path / "with")


@pytest.mark.parametrize("name", ["some_steps_in_a_mode", "optimizer_in_a_mode"])
@every_python
def test_a_mode_in_parts_of_a_loop(tmp_path, python, name):
    truth, _, phases = record(tmp_path, python, name, "none")
    assert phases == [expected(python)] * len(truth["steps"])
    check_ledger(tmp_path)


@pytest.mark.parametrize("options", [[], ["--steps", "none"], ["--steps", "2-3"]], ids=["operators", "steps", "window"])
@pytest.mark.parametrize("mode", ["passing", "counting"])
@every_python
def test_times_in_modes_are_those_of_the_script(tmp_path, python, mode, options):
    """It sleeps in the data, the loop and the backward, 20 ms each, in two modes."""
    truth, steps, phases = record(tmp_path, python, "two_modes", mode, *options)
    assert len(steps) == len(truth["steps"])
    for step, found in zip(steps, phases):  # without operators calls tell of it, but for the first one
        assert found == expected(python) - (set() if step["other_ns"] is not None else {"forward"})
    for data_ns, step in zip(truth["data_ns"], steps):
        assert step["data_ns"] >= data_ns and step["backward_ns"] >= 20e6
        assert step["other_ns"] is None or step["other_ns"] >= 20e6
        assert step["other_ns"] is not None or not step["has_detail"]
    for step, (begin, end), (_, before) in zip(steps[1:], truth["steps"][1:], truth["steps"]):
        assert step["data_ns"] <= begin - before
        assert (step["forward_ns"] or 0) + step["backward_ns"] + step["optimizer_ns"] <= end - begin
    if options:
        assert [step["step"] for step in steps if step["has_detail"]] == ([2, 3] if options[1] == "2-3" else [])
    check_ledger(tmp_path)


def spans(tmp_path):
    """Rows of the ranges and operators of the script's threads."""
    query = "SELECT span, parent, name, start_ns, dur_ns FROM spans WHERE kind IN ('op', 'annotation', 'range') ORDER BY track, span"
    done = subprocess.run([STEPSCOPE, "query", "run", "--json", query], cwd=tmp_path, env=environment(), capture_output=True,
                          text=True, timeout=60, check=True)
    return json.loads(done.stdout)["rows"]


def run_script(tmp_path, python, text):
    (tmp_path / "script.py").write_text(HEAD + text)
    done = warm(tmp_path, python, "script.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), spans(tmp_path)


def only(rows, name):
    found = [row for row in rows if row["name"] == name]
    assert len(found) == 1, rows
    return found[0]


def overlaps(tmp_path):
    return sum(row["count"] for row in table(tmp_path, "ledger") if "overlapped without being nested" in row["sentence"])


HEAD = """
import asyncio, json, stepscope, threading, time, torch
from torch.autograd.profiler import record_function
def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
x = torch.ones(2)
"""

BY_HAND = """
first, second, third = (record_function(name) for name in ("first", "second", "third"))
stamps = [now()]
first.__enter__()
time.sleep(0.02)
second.__enter__()
stamps.append(now())
torch.neg(x)
time.sleep(0.03)
stamps.append(now())
first.__exit__(None, None, None)
torch.sin(x)
third.__enter__()
time.sleep(0.04)
stamps.append(now())
second.__exit__(None, None, None)
time.sleep(0.02)
third.__exit__(None, None, None)
stamps.append(now())
print(json.dumps(stamps))
"""


@every_python
def test_ranges_that_overlap_are_cut_where_the_next_one_begins(tmp_path, python):
    stamps, rows = run_script(tmp_path, python, BY_HAND)
    first, second, third = (only(rows, name) for name in ("first", "second", "third"))
    assert 20e6 <= first["dur_ns"] <= stamps[1] - stamps[0]
    assert 30e6 <= second["dur_ns"] <= stamps[3] - stamps[0] - 20e6 - 40e6
    assert 60e6 <= third["dur_ns"] <= stamps[4] - stamps[2]
    assert first["start_ns"] + first["dur_ns"] == second["start_ns"] and second["start_ns"] + second["dur_ns"] == third["start_ns"]
    assert [row["parent"] for row in (first, second, third)] == [None] * 3
    assert only(rows, "aten::neg")["parent"] == only(rows, "aten::sin")["parent"] == second["span"]
    assert overlaps(tmp_path) == 2
    style = subprocess.run([STEPSCOPE, "report", "run", "--style", "torch"], cwd=tmp_path, env=environment(), capture_output=True,
                           text=True, timeout=60, check=True).stdout  # whole durations, as torch.profiler has them
    total = {line.split()[0]: line.split() for line in style.splitlines() if line.strip().startswith(("first", "second", "third"))}
    assert float(total["first"][5].removesuffix("ms")) >= 50 and float(total["second"][5].removesuffix("ms")) >= 70


COROUTINES = """
async def work(name, gate, opened):
    stamp = now()
    with RANGE(name):
        opened.set()
        await gate.wait()
        time.sleep(0.02)
        torch.neg(x)
    return now() - stamp
async def main():
    gates = [asyncio.Event() for _ in range(4)]
    async def guide():
        await gates[1].wait()
        await gates[3].wait()
        gates[0].set()
        await first
        torch.sin(x)
        gates[2].set()
    first = asyncio.ensure_future(work("first", gates[0], gates[1]))
    second = asyncio.ensure_future(work("second", gates[2], gates[3]))
    await guide()
    print(json.dumps([await first, await second]))
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["record_function", "stepscope.range"])
@every_python
def test_coroutines_have_their_own_ends(tmp_path, python, kind):
    """The second one waits in its range while the first one works: that is cut where the other began."""
    stamps, rows = run_script(tmp_path, python, COROUTINES.replace("RANGE", kind))
    first, second = only(rows, "first"), only(rows, "second")
    assert 40e6 <= second["dur_ns"] <= stamps[1]
    assert first["start_ns"] + first["dur_ns"] == second["start_ns"] and first["parent"] == second["parent"]
    assert only(rows, "aten::sin")["parent"] == second["span"] and overlaps(tmp_path) == 1
    assert [row["parent"] for row in rows if row["name"] == "aten::neg"] == [second["span"]] * 2


ELSEWHERE = """
stamps = [now()]
outer = record_function("outer")
outer.__enter__()
moved = torch.ops.profiler._record_function_enter_new("moved", None)
time.sleep(0.02)
def end():
    torch.ops.profiler._record_function_exit(moved)
    stamps.append(now())
thread = threading.Thread(target=end)
thread.start()
thread.join()
time.sleep(0.05)
torch.sin(x)
outer.__exit__(None, None, None)
stamps.append(now())
torch.neg(x)
print(json.dumps(stamps))
"""


@every_python
def test_a_record_that_ends_in_another_thread(tmp_path, python):
    stamps, rows = run_script(tmp_path, python, ELSEWHERE)
    outer, moved = only(rows, "outer"), only(rows, "moved")
    assert 20e6 <= moved["dur_ns"] <= stamps[1] - stamps[0] and moved["parent"] == outer["span"]
    assert 70e6 <= outer["dur_ns"] <= stamps[2] - stamps[0]
    assert only(rows, "aten::sin")["parent"] == outer["span"] and only(rows, "aten::neg")["parent"] is None
    assert not overlaps(tmp_path) and not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "open spans")]
