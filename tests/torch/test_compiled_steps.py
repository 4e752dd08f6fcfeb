# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers that torch.compile has made code of: as many as the script made, at its times; and the compiler sees no difference."""
import json

import pytest

from test_schedule import differences
from torch_tools import HERE, every_python, table, version, warm

LOOPS = HERE / "loops_compiled.py"
NAMES = ["step_from_start", "step_partway", "step_of_adam", "function_from_start", "function_partway", "whole_graph", "accumulation",
         "accumulation_partway", "two_networks", "one_of_two", "two_in_one_function", "learning_rate", "model_and_step", "whole_step",
         "whole_step_partway", "gradients_in_function"]


def record(tmp_path, python, name, *options):
    if version(python).startswith("1."):
        pytest.skip("1.13 has no torch.compile")
    done = warm(tmp_path, python, LOOPS, name, options=options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps"), done.stderr


@pytest.mark.parametrize("name", NAMES)
@every_python
def test_as_many_steps_as_the_script_made(tmp_path, python, name):
    truth, steps, said = record(tmp_path, python, name, "--steps", "2-3")
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert [step["step"] for step in steps if step["has_detail"]] == [2, 3]
    assert differences(tmp_path) == [] and "; steps were counted by the calls of optimizers" in said
    assert not [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    # before there was such code calls told of steps, and of a forward they tell nothing
    assert all(step[f"{phase}_ns"] > 0 for step in steps for phase in ("backward", "optimizer"))
    assert all(step["forward_ns"] is None or step["forward_ns"] > 0 for step in steps) and all(steps[at]["forward_ns"] for at in (2, 3))
    for step, (_, end), (before, _) in zip(steps[1:], truth["steps"][1:], truth["steps"]):  # what follows the optimizer is the next step's
        assert (step["forward_ns"] or 0) + step["backward_ns"] + step["optimizer_ns"] <= end - before
    updates = iter(truth.get("updates_ns", ()))
    for step, *saw_ns in zip(steps, *[updates] * (len(truth.get("updates_ns", ())) // len(steps))):  # those of each step
        assert step["optimizer_ns"] <= (sum(saw_ns) if saw_ns else step["duration_ns"])


@pytest.mark.parametrize("name", ["step_partway", "two_networks", "whole_step"])
@every_python
def test_where_operators_are_recorded(tmp_path, python, name):
    truth, steps, said = record(tmp_path, python, name)
    assert "; those of compiled optimizers are not counted)" in said
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert all(step[f"{phase}_ns"] > 0 for step in steps for phase in ("forward", "backward", "optimizer"))
    assert not [row for row in table(tmp_path, "ledger") if row["what"] == "unmatched end"]


@pytest.mark.parametrize("options", [[], ["--steps", "none"]], ids=["operators", "steps"])
@every_python
def test_the_compiled_call_is_the_phase(tmp_path, python, options):
    """It sleeps 20 ms in each; the script's own stamps are around it."""
    truth, steps, _ = record(tmp_path, python, "slow_partway", *options)
    assert len(steps) == len(truth["steps"])
    for saw_ns, step in zip(truth["updates_ns"], steps):
        assert 20e6 <= step["optimizer_ns"] <= saw_ns


COMPARED = """
import sys
sys.path.insert(0, {folder!r})
import loops, loops_compiled, torch
from torch._dynamo import utils
torch.manual_seed(1)
for name in {names}:
    getattr(loops_compiled, name)()
counted = {{kind: {{str(key): value for key, value in counts.items()}} for kind, counts in utils.counters.items()}}
metrics = [(str(each.compile_id), each.co_name, bool(each.recompile_reason), each.graph_op_count) for each in utils.get_compilation_metrics()]
print(counted, metrics, torch.rand(3))
"""


@pytest.mark.parametrize("options", [[], ["--steps", "none"], ["--wait", "1", "--active", "1"]], ids=["operators", "steps", "alternating"])
@every_python
def test_a_compiler_sees_the_same(tmp_path, python, options):
    """The same graphs, breaks and recompilations with and without us."""
    if version(python).startswith("1."):
        pytest.skip("1.13 has no torch.compile")
    names = ["step_partway", "step_of_adam", "whole_graph", "two_networks", "two_in_one_function", "learning_rate", "whole_step", "ranges_and_backward"]
    (tmp_path / "compared.py").write_text(COMPARED.format(folder=str(HERE), names=names))
    ours, bare = (warm(tmp_path, python, "compared.py", is_observed=is_observed, options=options) for is_observed in (True, False))
    assert ours.returncode == bare.returncode == 0, ours.stderr + bare.stderr
    assert ours.stdout == bare.stdout
    assert "graph_break" in bare.stdout


@every_python
def test_the_first_call_of_a_compiled_optimizer_is_seen(tmp_path, python):
    """Also where steps before it were told by calls of the eager one, so that PyTorch called nothing of ours."""
    truth, steps, _ = record(tmp_path, python, "whole_step_partway", "--steps", "6-7")
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert [step["step"] for step in steps if step["has_detail"]] == [6, 7]
    assert not [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert all(step["optimizer_ns"] > 0 for step in steps)
