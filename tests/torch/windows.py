# SPDX-License-Identifier: Apache-2.0
"""Trains with torch.profiler's own handler for TensorBoard, on a schedule that repeats: windows.py DIRECTORY."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
plan = schedule(wait=2, warmup=1, active=3, repeat=2)
with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=tensorboard_trace_handler(sys.argv[1]), profile_memory=True,
             record_shapes=True, with_stack=True) as profiler:
    for number in range(14):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        profiler.step()
