# SPDX-License-Identifier: Apache-2.0
"""A discrete-event simulation of a training loop on a GPU. It knows the true saving of each cost.

    from gpusim import Params, simulate, truth
    p = Params(seed=1, fault={"data_const": 30000.0})
    r = simulate(p)                    # r.step_us is the time of a mean step
    gpusim_trace.write(simulate(p, emit=True), "trace.json")   # a Kineto trace; a folder of traces if p.ranks > 1
    truth(p, {"data"})                 # the share of a step that is saved without this cost; all chance stays equal

The simulation models:

- a host thread that launches kernels into a queue of 1024, and an autograd thread
- streams that work in order, events between streams, copies from pinned and pageable memory, calls that wait
- a DataLoader with workers, prefetch and order
- DDP's buckets on a separate stream, whose kernels end together on all ranks
- driver calls that allocate memory and wait for the device
- CUDA graphs, checkpoints, evaluation, garbage collections, clocks

Random numbers depend on (seed, rank, step) alone. So a run without a cost draws the same numbers as the run with it.
All times are in us.

Limits: kernels that run together do not slow each other down. NCCL's kernels end together. Copies have a constant
bandwidth. The profiler does not slow Python down. Clocks of ranks agree unless clock_skew_us is set.
"""
import copy
import json
import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from kernels import (BACK, CAST, FILL, LAYER, MULTI, NCCL, NLL, SOFTMAX, SOFTMAX_B, TINY)


@dataclass
class Params:
    """A training. `fault` and `fault2` map the name of a fault to its size; kinds.py lists the faults."""
    seed: int = 0
    ranks: int = 1
    layers: int = 4
    steps: int = 16                # recorded steps
    warm: int = 3                  # steps before the recording
    scale: float = 1.0             # factor of the times of kernels
    host: float = 1.0              # factor of the times of the host
    device: bool = True            # False runs everything on one thread of the processor, without launches
    python: bool = False           # python_function events (with_stack=True)
    accumulate: int = 1
    workers: int = 4
    prefetch: int = 2
    batch_us: float = 6000.0       # time of a worker per batch
    handover_us: float = 60.0
    h2d_bytes: float = 2e6
    pinned: bool = True
    side_copy: bool = False        # copies batches on a separate stream
    sync_end: bool = True          # loss.item() at the end of each step
    sync_every: int = 1            # steps between two calls of loss.item()
    graph: bool = False            # forward, backward and optimizer as one CUDA graph
    buckets: int = 3               # DDP, with ranks > 1
    ar_us: float = 300.0           # time of a bucket's all-reduce
    opt_ops: int = 12
    opt_us: float = 45.0           # time of each foreach kernel
    opt_loop: int = 0              # number of parameters that are updated one by one (0 uses foreach)
    kernel_sigma: float = 0.01
    host_sigma: float = 0.12
    step_sigma: float = 0.003      # scatter of all kernels of a step together
    ar1: float = 0.0               # correlation of a step's factor with that of the step before
    rank_sigma: float = 0.0        # scatter of a rank's kernels from step to step
    rank_const: float = 0.0        # scatter of a rank's kernels, constant in a run
    clock_skew_us: float = 0.0     # difference of the clocks of neighbouring ranks
    mark: str = "ProfilerStep"
    items: int = 0                 # layers with an item() in their forward pass
    fault: dict = field(default_factory=dict)
    fault2: dict = field(default_factory=dict)
    cut: frozenset = frozenset()   # costs that are removed
    drift: float = 0.0
    bytes_gap: bool = False
    first_ts: float = 4_516_611_000_000.0


def fault(p, name, default=0.0):
    """Returns the size of a fault."""
    return p.fault.get(name, p.fault2.get(name, default))


class Work:
    """A kernel or copy of a device."""
    __slots__ = ("ready", "dur", "stream", "deps", "start", "end", "coll", "name", "corr", "cat", "ext", "args", "launched", "step")


class Collective:
    """A collective of n ranks. It starts with the last of them."""
    def __init__(self, n, dur):
        self.n, self.dur, self.starts, self.members = n, dur, [], []


class Stream:
    """Work that has not ended, the end of the last work, and all work of a stream."""
    __slots__ = ("queue", "last", "all")

    def __init__(self):
        self.queue, self.last, self.all = deque(), 0.0, []


