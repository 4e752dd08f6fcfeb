# SPDX-License-Identifier: Apache-2.0
"""The example trainer with a fault: its rule finds it, and says where."""
import json
import os
import subprocess

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")

# options of the trainer, the rule that finds the fault, a part of `where`
FAULTS = {
    "slow loader": (["--fault", "slow-loader=200", "--queue", "1"], "SS101", "data"),
    "checkpoint": (["--fault", "sync-checkpoint=1", "--out", "checkpoints"], "SS203", "checkpoint"),
    "leak": (["--fault", "leak=1024"], "SS501", "host"),
    "nan": (["--fault", "nan=3"], "SS701", "step 3"),
    "straggler": (["--ranks", "2", "--fault", "straggler=1,300"], "SS602", "rank 1"),
    "waiting for the straggler": (["--ranks", "2", "--fault", "straggler=1,300"], "SS601", ""),
}


def diagnose(tmp_path, *arguments):
    subprocess.run([STEPSCOPE, "run", "--quiet", "--with", "memory", "--out", "run", "--", TRAINER, "--steps", "12", "--layers", "2",
                    "--evaluate-every", "0", "--quiet", *arguments], check=True, timeout=300, cwd=tmp_path)
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json"], check=True, capture_output=True, timeout=60, cwd=tmp_path)
    result = json.loads(done.stdout)
    return result, {check["rule"]: check["result"] for check in result["checks"]}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_rule(tmp_path, fault):
    arguments, rule, where = FAULTS[fault]
    result, checks = diagnose(tmp_path, *arguments)
    assert checks[rule] == "found", result
    found = next(finding for finding in result["findings"] if finding["rule"] == rule)
    assert where in found["where"]
    assert found["saving_ns"] is None or 0 < found["saving_ns"]


def test_what_is_not_there_is_not_found(tmp_path):
    _, checks = diagnose(tmp_path)
    for rule in ("SS201", "SS202", "SS401", "SS501", "SS601", "SS602", "SS701", "SS901"):
        assert checks[rule] == "nothing", rule
    for rule in ("SS203", "SS205", "SS301"):  # no checkpoint was written, no device worked, no operator was PyTorch's
        assert checks[rule] == "cannot tell", rule
