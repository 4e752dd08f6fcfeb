# SPDX-License-Identifier: Apache-2.0
"""Faults that a program without PyTorch can have, found by their rules. Nothing here depends on how long anything takes."""
import json
import subprocess
import sys

import pytest
from python_tools import STEPSCOPE, environment, run, table

LOSSES = "import stepscope\nfor i in range(30):\n    with stepscope.step(i):\n        stepscope.metric('{}', {})\n"
COUNTER = "import stepscope\nfor value in {}:\n    stepscope.counter('host.{}', value)\n"
# every thread keeps the chunk that it wrote to, and the pool has fewer
THREADS = """
import stepscope, threading
stepscope.step_begin(0)
all_wrote = threading.Barrier(100)
def write():
    stepscope.mark("here")
    all_wrote.wait()
threads = [threading.Thread(target=write) for _ in range(100)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
stepscope.step_end()
"""
DIES = """
import os, signal, stepscope
for i in range(5):
    stepscope.step_begin(i)
    stepscope.push("reading")
    if i == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    stepscope.pop()
    stepscope.step_end()
"""
# a launcher of two ranks: the second one dies, and the first, which waits for it, is ended. It leaves both to whoever started it, as zombies: of
# a rank that is waited for at once nobody else can say how it ended
LAUNCHES = """
import os, signal, subprocess, sys
RANK = '''
import os, signal, stepscope
stepscope.step_begin(0)
stepscope.push("waiting")
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGSEGV)
print(flush=True)
signal.pause()
'''
ranks = [subprocess.Popen([sys.executable, "-c", RANK], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}, stdout=subprocess.PIPE) for rank in (0, 1)]
ranks[0].stdout.readline()
os.waitid(os.P_PID, ranks[1].pid, os.WEXITED | os.WNOWAIT)
ranks[0].terminate()
os.waitid(os.P_PID, ranks[0].pid, os.WEXITED | os.WNOWAIT)
os._exit(1)
"""
# a buffer that is new in every step, or one that is kept; a step is long enough for the kernel to be asked about it
BUFFERS = """
import mmap, stepscope, time
def buffer():
    pages = mmap.mmap(-1, mmap.PAGESIZE * 5000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages
def write(pages):
    for at in range(0, len(pages), mmap.PAGESIZE):
        pages[at] = 1
kept = buffer()
write(kept)
for i in range(5):
    with stepscope.step(i):
        end = time.thread_time() + 0.03
        used = {}
        while time.thread_time() < end:
            write(used)
"""
GOOD = LOSSES.format("reward", "1")

# rule: (program, options, a part of where and evidence), program in which nothing is found, whether it cannot tell of GOOD
FAULTS = {
    "SS702": ((LOSSES.format("train_loss", "1 if i < 10 else 1.6"), [], "1 on the mean of the first ten values, 1.6"),
              LOSSES.format("train_loss", "1 if i < 10 else 1.4"), True),
    "SS703": ((LOSSES.format("grad_norm", "1 if i < 10 else 3"), [], "1 on the mean of the first third, 3"),
              LOSSES.format("grad_norm", "1 if i < 10 else 1.5"), True),
    "SS704": ((LOSSES.format("grad_norm", "1 if i % 2 else 5"), [], "about a mean of 3, from 1 to 5"),
              LOSSES.format("grad_norm", "1 if i % 2 else 2"), True),
    "SS801": ((COUNTER.format([0, 0.2], "cgroup.cpu_throttled_s_per_s"), [], "0.10 s of every second"),
              COUNTER.format([0, 0.01], "cgroup.cpu_throttled_s_per_s"), True),
    "SS802": ((DIES, [], "killed by SIGKILL; its last step is 4, in reading"), GOOD, False),
    "SS803": ((COUNTER.format([1, 2], "cgroup.memory_oom_kills"), [], "1 program killed at the limit of the control group"),
              COUNTER.format([1, 1], "cgroup.memory_oom_kills"), True),
    "SS804": ((COUNTER.format([0.4, 0.6], "cpu.iowait_ratio"), [], "50.0 % of the time"), COUNTER.format([0, 0.1], "cpu.iowait_ratio"), True),
    "SS901": ((THREADS, ["--pool", "256K"], "events were lost"), GOOD, False),
}


