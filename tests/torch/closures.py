# SPDX-License-Identifier: Apache-2.0
"""closures.py PLACE OPTIMIZER [TRACE]: optimizer.step(closure), as Lightning calls it. The closure runs 15 ms of Python at the place: before the
forward, between, or after the backward. Prints the program's own clock: nanoseconds of a step, of its closures, and of the 15 ms in them.
TRACE: also writes a trace of torch.profiler."""
import contextlib
import json
import sys
import time

import torch

STEPS = 12
place, kind, *trace = sys.argv[1:]
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
optimizer = torch.optim.LBFGS(model.parameters(), 0.01, max_iter=3) if kind == "LBFGS" else getattr(torch.optim, kind)(model.parameters(), 0.01)
inside = calls = 0


def closure():
    global inside, calls
    begin = time.perf_counter_ns()
    if place == "before":
        time.sleep(0.015)
    loss = model(torch.randn(8, 64)).pow(2).mean()
    if place == "between":
        time.sleep(0.015)
    optimizer.zero_grad()
    loss.backward()
    if place == "after":
        time.sleep(0.015)
    calls += 1
    inside += time.perf_counter_ns() - begin
    return loss


with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if trace else contextlib.nullcontext() as profiler:
    optimizer.step(closure)  # makes its state
    inside, calls, start = 0, 0, time.perf_counter_ns()
    for _ in range(STEPS):
        optimizer.step(closure)
    print(json.dumps({"step_ns": (time.perf_counter_ns() - start) / STEPS, "closure_ns": inside / STEPS, "slept_ns": 15e6 * calls / STEPS}))
if trace:
    profiler.export_chrome_trace(trace[0])
