# SPDX-License-Identifier: Apache-2.0
"""The machine around the program, in the recording of `stepscope run` itself."""
import os
from pathlib import Path

from run_tools import ACTOR, HOST, await_directory, finish, host_facts, run, run_directory, segments, start, wait_for


def counters(directory):
    return set().union(*(segment.counters for segment in segments(directory, HOST)))


def test_counters_of_the_machine(tmp_path):
    run(tmp_path, "sleep", "1.3")
    found = counters(run_directory(tmp_path))
    assert {"host.cpu.busy_ratio", "host.cpu0.user_ratio", "host.memory.available_bytes", "host.memory.total_bytes"} <= found
    assert any(name.startswith("host.network.lo.") for name in found)
    if Path("/proc/pressure/cpu").exists():
        assert "host.pressure.cpu.some_ratio" in found
    assert all(name.startswith("host.") for name in found)


def test_recording_is_closed_and_says_whose(tmp_path):
    run(tmp_path, "sh", "-c", "exit 3")
    segment, = segments(run_directory(tmp_path), HOST)
    assert segment.is_closed
    facts = host_facts(run_directory(tmp_path))
    assert facts["argv"] == "sh -c 'exit 3'" and facts["exit"] == "3"


def test_without_the_machine(tmp_path):
    run(tmp_path, "sh", "-c", "exit 3", options=["--no-host"])
    assert not counters(run_directory(tmp_path))
    assert host_facts(run_directory(tmp_path))["exit"] == "3"


def test_one_of_several_recordings_has_the_machine(tmp_path):
    env = {"SLURM_JOB_ID": 5, "SLURM_STEP_ID": 0, "SLURM_NTASKS": 2, "SLURM_STEP_NUM_TASKS": 2}
    processes = [start(tmp_path, "sleep", length, env={**env, "SLURM_PROCID": rank}) for rank, length in enumerate([4, 1.2])]
    wait_for(lambda: len(segments(await_directory(tmp_path), HOST)) == 2, what="two recordings")
    for process in processes:
        assert finish(process).returncode == 0
    having = [segment.pid for segment in segments(run_directory(tmp_path), HOST) if segment.counters]
    assert 1 <= len(having) <= 2
    assert processes[0].pid in having, "the one that stays has them or takes over"


def test_telemetry_is_cheap(tmp_path):
    before = os.times()
    process = start(tmp_path, ACTOR, "sleep", "5000")
    process.wait(20)
    after = os.times()
    process.communicate()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    limit = 0.5 if "ASAN_OPTIONS" in os.environ or "UBSAN_OPTIONS" in os.environ else 0.15
    assert used < limit, f"{used:.3f} s of CPU for a program that slept 5 s"
