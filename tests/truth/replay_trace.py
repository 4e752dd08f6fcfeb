# SPDX-License-Identifier: Apache-2.0
"""Reads a Kineto trace into the graph that replay.py runs again: calls on host threads, work on streams, and their edges.

    t = load("trace.json.gz")

- An item (`t.items`) is a call of the CUDA runtime or driver, the start or end of a step, or a batch that workers made.
  Without a device, the outermost operators are items. An item follows an item (`pred`) after some host time (`gap`).
- A work is the kernels and copies of one launch. It starts after its launch, after the work before it on its stream,
  and after the works of other streams that it waits for.
- Each edge has a lag. The edge that bound has the measured lag. Any other edge has the smaller of the measured and the
  usual lag, so another edge takes over if a cut removes the one that bound.

Times are in us from the first row. Needs numpy; uses orjson if it is installed.
"""
import bisect
import collections
import gzip
import json

import numpy as np
import zstd_text

try:
    import orjson
    loads = orjson.loads
except ImportError:
    loads = json.loads

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
MARK, LAUNCH, WAIT_ALL, WAIT_STREAM, WAIT_EVENT, RECORD, STREAM_WAIT, LOADER, OTHER = range(9)
WAITS = {"cudaDeviceSynchronize": WAIT_ALL, "cuCtxSynchronize": WAIT_ALL, "cudaStreamSynchronize": WAIT_STREAM, "cuStreamSynchronize": WAIT_STREAM,
         "cudaEventSynchronize": WAIT_EVENT, "cuEventSynchronize": WAIT_EVENT, "cudaFree": WAIT_ALL, "cudaEventRecord": RECORD,
         "cudaEventRecordWithFlags": RECORD, "cudaStreamWaitEvent": STREAM_WAIT}
ALLOC = {"cudaMalloc", "cudaFree", "cudaMallocHost", "cudaFreeHost", "cudaHostAlloc"}


class Item:
    """A call, a mark or a batch: thread, start, end, and its edges.

    own is its time without waiting, target the works or the batch that it waits for, after the time from their end to
    its own. ops, tri and hidden count rows of operators, launches of Triton, and calls without a row within its gap.
    """
    __slots__ = ("th", "s", "e", "kind", "name", "work", "pred", "gap", "own", "after", "target", "ring", "step", "ops", "tri", "hidden", "corr", "mark")

    def __init__(self, thread, start, end, name, correlations=(0,), mark=None):
        self.th, self.s, self.e, self.name, self.corr, self.mark = thread, start, end, name, list(correlations), mark
        self.work = None


class Work:
    """Kernels or copies of one launch. `lat` is the lag after the launch, `gap` that after the work before on the stream."""
    __slots__ = ("stream", "s", "e", "dur", "cat", "name", "bytes", "lat", "from_end", "gap", "deps", "blocks", "idx", "item", "rows", "ns", "ne", "coll")

    def __init__(self, stream, start, end, cat="", name="", rows=1):
        self.stream, self.s, self.e, self.cat, self.name, self.rows = stream, start, end, cat, name, rows
        self.dur, self.bytes, self.item, self.coll = end - start, 0, None, None


class Trace:
    """A loaded trace. build() lists its parts."""


def median(values, default):
    return float(np.median(values)) if len(values) else default


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    elif raw[:4] == b"\x28\xb5\x2f\xfd":
        raw = zstd_text.decompress(raw)
    return build(loads(raw)["traceEvents"])


def build(events):
    """Returns the graph of a trace. Raises ValueError if the trace has no steps."""
    t = Trace()
    calls, works = read_rows(t, events)
    begin, end = t.marks[0][0], t.marks[-1][1]
    items = call_items(t, calls, works) + mark_items(t)
    items += batch_items(t, items)
    if not works:                 # no device: the outermost operators
        items += [Item(th, a, b, name) for th in t.ops for a, b, name in outer_ops(t, th)]
    t.items = sorted((i for i in items if begin <= i.s < end - 0.05 or i.mark), key=lambda i: (i.s, i.mark is None))
    attach_works(t, works)
    used = {c for i in t.items for c in i.corr}
    # work that was launched before the window
    t.before = sorted((r[0], r[1], r[2]) for c, rows in works.items() if c not in used and rows[0][0] < end for r in rows)
    t.device = any(i.work for i in t.items)
    follow(t)
    order_works(t)
    bind(t)
    return t


