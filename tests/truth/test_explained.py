# SPDX-License-Identifier: Apache-2.0
"""`stepscope compare` explains the difference of a simulated training and the same with one fault by the fault's cut."""
import json
import os
import subprocess

import pytest

pytest.importorskip("numpy", reason="numpy comes with PyTorch (tools/setup test)")
import gpusim_trace  # noqa: E402
from gpusim import Params, simulate  # noqa: E402
from kinds import CUT_NAMES, K1, KINDS, with_fault  # noqa: E402

STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
MOST_UNEXPLAINED = 0.1  # of the difference
# Kind: its size. A kernel that is shorter (tiny) is other work, which no cut explains. Of a slow rank (straggler_compute)
# only the distance to the median of the ranks is explained.
SIZES = {"data_const": 1e5, "data_main": 4e3, "data_periodic": 3e5, "item": 30, "sync_call": 1e3, "h2d_pageable": 5e7, "h2d_pinned": 1e8,
         "py_gap": 2e4, "callback": 5e3, "gc": 3e4, "stall": 1e5, "ckpt": 3e4, "eval": 8, "opt_loop": 150, "opt_heavy": 200, "malloc": 500,
         "dtype": 60, "clone": 60, "throttle": 0.5, "between": 1e4, "ar_exposed": 3e3, "net_slow": 8, "straggler_data": 2e5,
         "straggler_host": 1e4}
VARIANTS = {"sync": {}, "async": {"sync_end": False, "warm": 12}, "cpu": {"device": False}}
FIFTH = ("data_periodic", "ckpt", "eval")  # in each fifth step: the replayed steps have one occurrence less
WITHOUT_DEVICE = ("data_main", "callback", "between")


def trace_of(p, folder):
    folder.mkdir()
    return gpusim_trace.write(simulate(p, emit=True), str(folder / ("ranks" if p.ranks > 1 else "trace.json")))


def compared(base, new):
    done = subprocess.run([STEPSCOPE, "compare", "--json", base, new], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def cases():
    for kind in SIZES:
        yield pytest.param(kind, "sync", id=kind)
        if kind in WITHOUT_DEVICE:
            yield pytest.param(kind, "cpu", id=f"{kind}-cpu")
        elif kind in K1 and kind not in ("stall", "ckpt", "gc", "eval"):
            yield pytest.param(kind, "async", id=f"{kind}-async")


def test_all_other_kinds_are_tested():
    assert set(KINDS) - set(SIZES) == {"data_saw", "tiny", "straggler_compute"}


@pytest.mark.parametrize("kind, variant", list(cases()))
def test_one_fault_explains_the_difference(kind, variant, tmp_path):
    base = Params(seed=2, steps=12, **{**KINDS[kind][0], **VARIANTS[variant]})
    p = with_fault(base, kind, SIZES[kind])
    found = compared(trace_of(base, tmp_path / "base"), trace_of(p, tmp_path / "new"))
    difference_ns = sum(row["part_ns"] for row in found["explained_by"]) + found["unexplained_ns"]
    true_ns = 1e3 * (simulate(p).step_us - simulate(base).step_us)
    assert difference_ns > 0.03 * 1e3 * simulate(base).step_us, "the fault is too small to test"
    assert difference_ns == pytest.approx(true_ns, rel=0.35 if kind in FIFTH else 0.25)
    assert abs(found["unexplained_ns"]) <= MOST_UNEXPLAINED * difference_ns
    assert found["explained_by"][0]["cut"] in CUT_NAMES[kind]
