# SPDX-License-Identifier: Apache-2.0
"""Runs one case of bench/gpu_probe.py: `gpu_probe_run.py ROW CASE`. Prints one line of JSON. The driver may have loaded
the probe of c/cupti_probe.c into the process (CUDA_INJECTION64_PATH). With GPU_PROBE_FAKE=1 no GPU is needed: the CPU
does the work, and c/cupti_stand_in.c makes the records."""
import ctypes
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

FAKE = os.environ.get("GPU_PROBE_FAKE") == "1"
PROBE = os.environ.get("GPU_PROBE_LIBRARY")  # path of c/cupti_probe.c as a library
KERNEL, MEMCPY, MEMSET, DRIVER, RUNTIME = 10, 1, 2, 4, 5
SYNCHRONIZATION, OVERHEAD, CUDA_EVENT = 38, 17, 36
RESULT = {}


def say():
    """Prints the result so far. A case that kills its process prints it before that."""
    print(json.dumps(RESULT), flush=True)


class Probe:
    """The probe in this process; `is_there` is false in a bare run."""

    def __init__(self, by_hand=False):
        import torch
        if not FAKE:
            torch.cuda.init()
        self.is_there = bool(PROBE) and (FAKE or by_hand or "CUDA_INJECTION64_PATH" in os.environ)
        if not self.is_there:
            return
        self.library = library = ctypes.CDLL(PROBE)
        library.cupti_probe_rows.restype = library.cupti_probe_buffers_out.restype = ctypes.c_uint64
        library.cupti_probe_flush.restype = ctypes.c_int64
        library.cupti_probe_report.restype = ctypes.c_size_t
        if FAKE:
            pretend(0)  # the stand-in is mapped before the probe looks for CUPTI
        if FAKE or by_hand:
            library.InitializeInjection()
        elif library.cupti_probe_state() == 0:  # the driver did not load it, or there is no CUPTI
            RESULT["by_hand"] = library.InitializeInjection()
        RESULT["state"] = library.cupti_probe_state()

    def __getattr__(self, name):
        """Returns a function of cupti_probe.h; in a bare run the function returns None.

        The names are take, release, enable, disable, calls, callbacks, flush, rows and buffers_out.
        """
        if not self.is_there:
            return lambda *arguments: None
        return getattr(self.library, "cupti_probe_" + name)

    def mark(self, text):
        if self.is_there:
            self.library.cupti_probe_mark(text.encode())

    def holder(self):
        buffer = ctypes.create_string_buffer(128)
        if self.is_there:
            self.library.cupti_probe_holder(buffer, 128)
        return buffer.value.decode(errors="replace")

    def report(self):
        if not self.is_there:
            return None
        size = self.library.cupti_probe_report(None, 0) + 1000
        buffer = ctypes.create_string_buffer(size)
        self.library.cupti_probe_report(buffer, size)
        return json.loads(buffer.value)


# --- work, on the GPU, or if FAKE on the CPU with invented records ---

def device():
    return "cpu" if FAKE else "cuda"


def sync():
    import torch
    if not FAKE:
        torch.cuda.synchronize()


_stand_in = None


def pretend(launches=30, graph=False):
    """If FAKE, makes the records that the work would have made."""
    global _stand_in
    if not FAKE or not PROBE:
        return
    if _stand_in is None:
        _stand_in = ctypes.CDLL(os.environ["CUPTI_PROBE_LIBRARY"])
    if graph:
        _stand_in.stand_in_graph(20, 3)
    else:
        _stand_in.stand_in_launch(launches, 7)


def make_gpt(layers=8, width=768, heads=12, batch=8, context=512, vocabulary=8192, capturable=False):
    """Returns a training step of a small GPT, and its parts: (step, model, optimizer, inputs)."""
    import torch
    from torch import nn
    from torch.nn import functional
    if FAKE:
        layers, width, heads, batch, context, vocabulary = 1, 32, 2, 2, 16, 64

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            rows, length, _ = x.shape
            q, k, v = (part.view(rows, length, heads, width // heads).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).split(width, 2))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
            return x + self.mlp(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens, targets):
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
            logits = self.head(self.norm(self.blocks(x)))
            return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    torch.manual_seed(1)
    model = Gpt().to(device())
    options = {} if FAKE else {"fused": True, "capturable": capturable}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **options)
    inputs = [torch.randint(vocabulary, (batch, context), device=device()) for _ in range(2)]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device(), torch.bfloat16, cache_enabled=not capturable):
            loss = model(*inputs)
        loss.backward()
        optimizer.step()
        pretend()
        return loss

    return step, model, optimizer, inputs


