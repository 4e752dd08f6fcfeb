# SPDX-License-Identifier: Apache-2.0
"""Processes of a run: ranks, workers and orphans are followed; who dies is named; what a killed one left is rescued."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from run_tools import (ACTOR, STEPSCOPE, TRAINER, WORKER, await_directory, await_watched, child_of, environment, finish, has_report, host_facts, is_running,
                       is_watched, kill_group, memory_group, pools, run, run_directory, segments, start, wait_for)


def test_killed_program_is_rescued_and_named(tmp_path):
    process = start(tmp_path, ACTOR, "steps", "40", "100", "open", "conv", "write", "1", "r", "sleep", "60000")
    child = child_of(process)
    assert process.stdout.read(1) == b"r"
    os.kill(child, signal.SIGKILL)
    done = finish(process)
    assert done.returncode == 137
    assert "the program was killed by SIGKILL, last step 39, last op 'conv'" in done.stderr
    assert not pools(run_directory(tmp_path))
    assert has_report(run_directory(tmp_path))
    assert host_facts(run_directory(tmp_path))[f"child.{child}.signal"] == "SIGKILL"


def test_killed_at_once(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "3", "0", "open", "conv", "kill", "9")
    assert done.returncode == 137 and "last op 'conv'" in done.stderr
    assert not pools(run_directory(tmp_path)) and has_report(run_directory(tmp_path))


def test_dead_rank_is_named_while_the_others_go_on(tmp_path):
    process = start(tmp_path, ACTOR, "ranks", "4", "steps", "30", "1000", "only", "2", "open", "all_reduce", "await", "seen",
                    "kill", "9", "all", "steps", "30", "1000", "sleep", "60000", start_new_session=True)
    program = child_of(process)
    await_watched(process, tmp_path, 4, TRAINER)
    (tmp_path / "seen").touch()
    line = process.stderr.readline().decode()
    assert is_running(program), "named only at the end"
    assert re.fullmatch(r"stepscope: rank 2 \(pid \d+\) was killed by SIGKILL, last step 29, last op 'all_reduce'\n", line)
    kill_group(process)
    finish(process)


def test_rank_that_fails_is_named_with_its_status(tmp_path):
    process = start(tmp_path, ACTOR, "ranks", "3", "steps", "5", "0", "only", "1", "await", "seen", "exit", "5", "all", "await", "over")
    await_watched(process, tmp_path, 3, TRAINER)
    (tmp_path / "seen").touch()
    line = process.stderr.readline().decode()
    (tmp_path / "over").touch()
    done = finish(process)
    assert done.returncode == 5
    assert re.fullmatch(r"stepscope: rank 1 \(pid \d+\) exited with status 5\n", line), line
    assert "3 processes, ranks 0-2: captured all 5 steps" in done.stderr and "rank 2 (" not in done.stderr


def test_ranks_that_end_in_order_are_not_named(tmp_path):
    done = run(tmp_path, ACTOR, "ranks", "4", "steps", "5", "0")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "stepscope: 4 processes, ranks 0-3: captured all 5 steps (0-4) with operators"


@pytest.mark.parametrize("number, is_named", [(signal.SIGSEGV, True), (signal.SIGKILL, True), (signal.SIGTERM, False)])
def test_death_of_a_worker(tmp_path, number, is_named):
    process = start(tmp_path, ACTOR, "steps", "3", "0", "worker", "steps", "2", "0", "open", "load", "await", "seen", "kill", int(number),
                    "all", "await", "over", "steps", "3", "0")
    (worker,) = await_watched(process, tmp_path, 1, WORKER)
    (tmp_path / "seen").touch()
    wait_for(lambda: not is_watched(process, worker), what="the worker's end")
    (tmp_path / "over").touch()
    done = finish(process)
    assert done.returncode == 0
    assert bool(re.search(rf"worker \d+ was killed by {number.name}, last step 1, last op 'load'", done.stderr)) == is_named
    assert len(segments(run_directory(tmp_path), WORKER)) >= 1


def test_workers_of_which_nobody_knows_are_not_called_killed(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "3", "0", "brief", "20", "sleep", "300")
    assert done.stderr.splitlines()[0] == "stepscope: captured all 3 steps (0-2) with operators, and 20 worker processes", done.stderr


def test_many_deaths_do_not_flood(tmp_path):
    process = start(tmp_path, ACTOR, "ranks", "20", "steps", "3", "0", "only", "0", "await", "over", "exit", "0", "all", "kill", "9")
    directory = await_directory(tmp_path)
    wait_for(lambda: len({segment.pid for segment in segments(directory, TRAINER)}) == 20 and len(pools(directory)) == 2, timeout=60,
             what="the rescue of all but rank 0 and the host")
    (tmp_path / "over").touch()
    done = finish(process)
    named = re.findall(r"stepscope: rank \d+ \(pid \d+\) (?:was killed by SIGKILL|ended with unknown exit status)", done.stderr)
    assert len(named) == 8
    # of those that were gone before we saw them nobody can say how
    assert sum(map(int, re.findall(r"stepscope: (\d+) more processes (?:were killed or failed|ended with unknown exit status)", done.stderr))) == 11


def test_orphans_are_followed_for_a_while(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "2", "0", "worker", "steps", "2", "0", "sleep", "150", "steps", "2", "0", "all")
    assert done.returncode == 0
    closed = [segment for segment in segments(run_directory(tmp_path), WORKER) if segment.is_closed]
    assert closed, "the orphan had time to end in order"


def test_a_daemon_does_not_hold_the_run(tmp_path):
    process = start(tmp_path, ACTOR, "steps", "2", "0", "worker", "steps", "2", "0", "sleep", "60000", "all",
                    start_new_session=True)
    process.wait(30)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_more_names_than_fit_do_not_hide_the_sentence(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "3", "0", "names", "140000", "steps", "2", "0")
    told, captured = done.stderr.splitlines()[:2]
    assert "uses more names than the recorder can hold" in told
    assert re.match(r"stepscope: captured all 5 steps \(0-2\) with operators; \d+ events were dropped \(0 of steps and phases\)", captured)


def test_sentence_tells_of_all_recordings_of_a_process(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "3", "0", "stop", "init", "", "steps", "2", "0", "stop", "init", "", "steps", "4", "0")
    assert done.stderr.splitlines()[0] == ("stepscope: in 3 recordings of this process captured 9 steps, 9 of them with operators; "
                                           "in the last one captured all 4 steps (0-3) with operators")


SOME, STEPS = ("push", "a", "pop"), ("steps", "3", "0")


@pytest.mark.parametrize("acts, said", [
    ([(), SOME, STEPS], "1 of 3 processes trained, pid N: captured all 3 steps (0-2) with operators"),
    ([SOME, (), ()], "1 of 3 processes ran operators or ranges, pid N: the program marked no steps: captured its ranges without steps"),
    ([STEPS + ("stop", "init", ""), SOME], "1 of 2 processes trained, pid N: in 2 recordings of this process captured 3 steps, 3 of them with operators; in the last one "),
    ([(), ()], "2 processes, pid N, pid N: the program marked no steps, operators or ranges: "),
])
def test_it_speaks_for_those_that_trained_or_else_did_something(tmp_path, acts, said):
    script = "\n".join(f"{ACTOR} init '' " + " ".join(word or "''" for word in act) for act in acts)
    done = run(tmp_path, "sh", "-c", script)
    assert re.sub(r"pid \d+", "pid N", done.stderr).startswith("stepscope: " + said), done.stderr


def test_a_range_that_is_open_when_a_recording_ends_ends_nothing_in_the_next(tmp_path):
    run(tmp_path, ACTOR, "init", "", "push", "across", "sleep", "1", "stop", "init", "", "push", "inside", "sleep", "1", "pop", "pop",
        "push", "behind", "pop", "pop")
    answer = [subprocess.run([STEPSCOPE, "report", run_directory(tmp_path), "--table", name, "--json"], capture_output=True, check=True,
                             env=environment(tmp_path)) for name in ("ledger", "ops")]
    ledger, ops = (json.loads(done.stdout)["rows"] for done in answer)
    assert {row["what"]: row["count"] for row in ledger} == {"open": 1, "unmatched end": 2}
    assert {row["name"]: row["calls"] for row in ops if row["kind"] == "range"} == {"across": 1, "inside": 1, "behind": 1}


def test_sentence_tells_of_the_steps_that_cost_every_leaves_out(tmp_path):
    done = run(tmp_path, ACTOR, "steps", "320", "0", options=["--cost-every", "10"])
    assert re.match(r"stepscope: captured operators of 20 of 320 steps \(1 of 16\): all would cost ", done.stderr), done.stderr


def test_sentence_of_a_short_run_names_the_way_out(tmp_path):
    """The first three steps have none."""
    done = run(tmp_path, ACTOR, "steps", "3", "0", options=["--budget", "3%"])
    assert done.stderr.splitlines()[0] == "stepscope: captured operators of 0 of 3 steps; --budget none records all"
    done = run(tmp_path, ACTOR, "steps", "3", "0", options=["--budget", "3%", "--steps", "all"])
    assert done.stderr.splitlines()[0] == "stepscope: captured all 3 steps (0-2) with operators"


def test_nothing_is_left_of_what_ranks_agree_by(tmp_path):
    run(tmp_path, ACTOR, "ranks", "2", "steps", "200", "0", "kill", "9", options=["--budget", "3%"])
    directory = run_directory(tmp_path).stat()
    name = f"stepscope.{os.getuid()}.share.{directory.st_dev:x}.{directory.st_ino:x}"
    assert name not in os.listdir("/dev/shm")


HOLD = """
import fcntl, sys
with open(sys.argv[1], "r+b") as pool:
    fcntl.lockf(pool, fcntl.LOCK_EX, 1)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def rescue_of_a_dead_actor(directory):
    """A process that was killed, and another that holds its pool until its own input ends, as a command does that rescues it."""
    for _ in range(20):  # a command of another test may be quicker than we, until the pool is held
        shutil.rmtree(directory / "run", ignore_errors=True)
        started = subprocess.run([ACTOR, "steps", "3", "0", "kill", "9"], cwd=directory, check=False,
                                 env=environment(directory, STEPSCOPE_OPTIONS="out=run", STEPSCOPE="1"))
        assert started.returncode == -9
        left = pools(directory / "run")
        with subprocess.Popen([sys.executable, "-c", HOLD, *left], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as other:
            if other.stdout.readline() == b"held\n" and pools(directory / "run") == left:
                yield other
                return
            other.stdin.close()
    pytest.fail("every pool was rescued before it could be held")


def test_a_report_waits_for_the_rescue_that_another_command_is_at(tmp_path):
    """Every command looks for pools of the dead: one that was quicker holds a lock on the pool."""
    with rescue_of_a_dead_actor(tmp_path) as other:
        with subprocess.Popen([STEPSCOPE, "report", "run", "--table", "steps", "--json"], stdout=subprocess.PIPE, cwd=tmp_path,
                              env=environment(tmp_path)) as report:
            with pytest.raises(subprocess.TimeoutExpired):
                report.wait(0.5)
            other.stdin.close()
            assert [step["step"] for step in json.loads(report.stdout.read())["rows"]] == [0, 1, 2]


def test_exec_keeps_one_process(tmp_path):
    done = run(tmp_path, "sh", "-c", f"'{ACTOR}' steps 3 0; exec '{ACTOR}' steps 4 0")
    assert done.returncode == 0
    assert len({segment.pid for segment in segments(run_directory(tmp_path), TRAINER)}) == 2


@pytest.mark.parametrize("last", ["exec '{}' steps 4 0", "'{}' steps 4 0; true"], ids=["exec", "child"])
def test_trainings_one_after_the_other_count_alike(tmp_path, last):
    """A shell that becomes the last one has the process id that started the others."""
    done = run(tmp_path, "bash", "-c", f"'{ACTOR}' steps 3 0; '{ACTOR}' steps 5 0; {last.format(ACTOR)}")
    assert done.returncode == 0
    report = [STEPSCOPE, "report", run_directory(tmp_path)]
    text = " ".join(subprocess.run(report, capture_output=True, check=True, text=True).stdout.split())
    assert "steps 0 to 4: 5 complete steps" in text
    assert "3 trainings that did not all run at the same time are shown as one job: the mean over them, step by step; --table step_time lists each" in text
    ranks = json.loads(subprocess.run([*report, "--table", "ranks", "--json"], capture_output=True, check=True).stdout)
    assert sorted(row["steps"] for row in ranks["rows"]) == [3, 4, 5]
    assert not any(row["is_slowest"] is not None or row["behind_ns"] is not None for row in ranks["rows"])


def test_hundreds_of_processes(tmp_path):
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5 6 7 8 9 10; do '{ACTOR}' steps 1 0 & done; wait; done"
    done = run(tmp_path, "sh", "-c", script, timeout=120)
    assert done.returncode == 0 and "100 processes" in done.stderr
    assert not pools(run_directory(tmp_path))


def test_status_of_all_processes_is_written_down(tmp_path):
    process = start(tmp_path, ACTOR, "ranks", "2", "steps", "2", "0", "await", "seen", "only", "1", "exit", "7", "all")
    await_watched(process, tmp_path, 2, TRAINER)
    (tmp_path / "seen").touch()
    finish(process)
    facts = host_facts(run_directory(tmp_path))
    statuses = [value for key, value in facts.items() if key.endswith(".status")]
    assert statuses.count("7") == 2, "of rank 1 and of the program"


def test_rank_killed_from_outside_is_seen_while_the_other_goes_on(tmp_path):
    process = start(tmp_path, ACTOR, "ranks", "2", "steps", "5", "2000", "write", "1", "r", "steps", "100000", "2000",
                    start_new_session=True)
    directory = await_directory(tmp_path)
    assert process.stdout.read(2) == b"rr"  # both have made steps
    found = wait_for(lambda: [s for s in segments(directory, TRAINER) if s.rank == 1], what="rank 1")
    program = child_of(process)
    wait_for(lambda: is_watched(process, found[0].pid), what="rank 1 watched")
    os.kill(found[0].pid, signal.SIGKILL)
    line = process.stderr.readline().decode()
    assert is_running(program), "seen only at the end"
    assert re.match(rf"stepscope: rank 1 \(pid {found[0].pid}\) was killed by SIGKILL, last step \d+", line)
    kill_group(process)
    finish(process)


@pytest.mark.parametrize("end, status", [(["kill", "15"], 143), (["kill", "11"], 139), (["abort"], 134), (["quit"], 0),
                                         (["exit", "9"], 9)])
def test_every_way_to_end_leaves_a_whole_recording(tmp_path, end, status):
    done = run(tmp_path, ACTOR, "steps", "25", "100", "open", "conv", *end)
    assert done.returncode == status
    directory = run_directory(tmp_path)
    assert not pools(directory) and has_report(directory)
    if status > 128:
        assert "last step 24, last op 'conv'" in done.stderr


def test_want_of_memory_is_named(tmp_path):
    with memory_group("stepscope-test", 64 << 20) as group:
        if not group:
            pytest.skip("no memory control group can be made")
        hog = f"echo $$ > {group}/cgroup.procs; exec python3 -c 'import time; time.sleep(1.2); x = bytearray(500 << 20)'"
        done = run(tmp_path, "sh", "-c", hog)
    if done.returncode == 0:
        pytest.skip("the limit is not enforced here")
    assert done.returncode == 137
    assert "the program was killed by SIGKILL (out of memory: the kernel killed a process meanwhile); " in done.stderr
