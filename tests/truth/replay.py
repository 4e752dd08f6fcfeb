# SPDX-License-Identifier: Apache-2.0
"""Replays a Kineto trace: how long does a step take without a cost?

    t = load("trace.json.gz")           # replay_trace.py
    r = replay(t, plain(t))             # nothing removed: r.step is the mean step in us
    savings(t, profiler=True)           # replay_cuts.py: (mean step, {cut: share saved}) of the program without the profiler

This is the reference for stepscope's own replay. A plan says what a cut changes: times of the host, works, edges. Every
item starts at the latest end of everything that it waits for. With nothing removed, the replay gives the measured times.
"""
import collections

import numpy as np

from replay_trace import ALLOC, LOADER, MARK, WAIT_ALL, WAIT_EVENT


class Plan:
    """The changes of a cut, per item: time of the host before it, its own time, removed items, durations of works, waits."""

    def __init__(self, t):
        n = len(t.items)
        self.gap = [i.gap for i in t.items]
        self.own = [i.own for i in t.items]
        self.after = [i.after for i in t.items]
        self.gone = [False] * n
        self.free = [False] * n                      # the item does not wait
        self.dur = [i.work.dur if i.work else 0.0 for i in t.items]
        self.wgap = [i.work.gap if i.work else 0.0 for i in t.items]
        self.lat = [i.work.lat if i.work else 0.0 for i in t.items]
        self.unblock = [False] * n                   # the call does not wait for its copy
        self.alone = False                           # collectives do not wait for other ranks
        self.ops = [i.ops for i in t.items]          # rows of operators within the gap (begins and ends count half)
        self.tri = [i.tri for i in t.items]
        self.hidden = [i.hidden for i in t.items]    # calls without a row within the gap


def plain(t):
    return Plan(t)


def usual(t):
    """Returns a plan with the usual lags on all edges of the device: the time that the model alone explains."""
    p = Plan(t)
    for k, i in enumerate(t.items):
        w = i.work
        if w:
            if w.from_end:
                p.lat[k] = t.L0
            p.wgap[k] = t.G0 if w.gap < 1e17 else 0.0
        if i.kind != LOADER and i.name not in ALLOC and (i.target or (w and w.blocks) or i.ring):
            p.after[k] = min(i.after, 10.0)
    return p


def join(ts):
    """Connects the ranks of one run: collectives by their order, and clocks by the ends of collectives.

    A collective takes the time of the rank that comes last.
    """
    lists = []
    for t in ts:
        found = [i.work for i in t.items if i.work and i.work.name.startswith("nccl")]
        for n, w in enumerate(found):
            w.coll = n
        lists.append(found)
    if len({len(found) for found in lists}) != 1:
        raise ValueError("ranks do not have the same collectives")
    for t, found in zip(ts, lists):
        apart = [(w.e + t.ts0) - (x.e + ts[0].ts0) for w, x in zip(found, lists[0])]
        t.offset = float(np.median(apart)) - (t.ts0 - ts[0].ts0) if apart else 0.0
    for works in zip(*lists):
        shortest = min(w.dur for w in works)
        for w in works:
            w.dur = shortest
    return ts


def replay(t, p, turns=2):
    """Replays one trace. `ends` are the ends of the device's steps, `step` and `first` mean steps in us.

    The window is replayed twice. `step` is from the end of the first turn to that of the second, a state that lasts.
    `first` is the mean step of the first turn alone.
    """
    return replay_ranks([t], [p], turns)[0]


def replay_ranks(ts, ps, turns=2):
    """Replays ranks together. Each goes on until a collective that another rank has not reached."""
    meet = {}
    runs = [Run(t, p, turns, meet, len(ts)) for t, p in zip(ts, ps)]
    todo = {run: run.go() for run in runs}
    while todo:
        before = len(todo), sum(map(len, meet.values()))
        for run, going in list(todo.items()):
            if next(going, "ended") == "ended":
                del todo[run]
        if before == (len(todo), sum(map(len, meet.values()))) and todo:
            raise ValueError("ranks do not have the same collectives")
    return runs


