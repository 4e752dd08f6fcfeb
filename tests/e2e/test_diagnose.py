# SPDX-License-Identifier: Apache-2.0
"""The example trainer with a fault: its rule finds it, and says where."""
import json
import os
import subprocess

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")

# what is wrong: options of the trainer, the rule that finds it, a part of `where`, a part of the evidence
FAULTS = {
    "D03 a slow loader": (["--fault", "slow-loader=200", "--queue", "1"], "SS101", "data", ""),
    "D10 a checkpoint": (["--fault", "sync-checkpoint=1", "--out", "checkpoints"], "SS203", "checkpoint", ""),
    "D07 a leak": (["--fault", "leak=1024"], "SS501", "host", "per step"),
    "a result that is no number": (["--fault", "nan=3"], "SS701", "step 3", ""),
    "D01 a rank that computes longer": (["--ranks", "2", "--fault", "straggler=1,300"], "SS602", "rank 1", "differs most in forward"),
    "D02 a rank with a slow loader": (["--ranks", "3", "--fault", "slow-loader-rank=2,300", "--queue", "1"], "SS602", "rank 2",
                                      "differs most in data"),
}


# Little to compute: on a loaded machine, too, most of a step is what the fault sleeps.
SMALL = ["--batch", "1"]


def diagnose(tmp_path, *arguments):
    subprocess.run([STEPSCOPE, "run", "--quiet", "--with", "memory", "--out", "run", "--", TRAINER, "--steps", "12", "--layers", "2",
                    "--evaluate-every", "0", "--quiet", *arguments], check=True, timeout=300, cwd=tmp_path)
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json"], check=True, capture_output=True, timeout=60, cwd=tmp_path)
    result = json.loads(done.stdout)
    return result, {check["rule"]: check["result"] for check in result["checks"]}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_rule(tmp_path, fault):
    arguments, rule, where, evidence = FAULTS[fault]
    result, checks = diagnose(tmp_path, *SMALL, *arguments)
    assert checks[rule] == "found", result
    found = next(finding for finding in result["findings"] if finding["rule"] == rule)
    assert where in found["where"] and evidence in found["evidence"]
    assert found["saving_ns"] is None or 0 < found["saving_ns"]


@pytest.mark.parametrize("fault", ("straggler=1,300", "slow-loader-rank=1,300"))
def test_D01_D02_what_the_others_wait_for_is_the_stragglers(tmp_path, fault):
    """The fault makes a step about 300 ms longer. More ranks: test_rank_faults.py."""
    result, _ = diagnose(tmp_path, *SMALL, "--ranks", "2", "--fault", fault, "--queue", "1")
    saving = {finding["rule"]: finding["saving_ns"] for finding in result["findings"]}
    assert saving["SS602"] > 150_000_000 and (saving.get("SS601") or 0) < saving["SS602"] and (saving.get("SS101") or 0) < 1.05 * saving["SS602"], result
    assert result["verdict"]["verdict"] == "straggler-bound", result


def test_what_is_not_there_is_not_found(tmp_path):
    _, checks = diagnose(tmp_path)
    for rule in ("SS201", "SS202", "SS401", "SS501", "SS601", "SS602", "SS701", "SS901"):
        assert checks[rule] == "nothing", rule
    for rule in ("SS203", "SS205", "SS301"):  # no checkpoint was written, no device worked, no operator was PyTorch's
        assert checks[rule] == "cannot tell", rule


def test_a_hole_in_the_recording_is_no_time_between_steps(tmp_path):
    diagnose(tmp_path, "--steps", "20")
    largest = max((tmp_path / "run").glob("*.ssr"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    third, half = len(damaged) // 3, len(damaged) // 2
    damaged[third:half] = bytes(half - third)
    largest.write_bytes(damaged)
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json"], check=True, capture_output=True, timeout=60, cwd=tmp_path)
    result = json.loads(done.stdout)
    checks = {check["rule"]: check["result"] for check in result["checks"]}
    assert checks["SS204"] == "cannot tell" and checks["SS901"] == "found"
    missing, = [finding for finding in result["findings"] if finding["rule"] == "SS901"]
    assert "could not be read" in missing["evidence"]


def test_D09_two_faults_are_both_found_the_larger_first(tmp_path):
    result, checks = diagnose(tmp_path, *SMALL, "--ranks", "3", "--fault", "slow-loader-rank=2,400", "--fault", "straggler=0,200", "--queue", "1")
    assert checks["SS101"] == checks["SS602"] == "found", result
    slow = next(finding for finding in result["findings"] if finding["rule"] == "SS602")
    assert "rank 2" in slow["where"] and "differs most in data" in slow["evidence"]
    savings = [finding["saving_ns"] for finding in result["findings"] if finding["severity"] == "problem" and finding["saving_ns"]]
    assert savings == sorted(savings, reverse=True)


def test_D08_a_killed_rank_is_named_with_its_last_step_and_operation(tmp_path):
    actor = os.path.join(os.environ["BUILD"], "tests", "e2e", "actor")
    subprocess.run([STEPSCOPE, "run", "--quiet", "--out", "run", "--", actor, "ranks", "3", "only", "1", "steps", "4", "1000", "open",
                    "all_gather", "kill", "9", "all", "steps", "4", "1000"], check=False, timeout=60, cwd=tmp_path)
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json"], check=True, capture_output=True, timeout=60, cwd=tmp_path)
    died = [finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == "SS802"]
    assert len(died) == 1 and died[0]["where"].startswith("rank 1,"), died
    how = [how for how in ("killed by SIGKILL", "did not close its recording")  # on a busy machine nobody may see such a short life end
           if died[0]["evidence"].startswith(f"{how}; its last step is 3, in all_gather")]
    assert how, died
    text = subprocess.run([STEPSCOPE, "diagnose", "run"], check=True, capture_output=True, timeout=60, cwd=tmp_path, text=True).stdout
    first, second, *_ = text.replace("\n  ", " ").splitlines()  # before the verdict
    assert first == f"did not end well: {died[0]['where']}: {died[0]['evidence']}" and ": " in second, text
