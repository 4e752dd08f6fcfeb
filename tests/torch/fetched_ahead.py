# SPDX-License-Identifier: Apache-2.0
"""fetched_ahead.py WORK [TRACE]: a loop that fetches the four batches of an accumulation first, as transformers.Trainer does, and moves or prepares each.
Prints the program's own clock: nanoseconds in which a step, but not the first one, waits for its batches. TRACE: also writes a trace of torch.profiler."""
import contextlib
import json
import sys
import time

import torch

STEPS, GROUP = 12, 4
work, *trace = sys.argv[1:]


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return GROUP * STEPS

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.randn(64)


def prepare(batch):
    return batch.to(torch.float64).to(torch.float32) if work == "moved" else (batch - batch.mean()) / batch.std()


model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
waited = 0
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if trace else contextlib.nullcontext() as profiler:
    batches = iter(torch.utils.data.DataLoader(Slow(), 1))
    for step in range(STEPS):
        group = []
        for _ in range(GROUP):
            start = time.perf_counter_ns()
            group.append(next(batches))
            waited += time.perf_counter_ns() - start if step else 0
            group[-1] = prepare(group[-1])
        for batch in group:
            model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
print(json.dumps({"data_ns": waited / (STEPS - 1)}))
if trace:
    profiler.export_chrome_trace(trace[0])