class Run:
    """A replay of one rank, and its results."""

    def __init__(self, t, p, turns, meet, ranks):
        self.t, self.p, self.turns, self.meet, self.ranks = t, p, turns, meet, ranks
        self.clock = {}     # the last end on each thread
        self.send = {}      # the last end on each stream
        self.rings = {}     # the last starts on each stream, as many as the launch queue holds
        self.batch = {}
        self.ends, self.hosts = [], []
        for s, works in t.streams.items():
            for w in works:
                if w.item is not None:
                    break
                self.send[s] = max(self.send.get(s, 0.0), w.e - t.offset)
                w.ne = w.e - t.offset
                self.ring(s).append(w.s - t.offset)

    def ring(self, stream):
        if stream not in self.rings:
            self.rings[stream] = collections.deque(maxlen=self.t.depth)
        return self.rings[stream]

    def go(self):
        """Replays all turns. A generator: it yields while a collective waits for other ranks."""
        t, p, n = self.t, self.p, len(self.t.marks)
        for self.turn in range(self.turns):
            self.step_ends, self.host_ends = [None] * n, [0.0] * n
            for k, i in enumerate(t.items):
                now = self.clock[i.pred.th] + p.gap[k] if i.pred is not None else self.start()
                if p.gone[k] or i.kind == MARK:
                    self.skip(k, i, now)
                elif i.work is not None:
                    yield from self.launch(k, i, now)
                elif i.kind == LOADER:
                    self.clock[i.th] = self.batch[i] = self.wait_for_batch(k, i, now)
                else:
                    self.clock[i.th] = self.wait(k, i, now)
            self.ends += self.step_ends
            self.hosts += self.host_ends
        self.sum_up(n)

    def start(self):
        return self.t.items[0].s - self.t.offset if self.turn == 0 else max(self.clock.values()) + self.between()

    def between(self):
        """Returns the time between the turns: the mean between steps, as much shorter as these are in the plan."""
        t = self.t
        removed = sum(i.gap - self.p.gap[k] for k, i in enumerate(t.items) if i.mark and i.mark[1] == 0 and i.mark[0] > 0)
        return max(0.0, t.between - removed / max(1, len(t.marks) - 1))

    def skip(self, k, i, now):
        self.clock[i.th] = now
        if self.p.gone[k]:
            if i.work is not None:
                i.work.ns = i.work.ne = -1e18
        elif i.mark[1]:
            self.host_ends[i.mark[0]] = now

    def launch(self, k, i, now):
        """Starts the work of item k. The call ends later if the queue is full or if it waits for its copy."""
        t, p, w = self.t, self.p, i.work
        end, ring = now + p.own[k], self.ring(w.stream)
        if len(ring) == t.depth:
            end = max(end, ring[0] + (p.after[k] if i.ring else 2.0))
        start = (end if w.from_end else now) + p.lat[k]
        before = self.send.get(w.stream)
        if before is not None:
            start = max(start, before + (p.wgap[k] if p.wgap[k] < 1e17 else t.G0))
        start = max([start] + [other.ne + lag for other, lag in w.deps])
        if start < 0:
            start = now
        w.ns, w.ne = start, start + p.dur[k]
        if w.coll is not None and self.ranks > 1 and not p.alone:
            starts = self.meet.setdefault((self.turn, w.coll), [])
            starts.append(start)
            while len(starts) < self.ranks:
                yield
            w.ne = max(starts) + p.dur[k]
        self.send[w.stream] = max(w.ne, self.send.get(w.stream, 0.0))
        ring.append(start)
        if w.blocks and not p.unblock[k]:
            end = max(end, w.ne + p.after[k])
        known = self.step_ends[i.step]
        self.step_ends[i.step] = w.ne if known is None else max(known, w.ne)
        self.clock[i.th] = end

    def wait_for_batch(self, k, i, now):
        earlier = self.batch.get(i.target)
        if i.target is None or self.p.free[k] or earlier is None:
            return now + self.p.own[k]
        return max(now + min(self.p.own[k], self.t.handover), earlier + self.p.after[k])

    def wait(self, k, i, now):
        """Returns the end of a call that launches nothing."""
        end = now + self.p.own[k]
        if i.target is None or self.p.free[k]:
            return end
        if i.kind == WAIT_ALL:
            awaited = max(self.send.values())
        elif i.kind == WAIT_EVENT:
            awaited = max(w.ne for w in i.target)
        else:
            awaited = max(self.send.get(w.stream, -1e18) for w in i.target)
        return max(end, awaited + self.p.after[k])

    def sum_up(self, n):
        is_device = self.t.device and all(x is not None for x in self.ends)
        line = self.line = self.ends if is_device else self.hosts
        self.first = (line[n - 1] - line[0]) / max(1, n - 1)
        self.step = (line[-1] - line[n - 1]) / (n * (self.turns - 1)) if self.turns > 1 else self.first


def measured(t):
    """Returns the measured ends of the device's steps, or of the host's steps if a step has no work of the device."""
    ends = [None] * len(t.marks)
    for i in t.items:
        if i.work and (ends[i.step] is None or i.work.e > ends[i.step]):
            ends[i.step] = i.work.e
    return ends if t.device and all(end is not None for end in ends) else [b for _, b in t.marks]
