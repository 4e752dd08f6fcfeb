# SPDX-License-Identifier: Apache-2.0
"""stepscope in the place of torch.profiler: the same script with the one and with the other finds the same, with and without
`stepscope run` around it."""
import gzip
import json
import re
import shutil
import signal
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table, version, warm

BUILD = Path(STEPSCOPE).resolve().parent.parent
OURS = {"PYTHONPATH": BUILD / "python"}


def profiled(tmp_path, python, who, case, env=None, options=None):
    """The answer of profiled.py; with `options` under `stepscope run`."""
    command = [python, HERE / "profiled.py", who, case]
    if options is not None:
        done = run(tmp_path, *command, options=options)
    else:
        for _ in range(5):
            done = warm(tmp_path, *command, env={**(OURS if who == "stepscope" else {}), **(env or {})}, is_observed=False)
            if who == "stepscope" or done.returncode not in (-signal.SIGSEGV, -signal.SIGABRT):
                break  # torch.profiler of all threads, without us: 1 of 30 crashes, or ends with "malloc(): ... corrupted"
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@lru_cache
def torchs(python, case):
    """What torch.profiler itself answers."""
    with tempfile.TemporaryDirectory() as folder:
        return profiled(folder, python, "torch", case)[0]


def has_kineto(python):
    return not version(python).startswith("1.")


def same_counts(ours, theirs, python):
    """1.13 as Debian builds it has whole microseconds: which events of torch's are merged, and into what, is chance, so its counts are
    a few off; and it counts what its own ranges allocate."""
    if has_kineto(python):
        return [row[:2] for row in ours] == [row[:2] for row in theirs]
    of_ranges = {"aten::zeros", "aten::zero_", "aten::empty", "[memory]"}
    counts, right = ({row[0]: row[1] for row in rows if row[0] not in of_ranges} for rows in (ours, theirs))
    others = counts.keys() ^ right.keys()
    return len(others) <= 2 and all(abs(counts[name] - right[name]) <= 2 for name in counts.keys() & right.keys())


@pytest.mark.parametrize("options", [None, [], ["--steps", "none"]], ids=["alone", "run", "run-without-detail"])
@every_python
def test_the_same_results(tmp_path, python, options):
    ours, _ = profiled(tmp_path, python, "stepscope", "whole", options=options)
    theirs = torchs(python, "whole")
    assert ours["loss"] == theirs["loss"]
    certain = [row for row in ours["flops"] if has_kineto(python) or row[0] in ("aten::addmm", "aten::mm")]
    assert certain and all(row in theirs["flops"] for row in certain)
    assert same_counts(ours["rows"], theirs["rows"], python)
    # each of the two reads the recording, and the later one may know more of the clock: some parts in a million
    assert not ours["is_negative"] and abs(ours["total"] - ours["sum"]) < 1e-4 * ours["total"]
    if has_kineto(python):
        assert ours["rows"] == theirs["rows"]
        assert ours["shapes"] == theirs["shapes"]
        assert ours["events"] == theirs["events"]


