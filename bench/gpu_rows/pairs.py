# SPDX-License-Identifier: Apache-2.0
"""`pairs.py NAME OUT [--cpu]`: measures the step of a program without a profiler, twice, and then its steps under
torch.profiler. Keeps the trace. `pairs.py --rank R --ranks N --port PORT NAME OUT` runs one rank. Prints one line of
JSON."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch

from programs import PROGRAMS, RANKS, Program, settings_of
from shared import activities, compress, wait

STEPS, WARM, SYNC_EVERY = 24, 6, 4  # as in earlier traces
WAIT, WARM_UP, ACTIVE = 6, 2, 4
WITH_MEMORY = ("base", "checkpoint")


def plain(program, device):
    """Returns the ms of a step without a profiler, with a wait for the device every SYNC_EVERY steps."""
    for _ in range(WARM):
        program.step()
    wait(device)
    start = time.perf_counter_ns()
    for i in range(STEPS - WARM):
        program.step()
        if (i + 1) % SYNC_EVERY == 0:
            wait(device)
    wait(device)
    return (time.perf_counter_ns() - start) / (STEPS - WARM) / 1e6


def traced(program, device, path, has_memory):
    """Returns the ms of each step under torch.profiler. Writes the trace of the ACTIVE steps."""
    found = []
    with torch.profiler.profile(activities=activities(device), schedule=torch.profiler.schedule(wait=WAIT, warmup=WARM_UP, active=ACTIVE, repeat=1),
                                record_shapes=True, profile_memory=has_memory) as profiler:
        for _ in range(WAIT + WARM_UP + ACTIVE):
            start = time.perf_counter_ns()
            program.step()
            profiler.step()
            found.append(round((time.perf_counter_ns() - start) / 1e6, 3))
    wait(device)
    profiler.export_chrome_trace(path)
    compress(path)
    return found


def measure(name, out, device, rank=0, ranks=1):
    started = time.perf_counter()
    program = Program(settings_of(name, device == "cpu"), device, rank, ranks)
    steps = [round(plain(program, device), 3) for _ in range(2)]
    suffix = f".rank{rank}" if ranks > 1 else ""
    trace = traced(program, device, f"{out}/{name}{suffix}.json", name in WITH_MEMORY)
    found = {"step_ms": steps, "traced_step_ms": trace, "took_s": round(time.perf_counter() - started, 1)}
    if device != "cpu":
        found["peak_allocated"], found["peak_reserved"] = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return found


def measure_rank(name, out, device, rank, ranks, port):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    found = measure(name, out, device, rank, ranks)
    dist.barrier()
    dist.destroy_process_group()
    return found


def measure_ranks(name, out, is_cpu):
    port, more = 20000 + os.getpid() % 20000, ["--cpu"] if is_cpu else []
    command = [sys.executable, __file__, name, out, *more, "--ranks", "2", "--port", str(port), "--rank"]
    started = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    lines = [process.communicate(timeout=120)[0].splitlines() for process in started]
    found = [json.loads(each[-1]) for each in lines if each]
    if len(found) != 2:
        sys.exit(f"a rank of {name} failed")
    return {"step_ms": [statistics.fmean(pair) for pair in zip(*(each["step_ms"] for each in found))],
            **{key: [each[key] for each in found] for key in found[0] if key != "step_ms"}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("out")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--port", type=int)
    chosen = parser.parse_args()
    device = "cpu" if chosen.cpu else "cuda"
    if chosen.rank is not None:
        print(json.dumps(measure_rank(chosen.name, chosen.out, device, chosen.rank, chosen.ranks, chosen.port)))
        return
    what, base, _ = {**PROGRAMS, **RANKS}[chosen.name]
    found = measure_ranks(chosen.name, chosen.out, chosen.cpu) if chosen.name in RANKS else measure(chosen.name, chosen.out, device)
    print(json.dumps({"what": what, **({"without": base} if base else {}), **found}))


if __name__ == "__main__":
    main()
