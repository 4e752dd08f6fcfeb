# SPDX-License-Identifier: Apache-2.0
"""Profilers without step(), one after the other, of which a later one is the first with an option: ranges_of_windows.py WHO OPTION.

Prints for each window the time of its first range by the program's clock, and as the profiler shows it, in ns. Writes each window's trace."""
import importlib
import json
import sys
import time

import torch

profiler = importlib.import_module("torch.profiler" if sys.argv[1] == "torch" else "stepscope")
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
optimizer = torch.optim.AdamW(model.parameters())
optimizer.zero_grad()
results = []
for window, options in enumerate(({}, {}, {sys.argv[2]: True}, {})):
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options) as prof:
        start = time.perf_counter_ns()
        with profiler.record_function("forward_pass"):
            loss = model(torch.ones(8, 64)).sum()
        stamp = time.perf_counter_ns() - start
        time.sleep(0.02)
        with profiler.record_function("backward_pass"):
            loss.backward()
        with profiler.record_function("optimizer_step"):
            optimizer.step()
            optimizer.zero_grad()
    prof.export_chrome_trace(f"{window}.json")
    results.append((stamp, [each.time_range.elapsed_us() * 1000 for each in prof.events() if each.name == "forward_pass"]))
print(json.dumps(results))
