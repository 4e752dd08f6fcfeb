# SPDX-License-Identifier: Apache-2.0
"""The costs that a replay can remove (replay.py).

A cut changes a plan. It returns false if the trace does not have its cost. Cuts can follow one another on one plan.
"""
import bisect
import collections
import difflib

import numpy as np

from replay import Plan, plain, replay
from replay_trace import ALLOC, LOADER, OTHER, WAIT_ALL, WAIT_EVENT, WAIT_STREAM, median, outer_ops


def remove(t, p, cuts):
    """Removes intervals of host threads, {thread: [(start, end)]}, with the calls inside and their works."""
    for th, v in cuts.items():
        flat = []
        for a, b in sorted(v):
            if flat and a <= flat[-1][1]:
                flat[-1][1] = max(flat[-1][1], b)
            else:
                flat.append([a, b])
        begins = [a for a, _ in flat]
        ed = t.edges.get(th, ())
        for k, i in enumerate(t.items):
            if i.th != th:
                continue
            j = bisect.bisect_right(begins, i.s + 1e-9) - 1
            if j >= 0 and not i.mark and i.s >= flat[j][0] - 1e-6 and i.e <= flat[j][1] + 1e-6:
                p.gone[k] = True
            if i.pred is None:
                continue
            lo, hi = i.pred.e, i.s
            while j >= 0 and flat[j][1] > lo:
                a, b = max(lo, flat[j][0]), min(hi, flat[j][1])
                if b > a:
                    p.gap[k] = max(0.0, p.gap[k] - (b - a))
                    p.ops[k] = max(0.0, p.ops[k] - (bisect.bisect_right(ed, b) - bisect.bisect_left(ed, a)) / 2)
                j -= 1
    return True


def around(t):
    """Returns the outermost operator around each item, as (start, end, name) or None."""
    if not hasattr(t, "around"):
        t.around = [None] * len(t.items)
        tops = {}
        for k, i in enumerate(t.items):
            if i.mark:
                continue
            if i.th not in tops:
                o = outer_ops(t, i.th)
                tops[i.th] = (o, [a for a, _, _ in o])
            o, b = tops[i.th]
            j = bisect.bisect_right(b, i.s) - 1
            if j >= 0 and o[j][1] >= i.e - 0.5:
                t.around[k] = o[j]
    return t.around


def loader_rows(t):
    return {th: v for th, v in ((th, [(a, b) for a, b, n in notes if n.startswith("enumerate(DataLoader)#")]) for th, notes in t.notes.items()) if v}


def cut_data(t, p):
    """Removes waits for batches. The handover of a batch remains, at most 100 us."""
    v = {}
    own = {(i.s, i.e) for i in t.batches}
    for k, i in enumerate(t.items):
        if i.kind == LOADER:
            p.own[k], p.free[k] = min(p.own[k], t.handover), True
    for th, rows in loader_rows(t).items():
        floor = min(100.0, min(b - a for a, b in rows))
        v[th] = [(a + floor, b) for a, b in rows if b - a > floor and (a, b) not in own]
    return bool(v or own) and remove(t, p, v)


def cut_sync(t, p):
    """Removes waits for the device: the outermost operator around each, such as aten::item, or the call alone.

    Waits of copies to the device remain.
    """
    v, ar = collections.defaultdict(list), around(t)
    up = {ar[k] for k, i in enumerate(t.items) if i.work and ar[k] and i.work.cat == "gpu_memcpy" and "HtoD" in i.work.name}
    for k, i in enumerate(t.items):
        if (i.kind in (WAIT_ALL, WAIT_STREAM, WAIT_EVENT) and i.name not in ALLOC) or (i.work and i.work.blocks and "DtoH" in i.work.name):
            if ar[k] not in up or ar[k] is None:
                v[i.th].append((ar[k] or (i.s, i.e))[:2])
    return bool(v) and remove(t, p, v)


def cut_copies(t, p):
    """Copies batches in 2 us, from pinned memory, without a wait."""
    some, wait = False, False
    for k, i in enumerate(t.items):
        w = i.work
        if w and w.cat == "gpu_memcpy" and "HtoD" in w.name:
            p.dur[k] = min(p.dur[k], 2.0)
            p.unblock[k] = wait = some = True
            p.own[k] = min(p.own[k], 10.0)
        elif i.kind == WAIT_STREAM and wait and i.pred is not None and i.pred.work is not None:
            p.free[k], wait = True, False
            p.own[k] = min(p.own[k], 2.0)
        elif w:
            wait = False
    return some


def cut_operators(t, p, want):
    """Removes the outermost operators that launch only wanted works."""
    ar = around(t)
    bad, good = set(), collections.defaultdict(set)
    for k, i in enumerate(t.items):
        if ar[k] is not None and i.work:
            if want(ar[k][2], i.work):
                good[i.th].add(ar[k])
            else:
                bad.add(ar[k])
    v = {th: [o[:2] for o in s - bad] for th, s in good.items()}
    return any(v.values()) and remove(t, p, v)