def launches(count=1000):
    """Launches `count` kernels with almost no work. Returns count."""
    import torch
    x = torch.zeros(1, device=device())
    for _ in range(count):
        x.add_(1)
    pretend(count)
    return count


class Graph:
    """A torch.cuda.CUDAGraph of a function; if FAKE, the function itself."""

    def __init__(self, function, warm_up=4, keep=False):
        import torch
        if FAKE:
            self.replay = lambda: (function(), pretend(graph=True))
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warm_up):
                function()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph(keep_graph=True) if keep else torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            function()
        if keep:
            self.graph.instantiate()
        self.replay = self.graph.replay


def timed_steps(probe, name, step, count):
    """Runs steps with a mark at both ends of each, and synchronises after the last one.

    Returns [start, end] of each step on CLOCK_MONOTONIC, in ns.
    """
    times = []
    for i in range(count):
        probe.mark(f"begin {name} {i}")
        start = time.monotonic_ns()
        step()
        times.append([start, time.monotonic_ns()])
        probe.mark(f"end {name} {i}")
    sync()
    probe.mark(f"synchronised {name}")
    return times


# --- rows 1 and 2: raw buffers ---

def graph_buffers(case):
    probe = Probe()
    phases = RESULT["phases"] = []

    def phase(name, step, count):
        before = probe.rows(KERNEL)
        times = timed_steps(probe, name, step, count)
        probe.flush(0)
        rows = probe.rows(KERNEL)
        phases.append({"name": name, "times": times, "kernels": None if rows is None else rows - before})

    if case == "whole":
        step = make_gpt(capturable=True)[0]
        phase("eager", step, 2)
        probe.mark("begin capture")
        graph = Graph(step)
        probe.mark("end capture")
        phase("replay", graph.replay, 5)
        phase("eager between", step, 2)
        phase("replay again", graph.replay, 5)
        del graph
        probe.mark("deleted")
        phase("eager behind", step, 1)
    else:
        import torch
        step, model, optimizer, inputs = make_gpt(layers=2, width=256, heads=4, batch=4, context=128)
        compiled = model if FAKE else torch.compile(model, mode="reduce-overhead")

        def compiled_step():
            optimizer.zero_grad(set_to_none=True)
            if not FAKE:
                torch.compiler.cudagraph_mark_step_begin()
            with torch.autocast(device(), torch.bfloat16):
                loss = compiled(*inputs)
            loss.backward()
            optimizer.step()
            pretend(graph=True)

        phase("eager", step, 1)
        phase("compile", compiled_step, 4)
        phase("replay", compiled_step, 8)
        phase("eager behind", step, 1)


