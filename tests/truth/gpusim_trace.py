# SPDX-License-Identifier: Apache-2.0
"""Writes a simulated training (gpusim.py) as Kineto traces, as torch.profiler writes them."""
import json
import os

try:
    import orjson

    def dumps(document_):
        return orjson.dumps(document_, option=orjson.OPT_SERIALIZE_NUMPY)
except ImportError:
    def dumps(document_):
        return json.dumps(document_, separators=(",", ":"), default=float).encode()

PROPS = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "computeMajor": 9, "computeMinor": 0, "maxThreadsPerBlock": 1024,
         "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132,
         "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472}


def ns(us):
    """Rounds us to whole nanoseconds."""
    return round(us * 1000) / 1000


def events(r, p):
    """Returns the events of rank r."""
    base = float(p.first_ts) + (p.clock_skew_us * (r.index - (p.ranks - 1) / 2) if p.ranks > 1 else 0.0)
    rows = Rows(r, p, base)
    rows.host()
    rows.device()
    if p.python:
        rows.python()
    rows.window()
    rows.names()
    return rows.events


class Rows:
    """The events of one rank, in the order in which torch.profiler writes them."""

    def __init__(self, r, p, base):
        self.r, self.p, self.base = r, p, base
        self.tids = (r.pid, r.pid + 251)
        self.events = []
        self.index = 0      # "Ev Idx"
        self.first = r.marks[0][1]

    def length(self, a, b):
        return (round((self.base + b) * 1000) - round((self.base + a) * 1000)) / 1000

    def span(self, cat, name, pid, tid, a, b, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ns(self.base + a), "dur": self.length(a, b), "args": args})

    def flow(self, cat, number, source, a, target, b):
        """An arrow from (pid, tid) at time a to (pid, tid) at time b."""
        for ph, (pid, tid), at, more in (("s", source, a, {}), ("f", target, b, {"bp": "e"})):
            self.events.append({"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": round(self.base + at, 3), "cat": cat, "name": cat, **more})

    def host(self):
        """Steps, operators, calls of the CUDA runtime, and arrows from the forward to the backward pass."""
        r, p = self.r, self.p
        for (i, a, b) in r.marks:
            name = f"ProfilerStep#{i}" if p.mark == "ProfilerStep" else p.mark
            if p.mark:
                self.span("user_annotation", name, r.pid, self.tids[0], a, b, {"External id": 900000 + i, "Record function id": 0, "Ev Idx": self.index})
                self.index += 1
        for (cat, name, thread, a, b, args) in r.out:
            self.span(cat, name, r.pid, self.tids[thread], a, b, args)
            if cat in ("cpu_op", "user_annotation"):
                args["Record function id"] = 0
                args["Ev Idx"] = self.index
                self.index += 1
            elif cat == "cuda_runtime":
                args["cbid"] = 211
        for (seq, a, b) in r.flow:
            self.flow("fwdbwd", seq, (r.pid, self.tids[0]), a, (r.pid, self.tids[1]), b)

    def device(self):
        """Kernels and copies, and arrows from their launches."""
        r = self.r
        launched = {args["correlation"]: (thread, a) for (cat, name, thread, a, b, args) in r.out if cat == "cuda_runtime"}
        for k in r.works:
            if k.start is None or k.start < self.first:
                continue
            self.span(k.cat, k.name, 0, k.stream, k.start, k.end, work_args(k))
            if k.corr in launched:
                thread, a = launched[k.corr]
                self.flow("ac2g", k.corr, (r.pid, self.tids[thread]), a, (0, k.stream), k.start)

    def python(self):
        """Python functions with their parents."""
        r = self.r
        root0, root1 = self.first - 50.0, r.finish + 40.0
        frames = [("train.py(160): <module>", root0, root1), ("train.py(60): main", root0 + 2, root1 - 2)] + sorted(r.pys, key=lambda x: (x[1], -x[2]))
        stack = []
        for i, (name, a, b) in enumerate(frames):
            while stack and stack[-1][1] < b - 1e-9 and stack[-1][1] <= a:
                stack.pop()
            parent = stack[-1][0] if stack else None
            self.span("python_function", name, r.pid, self.tids[0], a, b, {"Python parent id": parent, "Python id": i + 1, "Ev Idx": self.index})
            self.index += 1
            stack.append((i + 1, b))

    def window(self):
        """The limits of the recording."""
        self.lo, hi = self.base + self.first - 60.0, self.base + self.r.finish + 60.0
        self.events += [
            {"ph": "X", "cat": "Trace", "ts": round(self.lo, 3), "dur": round(hi - self.lo, 3), "pid": "Spans", "tid": "PyTorch Profiler",
             "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
            {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": round(self.lo, 3)},
            {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": round(hi, 3)}]

    def names(self):
        """Names of processes and threads."""
        r = self.r
        meta = [(r.pid, "process_name", {"name": "python3"}), (r.pid, "process_labels", {"labels": "CPU"}), (r.pid, "process_sort_index", {"sort_index": r.pid})]
        for g in range(8):
            meta += [(g, "process_name", {"name": "python3"}), (g, "process_labels", {"labels": f"GPU {g}"}),
                     (g, "process_sort_index", {"sort_index": 5000000 + g})]
        for (pid, kind, args) in meta:
            self.events.append({"name": kind, "ph": "M", "ts": round(self.lo, 3), "pid": pid, "tid": 0, "args": args})
        for tid, name in ((self.tids[0], f"thread {self.tids[0]} (python3)"), (self.tids[1], f"thread {self.tids[1]} (pt_autograd_0)")):
            self.events.append({"name": "thread_name", "ph": "M", "ts": round(self.lo, 3), "pid": r.pid, "tid": tid, "args": {"name": name}})


def work_args(k):
    args = {"External id": k.ext, "device": 0, "context": 1, "stream": k.stream, "correlation": k.corr}
    if k.cat == "kernel":
        args.update({"queued": 0, "registers per thread": 64, "shared memory": 0, "blocks per SM": 8.0, "warps per SM": 64.0, "grid": [1056, 1, 1],
                     "block": [256, 1, 1], "est. achieved occupancy %": 75})
        if k.stream == 28:
            args.update({"grid": [24, 1, 1], "block": [544, 1, 1], "blocks per SM": 0.18, "warps per SM": 3.1, "est. achieved occupancy %": 5})
    if k.args:
        args.update(k.args)
    if "bytes" in args:
        args["memory bandwidth (GB/s)"] = args["bytes"] / max(k.end - k.start, 0.1) / 1000
    return args


def document(r, p):
    """Returns the trace of rank r."""
    d = {"schemaVersion": 1, "deviceProperties": [PROPS] if p.device else [], "cuda_runtime_version": 12040, "cuda_driver_version": 12090, "trace_id": "8DAB11E6838A4F0881AF82BBC8CF6A40",
         "displayTimeUnit": "ms", "baseTimeNanoseconds": 1751410836000000000}
    if not p.device:
        d.pop("cuda_runtime_version"), d.pop("cuda_driver_version")
    if p.python:
        d["with_stack"] = 1
    if p.ranks > 1:
        d["distributedInfo"] = {"backend": "nccl", "rank": r.index, "world_size": p.ranks, "pg_count": 1,
                                "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": p.ranks,
                                               "ranks": list(range(p.ranks))}], "nccl_version": "2.21.5"}
    d["traceEvents"] = events(r, p)
    d["traceName"] = "trace.json"
    return d


def write(out, path):
    """Writes one file, or a folder of one file per rank."""
    p = out.p
    if p.ranks == 1:
        with open(path, "wb") as f:
            f.write(dumps(document(out.ranks[0], p)))
        return path
    os.makedirs(path, exist_ok=True)
    for r in out.ranks:
        with open(os.path.join(path, f"rank{r.index}.pt.trace.json"), "wb") as f:
            f.write(dumps(document(r, p)))
    return path
