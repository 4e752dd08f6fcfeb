# SPDX-License-Identifier: Apache-2.0
"""Kinds of faults: how a simulated training gets them, which cut removes them, and how a diagnosis may name them."""
import copy

from gpusim import Params, simulate, truth

# kind: (parameters of the run, range of the fault's size, cut that removes it, rules that name it, verdicts that name it, description)
K1 = {
    "data_const": (dict(workers=4), (2e3, 4e6), "data", {"SS101"}, {"data-bound"}, "loader slow in every batch"),
    "data_saw": (dict(workers=4, prefetch=1), (2e3, 4e6), "data", {"SS101"}, {"data-bound"}, "workers in step: each Nth batch waits"),
    "data_periodic": (dict(workers=1), (2e3, 4e6), "data", {"SS101"}, {"data-bound"}, "each fifth batch slow (a new shard)"),
    "data_main": (dict(), (50, 1e6), "data", {"SS101"}, {"data-bound"}, "no workers"),
    "item": (dict(layers=8, scale=0.3), (1, 250), "sync", {"SS207"}, {"sync-bound"}, "item() in forward, then Python that decides"),
    "sync_call": (dict(), (5, 1.2e4), "sync", {"SS207"}, {"sync-bound"}, "torch.cuda.synchronize() before the optimizer, then Python"),
    "h2d_pageable": (dict(), (1e5, 1e11), "copies", {"SS307", "SS308"}, {"copy-bound"}, "batch copied from pageable memory"),
    "h2d_pinned": (dict(), (1e5, 1e12), "copies", {"SS308"}, {"copy-bound"}, "batch copied on the stream that computes"),
    "tiny": (dict(batch_us=200.0), (1.2, 200), "host", {"SS205", "SS209", "SS210"}, {"launch-bound"}, "kernels shorter than their launches"),
    "py_gap": (dict(), (50, 3e6), "py", {"SS205"}, {"host-bound", "launch-bound"}, "Python (histogram) in the middle of forward"),
    "callback": (dict(), (20, 1e6), "py", {"SS205", "SS204"}, {"host-bound", "launch-bound"}, "callback at the end of a step"),
    "gc": (dict(), (100, 1e7), "gc", {"SS409", "SS202"}, {"host-bound", "launch-bound"}, "garbage collection each fourth step"),
    "stall": (dict(), (500, 3e7), "stall", {"SS403", "SS410"}, set(), "one long stall of the host"),
    "ckpt": (dict(), (500, 1e7), "ckpt", {"SS203", "SS409"}, {"checkpoint-bound"}, "checkpoint each fifth step"),
    "eval": (dict(), (1, 400), "eval", {"SS409"}, set(), "evaluation each fifth step"),
    "opt_loop": (dict(), (1, 400), "opt_loop", {"SS406", "SS402"}, {"launch-bound"}, "optimizer tensor by tensor"),
    "opt_heavy": (dict(), (50, 3e4), "opt_heavy", {"SS402"}, set(), "optimizer whose kernels take long"),
    "malloc": (dict(), (10, 3e5), "malloc", {"SS206", "SS502"}, {"host-bound", "memory-bound"}, "cudaMalloc and cudaFree in each step"),
    "dtype": (dict(), (3, 3e4), "dtype", {"SS301", "SS309"}, set(), "conversions before each matrix product"),
    "clone": (dict(), (3, 3e4), "dtypeclone", {"SS308", "SS301"}, {"copy-bound"}, "copies on the device"),
    "throttle": (dict(), (0.02, 5), "throttle", {"SS805", "SS403"}, set(), "clock falls in the middle of the run"),
    "between": (dict(), (20, 1e6), "between", {"SS204"}, {"host-bound"}, "work between the steps"),
}
RANKS = {
    "ar_exposed": (dict(ranks=4, buckets=2), (50, 1e6), "exposed", {"SS601"}, {"communication-bound"}, "all-reduce behind the backward"),
    "net_slow": (dict(ranks=4, buckets=2), (0.1, 300), "net", {"SS601"}, {"communication-bound"}, "slow network for all"),
    "straggler_compute": (dict(ranks=4, buckets=2), (0.01, 3), "straggler", {"SS602"}, {"straggler-bound"}, "one rank's device is slower"),
    "straggler_data": (dict(ranks=4, buckets=2, workers=2), (2e3, 1e6), "straggler", {"SS602", "SS101"}, {"straggler-bound"}, "one rank's loader is slower"),
    "straggler_host": (dict(ranks=4, buckets=2), (50, 1e6), "straggler", {"SS602"}, {"straggler-bound"}, "one rank's host does more"),
}
KINDS = {**K1, **RANKS}
# The cuts of gpusim.py that are not a single name.
CUTS = {"dtypeclone": {"clone"}}


