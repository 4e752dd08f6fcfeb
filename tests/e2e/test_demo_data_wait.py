# SPDX-License-Identifier: Apache-2.0
"""Steps and their data waits against the trainer's own stamps, the latter of the time it was blocked on its queue. What is recorded lies around
the stamps, so it is never less. It is more where a busy machine stops the trainer between the two."""
import json
import os
import statistics
import subprocess

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")


def profile(tmp_path, *faults):
    """The summary of a run, and its steps with the trainer's stamps of each."""
    run, stamps = tmp_path / "run", tmp_path / "stamps.json"
    subprocess.run(
        [STEPSCOPE, "run", "--quiet", "--out", run, "--", TRAINER, "--steps", "6", "--layers", "2", "--quiet",
         "--out", tmp_path / "checkpoints", "--stamps", stamps, *faults], check=True, timeout=300)
    report = subprocess.run([STEPSCOPE, "report", run, "--json"], check=True, capture_output=True, timeout=60)
    summary, stamped = json.loads(report.stdout), json.loads(stamps.read_text())["steps"]
    assert [step["step"] for step in summary["steps"]] == [step["step"] for step in stamped] == list(range(6))
    return summary, list(zip(summary["steps"], stamped))


@pytest.mark.parametrize("delay_ms", [40, 120, 300])
def test_data_share_is_within_two_points_of_the_stamps(tmp_path, delay_ms):
    summary, steps = profile(tmp_path, "--fault", f"slow-loader={delay_ms}", "--queue", "1")
    points = [(step["data_ns"] - stamp["data_wait_ns"]) / step["duration_ns"] for step, stamp in steps]
    assert min(points) > -1e-4 and statistics.median(points) < 0.02
    data = next(phase["ratio"] for phase in summary["phases"] if phase["name"] == "data")
    assert data == pytest.approx(sum(step["data_ns"] for step, _ in steps) / sum(step["duration_ns"] for step, _ in steps), abs=1e-6)


def test_steps_are_those_of_the_stamps(tmp_path):
    summary, steps = profile(tmp_path)
    ratios = [step["duration_ns"] / (stamp["end_ns"] - stamp["begin_ns"]) for step, stamp in steps]
    assert 1 - 1e-4 < min(ratios) < 1.001  # where it waited for a processor between the two, which asking for its CPU time invites, it is more
    assert sum(phase["ratio"] for phase in summary["phases"]) == pytest.approx(1, abs=1e-6)
