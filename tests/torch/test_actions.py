# SPDX-License-Identifier: Apache-2.0
"""The actions that Lightning tells its own profiler are ranges, in steps with operators and in others. tests/frameworks has the real Lightning."""
import json

import pytest
from torch_tools import HERE, every_python, table, warm

MS = 1e6
DRAWS = "[Callback]Plot.on_validation_epoch_end"
IN_STEPS = ("[Strategy]SingleDeviceStrategy.training_step", "[Strategy]SingleDeviceStrategy.optimizer_step")


def watched(tmp_path, python, options):
    done = warm(tmp_path, python, HERE / "actions.py", options=options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@every_python
@pytest.mark.parametrize("options", [(), ("--type", "simple"), ("--steps", "10-19")], ids=("operators", "simple", "some steps"))
def test_each_action_is_a_range(tmp_path, python, options):
    facts = watched(tmp_path, python, options)
    steps, between = table(tmp_path, "steps"), {row["name"]: row for row in table(tmp_path, "between_ranges")}
    assert len(steps) == 40 and all(step["backward_ns"] > 0 for step in steps)
    assert between[DRAWS]["calls"] == facts["told"][DRAWS] == 4
    assert 4 * 100 * MS <= between[DRAWS]["total_ns"] < 4 * 100 * MS + 100 * MS
    assert max(row["max_ns"] for name, row in between.items() if name[0] == "[" and name != DRAWS) < 90 * MS  # no end is lost
    rows = {row["name"]: row for row in table(tmp_path, "ops", "--limit", "1000")}
    for name in IN_STEPS:
        assert rows[name]["calls"] == (10 if "--steps" in options else 40) and rows[name]["total_ns"] > 0
    assert ("run_training_batch" in rows) == ("--type" not in options)  # it has no name of its own kind: with operators only
    assert ("aten::mm" in rows) == ("--type" not in options)
    assert not any("StepscopeCallback" in name for name in (*rows, *between))
    if options:  # with all operators, a step may start within the operator before a range around a fetch
        assert not table(tmp_path, "ledger")


@every_python
@pytest.mark.parametrize("options", [(), ("--type", "simple")], ids=("operators", "simple"))
def test_phases_are_the_same_with_actions(tmp_path, python, options):
    """The wait for data, the evaluation and the callback are apart, also where their ranges cross the phases."""
    watched(tmp_path, python, options)
    parts = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert parts["between steps: other"] > 3 * 100 * MS  # the last one is after the last step
    assert parts["between steps: evaluation"] < 90 * MS
    shares = {row["name"]: row["ratio"] for row in table(tmp_path, "phases")}
    assert shares["backward"] > 0.1 and shares["optimizer"] > 0 and shares["data"] > 0


@every_python
def test_the_profiler_looks_as_without_us(tmp_path, python):
    facts = watched(tmp_path, python, ())
    assert facts["frames"] == ["<module>", "start"] and facts["name"] == "start"