def diagnose(tmp_path, text, options=(), more=()):
    (tmp_path / "program.py").write_text(text)
    run(tmp_path, sys.executable, "program.py", options=["--no-host", *options])
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json", *more], cwd=tmp_path, timeout=60, env=environment(), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def result_of(diagnosis, rule):
    return next(check["result"] for check in diagnosis["checks"] if check["rule"] == rule)


@pytest.mark.parametrize("rule", FAULTS)
def test_it_fires(tmp_path, rule):
    program, options, evidence = FAULTS[rule][0]
    found = [finding for finding in diagnose(tmp_path, program, options)["findings"] if finding["rule"] == rule]
    assert found and evidence in found[0]["evidence"]


@pytest.mark.parametrize("rule", FAULTS)
def test_it_stays_silent(tmp_path, rule):
    assert result_of(diagnose(tmp_path, FAULTS[rule][1]), rule) == "nothing"


def test_D08_the_rank_that_died_comes_before_those_that_were_ended_for_it(tmp_path):
    """And who passes on that it failed did not die itself."""
    result = diagnose(tmp_path, LAUNCHES)
    died = [finding for finding in result["findings"] if finding["rule"] == "SS802"]
    headline = f"did not end well: {died[0]['where']}: killed by SIGSEGV; its last step is 0, in waiting (and 1 more: SS802)"
    assert result["verdict"]["headline"] == headline
    assert [finding["where"].split(",")[0] for finding in died] == ["rank 1", "rank 0"], died
    assert died[0]["evidence"] == "killed by SIGSEGV; its last step is 0, in waiting" and died[0]["confidence"] == "high"
    assert died[1]["evidence"].startswith("killed by SIGTERM; its last step is 0, in waiting; rank 1, pid ") and died[1]["confidence"] == "medium"
    assert "had died by then" in died[1]["evidence"]


def test_they_say_that_they_cannot_tell(tmp_path):
    diagnosis = diagnose(tmp_path, GOOD)
    assert diagnosis["verdict"]["headline"] is None
    for rule in [rule for rule, fault in FAULTS.items() if fault[2]]:
        assert result_of(diagnosis, rule) == "cannot tell", rule


def page_faults(tmp_path, buffer):
    """What SS213 says where a step's length, which is the machine's, has no say."""
    (tmp_path / "faults.yaml").write_text("SS213: {share: 0}\n")
    diagnosis = diagnose(tmp_path, BUFFERS.format(buffer), more=["--thresholds", "faults.yaml"])
    return result_of(diagnosis, "SS213"), [row["page_faults"] for row in table(tmp_path, "steps")]


def test_memory_that_is_new_in_every_step_takes_page_faults(tmp_path):
    result, faults = page_faults(tmp_path, "buffer()")
    assert result == "found"
    assert faults[0] is None and all(5000 <= count < 6000 for count in faults[1:]), faults


def test_memory_that_is_kept_takes_none(tmp_path):
    result, faults = page_faults(tmp_path, "kept")
    assert result == "nothing"
    assert all(count < 100 for count in faults[1:]), faults


@pytest.mark.parametrize("end, is_found", [("", False), ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", True),
                                           ("raise SystemExit(1)\n", True)])
def test_D07_another_program_of_the_machine_was_killed_for_memory(tmp_path, end, is_found):
    diagnosis = diagnose(tmp_path, COUNTER.format([1, 2], "memory.oom_kills") + end)
    assert result_of(diagnosis, "SS803") == ("found" if is_found else "nothing")