def cut_clone(t, p):
    return cut_operators(t, p, lambda n, w: n in ("aten::clone", "aten::contiguous", "aten::copy_") and w.cat == "gpu_memcpy" and "DtoD" in w.name)


def cut_dtype(t, p):
    return cut_operators(t, p, lambda n, w: n in ("aten::to", "aten::_to_copy", "aten::type_as") and w.cat == "kernel")


def cut_launch(t, p):
    """Runs a step as one CUDA graph: works back to back, and no time of the host except loaders and waits."""
    inside = loader_overlap(t)
    for k, i in enumerate(t.items):
        if i.name in ALLOC:
            p.own[k], p.after[k], p.free[k] = 0.0, 0.0, True
        elif i.kind != LOADER and i.target is None and not (i.work and i.work.blocks):
            p.own[k] *= 0.02
        keep = min(inside[k], p.gap[k])
        p.gap[k] = keep + 0.02 * (p.gap[k] - keep)
        p.ops[k] = p.tri[k] = p.hidden[k] = 0.0
    return t.device


def overlap_of(t, rows_by_thread):
    out = [0.0] * len(t.items)
    for k, i in enumerate(t.items):
        rows = rows_by_thread.get(i.th)
        if not rows or i.pred is None or i.gap <= 0:
            continue
        ends = rows[1]
        j = bisect.bisect_right(ends, i.pred.e)
        rows = rows[0]
        while j < len(rows) and rows[j][0] < i.s:
            out[k] += max(0.0, min(i.s, rows[j][1]) - max(i.pred.e, rows[j][0]))
            j += 1
    return out


def loader_overlap(t):
    return overlap_of(t, {th: (v, [b for _, b in v]) for th, v in loader_rows(t).items()})


def op_cover(t):
    """Returns the time of each gap that is inside operators of its thread."""
    return overlap_of(t, {th: (o, [r[1] for r in o]) for th, o in ((th, outer_ops(t, th)) for th in t.ops)})


def cut_malloc(t, p):
    some = False
    for k, i in enumerate(t.items):
        if i.name in ALLOC:
            p.own[k], p.after[k], p.free[k], some = 0.0, 0.0, True, True
    return some


def stretches(t):
    """Returns the long stretches of host time outside operators and loaders: {item: (excess, is between steps)}."""
    if not hasattr(t, "stretch"):
        ins, cov = loader_overlap(t), op_cover(t)
        free = [max(0.0, i.gap - ins[k] - cov[k]) for k, i in enumerate(t.items)]
        usual = median([f for f in free if f > 0], 6.0)
        t.stretch = {k: (free[k] - usual, bool(i.mark and i.mark[1] == 0)) for k, i in enumerate(t.items)
                     if free[k] > max(50.0, 5 * usual) and i.pred is not None}
    return t.stretch


def cut_python(t, p, between=False):
    some = False
    for k, (x, b) in stretches(t).items():
        if b == between:
            p.gap[k] = max(0.0, p.gap[k] - x)
            some = True
    return some


def cut_between(t, p):
    return cut_python(t, p, True)


def sequences(t):
    """Returns the items by step, their names by step, and the names of the most frequent step."""
    seq = collections.defaultdict(list)
    for k, i in enumerate(t.items):
        if not (i.mark and i.mark == (0, 0)):
            seq[i.step].append(k)
    texts = {s: tuple((t.items[k].name, t.items[k].work.name if t.items[k].work else "") for k in v) for s, v in seq.items()}
    return seq, texts, collections.Counter(texts.values()).most_common(1)[0][0]


def cut_irregular(t, p):
    """Removes calls that the usual step does not have, and host time above the median of its place."""
    seq, texts, usual = sequences(t)
    if len(texts) < 3:
        return False
    place = [[] for _ in usual]
    some = False
    extra = set()
    for s, v in seq.items():
        if texts[s] == usual:
            for j, k in enumerate(v):
                place[j].append(k)
            continue
        for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, usual, texts[s], autojunk=False).get_opcodes():
            if tag == "equal":
                for j in range(a1 - a0):
                    place[a0 + j].append(v[b0 + j])
            elif tag in ("insert", "replace"):
                extra.update(v[b0:b1])
    for k in extra:
        p.gone[k] = p.gone[k] or not t.items[k].mark
        p.gap[k], p.ops[k] = 0.0, 0.0
        some = True
    step = (t.marks[-1][1] - t.marks[0][0]) / len(t.marks)
    for ks in place:
        m = float(np.median([t.items[k].gap for k in ks])) if ks else 0.0
        for k in ks:
            if t.items[k].gap > m + max(20.0, 0.2 * m, 0.005 * step):
                p.gap[k] = min(p.gap[k], m)
                some = True
        if ks and t.items[ks[0]].kind in (LOADER, OTHER):
            m = float(np.median([t.items[k].e - t.items[k].s for k in ks]))
            for k in ks:
                i = t.items[k]
                if i.e - i.s > m + max(20.0, 0.2 * m, 0.005 * step):
                    p.own[k], p.free[k], some = m, True, True
    return some


