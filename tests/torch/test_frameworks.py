# SPDX-License-Identifier: Apache-2.0
"""The frameworks people train with, unchanged: as many steps as their own callbacks saw, at the same times, with the right phases."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from torch_tools import HERE, environment, export, run, run_ranks, table

PYTHON = Path(os.environ.get("FRAMEWORKS_PYTHON", HERE.parents[1] / ".venv-frameworks/bin/python"))
SCRIPT = HERE / "frameworks.py"
needs_frameworks = pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-frameworks: tools/setup all makes it")
SLACK_NS = 50_000_000  # between a stamp of the script and the call it stands for, when the machine is busy


def record(tmp_path, name, ranks=1):
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks)] if ranks > 1 else []
    done = (run_ranks if ranks > 1 else run)(tmp_path, PYTHON, *launcher, SCRIPT, name, env={"OMP_NUM_THREADS": 1}, timeout=400)
    assert done.returncode == 0, done.stderr
    truth = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"steps"')]
    assert len(truth) == ranks
    assert not [row for row in table(tmp_path, "ledger") if row["what"] == "unmatched end"]  # what is inferred cuts nothing
    return sorted(truth, key=lambda one: one["rank"])


def steps_of(tmp_path):
    """By process: [begin, end] of each step in ns of the real-time clock."""
    trace = json.loads((tmp_path / "ours.json").read_text())
    base, found = int(trace["baseTimeNanoseconds"]), {}
    for event in trace["traceEvents"]:
        if event.get("name", "").startswith("ProfilerStep#") and event["ph"] == "X":
            begin = base + round(event["ts"] * 1000)
            found.setdefault(event["pid"], []).append([begin, begin + round(event["dur"] * 1000)])
    return [sorted(steps) for _, steps in sorted(found.items())]


def check_times(truth, steps):
    """A step of ours ends with the optimizer, within the script's; no other of its steps ends in it."""
    assert len(steps) == len(truth["steps"])
    for (begin, end), (_, our_end) in zip(truth["steps"], steps):
        assert begin < our_end <= end + SLACK_NS


@needs_frameworks
@pytest.mark.parametrize("name", ["hf_trainer", "dpo_lora", "lightning", "late_recompile"])
def test_steps_of_a_framework(tmp_path, name):
    truth, = record(tmp_path, name)
    export(tmp_path)
    ours, = steps_of(tmp_path)
    check_times(truth, ours)
    for step in table(tmp_path, "steps"):
        assert step["forward_ns"] > 0 and step["backward_ns"] > 0 and step["optimizer_ns"] > 0
        assert not step["evaluation_ns"]


def inside(times, whole):
    """How long it took in all of what lies in this stretch."""
    return sum(end - begin for begin, end in times if whole[0] <= begin and end <= whole[1])


@needs_frameworks
def test_phases_of_dpo_with_lora(tmp_path):
    """Two forwards per micro-batch, one of them without gradients, are no evaluation; phases are as long as the script's own stamps say."""
    truth, = record(tmp_path, "dpo_lora")
    parts, steps = truth["parts"], table(tmp_path, "steps")
    assert [len(parts[part]) for part in ("micro_batch", "backward", "optimizer")] == [12, 12, 6]
    whole_ns, found_ns = [], []
    for whole, step in zip(truth["steps"], steps):
        micro_batches, backward, optimizer = (inside(parts[part], whole) for part in ("micro_batch", "backward", "optimizer"))
        assert step["backward_ns"] <= backward and step["optimizer_ns"] <= optimizer + SLACK_NS
        assert step["forward_ns"] <= micro_batches - step["backward_ns"] + SLACK_NS
        assert not step["evaluation_ns"]
        whole_ns.append(micro_batches)
        found_ns.append(step["forward_ns"] + step["backward_ns"])
    assert sum(found_ns) > sum(whole_ns) / 2  # a busy machine may hold up a single forward for so long that it comes in two
    rows = {row["module"]: row for row in table(tmp_path, "modules")}
    policy = next(row for path, row in rows.items() if path.endswith("query_key_value.lora_A.default"))
    base = next(row for path, row in rows.items() if path.endswith("query_key_value.base_layer"))
    assert base["calls"] == 2 * policy["calls"] == 2 * 12  # the reference's forward has no adapter


@needs_frameworks
@pytest.mark.parametrize("name", ["ddp", "fsdp1", "fully_shard"])
def test_steps_of_two_ranks(tmp_path, name):
    truth = record(tmp_path, name, ranks=2)
    export(tmp_path)
    steps = steps_of(tmp_path)
    assert len(steps) == 2
    for one, ours in zip(truth, steps):
        check_times(one, ours)
        assert ours[0][0] > one["steps"][0][0]  # what wraps the model before the first step is none of it
    assert [row["steps"] for row in table(tmp_path, "ranks")] == [6, 6]


@needs_frameworks
def test_a_closure_is_not_the_optimizer(tmp_path):
    """Lightning calls forward and backward inside of optimizer.step()."""
    record(tmp_path, "lightning")
    ops = {row["name"]: row for row in table(tmp_path, "ops")}
    step = ops["Optimizer.step#AdamW.step"]
    phases = {row["name"]: row["mean_ns"] for row in table(tmp_path, "phases")}
    assert phases["optimizer"] < step["total_ns"] / step["calls"]


@needs_frameworks
def test_compiled_graphs_are_the_same_with_and_without(tmp_path):
    truth, = record(tmp_path, "late_recompile")
    bare = subprocess.run([PYTHON, SCRIPT, "late_recompile"], cwd=tmp_path, env=environment(OMP_NUM_THREADS=1), capture_output=True,
                          text=True, timeout=400, check=True)
    assert truth["counters"] == json.loads(bare.stdout.splitlines()[-1])["counters"] == {"stats": {"calls_captured": 8, "unique_graphs": 2}, "graph_break": {}, "frames": {"total": 2, "ok": 2}}