def read_rows(t, events):
    """Reads operators (t.ops), annotations (t.notes) and steps (t.marks) by thread.

    Returns calls by thread and rows of the device by correlation id.
    """
    t.ts0 = min(e["ts"] for e in events if e.get("ph") == "X" and e.get("cat") not in ("Trace", None))
    t.rows, t.offset, t.syncs, marks = 0, 0.0, {}, []
    t.ops, t.notes, t.recorded = (collections.defaultdict(list) for _ in range(3))
    calls, works = collections.defaultdict(list), collections.defaultdict(list)
    for e in events:
        if e.get("ph") != "X":
            continue
        t.rows += 1
        cat, a = e.get("cat"), round(e["ts"] - t.ts0, 3)    # whole ns: a row that ends where another starts keeps its place
        b = round(a + e["dur"], 3)
        args = e.get("args") or {}
        if cat == "cpu_op":
            t.ops[e["tid"]].append((a, b, e["name"]))
            if args.get("Fwd thread id") == 0 and args.get("Sequence number", -1) >= 0:
                t.recorded[e["tid"]].append((a, b))    # recorded for autograd
        elif cat in CALLS:
            calls[e["tid"]].append((a, b, e["name"], args.get("correlation", 0)))
        elif cat in DEVICE:
            works[args.get("correlation", 0)].append((a, b, (args.get("device", 0), args.get("stream", e["tid"])), cat, e["name"], args.get("bytes", 0)))
        elif cat == "user_annotation" and e["name"].startswith("ProfilerStep"):
            marks.append((a, b, e["tid"]))
        elif cat == "user_annotation":
            t.notes[e["tid"]].append((a, b, e["name"]))
        elif cat == "cuda_sync":
            t.syncs[args.get("correlation")] = args
    marks.sort()
    if not marks:
        raise ValueError("no steps")
    t.marks = [(a, min([b] + [x[0] for x in marks[k + 1:k + 2]])) for k, (a, b, _) in enumerate(marks)]
    t.main = marks[0][2]
    for rows in (t.ops, t.notes, t.recorded):
        for v in rows.values():
            v.sort(key=lambda r: (r[0], -r[1]))
    return calls, works


def call_items(t, calls, works):
    """Returns the outermost calls. A nested call belongs to the call around it."""
    items = []
    for th, v in calls.items():
        v.sort(key=lambda r: (r[0], -r[1]))
        if th != t.main and not t.ops.get(th) and not any(c in works for _, _, _, c in v):
            continue   # a thread that only polls
        last = None
        for a, b, name, corr in v:
            if last is not None and b <= last.e + 0.01 and a < last.e:
                if corr in works:
                    last.corr.append(corr)
                continue
            last = Item(th, a, b, name, [corr])
            items.append(last)
    return items


def mark_items(t):
    return [Item(t.main, x, x, ("begin", "end")[j], mark=(i, j)) for i, step in enumerate(t.marks) for j, x in enumerate(step)]


def batch_items(t, items):
    """Returns the batches that workers made: calls of the loader's __next__ without a call of the device inside."""
    found = []
    for th, v in t.notes.items():
        inner = sorted(i.s for i in items if i.th == th and not i.mark)
        for a, b, name in v:
            if name.startswith("enumerate(DataLoader)#_Multi") and bisect.bisect_right(inner, b) == bisect.bisect_left(inner, a):
                found.append(Item(th, a, b, "loader"))
    return found