def cut_of(kind):
    """Returns the cut that removes a fault of this kind."""
    c = KINDS[kind][2]
    return CUTS.get(c, {c})


def base_of(kind, seed, variant):
    """Returns the training into which with_fault() puts a fault of this kind."""
    kw = dict(seed=seed, **KINDS[kind][0])
    kw.update(variant)
    return Params(**kw)


def with_fault(p, kind, amp, second=False):
    """Returns the training p with a fault of this kind and size."""
    q = copy.copy(p)
    if kind == "tiny":
        q.scale = p.scale / amp
        return q
    if second:
        q.fault2 = {kind: amp}
    else:
        q.fault = {kind: amp}
    return q


def calibrate(p, kind, target, tol=0.06, second=False):
    """Returns (size, saving) of the fault whose removal saves about the share `target` of a step."""
    lo, hi = KINDS[kind][1]
    cut = cut_of(kind)
    best = None
    a, b = lo, hi
    for _ in range(18):
        m = (a * b) ** 0.5
        q = with_fault(p, kind, m, second)
        t = truth(q, cut)
        if best is None or abs(t - target) < abs(best[1] - target):
            best = (m, t)
        if abs(t - target) < tol * target:
            break
        if t < target:
            a = m
        else:
            b = m
        if b / a < 1.0005:
            break
    return best


# The cuts that a rule's saving may contain: together they are the most that can be true of it.
RULE_CUTS = {
    "SS101": {"data"}, "SS203": {"ckpt"}, "SS204": {"between"},
    "SS205": {"host", "py", "gc", "stall", "host_noise", "ckpt", "opt_loop"},
    "SS206": {"malloc"}, "SS207": {"sync", "ckpt"},
    "SS301": {"dtype", "clone", "copies"}, "SS307": {"copies", "ckpt"}, "SS308": {"copies", "clone", "ckpt"},
    "SS402": {"opt_zero"}, "SS403": {"stall", "gc", "ckpt", "eval", "host_noise", "data", "throttle", "drift", "straggler", "between"},
    "SS404": {"zero"}, "SS406": {"opt_loop"}, "SS409": {"gc", "ckpt", "eval", "data", "between"}, "SS410": {"stall", "gc", "ckpt", "eval", "host_noise", "data"},
    "SS601": {"comm"}, "SS602": {"straggler", "rank_noise"},
    "SS502": {"malloc"}, "SS805": {"throttle", "drift"},
}

# The names of stepscope's cuts (key `cut` of a finding) that name a kind, besides the rules above.
CUT_NAMES = {
    "data_const": {"data", "workers"}, "data_saw": {"data", "workers"}, "data_periodic": {"data", "workers"}, "data_main": {"data", "workers"},
    "item": {"sync"}, "sync_call": {"sync"}, "h2d_pageable": {"copy"}, "h2d_pinned": {"copy"},
    "tiny": {"launch"}, "py_gap": {"host"}, "callback": {"host"}, "gc": {"gc", "host", "periodic"}, "stall": {"host", "periodic"}, "ckpt": {"checkpoint", "periodic"},
    "eval": {"evaluation", "periodic"}, "opt_loop": {"optimizer", "launch"}, "opt_heavy": {"optimizer"}, "malloc": {"alloc"}, "dtype": {"device"}, "clone": {"device", "copy"},
    "throttle": {"growth"}, "between": {"host"},
    "ar_exposed": {"comm"}, "net_slow": {"comm"}, "straggler_compute": {"rank"}, "straggler_data": {"rank", "data"}, "straggler_host": {"rank"},
}


def names(kind, findings):
    """Returns true if a finding that saves 2 % or more names this kind, by its rule or its cut."""
    return any((f["s"] or 0) >= 0.02 and (f["rule"] in KINDS[kind][3] or f.get("cut") in CUT_NAMES[kind]) for f in findings)


# The same as RULE_CUTS, per cut. The truth of `optimizer` is the step without an optimizer.
CUT_TRUTH = {
    "data": {"data"}, "workers": {"data"}, "sync": {"sync"}, "launch": {"host", "opt_loop"}, "host": {"py", "gc", "stall", "host_noise", "between", "ckpt"}, "device": {"dtype", "clone", "zero"},
    "copy": {"copies", "clone"}, "comm": {"comm"}, "rank": {"straggler", "rank_noise"}, "optimizer": {"opt_zero"}, "alloc": {"malloc"}, "gc": {"gc"}, "checkpoint": {"ckpt"},
    "evaluation": {"eval"}, "periodic": {"gc", "ckpt", "eval", "between", "data"}, "growth": {"throttle", "drift"},
}
