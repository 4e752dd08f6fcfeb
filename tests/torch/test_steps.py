# SPDX-License-Identifier: Apache-2.0
"""`stepscope run -- python loops*.py NAME`: as many steps as the script made, at the times at which it saw them."""
import json
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, is_before, run, table, version, warm

NAMES = ["plain", "adam_without_loader", "two_workers", "accumulation", "evaluation_per_epoch", "evaluation_after_each_step",
         "gan", "two_optimizers", "lbfgs", "inference", "hand_written_sgd", "ranges_around", "gradient_penalty",
         "checkpointed", "sam", "sam_closure_without_loader", "ppo", "ppo_without_loader", "moving_average",
         "two_backwards", "skipped_by_hand", "scaler", "optimizer_in_hook", "iterable_dataset", "nested_ranges",
         "range_around_updates", "validation_in_the_middle", "warm_up", "backward_in_thread", "many_optimizers",
         "prefetch", "partial_accumulation", "distillation", "inner_updates", "in_a_thread", "two_phases", "actor_critic",
         "evaluation_without_loader", "own_optimizer", "gan_without_loader", "two_loaders", "reinforcement", "adam_closure",
         "optimizer_per_epoch", "optimizer_per_step", "optimizers_per_epoch", "resumed",
         "adam_then_lbfgs", "adam_then_lbfgs_once", "adam_then_lbfgs_with_loader", "adam_then_sgd", "adam_then_sgd_with_loader"]
BY_HAND = ["own_class", "own_class_that_zeroes", "what_is_left", "running_loss", "written_to_data", "no_modules", "all_at_once", "filled",
           "of_numpy", "two_losses", "slow_updates", "gan_by_hand", "image", "image_that_zeroes"]
OF_2026 = ["muon", "muon_and_adam", "schedule_free", "accelerated", "accelerated_by_hand", "average", "rollouts", "merged_adapters",
           "own_teacher", "curriculum", "checkpointed_lbfgs", "cached_gradients", "alternating"]
IN_THREADS = ["thread_per_epoch", "gan_in_threads", "pool_per_epoch", "thread_per_step"]

# Whose optimizers step at different rates.
AMBIGUOUS = {"n_critic": "one is in 3 of the 7 steps from its first to its last only", "two_to_one": "one is in 4 of the 7 steps from its first to its last only",
             "policy_twice_at_every_second": "one is in 4 of the 7 steps from its first to its last only"}

# Without an optimizer, and what cannot be told.
AMBIGUOUS_BY_HAND = {"functional": "leaves gradients", "never_zeroed": "gradients add up over all 6 backwards",
                     "several_updates": "several of the 9 backwards work on the same batch"}


def script(name):
    """The file that defines this loop. test_compiled_steps.py runs those of loops_compiled.py."""
    file, = (file for file in HERE.glob("loops*.py") if file.name != "loops_compiled.py" and f"\ndef {name}(" in file.read_text())
    return file


def record(tmp_path, python, name):
    done = (run if name == "plain" else warm)(tmp_path, python, script(name), name)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")


def report(tmp_path):
    return subprocess.run([STEPSCOPE, "report", "run"], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          timeout=60, check=True).stdout


# What not every PyTorch has: since when, and what it is.
NEWER = {"scaler": ((2, 3), "GradScaler for the CPU"), "optimizer_in_hook": ((2, 1), "hooks behind the accumulation of a gradient")}


def skip_what_is_newer(python, name):
    since, what = NEWER.get(name, ((), ""))
    if is_before(python, *since):
        pytest.skip(f"PyTorch {version(python)} has no {what}")


@pytest.mark.parametrize("name", [*NAMES, *IN_THREADS, *BY_HAND])
@every_python
def test_as_many_steps_as_the_script_made(tmp_path, python, name):
    skip_what_is_newer(python, name)
    truth, steps = record(tmp_path, python, name)
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert not [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] == "unmatched end"]  # what is inferred cuts nothing