def attach_works(t, works):
    """Gives each item its step, its kind and its work."""
    starts = [a for a, _ in t.marks]
    for i in t.items:
        i.step = i.mark[0] if i.mark else bisect.bisect_right(starts, i.s + 1e-6) - 1
        rows = sorted(r for c in i.corr for r in works.get(c, ()))
        i.kind = MARK if i.mark else LAUNCH if rows else LOADER if i.name == "loader" else WAITS.get(i.name, OTHER)
        if rows:
            start, _, stream, cat, name, size = rows[0]
            i.work = Work(stream, start, max(r[1] for r in rows), cat, name, len(rows))
            i.work.bytes, i.work.item = size, i


def outer_ops(t, th):
    """Returns the outermost operators of a thread."""
    found, end = [], -1.0
    for a, b, name in t.ops.get(th, ()):
        if a >= end - 0.01:
            found.append((a, b, name))
            end = b
    return found


# ---- the order of items and works ----

def follow(t):
    """Sets the item that each item follows, and counts the rows in between.

    An item follows the last item of its thread. If its thread had no operator open for half of the time since then, it
    follows the item of another thread that ended last.
    """
    edges = t.edges = {th: np.sort(np.array([x for a, b, _ in v for x in (a, b)])) for th, v in t.ops.items()}
    triton = {th: np.array([a for a, _, n in v if n.startswith("triton_")]) for th, v in t.ops.items()}
    outer = {th: tuple(np.array([row[x] for row in outer_ops(t, th)]) for x in (0, 1)) for th in t.ops}
    last, newest, corr = {}, None, 0
    for i in t.items:
        p = last.get(i.th)
        if newest is not None and newest.th != i.th and (i.mark or p is None or newest.e > p.e):
            low = p.e if p is not None else -1e18
            if p is None or newest.e - low < 1.0 or busy_time(outer.get(i.th), low, i.s) < 0.5 * (i.s - low):
                p = newest
        i.pred = p
        i.gap = i.s - p.e if p is not None else 0.0
        i.ops = i.tri = 0.0
        if i.th in edges and p is not None:
            i.ops = rows_between(edges[i.th], p.e, i.s) / 2
            if len(triton[i.th]):
                i.tri = float(rows_between(triton[i.th], p.e, i.s))
                i.ops = max(0.0, i.ops - i.tri)
        first = min(i.corr)
        i.hidden = max(0, first - corr - 1) if corr and first else 0   # correlation ids also count calls without a row
        if first:
            corr = max(i.corr)
        last[i.th] = i
        if newest is None or i.e >= newest.e:
            newest = i


def rows_between(points, low, high):
    return bisect.bisect_right(points, high) - bisect.bisect_right(points, low)


def busy_time(outer, low, high):
    """Returns the time of outermost operators from low to high; at most 64 of them count."""
    busy = 0.0
    if outer is not None:
        first, end = bisect.bisect_right(outer[1], low), bisect.bisect_left(outer[0], high)
        for x in range(first, min(end, first + 64)):
            busy += min(outer[1][x], high) - max(outer[0][x], low)
    return busy


def order_works(t):
    """Sets t.streams: the works of each stream in order, first those that were launched before the window."""
    order = t.streams = collections.defaultdict(list)
    works = [Work(stream, a, b) for a, b, stream in t.before] + [i.work for i in t.items if i.work]
    for w in works:
        w.idx = len(order[w.stream])
        order[w.stream].append(w)


# ---- the lags of the edges ----

def bind(t):
    """Sets the lags of all edges from the measured times."""
    t.violations = 0    # edges against the order: the awaited work ends after the wait, or a work starts before its launch
    usual_lags(t)
    usual_calls(t)
    queue_depth(t)
    pace_of_loader(t)
    last = {s: [w for w in ws if w.item is None][-1] for s, ws in t.streams.items() if ws[0].item is None}
    waiting = {}
    for i in t.items:
        i.own, i.after, i.target = i.e - i.s, 0.0, None
        if i.kind == LOADER:
            if i.ring is not None:
                i.target, i.after = i.ring
            continue
        i.ring = False
        if i.work:
            bind_work(t, i, last, waiting)
            last[i.work.stream] = i.work
        elif i.kind == STREAM_WAIT:
            waiting[i.th] = True
        elif i.kind in (WAIT_ALL, WAIT_STREAM, WAIT_EVENT):
            bind_wait(t, i, last)


