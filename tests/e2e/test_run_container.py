# SPDX-License-Identifier: Apache-2.0
"""`stepscope run` as the first process of a container, and programs in pid namespaces of their own: made with unshare."""
import json
import os
import re
import select
import signal
import subprocess
from pathlib import Path

import pytest

from run_tools import (ACTOR, STEPSCOPE, WORKER, child_of, environment, finish, host_facts, read_or_nothing, run_directory, segments,
                       start, wait_for)
from test_run_signals import ECHO

NAMESPACES = ("--mount", "--pid", "--fork")
SMALL = "mount -t tmpfs none /dev/shm -o size={} && exec \"$@\""


def unshare():
    """The command that makes namespaces here, with a user namespace where only that allows it."""
    for command in (["unshare", *NAMESPACES], ["unshare", "--user", "--map-root-user", *NAMESPACES]):
        tried = subprocess.run([*command, "--mount-proc", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return command
    pytest.skip(f"pid namespaces are forbidden here: {tried.stderr.strip()}")


def start_container(cwd, *program, shm="64m", has_proc=True, env=None):
    """`stepscope run -- program` with process id 1, running."""
    command = [*unshare(), *(["--mount-proc"] if has_proc else []), "sh", "-c", SMALL.format(shm), "sh", STEPSCOPE, "run", "--", *map(str, program)]
    return subprocess.Popen(command, cwd=cwd, env=environment(cwd, **(env or {})), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def count_watched(pid):
    """Processes whose end `stepscope run` waits for; their pools are held then."""
    infos = {int(path.name): read_or_nothing(path) for path in Path(f"/proc/{pid}/fdinfo").iterdir()}
    pidfds = {fd for fd, text in infos.items() if re.search(r"^Pid:\s+[1-9]", text, re.M)}
    polled = {int(fd) for text in infos.values() for fd in re.findall(r"^tfd:\s+(\d+)", text, re.M)}
    return len(pidfds & polled)


def await_watched_by(pid, count):
    wait_for(lambda: count_watched(pid) == count, what=f"{count} processes that are watched")


def next_line(process):
    assert select.select([process.stderr], [], [], 20)[0], "nothing was said"
    return process.stderr.readline().decode()


@pytest.fixture(autouse=True)
def release(tmp_path):
    """No program outlives a test that failed."""
    yield
    for name in ("seen", "over"):
        (tmp_path / name).touch()


def table(cwd, name):
    done = subprocess.run([STEPSCOPE, "report", run_directory(cwd), "--table", name, "--json"], capture_output=True, check=True, env=environment(cwd))
    return json.loads(done.stdout)["rows"]


def ends(cwd):
    return {row["rank"]: row["end"] for row in table(cwd, "processes") if row["rank"] is not None}


def lost(cwd):
    return [row for row in table(cwd, "ledger") if row["what"] not in ("open", "rescued")]


@pytest.mark.parametrize("has_proc", [True, False], ids=["proc", "proc of another namespace"])
def test_dead_rank_is_named_and_rescued(tmp_path, has_proc):
    process = start_container(tmp_path, ACTOR, "ranks", "4", "steps", "30", "1000", "only", "3", "open", "all_reduce", "await", "seen", "kill", "9",
                              "all", "await", "over", has_proc=has_proc)
    await_watched_by(child_of(process), 4)
    (tmp_path / "seen").touch()
    line = next_line(process)
    (tmp_path / "over").touch()
    done = finish(process)
    assert re.fullmatch(r"stepscope: rank 3 \(pid \d+\) was killed by SIGKILL, last step 29, last op 'all_reduce'\n", line)
    assert done.stderr.startswith("stepscope: 4 processes, ranks 0-2: captured all 30 steps (0-29) with operators; "
                                  "rank 3: recorded up to its end at step 29\n"), done.stderr
    assert not lost(tmp_path)
    assert ends(tmp_path) == {0: "exit status 0", 1: "exit status 0", 2: "exit status 0", 3: "killed by SIGKILL"}


def test_pool_in_memory_is_held(tmp_path):
    """With a /dev/shm of 1 MB there is no room for a pool in it."""
    process = start_container(tmp_path, ACTOR, "steps", "30", "1000", "open", "conv", "await", "seen", "kill", "9", shm="1m")
    await_watched_by(child_of(process), 1)
    (tmp_path / "seen").touch()
    done = finish(process)
    assert "the program was killed by SIGKILL, last step 29, last op 'conv'; recorded up to its end at step 29\n" in done.stderr
    assert not lost(tmp_path)


def test_daemon_is_followed(tmp_path):
    """It becomes a child of process 1."""
    process = start_container(tmp_path, "sh", "-c", f"'{ACTOR}' detach steps 20 1000 open conv await seen kill 9; '{ACTOR}' await over")
    await_watched_by(child_of(process), 1)
    (tmp_path / "seen").touch()
    line = next_line(process)
    (tmp_path / "over").touch()
    finish(process)
    assert re.fullmatch(r"stepscope: process \d+ was killed by SIGKILL, last step 19, last op 'conv'\n", line)
    assert not lost(tmp_path)


def test_what_the_container_ends_with_is_rescued(tmp_path):
    """The kernel kills what is left when process 1 goes."""
    done = finish(start_container(tmp_path, ACTOR, "steps", "2", "0", "worker", "steps", "20", "1000", "push", "across", "sleep", "60000", "all",
                                  shm="1m"))
    assert done.returncode == 0
    (worker,) = {segment.pid for segment in segments(run_directory(tmp_path), WORKER)}
    assert host_facts(run_directory(tmp_path))[f"child.{worker}.signal"] == "SIGKILL"
    assert not lost(tmp_path)


ORPHANS = """
for i in 1 2 3 4 5 6 7 8 9 10; do sh -c '(sleep 0.01; exit 5) & (kill -9 $$) &'; done
while [ $(wc -w < /proc/1/task/1/children) -gt 1 ]; do sleep 0.02; done
exit 3
"""


def test_orphans_are_reaped_and_their_status_is_not_the_program_s(tmp_path):
    assert finish(start_container(tmp_path, "sh", "-c", ORPHANS)).returncode == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_reaches_the_program(tmp_path, number):
    """The kernel gives process 1 no signal whose default is to end it."""
    process = start_container(tmp_path, "python3", "-c", ECHO)
    assert process.stdout.readline() == b"ready\n"
    os.kill(child_of(process), number)
    done = finish(process)
    assert done.returncode == 9 and number.name.encode() in done.stdout
    assert "stepscope: report: " in done.stderr


def test_stop_ends_a_program_without_a_handler(tmp_path):
    process = start_container(tmp_path, ACTOR, "steps", "5", "0", "open", "conv", "write", "1", "r", "sleep", "60000")
    assert process.stdout.read(1) == b"r"
    os.kill(child_of(process), signal.SIGTERM)
    assert "the program was killed by SIGTERM, last step 4, last op 'conv'" in finish(process).stderr


INNER = "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 {} --mount-proc {} '{}' steps 30 1000 open conv write 1 r await over 2>/dev/null & done; wait"


def of_rank(pid, rank):
    """The process of a rank below `pid`, as it is seen from outside; the last in the chain, which is the program."""
    for child in map(int, read_or_nothing(Path(f"/proc/{pid}/task/{pid}/children")).split()):
        found = of_rank(child, rank)
        if found:
            return found
    has_rank = f"RANK={rank}\0" in read_or_nothing(Path(f"/proc/{pid}/environ"))
    return pid if has_rank and os.readlink(f"/proc/{pid}/exe") == os.path.realpath(ACTOR) else 0


@pytest.mark.parametrize("shm", ["", "sh -c 'mount -t tmpfs none /dev/shm && exec \"$@\"' sh"], ids=["same shm", "own shm"])
@pytest.mark.parametrize("is_first", [True, False])
def test_ranks_in_namespaces_of_their_own(tmp_path, is_first, shm):
    """All of them are process 1, as `stepscope run` may be, and begin at about the same time."""
    script = INNER.format(" ".join(unshare()), shm, ACTOR)
    process = (start_container if is_first else start)(tmp_path, "sh", "-c", script)
    outer = child_of(process) if is_first else process.pid
    assert process.stdout.read(3) == b"rrr"
    await_watched_by(outer, 3)
    os.kill(of_rank(outer, 1), signal.SIGKILL)
    line = next_line(process)
    (tmp_path / "over").touch()
    done = finish(process)
    assert line == "stepscope: rank 1 (pid 1) was killed by SIGKILL, last step 29, last op 'conv'\n"
    assert "3 processes, rank 0, rank 2: captured all 30 steps (0-29) with operators; rank 1: recorded up to its end at step 29\n" in done.stderr
    assert not lost(tmp_path)
    assert ends(tmp_path)[1] == "killed by SIGKILL" and "SIGKILL" not in ends(tmp_path)[0] + ends(tmp_path)[2]


def test_report_in_a_container_rescues_a_process_of_its_own_id(tmp_path):
    """Both have process id 1, one after the other; the second not in the same hundredth of a second."""
    env = environment(tmp_path, STEPSCOPE="1", STEPSCOPE_OPTIONS="out=run")
    first = [*unshare(), "--mount-proc"]
    subprocess.run([*first, ACTOR, "steps", "30", "1000", "open", "conv", "quit"], cwd=tmp_path, env=env, check=True)
    done = subprocess.run([*first, STEPSCOPE, "report", "run", "--table", "ledger", "--json"], cwd=tmp_path, env=environment(tmp_path),
                          capture_output=True, check=True)
    assert {row["what"] for row in json.loads(done.stdout)["rows"]} == {"open", "rescued"}
