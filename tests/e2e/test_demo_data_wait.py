# SPDX-License-Identifier: Apache-2.0
"""The report's share of data waits against the trainer's own stamps of the time it was blocked on its queue."""
import json
import os
import subprocess

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")


def profile(tmp_path, *faults):
    run, stamps = tmp_path / "run", tmp_path / "stamps.json"
    subprocess.run(
        [STEPSCOPE, "run", "--quiet", "--out", run, "--", TRAINER, "--steps", "6", "--layers", "2", "--quiet",
         "--out", tmp_path / "checkpoints", "--stamps", stamps, *faults], check=True, timeout=300)
    report = subprocess.run([STEPSCOPE, "report", run, "--json"], check=True, capture_output=True, timeout=60)
    return json.loads(report.stdout), json.loads(stamps.read_text())["totals"]


@pytest.mark.parametrize("delay_ms", [40, 120, 300])
def test_data_share_is_within_two_points_of_the_stamps(tmp_path, delay_ms):
    summary, totals = profile(tmp_path, "--fault", f"slow-loader={delay_ms}", "--queue", "1")
    reported = next((phase["ratio"] for phase in summary["phases"] if phase["name"] == "data"), 0.0)
    stamped = totals["data_wait_ns"] / totals["step_ns"]
    assert abs(reported - stamped) < 0.02
    assert summary["window"]["steps"] == totals["steps"] == 6


def test_steps_add_up_to_the_stamps(tmp_path):
    summary, totals = profile(tmp_path)
    assert summary["step_time_ns"]["mean"] * 6 == pytest.approx(totals["step_ns"], rel=0.01)
    assert sum(phase["ratio"] for phase in summary["phases"]) == pytest.approx(1, abs=1e-6)
