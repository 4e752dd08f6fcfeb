# SPDX-License-Identifier: Apache-2.0
"""Runs whose step times come from a noise model, written as small Kineto traces.

    from stepnoise import *
    d = durations("ar1", steps=50, seed=7, effect=0.03)       # us
    write_run("new.json", d, start_s=60)                       # each step has the phases data, forward, backward, optimizer
"""
import math

import numpy as np

from gpusim_trace import dumps

BASE = 20000.0
MODELS = ("iid", "heavy", "ar1", "bimodal_run", "run1", "period", "warmup")


def factors(model, n, g):
    """Returns the factors of a run's steps. Differences between runs are drawn here, too."""
    e = g.standard_normal(n)
    if model == "iid":
        return np.exp(0.02 * e)
    if model == "heavy":     # 8 % of the steps are late by a Pareto distribution
        return np.exp(0.01 * e) + (g.random(n) < 0.08) * 0.1 * g.pareto(1.5, n)
    if model == "ar1":
        x, v = g.standard_normal(), []
        for z in e:
            x = 0.9 * x + math.sqrt(1 - 0.81) * z
            v.append(x)
        return np.exp(0.03 * np.array(v))
    if model == "bimodal_run":  # a run is one of two kinds, such as two memory layouts
        return np.exp(0.01 * e) * (1.0 + (0.04 if g.random() < 0.5 else 0.0))
    if model == "run1":
        return np.exp(0.01 * e) * math.exp(0.01 * g.standard_normal())
    if model == "period":   # two micro-batches, then one
        return np.exp(0.015 * e) * np.where(np.arange(n) % 2 == 0, 4 / 3, 2 / 3)
    if model == "warmup":
        k = np.arange(n)
        return np.exp(0.015 * e) * (1 + 1.5 * np.exp(-k / 3.0))
    raise ValueError(model)


def durations(model, steps, seed, effect=0.0, base=BASE):
    """Returns the step times of a run in us, longer by the share `effect`."""
    g = np.random.default_rng(seed)
    return base * (1 + effect) * factors(model, steps, g)


PARTS = (("data", 0.10), ("forward", 0.30), ("backward", 0.50), ("optimizer", 0.10))


def rounded(us):
    return round(us * 1000) / 1000


def events(d, parts=None, gaps=None, pid=4000, ops=None, shapes=None):
    """Returns the events of a run with step times d in us.

    parts is an array of (steps, 4) times of phases; default: fixed shares. gaps are the times after each step.
    """
    found = []
    if parts is None:
        parts = np.outer(d, [share for _, share in PARTS])
    start, number = 1_000_000.0, 1

    def add(cat, name, a, b, **args):
        found.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": rounded(a), "dur": rounded(rounded(b) - rounded(a)), "args": args})

    for i in range(len(d)):
        data, forward, backward, optimizer = [float(v) for v in parts[i]]
        x = start
        add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", x + 1, x + data - 1)
        x += data
        for k in range(4):
            args = {"Sequence number": number + k, "Fwd thread id": 0}
            if shapes:
                args["Input Dims"] = shapes
                args["Input type"] = ["float", "float"]
            add("cpu_op", (ops or {}).get("forward", "aten::mm"), x + k * forward / 4 + 0.5, x + (k + 1) * forward / 4 - 0.5, **args)
        x += forward
        for k in range(4):
            a, b = x + k * backward / 4 + 0.5, x + (k + 1) * backward / 4 - 0.5
            args = {"Sequence number": number + 3 - k, "Fwd thread id": 1}
            add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", a, b, **args)
            add("cpu_op", "MmBackward0", a + 0.5, b - 0.5, **args)
            add("cpu_op", "aten::mm", a + 1, b - 1)
        x += backward
        add("user_annotation", "Optimizer.step#SGD.step", x + 0.5, x + optimizer - 0.5)
        add("cpu_op", "aten::_foreach_add_", x + 1, x + optimizer - 1)
        number += 4
        end = start + float(d[i])
        add("user_annotation", f"ProfilerStep#{i}", start, end)
        start = end + (float(gaps[i]) if gaps is not None else 0.0)
    return found


def write_run(path, d, start_s=0.0, **options):
    """Writes the trace of a run that starts at start_s. `options` are those of events()."""
    document = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1_751_410_836_000_000_000 + int(start_s * 1e9), "displayTimeUnit": "ms",
                "traceEvents": events(d, **options)}
    with open(path, "wb") as file:
        file.write(dumps(document))
    return path
