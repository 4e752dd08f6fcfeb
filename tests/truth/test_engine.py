# SPDX-License-Identifier: Apache-2.0
"""The replay of stepscope has the steps and savings of the replay in Python, on real traces and on simulated ones.

Steps are within 0.1 %, savings within 0.5 points. oracle.NARROWER has the cuts whose savings may be smaller, with reasons.
"""
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="numpy comes with PyTorch (tools/setup test)")
import gpusim_trace  # noqa: E402
import oracle  # noqa: E402
from gpusim import simulate  # noqa: E402
from kinds import base_of, with_fault  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "data" / "gpu_truth"
STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
# `oracle.py *.json.zst` in that folder writes this file.
REPLAYED = {row["trace"]: row for row in map(json.loads, (DATA / "replay.jsonl").read_text().splitlines())}
AHEAD = {"sync_end": False, "warm": 12}  # the host runs ahead of the device
# name: kind of fault, its size, how the training varies
SIMULATED = {
    "item": ("item", 60.0, {}), "sync_call": ("sync_call", 500.0, {}), "data_const": ("data_const", 60000.0, AHEAD), "data_main": ("data_main", 6000.0, {}),
    "h2d_pageable": ("h2d_pageable", 2e7, {}), "malloc": ("malloc", 2000.0, {}), "dtype": ("dtype", 100.0, AHEAD), "clone": ("clone", 100.0, {}),
    "gc": ("gc", 6000.0, {}), "ckpt": ("ckpt", 6000.0, {}), "eval": ("eval", 2, {}), "between": ("between", 6000.0, {}), "opt_loop": ("opt_loop", 20, {}),
    "throttle": ("throttle", 0.5, {"steps": 12}), "python": ("py_gap", 6000.0, {"python": True}), "cpu": ("callback", 3000.0, {"device": False}),
    "straggler_host": ("straggler_host", 6000.0, {"ranks": 2}), "net_slow": ("net_slow", 8.0, {"ranks": 2}),
}


def test_each_trace_has_its_replay():
    assert set(REPLAYED) == {path.name for path in DATA.glob("*.json.zst")}


@pytest.mark.parametrize("name", ("graph.json.zst", "tiny_graph.json.zst", "fp32.json.zst"))
def test_the_kept_replay_is_that_of_python(name):
    found = oracle.answer(DATA / name, [DATA / name])
    assert found["without_profiler"]["step_us"] == pytest.approx(REPLAYED[name]["without_profiler"]["step_us"], rel=1e-9)
    assert [row["saving_ratio"] for row in found["without_profiler"]["cuts"]] == pytest.approx(
        [row["saving_ratio"] for row in REPLAYED[name]["without_profiler"]["cuts"]], abs=1e-9)


@pytest.mark.parametrize("name", REPLAYED)
def test_a_real_trace_is_replayed_as_in_python(name):
    assert oracle.compare(STEPSCOPE, DATA / name, REPLAYED[name]) == 0


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulated_trace_is_replayed_as_in_python(name, tmp_path):
    kind, size, changed = SIMULATED[name]
    p = with_fault(base_of(kind, 2, {"layers": 3, "steps": 7, **changed}), kind, size)
    path = Path(gpusim_trace.write(simulate(p, emit=True), str(tmp_path / ("ranks" if p.ranks > 1 else "trace.json"))))
    (_, files), = oracle.traces([str(path)])
    assert oracle.compare(STEPSCOPE, path, oracle.answer(path, files)) == 0