class Rank:
    """A process of the training. Generators yield while they wait for another rank."""
    MAIN, AUTOGRAD = 0, 1

    def __init__(self, p, index, shared, emit):
        self.p, self.index, self.shared, self.emit = p, index, shared, emit
        self.t, self.thread = 0.0, 0
        self.pid = 21000 + 7 * index
        self.streams = {}
        self.out, self.works = [], []
        self.corr, self.ext, self.seq, self.evidx = 1000 + 100000 * index, 1, 1, 0
        self.step_no = -1
        self.coll_no = 0
        self.marks = []
        self.pys = []
        self.flow = []
        self.loader_done = {}
        self.worker_free = [0.0] * max(1, p.workers)
        self.next_batch = 0
        self.sent = 0
        self.record = False
        self.window = 0.0
        self.truth_data = 0.0

    # ---- chance ----

    def draws(self, step):
        p = self.p
        g = np.random.default_rng((p.seed, self.index, step + 1000, 1))
        self.hz = np.exp(p.host_sigma * g.standard_normal(6000))
        self.kz = np.exp(p.kernel_sigma * g.standard_normal(6000))
        self.hi = self.ki = 0
        self.fg = np.random.default_rng((p.seed, self.index, step + 1000, 2))  # for faults
        self.stepz = self.shared.step_factor(step)
        f = fault(p, "host_noise")
        self.hostz = 1.0
        if f and "host_noise" not in p.cut:
            e = np.random.default_rng((p.seed, self.index, step + 1000, 3))
            self.hostz = float(np.exp(f * abs(e.standard_normal())))

    def h(self, us):
        """Returns a time of the host with its scatter. The cut "host" removes nearly all of it."""
        z = self.hz[self.hi % 6000]
        self.hi += 1
        us *= z * self.p.host * self.hostz
        return us * 0.02 if "host" in self.p.cut else us

    def clock_factor(self, step):
        p, n = self.p, self.p.steps
        f = 1.0
        x = fault(p, "throttle")
        if x and "throttle" not in p.cut and step >= p.warm + n // 2:
            f *= 1 + x
        x = fault(p, "drift")
        if x and "drift" not in p.cut:
            f *= 1 + x * max(0, step - p.warm) / n
        if p.rank_sigma and "rank_noise" not in p.cut:
            f *= math.exp(p.rank_sigma * np.random.default_rng((p.seed, self.index, step, 78)).standard_normal())
        if p.rank_const and "rank_noise" not in p.cut:
            f *= math.exp(p.rank_const * np.random.default_rng((p.seed, self.index, 79)).standard_normal())
        x = fault(p, "straggler_compute")
        if x and "straggler" not in p.cut and self.index == self.shared.victim:
            f *= 1 + x
        x = fault(p, "straggler_alt")
        if x and "straggler" not in p.cut and p.ranks > 1:
            g = np.random.default_rng((p.seed, step, 77))
            if g.integers(p.ranks) == self.index:
                f *= 1 + x
        return f

    # ---- trace ----

    def span(self, cat, name, t0, t1, thread=None, **args):
        if self.emit and self.record and t0 >= self.window:
            self.out.append((cat, name, self.thread if thread is None else thread, t0, t1, args))

    def newext(self):
        self.ext += 1
        return self.ext

    def py(self, name, t0, t1):
        if self.emit and self.record and self.p.python and t0 >= self.window:
            self.pys.append((name, t0, t1))

    # ---- device ----

    def stream(self, number):
        s = self.streams.get(number)
        if s is None:
            s = self.streams[number] = Stream()
        return s

    def drain(self):
        todo = [self]
        while todo:
            r = todo.pop()
            again = True
            while again:
                again = False
                for s in r.streams.values():
                    q = s.queue
                    while q:
                        k = q[0]
                        if k.start is None:
                            start = max(k.ready, s.last + 1.2)
                            for d in k.deps:
                                if d.end is None:
                                    start = None
                                    break
                                if d.end + 1.5 > start:
                                    start = d.end + 1.5
                            if start is None:
                                break
                            k.start = start
                            if k.coll is not None:
                                c = k.coll
                                c.starts.append(start)
                                c.members.append((r, s, k))
                        if k.end is None:
                            if k.coll is not None:
                                c = k.coll
                                if len(c.starts) < c.n:
                                    break
                                end = max(c.starts) + c.dur
                                for (ro, so, ko) in c.members:
                                    ko.end = end
                                    if ro is not r and ro not in todo:
                                        todo.append(ro)
                            else:
                                k.end = k.start + k.dur
                        s.last = k.end
                        q.popleft()
                        again = True

    def enqueue(self, name, dur, ready, stream=7, deps=(), coll=None, cat="kernel", corr=0, ext=0, args=None):
        k = Work()
        k.name, k.dur, k.ready, k.stream, k.deps, k.coll, k.cat, k.corr, k.ext, k.args = name, dur, ready, stream, deps, coll, cat, corr, ext, args
        k.start = k.end = None
        k.step = self.step_no
        s = self.stream(stream)
        s.queue.append(k)
        s.all.append(k)
        if self.emit:
            self.works.append(k)
        self.drain()
        return k

    def wait(self, k):
        """Waits on the host for work k and returns its end. Another rank may have to continue first."""
        while k.end is None:
            yield
        return k.end

    def launch(self, name, dur, stream=7, deps=(), coll=None, call="cudaLaunchKernel", cost=5.0, cat="kernel", ext=0, args=None, latency=2.5):
        t0 = self.t
        cost = self.h(cost)
        s = self.stream(stream)
        n = len(s.all)
        if n >= 1024:
            old = s.all[n - 1024]
            while old.start is None:
                yield
            if old.start > self.t:
                self.t = old.start
        self.t += cost
        self.corr += 1
        k = self.enqueue(name, dur, self.t - 0.3 * cost + latency, stream, deps, coll, cat, self.corr, ext, args)
        self.span("cuda_runtime", call, t0, self.t, correlation=k.corr, **{"External id": ext})
        return k

    def call(self, name, us):
        """A call of the CUDA runtime that launches no work."""
        t0 = self.t
        self.t += self.h(us)
        self.corr += 1
        self.span("cuda_runtime", name, t0, self.t, correlation=self.corr)

    def kernel_us(self, us):
        z = self.kz[self.ki % 6000]
        self.ki += 1
        return us * z * self.p.scale * self.stepz * self.clock

    # ---- operators ----

    def op(self, name, inner, kernels, pre=7.0, args=None, stream=7, deps=()):
        """An operator with nested ones. The innermost launches the kernels, which are (name, us)."""
        t0 = self.t
        ext0 = self.newext()
        opened = [(name, t0, ext0)]
        self.t += self.h(pre)
        for i in inner:
            opened.append((i, self.t, self.newext()))
            self.t += self.h(3.0)
        last = None
        for (kn, us) in kernels:
            if self.p.device:
                last = yield from self.launch(kn, self.kernel_us(us), stream, deps, ext=self.ext)
                self.t += self.h(1.0)
            else:
                self.t += self.kernel_us(us)
        for (n, s, e) in reversed(opened):
            self.t += self.h(0.8)
            self.span("cpu_op", n, s, self.t, **{"External id": e, **(args or {})})
        return last

    def gap(self, us=6.0):
        """The time of Python between operators."""
        self.t += self.h(us)

    def host_fault(self, us, py=None):
        t0 = self.t
        self.t += us
        if py:
            self.py(py, t0, self.t)

    def item(self):
        t0 = self.t
        e = self.newext()
        if not self.p.device:
            self.t += self.h(3)
            self.span("cpu_op", "aten::item", t0, self.t, **{"External id": e})
            return
        self.t += self.h(2.0)
        e2 = self.newext()
        t1 = self.t
        self.t += self.h(3.0)
        k = yield from self.launch("Memcpy DtoH (Device -> Pageable)", 1.6, call="cudaMemcpyAsync", cost=7.0, cat="gpu_memcpy", ext=e2,
                                   args={"bytes": 4})
        t2 = self.t
        end = yield from self.wait(k)
        self.t = max(self.t, end + 2.0) + 2.0
        self.corr += 1
        self.span("cuda_runtime", "cudaStreamSynchronize", t2, self.t, correlation=self.corr, **{"External id": e2})
        self.t += self.h(1.0)
        self.span("cpu_op", "aten::_local_scalar_dense", t1, self.t, **{"External id": e2})
        self.t += self.h(0.8)
        self.span("cpu_op", "aten::item", t0, self.t, **{"External id": e})

    def synchronize(self, name="cudaDeviceSynchronize"):
        t0 = self.t
        for s in list(self.streams.values()):
            if s.all:
                end = yield from self.wait(s.all[-1])
                self.t = max(self.t, end)
        self.t += 3.0
        self.corr += 1
        self.span("cuda_runtime", name, t0, self.t, correlation=self.corr)

    # ---- data ----

    def batch_cost(self, i):
        p = self.p
        if "data" in p.cut or f"data@{self.index}" in p.cut:
            return 1.0
        g = np.random.default_rng((p.seed, self.index, i, 5))
        z = float(np.exp(0.05 * g.standard_normal()))
        us = p.batch_us * z
        x = fault(p, "data_const")
        if x:
            us = x * float(np.exp(0.15 * g.standard_normal()))
        x = fault(p, "data_saw")
        if x:
            us = x * float(np.exp(0.02 * g.standard_normal()))
        x = fault(p, "data_heavy")
        if x:
            us = p.batch_us + x * (float(g.pareto(1.6)))
        x = fault(p, "data_periodic")
        if x and i % 5 == 3:
            us = x
        x = fault(p, "data_main")
        if x:
            us = x * float(np.exp(0.08 * g.standard_normal()))
        x = fault(p, "straggler_data")
        if x and self.index == self.shared.victim and "straggler" not in p.cut:
            us = x * float(np.exp(0.1 * g.standard_normal()))
        return us

    def next(self):
        """Takes the next batch from the loader."""
        p = self.p
        t0 = self.t
        e = self.newext()
        i = self.next_batch
        self.next_batch += 1
        single = p.workers == 0 or fault(p, "data_main") > 0
        if single:
            us = self.batch_cost(i)
            if "data" in p.cut:
                us = 1.0
            self.t += us + self.h(15)
            name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        else:
            w = p.workers
            while self.sent < i + w * p.prefetch + 1:
                n = self.sent
                begin = max(self.worker_free[n % w], self.t)
                self.worker_free[n % w] = self.loader_done[n] = begin + self.batch_cost(n)
                self.sent += 1
            self.t = max(self.t + self.h(20), self.loader_done[i]) + self.h(p.handover_us)
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        self.span("user_annotation", name, t0, self.t, **{"External id": e})
        self.py("torch/utils/data/dataloader.py(733): __next__", t0, self.t)

    # ---- the program ----

    def forward(self, grad=True):
        p = self.p
        self.nodes = []
        f0 = self.t
        for layer in range(p.layers):
            l0 = self.t
            for n, (name, inner, kn, us, node) in enumerate(LAYER):
                args = None
                if grad:
                    self.seq += 1
                    args = {"Sequence number": self.seq, "Fwd thread id": 0}
                x = fault(p, "dtype")
                if x and "dtype" not in p.cut and n in (1, 3, 6, 8):
                    yield from self.op("aten::to", ("aten::_to_copy", "aten::copy_"), [(CAST, x)])
                    self.gap(3)
                x = fault(p, "clone")
                if x and "clone" not in p.cut and n in (1, 6):
                    t0 = self.t
                    e = self.newext()
                    self.t += self.h(5)
                    e2 = self.newext()
                    t1 = self.t
                    self.t += self.h(3)
                    yield from self.launch("Memcpy DtoD (Device -> Device)", self.kernel_us(x), call="cudaMemcpyAsync", cost=6.0,
                                           cat="gpu_memcpy", ext=e2, args={"bytes": int(x * 1.2e6)})
                    self.t += self.h(1)
                    self.span("cpu_op", "aten::copy_", t1, self.t, **{"External id": e2})
                    self.span("cpu_op", "aten::clone", t0, self.t, **{"External id": e})
                t_op = self.t
                k = yield from self.op(name, inner, [(kn, us)], args=args)
                if grad:
                    self.nodes.append((node, us, self.seq, t_op, args))
                self.gap()
                if p.items and n in (4,) and layer < p.items and "sync" not in p.cut:
                    yield from self.item()
                x = fault(p, "item")
                if x and n in (2, 6) and grad:
                    if "sync" not in p.cut:
                        yield from self.item()
                    if "host" not in p.cut:
                        self.host_fault(x, "train.py(88): check")
                x = fault(p, "py_gap")
                if x and "py" not in p.cut and layer == p.layers // 2 and n == 5 and grad:
                    self.host_fault(x, "metrics.py(31): histogram")
            self.py(f"nn.Module: Block_{layer}", l0, self.t)
        # the loss
        self.seq += 1
        args = {"Sequence number": self.seq, "Fwd thread id": 0} if grad else None
        t_op = self.t
        yield from self.op("aten::cross_entropy_loss", ("aten::log_softmax", "aten::_log_softmax"), [(SOFTMAX, 60), (NLL, 6)], args=args)
        if grad:
            self.nodes.append(("LogSoftmaxBackward0", 60, self.seq, t_op, args))
        self.py("nn.Module: GPT_0", f0, self.t)

    def backward(self, last):
        p = self.p
        b0 = self.t
        self.t += self.h(25)
        self.thread = self.AUTOGRAD if p.device else self.MAIN
        done = []
        per_bucket = max(1, math.ceil(p.layers / max(1, p.buckets)))
        layers_done = 0
        count = 0
        k = None
        for (node, us, seq, t_fwd, _) in reversed(self.nodes):
            a0 = self.t
            e = self.newext()
            self.t += self.h(4)
            n0 = self.t
            e2 = self.newext()
            self.t += self.h(3)
            kernels = BACK.get(node, (("aten::_log_softmax_backward_data", SOFTMAX_B, 1.2),))
            for (on, kn, f) in kernels:
                k = yield from self.op(on, (), [(kn, us * f)], pre=5.0)
                self.t += self.h(1.5)
            sargs = {"Sequence number": seq, "Fwd thread id": 1}
            self.span("cpu_op", node, n0, self.t, **{"External id": e2, **sargs})
            self.t += self.h(1.5)
            self.span("cpu_op", "autograd::engine::evaluate_function: " + node, a0, self.t, **{"External id": e, **sargs})
            if self.emit and self.record and t_fwd >= self.window:
                self.flow.append((seq, t_fwd, n0))
            count += 1
            x = fault(p, "sync_bwd")
            if x and count % 10 == 5 and last:
                if "sync" not in p.cut:
                    yield from self.synchronize("cudaStreamSynchronize")
                if "host" not in p.cut:
                    self.host_fault(x)
            if count > 1 and (count - 1) % len(LAYER) == 0:
                layers_done += 1
                if p.ranks > 1 and (last or fault(p, "no_sync")) and "comm" not in p.cut:
                    if not last and "no_sync" in p.cut:
                        continue
                    if layers_done % per_bucket == 0 or layers_done == p.layers:
                        if fault(p, "ar_exposed") and "exposed" not in p.cut:
                            if layers_done == p.layers:
                                yield from self.allreduce(k, done, fault(p, "ar_exposed"))
                        else:
                            yield from self.allreduce(k, done, p.ar_us)
        self.thread = self.MAIN
        self.t += self.h(15)
        self.py("torch/_tensor.py(592): backward", b0, self.t)
        self.comm_done = done

    def allreduce(self, after, done, us):
        p = self.p
        x = fault(p, "net_slow")
        if x and "net" not in p.cut:
            us *= 1 + x
        key = (self.coll_no)
        self.coll_no += 1
        g = np.random.default_rng((p.seed, 9, key))
        c = self.shared.collectives.get(key)
        if c is None:
            c = self.shared.collectives[key] = Collective(p.ranks, us * float(np.exp(0.03 * g.standard_normal())))
        t0 = self.t
        e = self.newext()
        self.t += self.h(6)
        e2 = self.newext()
        t1 = self.t
        elems = int(us * 40e3 / 2) // 4096 * 4096 + 4096
        cargs = {"Collective name": "allreduce", "In msg nelems": elems, "Out msg nelems": elems, "Group size": p.ranks, "dtype": "BFloat16",
                 "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": json.dumps(list(range(p.ranks)))}
        self.t += self.h(4)
        self.call("cudaEventRecord", 1.5)
        self.call("cudaStreamWaitEvent", 1.5)
        t2 = self.t
        e3 = self.newext()
        k = yield from self.launch(NCCL, us, stream=28, deps=(after,) if after is not None else (), coll=c, call="cudaLaunchKernelExC", cost=9.0,
                                   ext=e3, args=cargs)
        self.call("cudaEventRecord", 1.5)
        self.span("user_annotation", "nccl:all_reduce", t2, self.t, **{"External id": e3})
        self.t += self.h(2)
        self.span("cpu_op", "record_param_comms", t1, self.t, **{"External id": e2, **cargs})
        self.t += self.h(2)
        self.span("cpu_op", "c10d::allreduce_", t0, self.t, **{"External id": e})
        done.append(k)

    def optimizer(self):
        p = self.p
        deps = tuple(self.comm_done)
        t0 = self.t
        e = self.newext()
        self.t += self.h(30)
        if deps:
            for _ in deps:
                self.call("cudaStreamWaitEvent", 1.2)
        n_loop = int(fault(p, "opt_loop", p.opt_loop))
        if "opt_zero" in p.cut:
            pass
        elif n_loop and "opt_loop" not in p.cut:
            for i in range(n_loop):
                for name in ("aten::mul_", "aten::lerp_", "aten::mul_", "aten::addcmul_", "aten::sqrt", "aten::div_", "aten::add_", "aten::addcdiv_"):
                    yield from self.op(name, (), [(TINY, 2.2)], pre=5.0, deps=deps)
                    deps = ()
                    self.gap(2.5)
        else:
            us = p.opt_us
            x = fault(p, "opt_heavy")
            if x and "opt_heavy" not in p.cut:
                us = x
            for i in range(p.opt_ops):
                yield from self.op(("aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_foreach_addcmul_", "aten::_foreach_sqrt",
                                    "aten::_foreach_div_", "aten::_foreach_addcdiv_")[i % 6], (), [(MULTI, us)], pre=14.0, deps=deps)
                deps = ()
                self.gap(4)
        self.span("user_annotation", "Optimizer.step#AdamW.step", t0, self.t, **{"External id": e})
        self.py("torch/optim/adamw.py(200): step", t0, self.t)

    def zero_grad(self):
        t0 = self.t
        e = self.newext()
        self.t += self.h(12)
        x = fault(self.p, "zero_fill")
        if x and "zero" not in self.p.cut:
            for _ in range(8 * self.p.layers):
                yield from self.op("aten::zero_", ("aten::fill_",), [(FILL, x)], pre=3.0)
                self.gap(1.5)
        self.span("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", t0, self.t, **{"External id": e})

    def copy_batch(self):
        p = self.p
        size, pinned, side = p.h2d_bytes, p.pinned, p.side_copy
        x = fault(p, "h2d_pageable")
        if x:
            size, pinned = x, False
        x = fault(p, "h2d_pinned")
        if x:
            size, pinned = x, True
        t0 = self.t
        e = self.newext()
        self.t += self.h(4)
        e1 = self.newext()
        t1 = self.t
        self.t += self.h(3)
        e2 = self.newext()
        t2 = self.t
        self.t += self.h(3)
        us = size / (24e3 if pinned else 4.5e3)
        if "copies" in p.cut:
            us, pinned = 2.0, True
        c0 = self.t
        if pinned:
            k = yield from self.launch("Memcpy HtoD (Pinned -> Device)", us, call="cudaMemcpyAsync", cost=8.0, cat="gpu_memcpy", ext=e2,
                                       args={"bytes": int(size)}, stream=20 if side else 7)
        else:
            # The driver copies through an internal buffer. The call returns when the copy is nearly complete.
            self.t += 6.0
            self.corr += 1
            k = self.enqueue("Memcpy HtoD (Pageable -> Device)", us, self.t, cat="gpu_memcpy", corr=self.corr, ext=e2, args={"bytes": int(size)})
            end = yield from self.wait(k)
            self.t = max(self.t, end + 1.0)
            self.span("cuda_runtime", "cudaMemcpyAsync", c0, self.t, correlation=k.corr, **{"External id": e2})
            self.call("cudaStreamSynchronize", 2.0)
        self.t += self.h(1)
        self.span("cpu_op", "aten::copy_", t2, self.t, **{"External id": e2})
        self.span("cpu_op", "aten::_to_copy", t1, self.t, **{"External id": e1})
        self.t += self.h(1)
        self.span("cpu_op", "aten::to", t0, self.t, **{"External id": e})
        return k

    def graph_step(self):
        p = self.p
        t0 = self.t
        self.t += self.h(10)
        c0 = self.t
        self.t += self.h(40)
        self.corr += 1
        ready = self.t
        for layer in range(p.layers):
            for (name, inner, kn, us, node) in LAYER:
                self.enqueue(kn, self.kernel_us(us), ready, corr=self.corr, args={"graph node id": 1})
        for layer in range(p.layers):
            for (name, inner, kn, us, node) in reversed(LAYER):
                for (on, kn2, f) in BACK[node]:
                    self.enqueue(kn2, self.kernel_us(us * f), ready, corr=self.corr)
        for i in range(p.opt_ops):
            self.enqueue(MULTI, self.kernel_us(p.opt_us), ready, corr=self.corr)
        self.span("cuda_runtime", "cudaGraphLaunch", c0, self.t, correlation=self.corr)

    def checkpoint(self, us):
        """Copies the parameters to the host, then serializes them."""
        c0 = self.t
        for i in range(6):
            t0 = self.t
            e = self.newext()
            self.t += self.h(5)
            if self.p.device:
                self.corr += 1
                a = self.t
                k = self.enqueue("Memcpy DtoH (Device -> Pageable)", us * 0.02, self.t + 6, cat="gpu_memcpy", corr=self.corr, ext=e,
                                 args={"bytes": int(us * 60)})
                end = yield from self.wait(k)
                self.t = max(self.t, end + 2)
                self.span("cuda_runtime", "cudaMemcpyAsync", a, self.t, correlation=k.corr, **{"External id": e})
                self.call("cudaStreamSynchronize", 2)
            else:
                self.t += us * 0.02
            self.span("cpu_op", "aten::copy_", t0, self.t, **{"External id": e})
        self.t += us * 0.88
        self.py("torch/serialization.py(944): save", c0, self.t)

    def program(self):
        p = self.p
        for i in range(p.warm + p.steps):
            if i == p.warm:
                self.record = True
                self.window = self.t
            self.step_no = i
            self.draws(i)
            self.clock = self.clock_factor(i)
            begin = self.t
            self.t += self.h(8)
            g = np.random.default_rng((p.seed, self.index, i, 11))
            x = fault(p, "warm_first")
            if x and i == p.warm and "warm" not in p.cut:
                self.host_fault(x)
            yield from self.batch()
            yield from self.zero_grad()
            self.gap(6)
            if p.graph:
                self.graph_step()
                self.comm_done = []
            else:
                yield from self.eager_step()
            if p.sync_end and p.device and "sync" not in p.cut and i % p.sync_every == p.sync_every - 1:
                yield from self.item()
                self.gap(5)
            yield from self.faults_of_a_step(i, g)
            self.t += self.h(6)
            if self.record:
                self.marks.append((i, begin, self.t))
            self.faults_between_steps(i, g)
        if p.device:
            yield from self.synchronize()
        self.finish = self.t

    def batch(self):
        """Takes a batch from the loader and copies it to the device."""
        self.next()
        self.gap(8)
        if self.p.device:
            yield from self.copy_batch()
            self.gap(4)

    def eager_step(self):
        """Forward pass, backward pass and optimizer, without a CUDA graph."""
        p = self.p
        for m in range(p.accumulate):
            if m:
                yield from self.batch()
            yield from self.forward()
            self.gap(20)
            yield from self.backward(m == p.accumulate - 1)
        x = fault(p, "malloc")
        if x and "malloc" not in p.cut:
            for _ in range(4):
                yield from self.free_and_malloc(x)
        x = fault(p, "sync_call")
        if x:
            if "sync" not in p.cut:
                yield from self.synchronize()
            if "host" not in p.cut:
                self.host_fault(x, "train.py(102): timers")
        self.gap(8)
        yield from self.optimizer()
        self.gap(8)

    def faults_of_a_step(self, i, g):
        """The faults at the end of step i, within its mark."""
        p = self.p
        x = fault(p, "callback")
        if x and "py" not in p.cut:
            self.host_fault(x * float(np.exp(0.1 * g.standard_normal())), "callbacks.py(12): on_batch_end")
        x = fault(p, "gc")
        if x and i % 4 == 1 and "gc" not in p.cut:
            self.host_fault(x)
        x = fault(p, "stall")
        if x and i == p.warm + p.steps // 2 and "stall" not in p.cut:
            self.host_fault(x)
        x = fault(p, "ckpt")
        if x and (i - p.warm) % 5 == 4 and "ckpt" not in p.cut:
            yield from self.checkpoint(x)
        x = fault(p, "eval")
        if x and (i - p.warm) % 5 == 4 and "eval" not in p.cut:
            yield from self.evaluate(int(round(x)))
        x = fault(p, "host_rand")   # other programs delay the host at random, with a heavy tail
        if x and "host_noise" not in p.cut:
            self.host_fault(x * float(g.pareto(2.2)))
        x = fault(p, "straggler_host")
        if x and self.index == self.shared.victim and "straggler" not in p.cut:
            self.host_fault(x)

    def evaluate(self, batches):
        t0 = self.t
        for _ in range(batches):
            yield from self.batch()
            yield from self.forward(grad=False)
        if self.p.device:
            yield from self.item()
        self.gap(5)
        self.py("train.py(140): evaluate", t0, self.t)

    def faults_between_steps(self, i, g):
        p = self.p
        x = fault(p, "between")
        if x and "between" not in p.cut:
            self.host_fault(x * float(np.exp(0.1 * g.standard_normal())))
        x = fault(p, "between_every")
        if x and "between" not in p.cut and (i - p.warm) % 4 == 3:
            self.host_fault(x)

    def free_and_malloc(self, us):
        yield from self.synchronize_silent()
        self.call_us("cudaFree", us * 0.4)
        self.call_us("cudaMalloc", us * 0.6)

    def synchronize_silent(self):
        self.sync_from = self.t
        for s in list(self.streams.values()):
            if s.all:
                end = yield from self.wait(s.all[-1])
                self.t = max(self.t, end)

    def call_us(self, name, us):
        t0 = getattr(self, "sync_from", None) or self.t
        self.sync_from = None
        self.t += us
        self.corr += 1
        self.span("cuda_runtime", name, t0, self.t, correlation=self.corr)


