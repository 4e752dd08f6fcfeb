# SPDX-License-Identifier: Apache-2.0
"""callback.py KIND [TRACE]: epochs with a validation, and a callback behind it that sleeps for 300 ms and then looks at the loss. KIND: with a checkpoint
behind that, or without. Prints the program's own clock: nanoseconds of all validations, and of all callbacks. TRACE: also writes a trace of
torch.profiler."""
import contextlib
import io
import json
import sys
import time

import torch

kind, *trace = sys.argv[1:]
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loader = [torch.utils.data.DataLoader(torch.randn(count, 256), 8) for count in (80, 16)]
evaluated = called = 0
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if trace else contextlib.nullcontext() as profiler:
    for _ in range(4):
        model.train()
        for batch in loader[0]:
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        start = time.perf_counter_ns()
        model.eval()
        with torch.no_grad():
            for batch in loader[1]:
                model(batch).mean()
        evaluated += time.perf_counter_ns() - start
        start = time.perf_counter_ns()
        time.sleep(0.3)
        loss.detach()
        called += time.perf_counter_ns() - start
        if kind == "checkpoint":
            torch.save(model.state_dict(), io.BytesIO())
print(json.dumps({"evaluation_ns": evaluated, "callback_ns": called}))
if trace:
    profiler.export_chrome_trace(trace[0])
