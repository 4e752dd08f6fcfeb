# SPDX-License-Identifier: Apache-2.0
"""Trainings of known truth, and the answers of `stepscope diagnose` to their traces.

A case is a dictionary that JSON can hold: {"part": "single", "seed": 2, "kind": "item", "target": 0.1}. measure() adds the
true saving and the answer. The parts are:

- single: one kind of fault, sized to cost 2, 5, 10 or 30 % of a step
- pair: two faults at once
- healthy: trainings without a fault
"""
import json
import os
import random
import re
import shutil
import subprocess

import gpusim_trace
from gpusim import Params, simulate, truth
from kinds import CUT_TRUTH, K1, KINDS, RANKS, RULE_CUTS, base_of, calibrate, cut_of, with_fault

TARGETS = (0.02, 0.05, 0.1, 0.3)
# Kinds that also exist in a training without a device.
WITHOUT_DEVICE = {"data_const", "data_saw", "data_periodic", "data_main", "py_gap", "callback", "gc", "stall", "ckpt", "eval", "opt_heavy",
                  "throttle", "between"}
HEALTHY = {"base": {}, "async": dict(sync_end=False, warm=12), "python": dict(python=True), "ranks4": dict(ranks=4, buckets=4, rank_sigma=.005),
           "ranks4_16": dict(ranks=4, layers=16, buckets=16, rank_sigma=.01, ar_us=80),
           "ranks8": dict(ranks=8, layers=6, buckets=3, rank_sigma=.01, steps=10), "accumulate": dict(accumulate=4), "graph": dict(graph=True),
           "cpu": dict(device=False), "noise_ar": dict(step_sigma=.02, ar1=.8), "host_noise": dict(host_sigma=.5), "big": dict(scale=4.0),
           "side": dict(side_copy=True, h2d_bytes=2e7), "steps50": dict(steps=50, layers=3), "steps4": dict(steps=4), "opt10": dict(opt_us=110),
           "warm0": dict(warm=0), "log10": dict(sync_every=10, steps=40, warm=10)}


def cases_of(part, seeds, only=()):
    """Yields the cases of a part; `only` are the wanted kinds (default: all)."""
    for seed in seeds:
        if part == "single":
            for kind in KINDS:
                if not only or kind in only:
                    yield from ({"part": part, "seed": seed, "kind": kind, "target": target} for target in TARGETS)
        elif part == "healthy":
            yield from ({"part": part, "seed": seed, "kind": name} for name in HEALTHY if not only or name in only)
        else:
            first, second, _, _ = kinds_of_pair(seed)
            is_one_kind = first.startswith("data") and second.startswith("data")
            if not is_one_kind and (not only or first in only or second in only):
                yield {"part": part, "seed": seed, "kind": first, "kind2": second}


def kinds_of_pair(seed):
    """Returns two kinds of faults, their targets, and how the training varies."""
    rnd = random.Random(f"pair{seed}")
    first, second = rnd.sample([kind for kind in K1 if kind not in ("tiny", "item")], 2)
    if first.startswith("data") and second.startswith("data"):
        return first, second, None, None
    changed = variant(rnd, first)
    changed.pop("device", None)
    return first, second, rnd.choice([(0.1, 0.2), (0.2, 0.1), (0.25, 0.05), (0.1, 0.1)]), changed


def variant(rnd, kind):
    """Returns parameters of a training that are drawn by chance."""
    found = {"python": rnd.random() < 0.3}
    if kind != "item":
        found["layers"] = rnd.choice([3, 4, 6])
    found["sync_end"] = rnd.random() < 0.75
    if not found["sync_end"]:
        found["warm"] = 12
    found.update(host_sigma=rnd.choice([0.1, 0.25]), step_sigma=rnd.choice([0.002, 0.01]), ar1=rnd.choice([0, 0.7]), steps=rnd.choice([12, 16, 24]),
                 kernel_sigma=rnd.choice([0.01, 0.03]))
    if kind in WITHOUT_DEVICE and rnd.random() < 0.15:
        found["device"] = False
    if kind in RANKS:
        found.update(layers=rnd.choice([4, 6]), buckets=rnd.choice([1, 2, 4]), steps=12)
    return found


def training(case):
    """Returns the training of a case, and the case with its true savings."""
    seed, kind = case["seed"], case["kind"]
    if case["part"] == "single":
        changed = variant(random.Random(f"{seed}/{kind}/{case['target']}"), kind)
        base = base_of(kind, seed, changed)
        size, saving = calibrate(base, kind, case["target"])
        return with_fault(base, kind, size), {**case, "variant": changed, "size": size, "true": saving}
    if case["part"] == "healthy":
        return Params(seed=seed, **HEALTHY[kind]), {**case, "variant": HEALTHY[kind], "true": 0}
    first, second, targets, changed = kinds_of_pair(seed)
    base = Params(seed=seed, **{**K1[second][0], **K1[first][0], **changed})
    sizes = [calibrate(base, name, target)[0] for name, target in zip((first, second), targets)]
    p = with_fault(with_fault(base, first, sizes[0]), second, sizes[1], second=True)
    step = simulate(p).step_us
    return p, {**case, "variant": changed, "true": truth(p, cut_of(first), step), "true2": truth(p, cut_of(second), step),
               "both": truth(p, cut_of(first) | cut_of(second), step)}


def write(case, folder):
    """Writes the trace of a case into a folder. Returns (path, training, mean step in us, case with its true savings)."""
    p, known = training(case)
    result = simulate(p, emit=True)
    path = os.path.join(folder, "ranks" if p.ranks > 1 else "trace.json")
    shutil.rmtree(path, ignore_errors=True)
    return gpusim_trace.write(result, path), p, result.step_us, known


def measure(case, stepscope, folder):
    """Returns the case with its true savings and the answer of `stepscope diagnose`."""
    path, p, step_us, known = write(case, folder)
    done = subprocess.run([stepscope, "diagnose", "--json", path], capture_output=True, text=True, check=False)
    try:
        known["out"] = answer(json.loads(done.stdout), p, step_us)
    except ValueError:
        raise RuntimeError(f"stepscope diagnose {path} of {case}: {done.stderr.strip()[-500:]}") from None
    return known


def answer(found, p, step_us):
    """Returns the parts of a diagnosis that are judged, and the most that can be true of each promise."""
    verdict = found["verdict"]
    out = {"verdict": verdict["verdict"], "ratio": verdict["ratio"], "sentence": verdict["sentence"], "saving": verdict["saving_ratio"],
           "parts": verdict["parts"], "cannot": [check["rule"] for check in found["checks"] if check["result"] == "cannot tell"],
           "findings": [{"rule": row["rule"], "cut": row.get("cut"), "sev": row["severity"], "where": row["where"], "ev": row["evidence"],
                         "s": row["saving_ratio"], "verdict": row["verdict"]} for row in found["findings"]], "rule_truth": {}}
    for finding in out["findings"]:
        key = finding["cut"] or finding["rule"]
        cut = set(CUT_TRUTH.get(finding["cut"], ()) or RULE_CUTS.get(finding["rule"], ()))
        if not cut or key in out["rule_truth"]:
            continue
        rank = re.match(r"rank (\d+)", finding["where"] or "")
        if key in ("SS602", "rank") and rank:
            cut.add("data@" + rank.group(1))
        out["rule_truth"][key] = truth(p, cut, step_us)
    return out