def cut_clock(t, p):
    """Runs the kernels of each step at the speed of the fastest run of a sixth of the steps."""
    seq, _, _ = sequences(t)
    dur = {s: [(t.items[k].work.name, t.items[k].work.dur) for k in v if t.items[k].work and t.items[k].work.cat == "kernel"] for s, v in seq.items()}
    usual = collections.Counter(tuple(n for n, _ in v) for v in dur.values()).most_common(1)[0][0]
    m = np.array([[d for _, d in v] for v in dur.values() if tuple(n for n, _ in v) == usual])
    if m.size == 0 or len(m) < 4:
        return False
    m, q = m.sum(axis=1), max(3, len(m) // 6)
    total = min(m[j:j + q].mean() for j in range(len(m) - q + 1))
    f = {s: max(1.0, sum(d for _, d in v) / total) for s, v in dur.items() if tuple(n for n, _ in v) == usual}
    mean = float(np.mean(list(f.values())))
    for k, i in enumerate(t.items):
        if i.work and i.work.cat == "kernel" and f.get(i.step, mean) > 1.02:
            p.dur[k] /= f.get(i.step, mean)
    return max(f.values()) > 1.02


def cut_optimizer(t, p):
    """Runs an optimizer that works tensor by tensor as one fused kernel."""
    some = False
    for th, notes in t.notes.items():
        for a, b, n in notes:
            if not n.startswith("Optimizer.step#"):
                continue
            ks = [k for k, i in enumerate(t.items) if i.th == th and a <= i.s and i.e <= b]
            ws = [k for k in ks if t.items[k].work and t.items[k].work.cat == "kernel"]
            if len(ws) < 40 or float(np.median([t.items[k].work.dur for k in ws])) > 10:
                continue
            some = True
            total = sum(max(t.items[k].work.dur - 1.5, 0.2 * t.items[k].work.dur) for k in ws)
            for k in ks:
                if k == ws[0]:
                    p.dur[k] = total
                    p.gap[k] = min(p.gap[k], 300.0)
                elif t.items[k].work or not p.gone[k]:
                    p.gone[k], p.gap[k], p.own[k] = bool(t.items[k].work), 0.0, 0.0
                    p.ops[k] = p.tri[k] = p.hidden[k] = 0.0
    return some


def cut_recompute(t, p):
    """Removes forward operators inside a node of the backward pass: checkpointed blocks that are computed again."""
    v = collections.defaultdict(list)
    for th, rows in t.recorded.items():
        nodes = [(a, b) for a, b, n in outer_ops(t, th) if n.startswith("autograd::engine::evaluate_function")]
        starts = [a for a, _ in rows]
        for a, b in nodes:
            r = rows[bisect.bisect_left(starts, a):bisect.bisect_left(starts, b)]
            if r:
                v[th].append((r[0][0], max(x[1] for x in r)))
    return bool(v) and remove(t, p, v)


FP32 = ("sgemm", "f32f32_f32f32_f32", "_ffma_", "_f32_")


def cut_precision(t, p, rate=5.0):
    """Runs matrix products of float32 `rate` times as fast, as with TF32 or bf16."""
    some = False
    for k, i in enumerate(t.items):
        if i.work and i.work.cat == "kernel" and i.work.rows == 1 and any(x in i.work.name for x in FP32) and ("gemm" in i.work.name or "fmha" in i.work.name):
            p.dur[k] /= rate
            some = True
    return some


def cut_communication(t, p):
    """Removes collectives: calls of the host and works."""
    v = collections.defaultdict(list)
    for th in t.ops:
        v[th] = [(a, b) for a, b, n in t.ops[th] if n.startswith("c10d::") or n == "record_param_comms"]
    for k, i in enumerate(t.items):
        if i.work and i.work.coll is not None:
            p.gone[k] = True
    p.alone = True
    return any(v.values()) and remove(t, p, v)


def equal_ranks(ts, ps):
    """Gives each rank the median of all ranks at each place: host times, works and batches."""
    if len({tuple(i.name for i in t.items) for t in ts}) != 1:
        return False
    waits = [sum(p.own[k] for k, i in enumerate(t.items) if i.kind == LOADER) for t, p in zip(ts, ps)]
    slow = [w > 1.3 * float(np.median(waits)) + 100.0 for w in waits]     # if ranks wait in turn, no rank is slow
    for k in range(len(ts[0].items)):
        its = [t.items[k] for t in ts]
        g = float(np.median([p.gap[k] for p in ps]))
        o = float(np.median([p.own[k] for p in ps]))
        d = float(np.median([p.dur[k] for p in ps]))
        for i, p, late in zip(its, ps, slow):
            p.gap[k], p.dur[k] = min(p.gap[k], g), min(p.dur[k], d)
            if p.own[k] > o and (late or i.kind != LOADER):
                p.own[k] = o
                if i.kind == LOADER:
                    p.free[k] = True
    return True


# The profiler's own cost. CALL: us of each call of the runtime or driver, with or without a row. ROW: each row of an
# operator, in the unit of row_unit(). TRITON: us of a launch of Triton. NODE: us of a node of a CUDA graph on the device.
CALL, ROW, TRITON, NODE = 0.27, 1.4, 20.0, 0.35
USUAL_UNIT, MOST_UNIT = 1.4, 2.5  # us; beyond the largest unit of real traces, rows are apart for another reason
ROW_CPU = 2.35   # in traces without a device, rows have all of the cost


def row_unit(t):
    """Returns the unit of each thread: the least time from begin to begin and from end to end of successive operators.

    The least time is the 10th percentile, without pairs that have a call in between.
    """
    if not hasattr(t, "unit"):
        t.unit = {}
        for th, v in t.ops.items():
            pts = sorted([(a, 0) for a, _, _ in v] + [(b, 1) for _, b, _ in v])
            x, k = np.array([q[0] for q in pts]), np.array([q[1] for q in pts])
            c = np.array(sorted(i.s for i in t.items if i.th == th and not i.mark))
            n = np.searchsorted(c, x[1:]) - np.searchsorted(c, x[:-1]) if len(c) else np.zeros(max(0, len(x) - 1))
            d = np.diff(x)
            bb, ee = d[(k[:-1] == 0) & (k[1:] == 0) & (n == 0)], d[(k[:-1] == 1) & (k[1:] == 1) & (n == 0)]
            unit = float(np.percentile(bb, 10) + np.percentile(ee, 10)) if len(bb) > 20 and len(ee) > 20 else USUAL_UNIT
            t.unit[th] = unit if unit <= MOST_UNIT else USUAL_UNIT
    return t.unit


def cut_profiler(t, p, call=CALL, row=ROW, triton=TRITON, node=NODE):
    """Removes the cost of the profiler. This is the last cut of a plan."""
    u = row_unit(t)
    row = row if t.device else ROW_CPU
    for k, i in enumerate(t.items):
        cost = row * u.get(i.th, USUAL_UNIT) * p.ops[k] + triton * p.tri[k] + call * p.hidden[k]
        p.gap[k] = max(p.gap[k] - cost, 0.2 * p.gap[k])
        if not i.mark and not p.gone[k]:
            p.own[k] = max(p.own[k] - call, 0.2 * p.own[k])
        if i.work and i.work.rows > 1:
            p.dur[k] = max(0.5 * p.dur[k], p.dur[k] - node * i.work.rows)
            p.own[k] = min(p.own[k], 10.0 + 0.01 * i.work.rows)
    return True


CUTS = {"data": cut_data, "sync": cut_sync, "copies": cut_copies, "launches": cut_launch, "malloc": cut_malloc, "python": cut_python, "between": cut_between,
        "irregular": cut_irregular, "clone": cut_clone, "dtype": cut_dtype, "clock": cut_clock, "optimizer": cut_optimizer, "precision": cut_precision, "recompute": cut_recompute}


def step_of(t, p):
    """Returns the mean step of the second turn.

    If much was queued before the window and the second turn differs from the first, it returns that of the first turn.
    """
    if not hasattr(t, "circle"):
        r = replay(t, plain(t))
        lag = max([w.e for ws in t.streams.values() for w in ws if w.item is None] + [0.0]) - t.marks[0][0]
        t.circle = lag < 0.5 * r.first or abs(r.step / r.first - 1) <= 0.02
    r = replay(t, p)
    return r.step if t.circle else r.first


def without(t, names, profiler=False):
    """Returns the mean step in us without these costs, or None if the trace does not have one of them."""
    p = Plan(t)
    for n in names:
        if not CUTS[n](t, p):
            return None
    if profiler:
        cut_profiler(t, p)
    return step_of(t, p)


def savings(t, profiler=False, names=None):
    """Returns the mean step in us and {cut: share saved}, as recorded or without the profiler."""
    base = without(t, (), profiler)
    out = {}
    for n in names or CUTS:
        x = without(t, (n,), profiler)
        if x is not None:
            out[n] = 1 - x / base
    return base, out