def streams_step():
    """Returns a step with a copy stream, a stream for the norm of gradients, events, all kinds of copies and .item()."""
    import torch
    step, model, optimizer, inputs = make_gpt(layers=4, width=512, heads=8, batch=8, context=256)
    if FAKE:
        return lambda: step().item()
    copies, sums = torch.cuda.Stream(), torch.cuda.Stream()
    pinned = torch.randint(8192, tuple(inputs[0].shape)).pin_memory()
    pageable = torch.randint(8192, tuple(inputs[0].shape))
    back = torch.empty(1024, 1024).pin_memory()
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def run():
        main = torch.cuda.current_stream()
        before.record()
        with torch.cuda.stream(copies), torch.cuda.nvtx.range("copy"):
            inputs[0].copy_(pinned, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        inputs[1].copy_(pageable)
        main.wait_event(copied)
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.nvtx.range("forward"), torch.autocast("cuda", torch.bfloat16):
            loss = model(*inputs)
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        ready = torch.cuda.Event()
        ready.record()
        with torch.cuda.stream(sums):
            sums.wait_event(ready)
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            done = torch.cuda.Event()
            done.record()
        main.wait_event(done)
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
        after.record()
        back.copy_(model.blocks[0].mlp[0].weight.detach()[:1024].repeat(1, 2), non_blocking=True)
        value = loss.item()
        copied.query()
        after.synchronize()
        return value, norm.item(), before.elapsed_time(after)

    return run


def eager_buffers(case):
    import torch
    probe = Probe()
    RESULT["case"] = case
    step = streams_step()
    step()
    sync()
    probe.flush(0)
    RESULT["warm"] = probe.rows(0)
    times = timed_steps(probe, "step", step, 1)
    if not FAKE:
        probe.mark("begin empty_cache")
        torch.cuda.empty_cache()
        probe.mark("end empty_cache")
    times += timed_steps(probe, "step behind empty_cache", step, 2)
    if not FAKE:
        for size in (1 << 20, 1 << 26, 1 << 28):
            block = torch.empty(size, dtype=torch.uint8, device="cuda")
            del block
        host = torch.empty(1 << 22, dtype=torch.uint8).pin_memory()
        del host
        torch.cuda.empty_cache()
    RESULT["times"] = times
    probe.flush(0)


# --- row 3: the cost of each set of kinds ---

def kinds_of(name):
    return {"nothing": [], "nothing again": [], "kernel": [KERNEL], "copies": [KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, OVERHEAD],
            "events": [KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, OVERHEAD, CUDA_EVENT],
            "selected": [KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, OVERHEAD, CUDA_EVENT],
            "all": [KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, OVERHEAD, CUDA_EVENT, RUNTIME, DRIVER]}[name]


SETS = ("nothing", "nothing again", "kernel", "copies", "events", "selected", "all")
GRAPH_SETS = ("nothing", "nothing again", "kernel", "copies", "events")  # a graph's node rows may not survive a switch of calls


def switch(probe, name, is_on):
    start = time.perf_counter_ns()
    for kind in kinds_of(name):
        (probe.enable if is_on else probe.disable)(kind)
    if name == "selected":
        probe.calls(int(is_on))
    return time.perf_counter_ns() - start


def block(probe, name, work, count):
    """Measures one block with a set of kinds: time per unit of work, of the flush and of switching."""
    on_ns = switch(probe, name, True)
    sync()
    rows, cpu, start = probe.rows(0), time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(count):
        work()
    cpu_ns = time.thread_time_ns() - cpu
    issued_ns = time.perf_counter_ns() - start
    sync()
    wall_ns = time.perf_counter_ns() - start
    flush_ns = probe.flush(0)
    off_ns = switch(probe, name, False)
    probe.flush(0)
    return {"wall_us": wall_ns / count / 1e3, "issued_us": issued_ns / count / 1e3, "cpu_us": cpu_ns / count / 1e3,
            "flush_ms": (flush_ns or 0) / 1e6, "on_us": on_ns / 1e3, "off_us": off_ns / 1e3,
            "rows": ((probe.rows(0) or 0) - (rows or 0)) / count}


def in_turns(probe, work, count, rounds, names, until):
    """Returns {set: its blocks}. Each round has all sets in random order; the first round is a warm-up and omitted."""
    found = {name: [] for name in names}
    for i in range(rounds + 1):
        order = list(names)
        random.shuffle(order)
        blocks = {name: block(probe, name, work, count) for name in order}
        for name in names if i else ():
            found[name].append(blocks[name])
        if i > 2 and time.monotonic() > until:
            break
    return found


def summarize(found):
    """Returns the medians of each set, and of its difference to "nothing" in the same round.

    The difference has a bootstrapped 95 % interval, in % and in us.
    """
    rows = {}
    for name, blocks in found.items():
        row = {key: round(statistics.median(b[key] for b in blocks), 3) for key in blocks[0]}
        pairs = [(b["wall_us"], o["wall_us"]) for b, o in zip(blocks, found["nothing"])]
        medians = sorted(statistics.median(x - y for x, y in random.choices(pairs, k=len(pairs))) for _ in range(500))
        base = statistics.median(y for _, y in pairs)
        row["more_us"] = [round(m, 3) for m in (statistics.median(x - y for x, y in pairs), medians[12], medians[487])]
        row["more_percent"] = [round(100 * m / base, 2) for m in row["more_us"]]
        row["blocks"] = len(blocks)
        rows[name] = row
    return rows


def kinds_cost(case):
    random.seed(7)
    probe = Probe()
    probe.calls(0)
    budget = float(os.environ.get("GPU_PROBE_SECONDS", "30"))
    rounds = 3 if FAKE else 16
    raw, RESULT["rows"] = {}, {}
    works = {"launches": (lambda: launches(1000), 4, 16, SETS, 0.05),
             "streams": (streams_step(), 5, rounds, SETS, 0.2),
             "host": (make_gpt()[0], 4, rounds, SETS, 0.3),
             "device": (make_gpt(batch=48)[0], 2, rounds, SETS, 0.3),
             "graph": (None, 5, rounds, GRAPH_SETS, 0.15)}
    for name, (work, count, most, names, share) in works.items():
        if work is None:  # the last work: calls are not switched during it
            work = Graph(make_gpt(capturable=True)[0]).replay
        for _ in range(3):
            work()
        sync()
        raw[name] = in_turns(probe, work, 1 if FAKE else count, 2 if FAKE else most, names, time.monotonic() + budget * share)
        RESULT["rows"][name] = summarize(raw[name])
        if name == "launches":
            RESULT["launches_each"] = 1000
    # compares no subscription with a subscription without kinds
    work, walls = make_gpt()[0], {"subscribed": [], "released": []}
    for _ in range(3):
        work()
    for i in range(3 if FAKE else 8):
        for name in walls:
            if name == "released":
                probe.release(0)
            walls[name].append(block(probe, "nothing", work, 3)["wall_us"])
            if name == "released":
                RESULT.setdefault("takes", []).append(probe.take(1))
    RESULT["subscribed"] = {name: statistics.median(values) for name, values in walls.items()}
    out = os.environ.get("GPU_PROBE_OUT")
    if out:
        with open(out + "-blocks.json", "w", encoding="ascii") as file:
            json.dump(raw, file)
    RESULT["report"] = {key: value for key, value in (probe.report() or {}).items() if key != "calls"}
    RESULT["case"] = case


# --- row 4: how programs end ---

CUDA_PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
results = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
           cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
           cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))]
