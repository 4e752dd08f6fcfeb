# SPDX-License-Identifier: Apache-2.0
"""Profiles a few real steps with torch.profiler: writes its trace to TRACE and its own tables to TRACE.name, TRACE.shape and, where they have
any, with 3 lines of Python to TRACE.frames. With "collectives" gradients are averaged, by one rank."""
import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def main():
    trace, wanted = sys.argv[1], sys.argv[2].split(",")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # else 2.13 has lines in its traces, but not in its tables
    more = {"experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)} if "frames" in wanted else {}
    steps = {"schedule": schedule(wait=1, warmup=1, active=2)} if "steps" in wanted else {}
    if "collectives" in wanted:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes="shapes" in wanted, profile_memory="memory" in wanted,
                 with_stack="stack" in wanted or "frames" in wanted, with_flops="flops" in wanted, **steps, **more) as profiler:
        for _ in range(4):
            with record_function("forward"):
                loss = model(torch.randn(8, 3, 16, 16)).logsumexp(1).mean()
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters() if "collectives" in wanted else ():
                dist.all_reduce(parameter.grad)
            optimizer.step()
            if steps:
                profiler.step()
    profiler.export_chrome_trace(trace)
    with open(trace + ".name", "w", encoding="utf-8") as file:
        file.write(profiler.key_averages().table(row_limit=-1))
    with open(trace + ".shape", "w", encoding="utf-8") as file:
        file.write(profiler.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total"))
    if "frames" in wanted:
        with open(trace + ".frames", "w", encoding="utf-8") as file:
            file.write(profiler.key_averages(group_by_stack_n=3).table(row_limit=-1))


if __name__ == "__main__":
    main()
