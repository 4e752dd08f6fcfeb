# SPDX-License-Identifier: Apache-2.0
"""A run that ended out of memory says so first: what grew, since which step, by how much, and which step the limit allows."""
import json
import subprocess
import sys

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table

sys.path.append(str(HERE.parent / "e2e"))
from run_tools import memory_group  # noqa: E402

PROGRAM = HERE / "out_of_memory.py"
MIB = 1 << 20


def diagnose(tmp_path, *options):
    done = subprocess.run([STEPSCOPE, "diagnose", "run", *options], cwd=tmp_path, timeout=60, env=environment(), capture_output=True, text=True,
                          check=True)
    return done.stdout


def headline(tmp_path):
    text = json.loads(diagnose(tmp_path, "--json"))["verdict"]["headline"]
    if text:
        assert diagnose(tmp_path).startswith(text[:40])
    return text


@every_python
def test_memory_that_grows_is_named(tmp_path, python):
    done = run(tmp_path, python, PROGRAM, "leak", options=["--with", "memory"])
    assert done.returncode == 1 and "allocate memory" in done.stderr
    row, = table(tmp_path, "out_of_memory")
    steps = len(table(tmp_path, "steps"))
    assert (row["how"], row["device"], row["growth_source"], row["asked_bytes"]) == ("exception", "host", "allocations", 16 * MIB)
    assert row["end_growth_bytes_per_step"] == pytest.approx(16 * MIB, rel=0.01)
    assert 8 <= row["since_step"] <= 11 and row["step"] in (steps - 1, steps)
    assert abs(row["limit_step"] - row["step"]) <= 1, "the limit allows the step in which it ended"
    assert row["failing_line"].endswith("out_of_memory.py(33): <module>")
    said = headline(tmp_path)
    assert said.startswith("out of memory: ") and "RuntimeError: " in said
    assert "memory grows by 16.0 MiB per step since step " in said and ", most of it aten::ones; " in said and "at this rate the limit of" in said


@every_python
def test_without_recorded_memory_samples_tell(tmp_path, python):
    done = run(tmp_path, python, PROGRAM, "leak", "0.3", budget="3%")
    assert done.returncode == 1, done.stderr
    row, = table(tmp_path, "out_of_memory")
    assert row["growth_source"] == "resident memory" and row["end_growth_bytes_per_step"] == pytest.approx(16 * MIB, rel=0.25), row
    assert row["growing_category"] is None
    assert "; resident memory grows by " in headline(tmp_path)


@pytest.mark.parametrize("kind, exception", [("at_once", "RuntimeError: "), ("python", "MemoryError")])
def test_memory_that_does_not_grow(tmp_path, kind, exception):
    done = run(tmp_path, sys.executable, PROGRAM, kind, options=["--with", "memory"])
    assert done.returncode == 1, done.stderr
    said = headline(tmp_path)
    assert said.startswith("out of memory: ") and exception in said
    assert "memory does not grow from step to step: one step needs more than there is" in said


def test_a_program_that_goes_on_did_not_end(tmp_path):
    done = run(tmp_path, sys.executable, PROGRAM, "caught", options=["--with", "memory"])
    assert done.returncode == 0, done.stderr
    assert table(tmp_path, "out_of_memory") == [] and headline(tmp_path) is None


def test_a_kill_by_the_control_group(tmp_path):
    with memory_group("stepscope-torch", 700 * MIB) as group:
        if not group:
            pytest.skip("no memory control group can be made")
        wanted = f"echo $$ > {group}/cgroup.procs; exec {STEPSCOPE} run -o run -- {sys.executable} {PROGRAM} forever 0.2"
        done = subprocess.run(["sh", "-c", wanted], cwd=tmp_path, timeout=200, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode != 137 or "(out of memory: the kernel killed a process meanwhile)" not in done.stderr:
        pytest.skip("the limit is not enforced here")
    row, = table(tmp_path, "out_of_memory")
    assert (row["how"], row["memory_limit_bytes"], row["growth_source"]) == ("control group", 700 * MIB, "resident memory")
    assert row["end_growth_bytes_per_step"] == pytest.approx(16 * MIB, rel=0.25) and 6 <= row["since_step"] <= 20, row
    assert abs(row["limit_step"] - row["step"]) <= 8, row  # a sample each second
    assert "the kernel killed it at the limit of its control group, 700 MiB; its last step is " in headline(tmp_path)
    assert any(fact["key"] == "oom_kills" and fact["value"] == "1" for fact in table(tmp_path, "facts"))
