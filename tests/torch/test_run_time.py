# SPDX-License-Identifier: Apache-2.0
"""Where the wall time of a run goes, against the program's own clock."""
import json
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table, version

CASES = [("compile", "3%"), ("evaluate", "none"), ("evaluate", "3%"), ("pause", "3%"), ("save", "3%")]
PARTS = {"compile": "compilation", "evaluate": "evaluation", "pause": "idle", "save": "checkpoints"}


def diagnose(tmp_path, *options):
    done = subprocess.run([STEPSCOPE, "diagnose", "run", *options], cwd=tmp_path, timeout=60, env=environment(), capture_output=True, text=True,
                          check=True)
    return done.stdout


@pytest.mark.parametrize("part, budget", CASES)
@every_python
def test_a_part_is_as_long_as_the_program_says(tmp_path, python, part, budget):
    if part == "compile" and version(python).startswith("1."):
        pytest.skip("1.13 has no torch.compile")
    done = run(tmp_path, python, HERE / "run_times.py", part, budget=budget)
    assert done.returncode == 0, done.stderr
    seconds, rows = float(done.stdout), {row["part"]: row["total_ns"] for row in table(tmp_path, "run_time")}
    assert rows[PARTS[part]] / 1e9 == pytest.approx(seconds, rel=0.1), rows
    assert all(rows[other] < 1e9 for other in PARTS.values() if other != PARTS[part]), rows
    result = json.loads(diagnose(tmp_path, "--json"))
    wall_ns, parts = result["run"]["wall_ns"], result["run"]["parts"]
    assert sum(each["total_ns"] or 0 for each in parts.values()) == pytest.approx(wall_ns, rel=1e-9)
    assert sum(each["ratio"] or 0 for each in parts.values()) == pytest.approx(1, rel=1e-9)
    assert parts["first_batches"]["total_ns"] is None and parts["first_batches"]["reason"]
    assert f"{PARTS[part]} takes" in result["verdict"]["sentence"]
    text = diagnose(tmp_path)
    assert f"\n  the run: {PARTS[part]} " in text and "nothing to fix here" not in text


@every_python
def test_the_start_is_from_the_launch(tmp_path, python):
    """The seconds of `import torch` are before our first instant."""
    done = run(tmp_path, python, "-c", "import time; time.sleep(3); import sys; sys.argv = ['', 'steps']; "
               f"exec(open({str(HERE / 'run_times.py')!r}).read())")
    assert done.returncode == 0, done.stderr
    rows = {row["part"]: row["total_ns"] for row in table(tmp_path, "run_time")}
    assert rows["start"] > 3e9 and rows["idle"] == 0