def usual_lags(t):
    """Sets L0, the usual lag of a launch, and G0, the usual gap between queued works. Both are of works that cannot wait for an event."""
    lat, gaps, waiting = [], [], set()
    last = {s: [w for w in ws if w.item is None][-1] for s, ws in t.streams.items() if ws[0].item is None}
    for i in t.items:
        w = i.work
        if i.kind == STREAM_WAIT:
            waiting.add(i.th)
        if not w:
            continue
        is_free = i.th not in waiting
        waiting.discard(i.th)
        if w.rows > 1 or "Pageable" in w.name:
            continue
        p = last.get(w.stream)
        if is_free and p is not None and p.e < i.s and p.item is not None and not w.name.startswith("nccl"):
            lat.append(w.s - i.e)
        elif is_free and p is not None and p.e > i.e + 5:
            gaps.append(w.s - p.e)
        last[w.stream] = w
    t.L0, t.G0 = float(np.percentile(lat, 35)) if lat else 2.0, median(gaps, 1.2)


def usual_calls(t):
    """Sets the usual time of each call: the median with fewer than 200 works in the queue."""
    names, free = collections.defaultdict(list), collections.defaultdict(list)
    for i in t.items:
        names[i.name].append(i.e - i.s)
    for ws in t.streams.values():
        starts = [w.s for w in ws]
        for k, w in enumerate(ws):
            if w.item is not None and k - bisect.bisect_right(starts, w.item.s, 0, k) < 200:
                free[w.item.name].append(w.item.e - w.item.s)
    t.typical = {n: float(np.median(free[n])) if len(free[n]) >= 10 else float(np.percentile(v, 10)) for n, v in names.items()}


def queue_depth(t):
    """Sets the depth of the launch queue: the median length at the end of long launches that had 256 works before them."""
    depth = []
    for ws in t.streams.values():
        starts = [w.s for w in ws]
        for k, w in enumerate(ws):
            i = w.item
            if i is not None and k >= 256 and i.e - i.s > max(50.0, 5 * t.typical[i.name]) and w.rows == 1:
                q = k - bisect.bisect_right(starts, i.e, 0, k)
                if q >= 256:
                    depth.append(q + 1)
    t.depth, t.blocked = int(median(depth, 1024)), len(depth)


def pace_of_loader(t):
    """Chains late batches: a late batch ends no earlier after the late batch before it than measured.

    The handover of a batch (unpickling, shared memory) is host time: the time of the quickest fifth of the batches. Longer is a
    wait. At most 4 % of a step are a handover. If a fifth of the batches is late, the loader sets the pace: all are chained.
    """
    t.batches = [i for i in t.items if i.kind == LOADER]
    n, window = len(t.marks), t.marks[-1][1] - t.marks[0][0]
    t.handover = max(100.0, 0.04 * window / n)
    if t.batches:  # one alone may be quicker by chance
        t.handover = min(t.handover, float(np.percentile([i.e - i.s for i in t.batches], 20)))
    t.between = float(np.mean([t.marks[k + 1][0] - t.marks[k][1] for k in range(n - 1)])) if n > 1 else 0.0
    late = [k for k, i in enumerate(t.batches) if i.e - i.s > t.handover + max(100.0, 0.01 * window / n)]
    if len(late) >= 0.2 * len(t.batches):
        late = list(range(len(t.batches)))
    for i in t.batches:
        i.ring = None
    count = len(t.batches)
    for j, k in enumerate(late):   # the chain goes round the window, at most eight batches back
        q = max(late[j - 1] - (count if j == 0 else 0), k - 8)
        if q % count != k or q < 0:
            o = t.batches[q % count]
            t.batches[k].ring = (o, t.batches[k].e - o.e + (window + t.between if q < 0 else 0.0))