class Shared:
    """Facts that all ranks share: collectives, and one factor per step."""

    def __init__(self, p):
        self.p = p
        self.collectives = {}
        self.victim = p.ranks - 1
        n = p.warm + p.steps + 2
        g = np.random.default_rng((p.seed, 4242))
        z = g.standard_normal(n)
        x, v = 0.0, []
        for e in z:
            x = p.ar1 * x + math.sqrt(1 - p.ar1 ** 2) * e
            v.append(math.exp(p.step_sigma * x))
        self.factor = v

    def step_factor(self, i):
        return self.factor[i]


class Result:
    """ranks, their steps in us, and step_us."""


def mean_step(r, p):
    """Returns the mean step time in us.

    With a device, it runs from the end of the device's last work before the recording to that of the last recorded step.
    Without a device, it runs from the first mark to the last.
    """
    if not p.device:
        return (r.marks[-1][2] - r.marks[0][1]) / p.steps
    before, last = None, 0.0
    for s in r.streams.values():
        for k in s.all:
            if k.step < p.warm and (before is None or k.end > before):
                before = k.end
            if k.end > last:
                last = k.end
    return (last - (r.marks[0][1] if before is None else before)) / p.steps


def simulate(p, emit=False):
    shared = Shared(p)
    ranks = [Rank(p, i, shared, emit) for i in range(p.ranks)]
    alive = [(r, r.program()) for r in ranks]
    guard = 0
    while alive:
        rest = []
        for r, g in alive:
            try:
                next(g)
                rest.append((r, g))
            except StopIteration:
                pass
        alive = rest
        guard += 1
        if guard > 3_000_000:
            raise RuntimeError("deadlock")
    out = Result()
    out.p, out.ranks = p, ranks
    out.step_us = max(mean_step(r, p) for r in ranks)
    out.steps = [[b - a for (_, a, b) in r.marks] for r in ranks]
    return out


def truth(p, cut, base=None):
    """Returns the share of a step that is saved without the costs in `cut`."""
    b = base if base is not None else simulate(p).step_us
    q = copy.copy(p)
    q.cut = frozenset(p.cut) | frozenset(cut)
    return 1 - simulate(q).step_us / b
