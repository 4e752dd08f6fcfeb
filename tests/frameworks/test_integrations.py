# SPDX-License-Identifier: Apache-2.0
"""Our callbacks with the real packages: their steps are ours, with their numbers."""
import json
import os
import subprocess
from pathlib import Path

import pytest

STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
PYTHON = os.environ.get("FRAMEWORKS_PYTHON", ".venv-frameworks/bin/python")
HERE = Path(__file__).parent
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME")


def has(package):
    return subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0 \
        if Path(PYTHON).exists() else False


def needs(package):
    return pytest.mark.skipif(not has(package), reason=f"{package} is not in .venv-frameworks: tools/setup all")


def run(tmp_path, *program, options=()):
    done = subprocess.run([STEPSCOPE, "run", "-o", "run", "--budget", "none", *options, "--", PYTHON, *map(str, program)], cwd=tmp_path, timeout=300,
                          env={name: os.environ[name] for name in KEPT if name in os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(tmp_path, name):
    done = subprocess.run([STEPSCOPE, "report", "run", "--table", name, "--json"], cwd=tmp_path, timeout=60, capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)["rows"]


def step_numbers(tmp_path):
    return [row["step"] for row in table(tmp_path, "steps")]


def traces(tmp_path, pattern):
    return [json.loads(path.read_text()) for path in sorted((tmp_path / "traces").glob(pattern))]


def recorded_steps(trace):
    return sorted({event["name"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#")})


def check_waits(tmp_path, fewest, most):
    """The wait for a batch is in the step that trains with it, and is no evaluation."""
    steps = table(tmp_path, "steps")
    assert all(step["data_ns"] > 0 and step["forward_ns"] > 0 and not step["evaluation_ns"] for step in steps), steps
    waits = sum(row["calls"] for row in table(tmp_path, "ops") if row["name"].startswith("enumerate(DataLoader)"))
    assert fewest <= waits <= most
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "open")]


@needs("transformers")
def test_trainer_of_transformers(tmp_path):
    out = run(tmp_path, HERE / "hf.py", "--enable-profiling", "--profiler_output_dir", "traces", "--profiler-wait-steps", "1",
              "--profiler-warmup-steps=1", "--profiler-active-steps", "2", "--enable-memory-logging", "true", "--no-stacks")
    assert step_numbers(tmp_path) == list(range(6))
    assert any(row["name"] == "loss" and row["count"] >= 6 for row in table(tmp_path, "metrics"))
    check_waits(tmp_path, 12, 13)  # accelerate's loader is one batch ahead
    found = traces(tmp_path, "*.pt.trace.json")
    assert [recorded_steps(trace) for trace in found] == [["ProfilerStep#2", "ProfilerStep#3"]]
    for line in ("=" * 80 + "\nPyTorch Profiler ENABLED\nOutput directory: traces\nSchedule: wait=1, warmup=1, active=2, repeat=1",
                 "GPU Memory Logging ENABLED\nLogging every 10 steps",
                 "PyTorch Profiler initialized. Traces will be saved to: traces",
                 "Profiling complete! Traces saved to: traces\n\nTo view traces, run:\n  tensorboard --logdir=traces"):
        assert line in out


LIGHTNINGS = pytest.mark.parametrize("root", [pytest.param("lightning", marks=needs("lightning")),
                                              pytest.param("pytorch_lightning", marks=needs("pytorch_lightning"))])


@LIGHTNINGS
def test_lightning(tmp_path, root):
    run(tmp_path, HERE / "light.py", root)
    assert step_numbers(tmp_path) == list(range(6))
    check_waits(tmp_path, 12, 12)
    assert any(row["name"] == "train_loss" for row in table(tmp_path, "metrics"))
    assert [recorded_steps(trace) for trace in traces(tmp_path, "*.pt.trace.json")] == [["ProfilerStep#2", "ProfilerStep#3"]]
    assert "run_training_batch" in next(tmp_path.glob("*p*.txt")).read_text()
    assert any("training_step" in row["name"] for row in table(tmp_path, "ops"))


@LIGHTNINGS
def test_lightning_computes_no_results_for_us_that_are_not_recorded(tmp_path, root):
    out = run(tmp_path, HERE / "light.py", root, options=("--steps", "none"))
    assert "asked behind [3, 4, 6] steps" in out  # the profiler's window, and log_every_n_steps
    assert [(row["name"], row["count"]) for row in table(tmp_path, "metrics")] == [("train_loss", 3)]


@needs("accelerate")
def test_accelerate(tmp_path):
    out = run(tmp_path, HERE / "accel.py")
    assert step_numbers(tmp_path)[:6] == list(range(6))
    assert "ProfilerStep*" in out
    assert [recorded_steps(trace) for trace in traces(tmp_path, "*.json")] == [["ProfilerStep#2", "ProfilerStep#3"]]
    assert [row["last"] > 0 for row in table(tmp_path, "metrics") if row["name"] == "loss"] == [True]
