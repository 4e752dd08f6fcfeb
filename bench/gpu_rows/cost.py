# SPDX-License-Identifier: Apache-2.0
"""`cost.py SIZE SETTINGS [--cpu]`, under `stepscope run`: the cost of recording a step on a GPU, compared with nothing,
in alternating blocks of one process. `cost.py SIZE SETTINGS --peers`, without `stepscope run`: the cost of torch.profiler,
with plain steps before, between and after. Prints one line of JSON."""
import json
import os
import random
import sys
import time

import torch

from programs import Program, Settings, TINY, settings_of
from shared import activities, wait

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from whole_cost_step import Parts  # noqa: E402

SIZES = {"host": {}, "device": {"batch": 32, "context": 1024}, "tiny": {**TINY, "optimizer": "single"}}
WARM_UP = 12


def block(step, length, device):
    """Returns ns per step of a block.

    wall: until the device is done; host: until the last launch; thread, process: CPU time; device: between two events.
    """
    wait(device)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if device != "cpu" else []
    if events:
        events[0].record()
    wall, thread, process = time.perf_counter_ns(), time.thread_time_ns(), time.process_time_ns()
    for _ in range(length):
        step()
    spent, thread = time.perf_counter_ns() - wall, time.thread_time_ns() - thread
    if events:
        events[1].record()
    wait(device)
    wall, process = time.perf_counter_ns() - wall, time.process_time_ns() - process
    found = {"wall": wall / length, "host": spent / length, "thread": thread / length, "process": process / length}
    if events:
        found["device"] = events[0].elapsed_time(events[1]) * 1e6 / length
    return found


def make(size, device):
    settings = Settings(**SIZES[size]) if device != "cpu" else settings_of("base", True)
    program = Program(settings, device)
    for _ in range(WARM_UP):
        program.step()
    return program


def ours(size, settings, device):
    program = make(size, device)
    parts = Parts(settings)
    ways = {"nothing": (parts.take_out, parts.put_back), "nothing, again": (parts.take_out, parts.put_back),
            "as it is": (lambda: None, lambda: None)}
    found = {name: [] for name in ways}
    for _ in range(settings["blocks"]):
        for name in random.sample(list(ways), len(ways)):
            on, off = ways[name]
            on()
            program.step()
            found[name].append(block(program.step, settings["length"], device))
            off()
    return {"found": found, "counts": parts.counts(), "bits": parts.active.value}


def with_profiler(program, length, device, wanted, **options):
    with torch.profiler.profile(activities=wanted, **options) as profiler:
        program.step()
        found = block(program.step, length, device)
        begin = time.perf_counter_ns()
    found["stop"] = (time.perf_counter_ns() - begin) / length
    del profiler
    return found


def peers(size, settings, device):
    """Measures torch.profiler between plain steps.

    Its first start is slow and changes the process permanently, so plain steps before and after it are separate.
    """
    program, both = make(size, device), activities(device)
    found = {"before": [block(program.step, settings["length"], device) for _ in range(settings["blocks"])]}
    ways = {"CUDA": both[-1:], "CPU": both[:1], "CPU and CUDA": both}
    for name in ways:
        found[name] = []
    found["between"] = []
    for _ in range(settings["blocks"] // 2):
        for name in random.sample(list(ways), len(ways)):
            found[name].append(with_profiler(program, settings["length"], device, ways[name]))
            found["between"].append(block(program.step, settings["length"], device))
    found["CPU and CUDA, shapes, memory"] = [with_profiler(program, settings["length"], device, ways["CPU and CUDA"], record_shapes=True,
                                                           profile_memory=True) for _ in range(2)]
    found["behind"] = [block(program.step, settings["length"], device) for _ in range(settings["blocks"])]
    return {"found": found}


def main():
    device = "cpu" if "--cpu" in sys.argv else "cuda"
    mode = peers if "--peers" in sys.argv else ours
    size, settings = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps({"torch": torch.__version__, **mode(size, settings, device)}))


if __name__ == "__main__":
    main()
