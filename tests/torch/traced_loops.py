# SPDX-License-Identifier: Apache-2.0
"""Loops under torch.profiler without a schedule: traces whose steps and phases have to be found. `traced_loops.py LOOP TRACE`."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile

STEPS, BACKWARDS = 6, 4
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(8, 16)


def zeroed():
    model(batch).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(0.01 * parameter.grad)
            parameter.grad.zero_()


def dropped():
    model(batch).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None


def accumulated_by_hand():
    for _ in range(BACKWARDS):
        (model(batch).pow(2).mean() / BACKWARDS).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None


def in_one_call():
    model(batch).pow(2).mean().backward()
    parameters = list(model.parameters())
    with torch.no_grad():
        torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-0.01)
        torch._foreach_zero_([parameter.grad for parameter in parameters])


def accumulated():
    optimizer.zero_grad()
    for _ in range(BACKWARDS):
        (model(batch).pow(2).mean() / BACKWARDS).backward()
    optimizer.step()


def main():
    loop = globals()[sys.argv[1]]
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            loop()
    profiler.export_chrome_trace(sys.argv[2])


if __name__ == "__main__":
    main()