results += [cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(1 << 20)) for _ in range(100)] + [cuda.cuCtxSynchronize()]
sys.exit(5 if not any(results) else 6)
"""


def wait_for(child, seconds=15):
    """Returns the exit status of a child, or "hung" if it had to be killed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


class Numbers:  # a data set for forked workers
    def __len__(self):
        return 32

    def __getitem__(self, index):
        import torch
        return torch.full((16,), float(index))


def ends(case):
    import torch
    probe = Probe()
    RESULT["launched"] = launches(30000 if case == "kill9_full" else 1000)
    if not case.startswith("running"):
        sync()
    RESULT["rows_before"] = probe.rows(KERNEL)
    RESULT["pid"] = os.getpid()
    if case.startswith("running") and not FAKE:
        torch.cuda._sleep(int(1.5e9))
    if case == "kill9_period":
        time.sleep(0.8)
        RESULT["rows_before"] = probe.rows(KERNEL)
    if case == "fork_loader":
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="fork")
        for batch in loader:
            launches(100)
            batch.to(device()).sum().item()
    if case in ("fork_exit", "fork_os_exit", "fork_raise"):
        child = os.fork()
        if child == 0:
            if case == "fork_os_exit":
                os._exit(4)
            if case == "fork_raise":
                os.kill(os.getpid(), signal.SIGTERM)
            sys.exit(4)
        RESULT["child"] = wait_for(child)
        RESULT["launched"] += launches(500)
        sync()
        probe.flush(0)
        RESULT["rows_behind"] = probe.rows(KERNEL)
    if case == "exec":
        program = [sys.executable, "-c", "raise SystemExit(5)" if FAKE else CUDA_PROGRAM]
        RESULT["child"] = subprocess.run(program, timeout=30, check=False).returncode
    if case == "exec_spawn":
        import torch.multiprocessing as multiprocessing
        process = multiprocessing.get_context("spawn").Process(target=launches, args=(300,))
        process.start()
        process.join(40)
        RESULT["child"] = process.exitcode
    say()
    if case.startswith("kill9"):
        os.kill(os.getpid(), signal.SIGKILL)
    if case == "sigterm":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    if case == "sigterm_handled":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    if case == "abort":
        os.abort()
    if case in ("os_exit3", "running_os_exit3"):
        os._exit(3)
    if case == "exception":
        raise ValueError("as wanted")
    sys.exit(3 if case == "exit3" else 0)