@pytest.mark.parametrize("name", AMBIGUOUS)
@every_python
def test_optimizers_of_different_rates_make_it_ambiguous(tmp_path, python, name):
    truth, steps = record(tmp_path, python, name)
    assert len(steps) == len(truth["steps"])
    (said,) = [row["sentence"] for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert said.startswith("the number of steps is ambiguous: not all optimizers") and AMBIGUOUS[name] in said
    assert table(tmp_path, "run")[0]["capture"].endswith("; the number of steps is ambiguous, see the ledger")


@pytest.mark.parametrize("name, count", [("skipped_without_loader", "1 backward"), ("set_to_none", "2 backwards"),
                                         ("set_to_none_with_loader", "2 backwards")])
@every_python
def test_an_update_that_is_left_out_without_a_loader_is_said(tmp_path, python, name, count):
    truth, steps = record(tmp_path, python, name)
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    (said,) = [row["sentence"] for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert f"gradients were thrown away behind {count}, before an update" in said


@every_python
def test_a_forward_that_leads_to_no_backward_is_other(tmp_path, python):
    """A policy acts four times, and is called once to learn, for 5 ms each."""
    truth, steps = record(tmp_path, python, "acting")
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    for step in steps:
        assert step["forward_ns"] >= 5e6
        assert step["other_ns"] >= 4 * 5e6 or step["step"] == 0  # which begins with the forward that it learns from


@pytest.mark.parametrize("name", AMBIGUOUS_BY_HAND)
@every_python
def test_what_cannot_be_told_without_optimizers_is_said(tmp_path, python, name):
    truth, steps = record(tmp_path, python, name)
    assert len(steps) == len(truth["steps"])
    (said,) = [row["sentence"] for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert said.startswith("the number of steps is ambiguous: no optimizer is called; ") and AMBIGUOUS_BY_HAND[name] in said


@every_python
def test_it_is_said_why_backwards_make_no_steps(tmp_path, python):
    """Neither gradients nor an update is seen: it may be forces that are computed."""
    done = warm(tmp_path, python, script("rebuilt"), "rebuilt")
    assert done.returncode == 0 and not table(tmp_path, "steps")
    truth = json.loads(done.stdout.splitlines()[-1])
    assert "none were counted; the report says what it finds, stepscope.step() marks them" in done.stderr
    said = " ".join(report(tmp_path).split())
    assert f"Step time no steps were found: none of the {len(truth['steps'])} backwards leaves gradients, and neither" in said
    assert "stepscope.step() says what a step is" in said and "infers them" not in said


@every_python
def test_an_update_by_hand_is_the_phase_optimizer(tmp_path, python):
    truth, steps = record(tmp_path, python, "slow_updates")
    assert len(steps) == len(truth["steps"])
    for step, (begin, end) in zip(steps, truth["steps"]):
        assert 20e6 <= step["optimizer_ns"] <= end - begin
    assert all(step["forward_ns"] and step["backward_ns"] for step in steps)


@every_python
def test_pauses_are_neither_forward_nor_backward(tmp_path, python):
    truth, steps = record(tmp_path, python, "pauses")
    assert len(steps) == len(truth["steps"])
    for step, (begin, end) in zip(steps, truth["steps"]):
        assert step["other_ns"] >= 8 * 10e6 and step["forward_ns"] + step["backward_ns"] <= end - begin - 8 * 10e6
        assert step["forward_ns"] and step["backward_ns"]


@every_python
def test_each_backward_begins_with_its_first_gradient(tmp_path, python):
    """From there to its first node the engine walks the whole graph."""
    truth, _ = record(tmp_path, python, "pauses")
    rows = json.loads(subprocess.run([STEPSCOPE, "query", "run", "--json", "select name, start_ns from spans where "
                                      "name = 'aten::ones_like' or (kind = 'phase' and name = 'backward')"],
                                     cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=True).stdout)["rows"]
    begins = {name: sorted(row["start_ns"] for row in rows if row["name"] == name) for name in ("aten::ones_like", "backward")}
    assert begins["backward"] == begins["aten::ones_like"] and len(begins["backward"]) == 4 * len(truth["steps"])


@every_python
def test_step_0_has_the_waits_for_both_batches(tmp_path, python):
    truth, steps = record(tmp_path, python, "zipped")
    assert len(steps) == len(truth["steps"])
    assert all(step["data_ns"] >= 2 * 20e6 for step in steps)


@every_python
def test_no_step_reaches_into_the_next_ones_attack(tmp_path, python):
    truth, steps = record(tmp_path, python, "adversarial")
    assert len(steps) == len(truth["steps"])
    for step, (_, end), (before, _) in zip(steps[1:], truth["steps"][1:], truth["steps"]):
        assert step["duration_ns"] <= end - before
    assert all(step["data_ns"] for step in steps)


@every_python
def test_each_step_is_where_the_script_made_it(tmp_path, python):
    """Each thread has the steps that it made, and the main thread its evaluations: none reaches over the change from one to the other."""
    truth, steps = record(tmp_path, python, "thread_per_epoch")
    assert len(steps) == len(truth["steps"])
    for step, (begin, end), (before, _) in zip(steps[1:], truth["steps"][1:], truth["steps"]):  # zero_grad() is the next step's
        assert step["duration_ns"] <= end - before
        assert 0 < step["backward_ns"] + step["optimizer_ns"] <= end - begin


@pytest.mark.parametrize("name", ["forward_in_threads", "replicas_in_threads"])
@every_python
def test_the_first_forward_in_other_threads_is_in_step_0(tmp_path, python, name):
    truth, steps = record(tmp_path, python, name)
    assert len(steps) == len(truth["steps"])
    for step, (begin, end) in zip(steps, truth["steps"]):
        assert 30e6 <= step["forward_ns"] <= end - begin and step["duration_ns"] >= step["forward_ns"]


@every_python
def test_trainings_at_once_are_not_one(tmp_path, python):
    truth, steps = record(tmp_path, python, "ensemble")
    assert [step["step"] for step in steps] == list(range(max(truth["calls"])))
    (said,) = [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    assert "ambiguous" in said["sentence"] and f"1 more called them {min(truth['calls'])} times" in said["sentence"]


@pytest.mark.parametrize("name", ["evaluation_without_loader", "evaluation_in_a_wrapper", "evaluation_of_own_function",
                                  "evaluation_in_lower_precision"])
@every_python
def test_evaluation_and_checkpoint_without_a_loader(tmp_path, python, name):
    truth, steps = record(tmp_path, python, name)
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    saved = sum(step["checkpoint_ns"] for step in steps)
    assert sum(step["evaluation_ns"] for step in steps) == 0
    # its second one is behind the last step
    assert 3 * 10e6 <= between["between steps: evaluation"] <= truth["evaluation_ns"][0]  # it sleeps 10 ms behind each of three calls
    assert 20e6 <= saved <= truth["checkpoint_ns"]  # and 20 ms in what it saves
    assert [step["checkpoint_ns"] > 0 for step in steps] == [False] * 4 + [True, False]


@pytest.mark.parametrize("name", ["evaluation_with_metrics", "samples_behind_a_validation", "samples_without_a_validation"])
@every_python
def test_what_is_made_of_an_evaluation_is_in_no_step(tmp_path, python, name):
    """It sleeps 20 ms before each of ten metrics or samples."""
    truth, steps = record(tmp_path, python, name)
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    behind = truth["evaluation_ns"] if name == "evaluation_with_metrics" else truth["evaluation_ns"][:-1]  # else it is behind the last step
    assert len(behind) * 10 * 20e6 <= between["between steps: evaluation"] <= sum(behind) + len(behind) * 5e6
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    for step, (begin, end) in zip(steps, truth["steps"]):
        assert step["evaluation_ns"] == 0 and step["duration_ns"] < end - begin + 5 * 20e6


@every_python
def test_a_step_behind_an_evaluation_keeps_its_batch(tmp_path, python):
    """Which it makes in 30 ms, with operators like those of metrics; losses of evaluations are in no step."""
    _, steps = record(tmp_path, python, "evaluation_with_metrics")
    assert all(step["duration_ns"] >= 0.8 * 30e6 for step in steps[1:])  # the first one begins with its forward
    (losses,) = [row["calls"] for row in table(tmp_path, "modules") if row["module"] == "MSELoss"]
    assert losses == len(steps)


@every_python
def test_a_checkpoint_is_known_where_no_operators_are(tmp_path, python):
    done = warm(tmp_path, python, script("evaluation_without_loader"), "evaluation_without_loader", options=["--steps", "none"])
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    assert [step["checkpoint_ns"] > 0 for step in steps] == [False] * 4 + [True, False]
    assert steps[4]["checkpoint_ns"] >= 20e6 and len(steps) == len(truth["steps"])


@every_python
def test_a_kill_leaves_the_step_open(tmp_path, python):
    done = warm(tmp_path, python, script("killed"), "killed")
    assert done.returncode != 0
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == [0, 1, 2, 3]
    assert [step["is_complete"] for step in steps] == [True, True, True, False]


@every_python
def test_work_of_another_thread_is_the_backward(tmp_path, python):
    _, steps = record(tmp_path, python, "backward_in_thread")
    assert all(step["backward_ns"] >= 2 * 20e6 and not step["evaluation_ns"] for step in steps)


@every_python
def test_step_times_are_those_of_the_script(tmp_path, python):
    """The script stamps from the batch to the optimizer's end; ours begins at the wait for the batch. It sleeps in the data, the loop and the
    backward; what a busy machine adds may be anywhere."""
    truth, steps = record(tmp_path, python, "slow_parts")
    for data_ns, step in zip(truth["data_ns"], steps):
        assert step["data_ns"] >= data_ns and step["backward_ns"] >= 20e6
    for step, (begin, end), (_, before) in zip(steps[1:], truth["steps"][1:], truth["steps"]):
        assert step["data_ns"] <= begin - before
        assert step["forward_ns"] + step["backward_ns"] + step["optimizer_ns"] <= end - begin and step["other_ns"] >= 20e6
    assert sum(step["duration_ns"] for step in steps[1:]) <= truth["steps"][-1][1] - truth["steps"][0][0] - 2 * 20e6


@pytest.mark.parametrize("options", [[], ["--steps", "none"]], ids=["operators", "steps"])
@every_python
def test_an_optimizer_in_a_hook_is_in_the_phase_optimizer(tmp_path, python, options):
    """Its calls take 20 ms of each backward, by the script's own stamps."""
    skip_what_is_newer(python, "optimizer_in_hook")
    done = warm(tmp_path, python, script("optimizer_in_slow_hook"), "optimizer_in_slow_hook", options=options)
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    assert len(steps) == len(truth["steps"])
    for saw_ns, (begin, end), step in zip(truth["updates_ns"], truth["steps"], steps):
        assert 40e6 <= step["optimizer_ns"] <= saw_ns
        assert 20e6 <= step["backward_ns"] <= end - begin - step["optimizer_ns"]


@pytest.mark.parametrize("options", [[], ["--steps", "none"]], ids=["operators", "steps"])
@every_python
def test_a_call_that_raises_ends_its_step(tmp_path, python, options):
    """As an update that is left out does: where it ended is known."""
    done = warm(tmp_path, python, script("raising"), "raising", options=options)
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    assert truth["raised"] == [2, 5]
    assert [(step["step"], step["is_complete"]) for step in steps] == [(number, True) for number in range(len(truth["steps"]))]
    assert not [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]


LAST_LOSS = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(model(torch.ones(3, 4)), torch.zeros(3, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@every_python
def test_the_loss_of_the_last_step_is_forward(tmp_path, python):
    """Nothing behind it takes a number: that it has made a node is told by the backward."""
    (tmp_path / "last_loss.py").write_text(LAST_LOSS)
    done = warm(tmp_path, python, "last_loss.py")
    assert done.returncode == 0, done.stderr
    found = subprocess.run([STEPSCOPE, "query", "run", "--json", "select name, step, start_ns, dur_ns from spans where "
                            "name = 'aten::cross_entropy_loss' or (kind = 'phase' and name = 'forward') order by start_ns"],
                           cwd=tmp_path, timeout=60, env=environment(), capture_output=True, text=True, check=True)
    rows = json.loads(found.stdout)["rows"]
    forwards, losses = ([row for row in rows if (row["name"] == "forward") == is_phase] for is_phase in (True, False))
    assert sorted({row["step"] for row in forwards}) == [row["step"] for row in losses] == [0, 1, 2, 3]
    for loss in losses:  # a busy machine may hold up the program before it, so that it is a forward of its own
        assert [row for row in forwards if row["start_ns"] <= loss["start_ns"]
                and row["start_ns"] + row["dur_ns"] >= loss["start_ns"] + loss["dur_ns"]]


@every_python
def test_starting_workers_is_data(tmp_path, python):
    """Of three loops, each with workers of its own: what the script saw of iter(), and of which loop."""
    done = warm(tmp_path, python, script("slow_iter"), "slow_iter")
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    first = [step for step in steps if step["step"] in truth["first"]]
    assert len(first) == 3 and all(step["data_ns"] >= 50e6 for step in first)  # each iter() slept so long
    loop = table(tmp_path, "data_loader")[0]
    assert 3 * 50e6 <= loop["workers_ns"] <= sum(truth["starts_ns"])
    assert "starting workers again for 3 loops" in loop["sentence"]


@every_python
def test_the_sampler_in_iter_is_data(tmp_path, python):
    """Of loops with the workers of the first: what the script saw of iter(), in which their first batches are drawn."""
    done = warm(tmp_path, python, script("slow_iter_again"), "slow_iter_again")
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    assert all(steps[number]["data_ns"] >= 50e6 for number in truth["first"])
    loop = table(tmp_path, "data_loader")[0]
    assert 3 * 50e6 <= loop["workers_ns"] <= sum(truth["starts_ns"])
    assert "before the first waits the sampler takes" in loop["sentence"] and "anew" not in loop["sentence"]
    waits = {row["cause"]: row for row in table(tmp_path, "host_waits")}
    assert waits["starting workers of a data loader"]["count"] == 1
    assert waits["waiting for data"]["own_ns"] >= 2 * 50e6


@every_python
def test_starting_workers_is_data_where_no_operators_are(tmp_path, python):
    done = warm(tmp_path, python, script("slow_iter"), "slow_iter", options=["--steps", "none"])
    assert done.returncode == 0, done.stderr
    truth, steps = json.loads(done.stdout.splitlines()[-1]), table(tmp_path, "steps")
    assert all(steps[number]["data_ns"] >= 50e6 for number in truth["first"])


@pytest.mark.parametrize("name", OF_2026)
@every_python
def test_steps_and_their_parts_are_those_of_the_script(tmp_path, python, name):
    """Parts take at least as long as the script sleeps in them, and at most as long as it saw."""
    truth, steps = record(tmp_path, python, name)
    assert [step["step"] for step in steps] == list(range(len(truth["steps"])))
    assert not [row for row in table(tmp_path, "ledger") if "number of steps" in row["sentence"]]
    slept = {"data": 0 if name == "curriculum" else 4e6, "forward": 4e6, "backward": 20e6, "optimizer": 1}  # a worker sleeps meanwhile
    for step, saw in zip(steps, truth["parts"]):
        for part in slept.keys() & saw.keys():
            most = saw[part] if part != "data" else step["duration_ns"]  # a batch may be fetched ahead, iter() is data
            assert slept[part] <= step[f"{part}_ns"] <= most, part
        assert not step["evaluation_ns"]


@every_python
def test_evaluation_is_no_step(tmp_path, python):
    _, steps = record(tmp_path, python, "evaluation_per_epoch")
    assert not any(step["evaluation_ns"] for step in steps)
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert between["between steps: evaluation"] > 0


@every_python
def test_forward_of_torchscript(tmp_path, python):
    _, steps = record(tmp_path, python, "scripted")
    sql = "SELECT step, phase FROM spans WHERE kind = 'module' AND step IS NOT NULL AND name = 'RecursiveScriptModule' ORDER BY start_ns"
    done = subprocess.run([STEPSCOPE, "query", tmp_path / "run", "--csv", sql], env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert len(steps) == 8 and done.stdout.split()[1:] == [f"{number},forward" for number in range(8)]


@every_python
def test_what_is_prepared_behind_an_evaluation_is_none(tmp_path, python):
    """The third one is behind the last step."""
    truth, steps = record(tmp_path, python, "cross_validation")
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert len(steps) == 9
    assert 2 * 30e6 <= between["between steps: evaluation"] <= sum(truth["evaluation_ns"][:2]) + 5e6


@pytest.mark.parametrize("options", [[], ["--steps", "none"]])
@every_python
def test_an_evaluation_whose_batches_take_no_operator(tmp_path, python, options):
    """The second one is behind the last step."""
    done = warm(tmp_path, python, script("evaluation_of_texts"), "evaluation_of_texts", options=options)
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)
    steps, between = table(tmp_path, "steps"), {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert len(steps) == 6 and not any(step["evaluation_ns"] for step in steps)
    assert 3 * 20e6 <= between["between steps: evaluation"] <= truth["evaluation_ns"][0] + 5e6


FORKED = """
import os, torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.relu(torch.ones(3))
if os.fork() == 0:
    for _ in range(5):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    raise SystemExit
os.wait()
"""


@every_python
def test_a_forked_child_that_trains(tmp_path, python):
    (tmp_path / "forked.py").write_text(FORKED)
    done = run(tmp_path, python, "forked.py")
    assert done.returncode == 0, done.stderr
    assert [step["is_complete"] for step in table(tmp_path, "steps")] == [True] * 5
    assert all(row["last_open"] is None for row in table(tmp_path, "processes"))  # its first operator ended, too