@pytest.mark.parametrize("options", [None, []], ids=["alone", "run"])
@every_python
def test_each_cycle_has_its_own(tmp_path, python, options):
    ours, _ = profiled(tmp_path, python, "stepscope", "cycles", options=options)
    theirs = torchs(python, "cycles")
    assert ours["actions"] == theirs["actions"] and ours["step_num"] == theirs["step_num"] == 10
    assert [cycle["step"] for cycle in ours["cycles"]] == [cycle["step"] for cycle in theirs["cycles"]] == [4, 8]
    for mine, its in zip(ours["cycles"], theirs["cycles"]):
        assert same_counts(mine["rows"], its["rows"], python)
        assert mine["lines"] == its["lines"]
    steps = []
    for number in (4, 8):
        trace = json.loads((tmp_path / f"trace_{number}.json").read_text())
        steps += sorted({event["name"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#")})
    assert steps == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#6", "ProfilerStep#7"]  # 1.13 itself is one behind


@every_python
def test_what_no_thread_can_call_its_own(tmp_path, python):
    """It takes time, but none of a thread's, and it has nothing in it. 1.13 leaves out what is open at the end."""
    ours, theirs = profiled(tmp_path, python, "stepscope", "asyncs", options=[])[0], torchs(python, "asyncs")
    for part in ("events", "rows"):
        assert [row for row in ours[part] if row[0] != "left open" or has_kineto(python)] == theirs[part], part
    assert ["gloo:all_gather", True, 0] in ours["rows"] and ["left open", True, 0] in ours["rows"]
    assert ours["table"]["gloo:all_gather"] == theirs["table"]["gloo:all_gather"] == ["0.00%", "0.000us", "0"]
    assert ours["is_short"] and ours["is_sum"]


@every_python
def test_ranges_of_ours_are_no_rows(tmp_path, python):
    """What a program waits for and PyTorch has no record of."""
    ours, theirs = profiled(tmp_path, python, "stepscope", "loading", options=[])[0], torchs(python, "loading")
    assert ours == theirs and "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in ours[0]


@every_python
def test_the_same_states(tmp_path, python):
    ours, _ = profiled(tmp_path, python, "stepscope", "states")
    theirs = torchs(python, "states")
    for mine, its in zip(ours, theirs):
        assert mine == its, its[0]
    text, ready, said, _, _ = profiled(tmp_path, python, "stepscope", "odd_state")[0][0]
    assert (text, ready, said) == ("RWRS", [4, 4], ["Incorrect schedule: RECORD followed by WARMUP"])


@every_python
def test_the_same_schedules(tmp_path, python):
    assert profiled(tmp_path, python, "stepscope", "schedules")[0] == torchs(python, "schedules")


@every_python
def test_traces_for_tensorboard(tmp_path, python):
    files, _ = profiled(tmp_path, python, "stepscope", "board")
    assert len(files) == 2 and not (tmp_path / "stepscope-runs").exists()
    for name in files:
        assert re.fullmatch(r".+_\d+\.\d{19}\.pt\.trace\.json\.gz", name)
        trace = json.loads(gzip.decompress((tmp_path / "board" / name).read_bytes()))
        assert any(event["name"] == "aten::addmm" for event in trace["traceEvents"])


@every_python
def test_nothing_is_left_behind(tmp_path, python):
    (tmp_path / "tmp").mkdir()
    profiled(tmp_path, python, "stepscope", "cycles", env={"TMPDIR": tmp_path / "tmp"})
    assert not list((tmp_path / "tmp").glob("stepscope*")) and not (tmp_path / "stepscope-runs").exists()


@every_python
def test_releases_of_what_was_there_before_are_left_out(tmp_path, python):
    ours, _ = profiled(tmp_path, python, "stepscope", "releases")
    assert ours.count(2000) == ours.count(-2000) == 1 and 12000 not in map(abs, ours)
    if has_kineto(python):
        assert ours == torchs(python, "releases")


BEGUN = """
import argparse, glob, torch, warnings
import stepscope
parser = argparse.ArgumentParser()
stepscope.add_arguments(parser, "frequency")
parser.add_argument("--model_name")
words = "--profile --export_memory_timeline --profiling_output out --profiling_frequency 3 --model_name meta-llama/Llama-2-7b-hf"
settings = stepscope.from_args(parser.parse_args(words.split()))
with settings.profile() as prof:
    for number in range(5):  # the last call of step() begins a second cycle
        torch.ones(1000).sum()
        prof.step()
print(sorted(glob.glob("out/*/*")))
"""


@every_python
def test_a_cycle_that_has_just_begun_has_its_files(tmp_path, python):
    """With the names of guide 003."""
    done = warm(tmp_path, python, "-c", BEGUN, env=OURS, is_observed=False)
    names = ("chrome-trace.json.gz", "key_averages.txt", "memory-timeline.html", "stacks.txt")
    assert done.stdout.strip() == str([f"out/iteration_{cycle}/Llama-2-7b-hf-train-{name}" for cycle in (3, 5) for name in names]), done.stderr
    assert "stepscope:" not in done.stderr and "memory" not in done.stderr


DEEP = """
import contextlib, torch, warnings
from torch.autograd.profiler import record_function
from stepscope import profile
def nested(depth):
    with contextlib.ExitStack() as stack:
        for level in range(depth):
            stack.enter_context(record_function(f"level {level}"))
for depth in (250, 260, 300):  # 1.13 runs operators for the innermost range
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile() as prof:
            nested(depth)
        nested(300)  # between windows: not asked for
    said = [str(warning.message) for warning in caught if "256 deep" in str(warning.message)]
    print(depth, len(said), sum(row.key.startswith("level ") for row in prof.key_averages()))
"""


@every_python
def test_what_lies_too_deep_is_said_once(tmp_path, python):
    done = warm(tmp_path, python, "-c", DEEP, env=OURS, is_observed=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["250 0 250", "260 1 256", "300 0 256", ""], done.stdout


@pytest.mark.parametrize("options", [None, ["--with", "shapes,memory,lines"]], ids=["alone", "run-with-all"])
@every_python
def test_the_same_threads(tmp_path, python, options):
    """Not those that the program runs beside the profiled one, but those that work for it; `run` records all of them."""
    ours, theirs = profiled(tmp_path, python, "stepscope", "threads", options=options)[0], torchs(python, "threads")
    assert ours["threads"] == theirs["threads"] == (2 if has_kineto(python) else 1)
    assert same_counts(ours["rows"], theirs["rows"], python)
    assert [row[3:] for row in ours["rows"]] == [[0, 0]] * len(ours["rows"])  # memory was not asked for
    if options is not None:
        everything = subprocess.run([STEPSCOPE, "report", "run", "--style", "torch", "--limit", "-1"], cwd=tmp_path, timeout=60,
                                    env=environment(), capture_output=True, text=True, check=True).stdout
        assert "of another thread" in everything and "CPU Mem" in everything


@every_python
def test_all_threads_when_asked_for(tmp_path, python):
    if not has_kineto(python):
        pytest.skip("this PyTorch knows no profile_all_threads")
    ours = profiled(tmp_path, python, "stepscope", "all_threads")[0]
    assert "of another thread" in ours and set(ours) == set(torchs(python, "all_threads"))


@pytest.mark.parametrize("options", [None, ["--with", "shapes,memory,lines"]], ids=["alone", "run-with-all"])
@every_python
def test_the_same_attributes(tmp_path, python, options):
    ours, theirs = profiled(tmp_path, python, "stepscope", "attributes", options=options)[0], torchs(python, "attributes")
    for what in ("names", "lists", "averages"):
        assert not set(theirs[what]) - set(ours[what]), what
    if not has_kineto(python):
        return
    assert [event[0] for event in ours["events"]] == [event[0] for event in theirs["events"]]
    for mine, its in zip(ours["events"], theirs["events"]):
        assert mine == its
    assert ours["scopes"] == theirs["scopes"]


@every_python
def test_the_same_refusals(tmp_path, python):
    ours = profiled(tmp_path, python, "stepscope", "misuse")[0]
    if has_kineto(python):
        assert ours == torchs(python, "misuse")


FILTERED = """
import stepscope, torch
for _ in range(2):
    with stepscope.profile(activities=[{stepscope.ProfilerActivity.CPU: ["USER_ANNOTATION"]}]) as prof:
        torch.ones(1)
    print([event.name for event in prof.events()][-1])
"""


@every_python
def test_types_of_events_that_are_not_chosen_are_said_once(tmp_path, python):
    done = warm(tmp_path, python, "-c", FILTERED, env=OURS, is_observed=False)
    assert (done.returncode, done.stdout) == (0, "aten::fill_\n" * 2), done.stderr
    assert done.stderr.count("a trace has all of them") == 1


@every_python
def test_the_same_lists(tmp_path, python):
    ours, theirs = profiled(tmp_path, python, "stepscope", "lists")[0], torchs(python, "lists")
    if has_kineto(python):
        assert ours == theirs
    else:  # where torch's counts are a few off, see above
        assert ours[0] == theirs[0] and ours[1][:6] == theirs[1][:6] and ours[2][1] == theirs[2][1]
        assert {str(event[2]) for event in ours[-2]} == {str(event[2]) for event in theirs[-2]}


@pytest.mark.parametrize("case", ["metadata", "inputs"])
@every_python
def test_the_same_metadata_and_inputs(tmp_path, python, case):
    if not has_kineto(python):
        pytest.skip("this PyTorch was built without Kineto: its traces hold times only")
    assert profiled(tmp_path, python, "stepscope", case)[0] == torchs(python, case)


ONE_AFTER_THE_OTHER = """
import json, torch, stepscope
def refused(name):
    try:
        stepscope.profile(activities=["cpu", name])
    except ValueError as problem:
        return str(problem)
assert "there is no activity 'gpu' (did you mean 'cuda'?): cpu, cuda" in refused("gpu"), refused("gpu")
assert "no activity 'cuad' (did you mean 'cuda'?)" in refused("cuad") and "no activity 'all': cpu, cuda" in refused("all")
assert stepscope.profile(activities="CPU").activities == stepscope.profile(activities=["cpu"]).activities
found = []
for options in ({"with_stack": True, "with_flops": True}, {"record_shapes": True}, {"profile_memory": True}):
    with stepscope.profile(activities=["cpu"], **options) as prof:
        torch.ones(2).add(1)
    prof.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        trace = json.load(file)
    found.append(sorted(key for key in trace if key.startswith(("with_", "record_", "profile_"))))
print(json.dumps(found))
"""


@every_python
def test_traces_tell_what_their_profiler_asked_for(tmp_path, python):
    done = subprocess.run([python, "-c", ONE_AFTER_THE_OTHER], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["record_shapes", "with_flops", "with_stack"], ["record_shapes"], ["profile_memory"]]


NO_FOLDER = """
import os, shutil, warnings, torch, stepscope
from stepscope.arguments import Settings
open("file", "w").close()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with stepscope.profile(out="file/run") as prof:
        torch.ones(2)
assert "nothing is recorded" in str(caught[-1].message), caught
with stepscope.profile(out="run") as prof:
    torch.ones(2)
print(prof.key_averages().table(row_limit=1).splitlines()[-1][:19], os.listdir("run") != [])
settings = Settings(True, "file/traces")
with settings.profile() as prof:
    for _ in range(2):
        torch.ones(2)
        prof.step()
assert prof.key_averages().table() == "" and stepscope.profiler_end(prof, settings) == ""
for is_board in True, False:
    settings = Settings(True, "traces", is_board=is_board, repeat=1)
    with settings.profile() as prof:
        shutil.rmtree("traces")
        open("traces", "w").close()
        torch.ones(2)
        prof.step()
    stepscope.profiler_end(prof, settings)
    os.remove("traces")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with stepscope.profile(out="elsewhere") as prof:
        torch.ones(2)
assert "a program has one recording" in str(caught[-1].message), caught
"""


@every_python
def test_a_folder_that_cannot_be_written_is_said(tmp_path, python):
    (tmp_path / "tmp").mkdir()
    done = subprocess.run([python, "-c", NO_FOLDER], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(TMPDIR=tmp_path / "tmp", **OURS))
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("stepscope: ")]
    assert said[0].startswith("stepscope: nothing is profiled: cannot create the directory 'file/traces': ")
    assert sum("cannot write the files of a cycle: " in line for line in said) == 2
    assert sum("cannot write profiler_list.dat: " in line for line in said) == 2
    assert done.stdout.splitlines()[0] == "Self CPU time total True" and not list((tmp_path / "tmp").iterdir())


BLOCK = """
import sys, torch, stepscope
settings = stepscope.from_yaml({"profiler": {"enabled": True, "dirpath": "profiles", "filename": "fit"}}, ["training.profiler.type=" + sys.argv[1]])
print(settings.describe())
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with settings.profile() as prof:
    for _ in range(7):
        optimizer.zero_grad()
        model(torch.randn(4, 16)).sum().backward()
        optimizer.step()
        prof.step()
print(stepscope.profiler_end(prof, settings) == "")
"""


@pytest.mark.parametrize("kind", ["simple", "advanced", "pytorch"])
@every_python
def test_a_block_without_a_schedule_is_one_window_over_the_whole(tmp_path, python, kind):
    """Guide 004's: profile.txt, with "pytorch" a trace beside it; "simple" has no operators, and leaves its recording."""
    done = subprocess.run([python, "-c", BLOCK, kind], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0 and "Schedule: none, every step" in done.stdout, done.stderr
    text = (tmp_path / "profiles/fit.txt").read_text()
    there = {path.name for path in (tmp_path / "profiles").iterdir()} - {"profiler_list.dat"}
    if kind != "simple":
        assert there == {"fit.txt", *(["fit.json"] if kind == "pytorch" else [])} and done.stdout.endswith("False\n")
        assert re.search(r"^ +aten::addmm .* 7 *$", text, re.M) and not (tmp_path / "profiles/fit-").exists()
        return
    folder, = there - {"fit.txt"}
    assert folder.startswith("fit-") and done.stdout.endswith("True\n") and f"stepscope report {tmp_path}/profiles/{folder}" in done.stderr
    assert "7 complete steps, 0 with operations" in text and "  optimizer  " in text
    assert sum(row["is_complete"] for row in table(tmp_path / "profiles", "steps", recording=folder)) == 7


SWITCHED_OFF = """
import torch, warnings
from stepscope import profile
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with profile() as prof:
        torch.ones(2)
assert any("switched off" in str(warning.message) for warning in caught), caught
try:
    prof.key_averages().table()
except RuntimeError as problem:
    print(problem)
"""


@every_python
def test_switched_off_is_said(tmp_path, python):
    done = subprocess.run([python, "-c", SWITCHED_OFF], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(STEPSCOPE="0", **OURS))
    assert done.returncode == 0, done.stderr
    assert "nothing was recorded" in done.stdout


IMPORT = """
import sys, stepscope
assert 'torch' not in sys.modules
assert stepscope.profile
assert 'torch' in sys.modules
import torch.profiler
for name in ("DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
             "supported_activities", "tensorboard_trace_handler"):
    assert hasattr(torch.profiler, name) and hasattr(stepscope, name) and hasattr(stepscope.profiler, name), name
"""


@every_python
def test_importing_stepscope_does_not_import_torch(tmp_path, python):
    done = subprocess.run([python, "-c", IMPORT], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0, done.stderr


RESTARTED = """
import os, torch, warnings
from stepscope import profile

def names(**options):
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(out="traces", **options) as prof:
            torch.ones(2)
        said = [str(warning.message) for warning in caught]
    try:
        return [row.key for row in prof.key_averages() if row.key == "aten::ones"], said
    except RuntimeError as problem:
        return str(problem), said

assert names() == (["aten::ones"], [])
os.rename("traces", "away")
open("traces", "w").close()
found, said = names(record_shapes=True)  # begins the recording again, and cannot
assert "nothing was recorded" in found and any("nothing is recorded: " in text for text in said), (found, said)
found, _ = names()
assert "nothing was recorded" in found, found
os.remove("traces")
os.rename("away", "traces")
found, said = names()
assert found == ["aten::ones"], (found, said)
"""


@every_python
def test_after_a_restart_that_failed_later_profilers_record(tmp_path, python):
    done = subprocess.run([python, "-c", RESTARTED], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0, done.stderr


SEVERAL = """
import torch, warnings
from stepscope import profile, schedule

model = torch.nn.Linear(8, 8)
def step():
    model(torch.randn(2, 8)).sum().backward()

def counts(*profilers):
    return [sum(row.count for row in prof.key_averages() if row.key == "aten::addmm") for prof in profilers]

def inside(**options):  # of a plain one that goes on
    with profile() as outer:
        step()
        with profile(**options) as inner:
            for _ in range(3):
                step()
                inner.step()
        step()
    return inner, counts(outer, inner)

assert inside()[1] == [5, 3]
cycle = schedule(wait=1, warmup=1, active=1, repeat=1)
assert inside(schedule=cycle)[1] == [5, 1]
one, two = profile(record_shapes=True), profile()
one.start(), step(), two.start(), step(), one.stop(), step(), step(), two.stop()
assert counts(one, two) == [2, 3]
with profile() as outer, profile() as inner:
    step()
    inner.toggle_collection_dynamic(False, inner.activities)
    step(), step()
    inner.toggle_collection_dynamic(True, inner.activities)
    step()
assert counts(outer, inner) == [4, 2]
abandoned = profile(schedule=schedule(wait=0, warmup=9, active=1))
abandoned.start()
del abandoned
inner, found = inside(record_shapes=True, profile_memory=True)  # more than what records
assert found == [5, 3]
assert [[2, 8]] == [row.input_shapes[1] for row in inner.key_averages(group_by_input_shape=True) if row.key == "aten::addmm"]
assert sum(row.cpu_memory_usage for row in inner.key_averages()) > 0
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    if not IS_RUN:
        assert inside(with_stack=True)[1] == [5, 3]
        assert ["no Python lines" in str(warning.message) for warning in caught] == [True], caught
        with profile(with_stack=True) as later:  # nobody else is there: it may begin again
            step()
        assert counts(later) == [1] and len(caught) == 1
        if torch.__version__.startswith("2."):
            assert any(row.stack for row in later.key_averages(group_by_stack_n=5))
step()
"""


@pytest.mark.parametrize("options", [None, []], ids=["alone", "run"])
@every_python
def test_profilers_beside_each_other(tmp_path, python, options):
    program = [python, "-W", "ignore", "-c", SEVERAL.replace("IS_RUN", str(options is not None))]
    if options is None:
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False, env=environment(**OURS))
    else:
        done = run(tmp_path, *program, options=options)
    assert done.returncode == 0, done.stderr


ENDED = """
import torch, warnings, stepscope
from stepscope import _native, profile
added = []
follow, unfollow = _native.torch_follow, _native.torch_unfollow
_native.torch_follow = lambda: added.append(follow()) or added[-1]
_native.torch_unfollow = lambda mark: (added.remove(mark), unfollow(mark))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with profile(schedule=stepscope.schedule(wait=0, warmup=1, active=1)) as prof:
        torch.ones(2)
        stepscope.shutdown()
        for _ in range(6):
            prof.step()
assert not added, added
assert any("the recording has ended" in str(warning.message) for warning in caught), caught
"""


@every_python
def test_windows_after_the_recording_leave_nothing_in_pytorch(tmp_path, python):
    done = subprocess.run([python, "-c", ENDED], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0, done.stderr


THREADS = """
import threading, torch
from stepscope import profile
found = []
meet = threading.Barrier(3)
def work(steps):
    model = torch.nn.Linear(8, 8)
    meet.wait()
    with profile() as prof:
        meet.wait()
        for _ in range(steps):
            model(torch.randn(4, 8)).sum().backward()
        meet.wait()
    rows = {row.key: row.count for row in prof.key_averages()}
    found.append((steps, rows["aten::addmm"]))
threads = [threading.Thread(target=work, args=(steps,)) for steps in (1, 2, 3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found))
"""


@every_python
def test_profilers_of_several_threads_find_their_own(tmp_path, python):
    done = subprocess.run([python, "-c", THREADS], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
                          env=environment(**OURS))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[(1, 1), (2, 2), (3, 3)]\n", "")


BOTH_MARK = """
import sys, torch, stepscope
from stepscope import *
from stepscope import profile, schedule
model = torch.nn.Linear(4, 2)
def train():
    model(torch.ones(8, 4)).sum().backward()
counts = []
ready = lambda prof: counts.append(sum(row.count for row in prof.key_averages() if row.key == "aten::addmm"))
with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=ready) as prof:
    for n in range(6):
        with stepscope.step(10 + n, tokens=8):
            train()
            if sys.argv[1] == "inside":
                prof.step()
        if sys.argv[1] == "behind":
            prof.step()
with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=ready) as prof:
    for n in range(3):
        train()
        prof.step()
print(counts)
"""


@every_python
@pytest.mark.parametrize("where", ["inside", "behind"])
def test_a_program_that_marks_its_steps_has_no_others(tmp_path, python, where):
    """The profiler's own are there where the program marks none."""
    done = run(tmp_path, python, "-c", BOTH_MARK, where)
    steps = [(row["step"], row["is_complete"]) for row in table(tmp_path, "steps")]
    assert (done.stdout, done.returncode) == ("[2, 1]\n", 0), done.stderr
    # what the two profilers announced is none
    assert steps == [(0, False), *((10 + n, True) for n in range(6)), (0, True), (1, True), (2, True), (3, False)]


UNMARKED = """
import json, sys, torch
from stepscope import profile
with profile() as prof:
    for _ in range(3):
        (torch.randn(3, requires_grad=True) * 2).sum().backward()
prof.export_chrome_trace("trace.json")
with open("trace.json") as file:
    names = [event.get("name", "") for event in json.load(file)["traceEvents"]]
found = [prof.key_averages(), prof.events()]
print([name for name in names if name.startswith("ProfilerStep")], [row.key for rows in found for row in rows if "Profiler" in row.key])
"""


@every_python
def test_steps_that_nobody_marks_are_in_the_trace_only(tmp_path, python):
    done = warm(tmp_path, python, "-c", UNMARKED, env=OURS, is_observed=False)
    assert done.stdout == "['ProfilerStep#0', 'ProfilerStep#1', 'ProfilerStep#2'] []\n", done.stderr


BEFORE = """
import torch
from stepscope import profile
prof = profile()
for call in (prof.key_averages, prof.events, lambda: prof.export_chrome_trace("x.json")):
    try:
        call()
    except AssertionError:
        print("refused")
prof.start()
print(len(prof.events()), len(prof.key_averages()), prof.key_averages().table() == "")
try:
    prof.export_chrome_trace("x.json")
except RuntimeError as problem:
    print(problem)
prof.stop()
rows = prof.key_averages()
print(rows.table() == "", len(rows), bool(rows))
with profile() as some:
    torch.neg(torch.ones(2))
print("aten::neg" in some.key_averages().table(sort_by="is_async"))
try:
    rows.table(sort_by="nothing")
except AttributeError as problem:
    print(problem)
"""


@every_python
def test_results_that_are_not_there(tmp_path, python):
    done = subprocess.run([python, "-c", BEFORE], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused"] * 3 + [
        "0 0 True", "Profiler didn't finish running", "True 0 False", "True", "'FunctionEventAvg' object has no attribute 'nothing'"]


FORKED = """
import os, torch
from stepscope import profile
with profile() as prof:
    for _ in range(20):
        torch.neg(torch.ones(2))
def tell():
    print([row.count for row in prof.key_averages() if row.key == "aten::neg"], len(prof.events()), flush=True)
child = os.fork()
if child == 0:
    tell()
    os._exit(0)
os.waitpid(child, 0)
tell()
"""


@every_python
def test_a_forked_child_finds_the_results_of_its_parent(tmp_path, python):
    """All of them: not what happened to be written already."""
    done = subprocess.run([python, "-c", FORKED], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(**OURS))
    child, parent = done.stdout.splitlines()
    assert done.returncode == 0 and child == parent and child.startswith("[20] "), (done.stdout, done.stderr)


ODD_ARGUMENTS = """
import sys, torch, warnings
if sys.argv[1] == "torch":
    from torch.profiler import profile, ProfilerActivity
else:
    from stepscope import profile, ProfilerActivity
def answer(what, call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = call()
        except Exception as problem:
            found = type(problem).__name__, str(problem)
    print(what, found, [str(warning.message) for warning in said])
def only(*activities):
    with profile(activities=activities) as prof:
        torch.ones(2)
    return len(prof.key_averages()) > 0
for has_stacks in (False, True):
    with profile(activities=[ProfilerActivity.CPU], with_stack=has_stacks) as prof:
        torch.nn.Linear(4, 4)(torch.randn(3, 4))
    for number in (-1, -5, 0, True, 2.5, "a"):
        answer(f"frames {number!r}", lambda: any(row.key == "aten::addmm" for row in prof.key_averages(group_by_stack_n=number)))
    lines = len(prof.key_averages().table().splitlines())
    for number in (2.5, -1, 0, 1, 2.0, 1e3, "a", "2", None, float("inf"), float("nan"), True):
        answer(f"rows {number!r}", lambda: len(prof.key_averages().table(row_limit=number).splitlines()) == lines)
answer("a device alone", lambda: only(ProfilerActivity.CUDA))
answer("a device, too", lambda: only(ProfilerActivity.CPU, ProfilerActivity.CUDA))
answer("made", lambda: type(profile(activities=[ProfilerActivity.CUDA])).__name__)
"""


@every_python
def test_odd_arguments_are_taken_as_torch_takes_them(tmp_path, python):
    found = []
    for who in "torch", "stepscope":
        done = subprocess.run([python, "-c", ODD_ARGUMENTS, who], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
                              env=environment(**OURS, CUDA_VISIBLE_DEVICES=""))
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.splitlines())
    assert len(found[0]) == 39 and found[1] == found[0]


@every_python
def test_without_the_program_it_is_said(tmp_path, python):
    (tmp_path / "lib").mkdir()
    library = BUILD / "src/recorder/libstepscope.so.0"
    (tmp_path / "lib" / "libstepscope.so.0").write_bytes(library.read_bytes())
    shutil.copytree(BUILD / "python" / "stepscope", tmp_path / "a" / "b" / "stepscope")
    code = ("import torch\nfrom stepscope import profile\nwith profile() as prof:\n    torch.ones(2)\n"
            "try:\n    print(prof.key_averages())\nexcept RuntimeError as problem:\n    print(problem)\n")
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env={**environment(PYTHONPATH=tmp_path / "a" / "b"), "STEPSCOPE_LIBRARY": str(tmp_path / "lib" / "libstepscope.so.0"),
                               "PATH": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    assert "beside the library or on PATH" in done.stdout