# --- row 5: other users of CUPTI ---

def profiled(count=200):
    """Runs torch.profiler over some launches. Returns the number of device events it saw."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    activities = [ProfilerActivity.CPU] + ([] if FAKE else [ProfilerActivity.CUDA])
    start = time.perf_counter()
    with profile(activities=activities) as prof:
        entered = time.perf_counter()
        launches(count)
        sync()
        left = time.perf_counter()
    stopped = time.perf_counter()
    seen = sum(1 for event in prof.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    return {"launched": count, "device_events": seen, "start_ms": 1e3 * (entered - start), "stop_ms": 1e3 * (stopped - left)}


def series(probe, count=10, pause=0.05):
    """Returns, for each of some rounds of launches, the launches, our new rows, and the ns of the flush."""
    found = []
    for _ in range(count):
        before = probe.rows(KERNEL)
        launched = launches(100)
        sync()
        flush_ns = probe.flush(0)
        found.append([launched, (probe.rows(KERNEL) or 0) - (before or 0), flush_ns])
        time.sleep(pause)
    return found


def others(case):
    import torch
    probe = Probe(by_hand=case == "by_hand")
    steps = RESULT["steps"] = []

    def note(name, value):
        steps.append([name, value])

    if case.endswith("_unset"):
        os.environ.pop("CUDA_INJECTION64_PATH", None)
    if case.startswith("profiler_first"):
        from torch.profiler import ProfilerActivity, profile
        prof = profile(activities=[ProfilerActivity.CPU] + ([] if FAKE else [ProfilerActivity.CUDA]))
        prof.start()
        launches(100)
        note("take 1", probe.take(1))
        note("take 2", probe.take(2))
        note("holder", probe.holder())
        note("series meanwhile", series(probe, 2))
        prof.stop()
        note("device events", sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA))
        note("release", probe.release(1))
        note("take", probe.take(1))
        note("series", series(probe))
    elif case.startswith("ours_first"):
        note("series", series(probe, 2))
        note("profiler", profiled())
        note("series", series(probe, 5))
    elif case in ("by_hand", "subscribe_v2"):
        note("series", series(probe, 2))
        note("subscribe_v2 beside ours", second_subscriber(probe))
        note("series", series(probe, 2))
        note("release", probe.release(1))
        note("profiler", profiled())
        note("take 2", probe.take(2))
        note("holder", probe.holder())
        note("series", series(probe))
    else:  # released, released_unset, released_teardown, released_late
        for turn in range(2):
            note("series", series(probe, 3))
            note("release", probe.release(1))
            note("buffers out", probe.buffers_out())
            note("profiler", profiled())
            if case == "released_late":
                launches(500)
                sync()
                time.sleep(0.5)
            note("take", probe.take(1))
            note(f"series {turn}", series(probe))
        note("release", probe.release(1))
        note("profiler", profiled())
        note("take", probe.take(1))
        note("series", series(probe, 3))
    RESULT["report"] = probe.report()


class Parameters(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("old", ctypes.c_void_p), ("old_bytes", ctypes.c_size_t)]


def second_subscriber(probe):
    """Subscribes again with cuptiSubscribe_v2 beside the probe. Returns the error and the reported name of the holder."""
    report = probe.report()
    if not report or not report["library"]:
        return None
    library = ctypes.CDLL(report["library"])
    if not hasattr(library, "cuptiSubscribe_v2"):
        return "no cuptiSubscribe_v2"
    old, subscriber = ctypes.create_string_buffer(128), ctypes.c_void_p()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(lambda *_: None)
    parameters = Parameters(ctypes.sizeof(Parameters), b"second", ctypes.cast(old, ctypes.c_void_p), 128)
    result = library.cuptiSubscribe_v2(ctypes.byref(subscriber), callback, None, ctypes.byref(parameters))
    if result == 0:
        library.cuptiUnsubscribe(subscriber)
    return [result, old.value.decode(errors="replace")]


# --- row 6: graphs created before CUPTI is enabled ---

def late_phase(probe, name, graph, count=3):
    before = probe.rows(KERNEL) or 0
    probe.mark(name)
    for _ in range(count):
        graph.replay()
    sync()
    probe.flush(0)
    RESULT.setdefault("phases", []).append([name, count, (probe.rows(KERNEL) or 0) - before])


def exec_update(probe):
    """Creates two graphs of the same shape and updates an instance of the first one to the second one."""
    import torch
    one, two = Graph(lambda: launches(50), keep=True), Graph(lambda: launches(50), keep=True)
    runtime = ctypes.CDLL("libcudart.so.13")
    instance, info = ctypes.c_void_p(), (ctypes.c_uint64 * 8)()
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    results = [runtime.cudaGraphInstantiate(ctypes.byref(instance), ctypes.c_void_p(one.graph.raw_cuda_graph()), ctypes.c_ulonglong(0))]
    for name, update in (("instance", None), ("updated", two)):
        if update:
            results.append(runtime.cudaGraphExecUpdate(instance, ctypes.c_void_p(update.graph.raw_cuda_graph()), info))
        before = probe.rows(KERNEL) or 0
        probe.mark(name)
        results.append(runtime.cudaGraphLaunch(instance, stream))
        sync()
        probe.flush(0)
        RESULT.setdefault("phases", []).append([name, 1, (probe.rows(KERNEL) or 0) - before])
    results.append(runtime.cudaGraphExecDestroy(instance))
    RESULT["results"] = results


def graph_late(case):
    probe = Probe()
    if case.startswith("exec_update"):
        if FAKE:
            RESULT["skipped"] = "needs a GPU"
            return
        exec_update(probe)
        return
    probe.calls(0)
    step = make_gpt(layers=2, width=256, heads=4, batch=4, context=128, capturable=True)[0]
    graph = Graph(step)
    late_phase(probe, "before", graph)
    if case == "subscription":
        RESULT["take"] = probe.take(1)
    RESULT["enabled"] = probe.enable(KERNEL)
    late_phase(probe, "enabled", graph)
    if case == "calls":
        for turn in range(2):
            probe.calls(1)
            late_phase(probe, f"calls on {turn}", graph)
            probe.calls(0)
            late_phase(probe, f"calls off {turn}", graph)
            for kind in (RUNTIME, DRIVER):
                probe.enable(kind)
            late_phase(probe, f"all calls on {turn}", graph)
            for kind in (RUNTIME, DRIVER):
                probe.disable(kind)
            late_phase(probe, f"all calls off {turn}", graph)
    probe.disable(KERNEL)
    late_phase(probe, "disabled", graph)
    probe.enable(KERNEL)
    late_phase(probe, "enabled again", graph)
    probe.release(1)
    late_phase(probe, "released", graph)
    RESULT["taken"] = probe.take(1)
    late_phase(probe, "taken back", graph)
    other = Graph(step)
    late_phase(probe, "a new graph", other)
    late_phase(probe, "the old graph", graph)


# --- row 7: no memory left ---

def oom(case):
    import torch
    probe = Probe()
    step = make_gpt(layers=2, width=256, heads=4, batch=4, context=128)[0]
    step()
    RESULT["caught"] = []
    for size in (1 << 50, 1 << 20 if FAKE else 1 << 33):
        held = []
        launches(500)  # leaves undelivered rows
        probe.mark("begin out of memory")
        start = time.monotonic()
        try:
            for _ in range(3 if FAKE else 40):
                held.append(torch.empty(size, dtype=torch.uint8, device=device()))
        except (torch.OutOfMemoryError, RuntimeError) as error:
            RESULT["caught"].append([len(held), time.monotonic() - start, str(error)[:300]])
        probe.mark("end out of memory")
        del held
    if not FAKE:
        torch.cuda.empty_cache()
    before = probe.rows(KERNEL) or 0
    for _ in range(5):
        step()
    sync()
    RESULT["flush_ns"] = probe.flush(0)
    RESULT["kernels_behind"] = (probe.rows(KERNEL) or 0) - before
    RESULT["case"] = case


ROWS = {row.__name__: row for row in (graph_buffers, eager_buffers, kinds_cost, ends, others, graph_late, oom)}


def main():
    row, case = sys.argv[1:3]
    started = time.monotonic()
    try:
        ROWS[row](case)
    finally:
        RESULT["took_s"] = round(time.monotonic() - started, 2)
        if row != "ends":
            say()


if __name__ == "__main__":
    main()
