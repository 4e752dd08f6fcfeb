# SPDX-License-Identifier: Apache-2.0
"""Faults of real programs are found by their rules, and rules whose fault is not there stay silent."""
import json
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, version, warm

# fault: its rule and the verdict; None: the share depends on the machine
FAULTS = {
    "data": ("SS101", "data-bound"),
    "values": ("SS201", None),
    "garbage": ("SS202", "host-bound"),
    "save": ("SS203", "checkpoint-bound"),
    "copies": ("SS301", None),
    "optimizer": ("SS406", None),
    "leak": ("SS501", None),
    "histograms": ("SS414", "host-bound"),
}
# rules that find nothing where their fault is not: all of these are told by what the program does, not by how long it takes
STRUCTURAL = {"SS201", "SS202", "SS203", "SS401", "SS601", "SS602", "SS901"}
# rules that ask for the work of a device, and for what the machine tells about itself where it can
NO_DEVICE = {"SS205", "SS206", "SS207", "SS208", "SS209", "SS210", "SS211", "SS212", "SS302", "SS303", "SS304", "SS305", "SS307", "SS308", "SS502",
             "SS503", "SS504", "SS505", "SS506"}
MACHINE = {"SS801", "SS803", "SS804"}


def diagnose(tmp_path, *options):
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json", *options], cwd=tmp_path, timeout=60, env=environment(),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return result, {check["rule"]: check["result"] for check in result["checks"]}


@every_python
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_rule(tmp_path, python, fault):
    rule, verdict = FAULTS[fault]
    done = warm(tmp_path, python, HERE / "diagnosed.py", fault, options=["--with", "memory"])
    assert done.returncode == 0, done.stderr
    result, checks = diagnose(tmp_path)
    assert checks[rule] == "found", result
    assert not verdict or result["verdict"]["verdict"] == verdict
    for other in STRUCTURAL - {rule}:
        assert checks[other] == "nothing", (other, result)
    found = next(finding for finding in result["findings"] if finding["rule"] == rule)
    assert found["evidence"] and found["where"] and found["advice"] and found["wrong"]
    if fault == "leak":
        assert "aten::ones" in found["where"] and "4.00 MiB per step" in found["evidence"]
    if fault == "values":
        assert "240" in found["evidence"]  # 12 steps with 20000 each, some thousands more or less at the edges


@every_python
def test_nothing_is_invented(tmp_path, python):
    done = run(tmp_path, python, HERE / "diagnosed.py", "nothing", options=["--with", "memory"])
    assert done.returncode == 0, done.stderr
    (tmp_path / "lenient.yaml").write_text("SS101: {share: 0.9, saves: 0.9}\nSS204: {share: 9, saves: 0.9}\nSS301: {share: 0.9}\nSS403: {spread: 9}\n"
                                           "SS402: {share: 0.9, bound: 0.9}\nSS406: {saves: 0.9}\nSS412: {saves: 0.9}\nSS806: {saves: 0.9}\nSS103: {saves: 0.9}\nSS902: {times: 1000}\nSS102: {share: 9}\nSS309: {share: 0.95}\n"
                                           "SS801: {share: 9}\nSS804: {share: 0.95}\nSS409: {times: 99}\n")
    result, checks = diagnose(tmp_path, "--thresholds", "lenient.yaml")
    assert result["findings"] == []
    assert result["verdict"]["verdict"] == "healthy"
    silent = {rule for rule, what in checks.items() if what == "cannot tell"}
    assert silent - MACHINE == NO_DEVICE | {"SS213", "SS214", "SS306", "SS408", "SS410", "SS604", "SS606", "SS607", "SS701", "SS702", "SS703", "SS704", "SS805"}


@every_python
@pytest.mark.parametrize("fault,verdict", [("own_input", "host-bound"), ("marked_input", "data-bound")])
def test_D04_a_wait_that_nobody_saw_is_not_healthy(tmp_path, python, fault, verdict):
    """The input comes from a generator of the program's own: it is host time at a place, until the program says what it is."""
    done = warm(tmp_path, python, HERE / "diagnosed.py", fault)
    assert done.returncode == 0, done.stderr
    result, _ = diagnose(tmp_path)
    assert result["verdict"]["verdict"] == verdict, result
    assert "nobody knows what it goes to" not in result["verdict"]["sentence"]


@every_python
def test_D10_the_start_up_is_apart_from_the_steady_state(tmp_path, python):
    """The first step sleeps for 2 s: no cause of the others. What happened in it counts all the same."""
    done = warm(tmp_path, python, HERE / "diagnosed.py", "first")
    assert done.returncode == 0, done.stderr
    result, checks = diagnose(tmp_path)
    assert result["verdict"]["left_out"].startswith("step") and "as start-up" in result["verdict"]["left_out"]
    assert result["verdict"]["saving_ns"] is None or result["verdict"]["saving_ns"] < 1e9
    assert checks["SS902"] == "nothing" and checks["SS701"] == "found" and checks["SS411"] == "nothing"
    result, checks = diagnose(tmp_path, "--steps", "0-11")
    assert result["verdict"]["left_out"] is None and checks["SS902"] == "found"


@every_python
def test_recompilations_are_found(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("PyTorch 1 compiles nothing")
    done = warm(tmp_path, python, HERE / "diagnosed.py", "recompile")
    assert done.returncode == 0, done.stderr
    result, checks = diagnose(tmp_path)
    assert checks["SS401"] == "found", result
    assert checks["SS501"] == "cannot tell"  # --with memory was not asked for


@every_python
def test_habits_are_found_and_where(tmp_path, python):
    done = run(tmp_path, python, HERE / "diagnosed.py", "habits", options=["--with", "shapes,lines"])
    assert done.returncode == 0, done.stderr
    (tmp_path / "strict.yaml").write_text("SS404: {share: 0}\nSS405: {share: 0}\n")
    result, checks = diagnose(tmp_path, "--thresholds", "strict.yaml")
    where = {finding["rule"]: finding["where"] for finding in result["findings"]}
    assert "diagnosed.py(" in where["SS404"] and "train" in where["SS404"]
    assert "habits" in where["SS405"] and "habits" in where["SS407"], where
    assert checks["SS406"] == "nothing"  # SGD: little more than one tensor after another


@every_python
def test_D05_a_value_that_is_read_is_found_with_its_line(tmp_path, python):
    done = run(tmp_path, python, HERE / "diagnosed.py", "values", options=["--with", "lines"])
    assert done.returncode == 0, done.stderr
    result, _ = diagnose(tmp_path)
    found = next(finding for finding in result["findings"] if finding["rule"] == "SS201")
    assert "diagnosed.py(" in found["where"] and "values" in found["where"]
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--sarif"], cwd=tmp_path, timeout=60, env=environment(), capture_output=True,
                          text=True, check=True)
    place = next(one for one in json.loads(done.stdout)["runs"][0]["results"] if one["ruleId"] == "SS201")["locations"][0]
    line = int(found["where"].partition("(")[2].partition(")")[0])
    assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("diagnosed.py")
    assert place["physicalLocation"]["region"]["startLine"] == line
    assert "loss.item()" in (HERE / "diagnosed.py").read_text().splitlines()[line - 1]
