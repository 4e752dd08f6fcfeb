#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train.py OUT.json: a training whose loop waits for data, traced by torch.profiler with stacks. OUT.json is its trace; on stdout what the
program measured itself, a line a step: nanoseconds of the step, and of the wait for its batch. README.md says how the files here were made."""
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.randn(64), torch.tensor(index % 10)


def main():
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(net.parameters())
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=2))
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=4), with_stack=True,
                 on_trace_ready=lambda done: done.export_chrome_trace(sys.argv[1])) as profiler:
        for step in range(6):
            start = time.perf_counter_ns()
            x, y = next(batches)
            batch = time.perf_counter_ns()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step > 1:
                print(time.perf_counter_ns() - start, batch - start)
            profiler.step()


main()