def bind_work(t, i, last, waiting):
    """Sets the lags of the work of item i. `last` has the last work of each stream."""
    w = i.work
    bind_full_queue(t, i)
    w.from_end = w.s >= i.e - 5.0 or i.ring
    lag = w.s - i.e if w.from_end else w.s - i.s
    usual = min(lag, t.L0) if w.from_end else lag
    p = last.get(w.stream)
    gap = w.s - p.e if p is not None else 1e18
    t.violations += gap < -0.5
    w.deps = works_waited_for(t, i, last, waiting, p, gap, (i.e if w.from_end else i.s) + usual)
    # Which edge bound? It takes the measured lag.
    best = min((d for _, d in w.deps), default=1e18)
    if gap <= max(5.0, 3 * t.G0) and gap <= best + 3:
        w.gap, w.lat, best = gap, usual, None
    elif best <= 10:
        w.gap, w.lat = min(gap, t.G0), usual
    else:
        w.gap, w.lat, best = min(gap, t.G0), lag, None
    w.deps = [(x, d if d == best else min(d, 1.5)) for x, d in w.deps]
    w.blocks = False
    if "Pageable" in w.name and w.e <= i.e + 1.0 and (i.own > 3 * t.typical[i.name] or w.dur > 100):
        w.blocks = True         # the call returns after the copy
        i.after = max(0.0, i.e - w.e)
        i.own = min(i.own, 50.0) if w.from_end else max(0.0, min(i.own, w.s - i.s))


def bind_full_queue(t, i):
    """Sets the edge of a launch that waited until the queue had room."""
    ws, k = t.streams[i.work.stream], i.work.idx
    if k >= t.depth:
        x = ws[k - t.depth].s
        if i.s < x <= i.e + 5:
            i.ring, i.after, i.own = True, max(0.0, i.e - x), min(i.own, t.typical[i.name])


def works_waited_for(t, i, last, waiting, p, gap, base):
    """Returns (work, lag) of the works on other streams that the work of item i waits for."""
    w, found = i.work, []
    if waiting.pop(i.th, None):
        found = [(x, w.s - x.e) for s, x in last.items() if s != w.stream and x.e <= w.s + 0.5]
    limit = max([base] + ([p.e + min(gap, t.G0)] if p is not None else []) + [x.e + min(d, 1.5) for x, d in found])
    if w.s - limit > 10 and gap > 10 and not (found and min(d for _, d in found) < 10):   # nothing explains the start yet
        found += [(x, w.s - x.e) for s, x in last.items() if s != w.stream and 0 <= w.s - x.e < 6]
    return found


def bind_wait(t, i, last):
    """Sets the works that a call waits for."""
    works = list(last.values())
    if i.kind == WAIT_STREAM and works:
        args = t.syncs.get(i.corr[0])
        if args is not None and (0, args.get("stream")) in last:
            works = [last[(0, args["stream"])]]
        elif i.pred is not None and i.pred.work is not None and i.pred.th == i.th and i.pred.work.cat == "gpu_memcpy":
            works = [i.pred.work]
        else:
            near = [x for x in works if i.s < x.e <= i.e + 0.5]
            works = [max(near, key=lambda x: x.e)] if near else [max(works, key=lambda x: len(t.streams[x.stream]))]
    elif i.kind == WAIT_EVENT and works:
        near = [x for ws in t.streams.values() for x in ws[max(0, launched_by(ws, i) - 64):launched_by(ws, i)] if i.s < x.e <= i.e + 0.5]
        works = [max(near, key=lambda x: x.e)] if near else []
    if works:
        x = max(works, key=lambda x: x.e)
        if x.e > i.e + 1.0:
            t.violations += 1
        elif x.e > i.s:
            i.target, i.after, i.own = works, i.e - x.e, min(i.own, 5.0)
        else:
            i.target, i.after = works, min(i.own, 10.0)


def launched_by(ws, i):
    return bisect.bisect_left([w.item.s if w.item is not None else -1.0 for w in ws], i.s)
