# SPDX-License-Identifier: Apache-2.0
"""Programs that use torch.profiler, unchanged: what its step() marks are the steps, as far as it is there."""
import json
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, export, run, table, warm

# Which of the steps torch.profiler marks, of how many.
PROGRAMS = {"accumulated": (range(12), 12), "two_updates": (range(24), 24), "part": (range(3, 6), 9), "called_first": (range(6), 6),
            "no_more": (range(3), 12), "never": ((), 12), "two_profilers": (range(10), 10), "of_evaluations": ((), 13),
            "of_another_thread": ((), 12), "without_steps": ((), 12), "nothing_trains": (range(5), 5)}


def ledger(tmp_path):
    return [row["sentence"] for row in table(tmp_path, "ledger") if row["what"] != "other" or "steps" in row["sentence"]]


# Also where it makes no ranges of its own, for want of a schedule.
WITHOUT_SCHEDULE = ("accumulated", "two_updates", "part", "called_first", "no_more", "never", "of_evaluations", "of_another_thread",
                    "nothing_trains")
EACH = [(name, how) for name in PROGRAMS for how in ("", "without_schedule")[:1 + (name in WITHOUT_SCHEDULE)]]


@pytest.mark.parametrize("name, how", EACH)
@every_python
def test_what_torchs_profiler_marks_are_the_steps(tmp_path, python, name, how):
    marked, count = PROGRAMS[name]
    done = (run if name == "accumulated" else warm)(tmp_path, python, HERE / "profiled_steps.py", name, *filter(None, [how]))
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    stamps = printed["steps"]
    assert not printed["shown"]
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(count)) and all(step["is_complete"] for step in steps)
    assert len(stamps) == len(marked)
    for number, (least, most) in zip(marked, stamps):
        assert least <= steps[number]["duration_ns"] <= most
    said = ledger(tmp_path)
    if 0 < len(marked) < count:
        assert said == [f"torch.profiler in the program marks {len(marked)} of the {count} steps (ProfilerStep#N); the others, outside of its "
                        "ranges, are inferred"]
    else:
        assert said == []


@every_python
def test_their_phases_are_inferred(tmp_path, python):
    done = warm(tmp_path, python, HERE / "profiled_steps.py", "accumulated")
    assert "; the report uses the steps that torch.profiler marks, and infers others (4 were counted" in done.stderr
    steps = table(tmp_path, "steps")
    assert [step["optimizer_ns"] > 0 for step in steps] == [number % 3 == 2 for number in range(12)]
    assert all(step["data_ns"] > 0 and step["forward_ns"] > 0 and step["backward_ns"] > 0 for step in steps)


@every_python
def test_each_is_in_an_export_and_in_a_table_once(tmp_path, python):
    warm(tmp_path, python, HERE / "profiled_steps.py", "two_updates")
    names = [event["name"] for event in export(tmp_path) if event["name"].startswith("ProfilerStep#")]
    assert names == [f"ProfilerStep#{number}" for number in range(24)]


@every_python
def test_one_without_a_schedule_shows_none_and_learns_the_same(tmp_path, python):
    printed = [json.loads(warm(tmp_path, python, HERE / "profiled_steps.py", "called_first", "without_schedule",
                               is_observed=is_observed).stdout.splitlines()[-1]) for is_observed in (False, True)]
    assert [each["shown"] for each in printed] == [[], []] and printed[0]["weights"] == printed[1]["weights"]
    assert len(table(tmp_path, "steps")) == 6
    assert [event["name"] for event in export(tmp_path) if event["name"].startswith("ProfilerStep#")] == [
        f"ProfilerStep#{number}" for number in range(6)]
    style = subprocess.run([STEPSCOPE, "report", "run", "--style", "torch", "--limit", "-1"], cwd=tmp_path, env=environment(), capture_output=True,
                           text=True, check=True).stdout
    assert [line.split()[-1] for line in style.splitlines() if "ProfilerStep*" in line] == ["6"]


@every_python
def test_steps_that_the_program_marks_itself_win(tmp_path, python):
    done = warm(tmp_path, python, HERE / "profiled_steps.py", "marked_otherwise")
    assert done.returncode == 0, done.stderr
    assert [step["step"] for step in table(tmp_path, "steps")] == list(range(100, 112))
    assert "captured all 12 steps (100-111) with operators" in done.stderr


# Whose first range has two updates, which might be a whole training: they count as two steps.
MORE = {("two_updates", ""): 25}
# Where step() is called no more the second update behind it tells so: the end of the first is known late. Without a schedule it may never be called,
# so updates in the first range are steps at once.
DETAIL = {("no_more", ""): [5, 6], ("no_more", "without_schedule"): [5, 6], ("two_updates", "without_schedule"): [3, 4, 5]}
DIFFERENT = (*DETAIL, ("part", "without_schedule"))


@pytest.mark.parametrize("name, how", [(name, how) for name, how in EACH if name != "nothing_trains"])
@every_python
def test_a_schedule_counts_them(tmp_path, python, name, how):
    count = MORE.get((name, how), PROGRAMS[name][1])
    done = warm(tmp_path, python, HERE / "profiled_steps.py", name, *filter(None, [how]), options=["--steps", "4-6"])
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(count))
    wanted = DETAIL.get((name, how), [number for number in (4, 5, 6) if number < count])
    assert [step["step"] for step in steps if step["has_detail"]] == wanted
    assert any("count of its steps differed" in said for said in ledger(tmp_path)) == ((name, how) in DIFFERENT)
    assert "; steps were counted by the " in done.stderr
