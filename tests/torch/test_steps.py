# SPDX-License-Identifier: Apache-2.0
"""`stepscope run -- python loops.py NAME`: as many steps as the script made, at the times at which it saw them."""
import json

import pytest

from torch_tools import HERE, every_python, run, table

NAMES = ["plain", "adam_without_loader", "two_workers", "accumulation", "evaluation_per_epoch", "evaluation_after_each_step",
         "gan", "two_optimizers", "lbfgs", "inference", "hand_written_sgd", "ranges_around", "gradient_penalty",
         "checkpointed"]


def record(tmp_path, python, name):
    done = run(tmp_path, python, HERE / "loops.py", name)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")


@pytest.mark.parametrize("name", NAMES)
@every_python
def test_as_many_steps_as_the_script_made(tmp_path, python, name):
    truth, steps = record(tmp_path, python, name)
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))


@every_python
def test_step_times_are_those_of_the_script(tmp_path, python):
    """The script stamps from the batch to the optimizer's end; ours begins at the wait for the batch."""
    truth, steps = record(tmp_path, python, "slow_parts")
    for (begin, end), step in list(zip(truth["steps"], steps))[1:]:
        assert step["data_ns"] == pytest.approx(20e6, rel=0.25)
        assert step["backward_ns"] >= 20e6
        assert step["duration_ns"] - step["data_ns"] == pytest.approx(end - begin, rel=0.1)


@every_python
def test_evaluation_is_no_step(tmp_path, python):
    _, steps = record(tmp_path, python, "evaluation_per_epoch")
    assert not any(step["evaluation_ns"] for step in steps)
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert between["between steps: evaluation"] > 0
