# SPDX-License-Identifier: Apache-2.0
"""A training script as it is written for torch.profiler. `profiled.py torch|stepscope CASE` runs it with the one or the other, and prints
what it found as JSON. Used by test_profiler.py."""
import json
import sys
import warnings

import torch
from torch import nn

if sys.argv[1] == "torch":
    from torch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
else:
    from stepscope import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

CPU = [ProfilerActivity.CPU]


class Training:
    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self):
        with record_function("forward"):
            loss = self.model(torch.randn(8, 16)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def rows(prof, **options):
    found = prof.key_averages(**options)
    return sorted([row.key, row.count, str(row.input_shapes), row.cpu_memory_usage, row.self_cpu_memory_usage] for row in found)


def whole():
    """Everything at once; the rows, the calls, and a loss that must not depend on who looks."""
    training = Training()
    training.step()
    with profile(activities=CPU, record_shapes=True, profile_memory=True, with_flops=True) as prof:
        loss = [training.step() for _ in range(3)]
    events = [[event.key, event.input_shapes, event.cpu_parent.name if event.cpu_parent else None, len(event.cpu_children),
               event.cpu_memory_usage] for event in prof.events()]
    selves = min(event.self_cpu_time_total for event in prof.events())
    flops = sorted([row.key, row.flops] for row in prof.key_averages() if row.flops)
    total = prof.profiler.self_cpu_time_total
    return {"rows": rows(prof), "shapes": rows(prof, group_by_input_shape=True), "events": events, "loss": loss, "flops": flops,
            "is_negative": selves < 0, "total": total, "sum": sum(row.self_cpu_time_total for row in prof.key_averages())}


def cycles():
    """Two cycles, each with results of its own, taken in the handler."""
    training, found = Training(), []

    def ready(prof):
        prof.export_chrome_trace(f"trace_{prof.step_num}.json")
        table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
        found.append({"step": prof.step_num, "rows": rows(prof), "lines": len(table.splitlines())})

    actions = []
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(10):
            actions.append(prof.current_action.name)
            training.step()
            prof.step()
    return {"cycles": found, "actions": actions, "step_num": prof.step_num}


def odd_state():
    """A schedule that makes torch.profiler 2.13 crash."""
    return states("RWRS")


def states(*texts):
    """Warnings and calls of every way through the schedule."""
    found = []
    for text in texts or ("NWRSN", "NN", "RN", "WN", "SSS", "NRRR", "WWW", "WRRS", "SNSW", "RNRS"):
        letters = {"N": ProfilerAction.NONE, "W": ProfilerAction.WARMUP, "R": ProfilerAction.RECORD,
                   "S": ProfilerAction.RECORD_AND_SAVE}
        ready, names = [], []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(activities=CPU, schedule=lambda step: letters[text[min(step, len(text) - 1)]],
                         on_trace_ready=lambda prof: ready.append(prof.step_num)) as prof:
                for _ in range(len(text)):
                    torch.ones(2)
                    prof.step()
            names = sorted({row.key for row in prof.key_averages()} - {"aten::zeros", "aten::zero_", "aten::empty"}) if prof.profiler is not None else None
        said = [str(warning.message) for warning in caught if "Incorrect schedule" in str(warning.message)]
        found.append([text, ready, said, prof.step_num, names])
    return found


def schedules():
    """The schedule function by itself, and what it refuses."""
    found = []
    for arguments in ({"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
                      {"wait": 2, "warmup": 0, "active": 3, "skip_first": 4}, {"wait": 3, "warmup": 2, "active": 1, "repeat": 3}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action = schedule(**arguments)
        found.append([[action(step).name for step in range(40)], [str(warning.message) for warning in caught]])
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 1, "active": 0}):
        try:
            schedule(**wrong)
            found.append("taken")
        except AssertionError:
            found.append("refused")
    return found


def board():
    """Traces for TensorBoard, there when the profiler has stopped."""
    import os

    training = Training()
    with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
                 on_trace_ready=tensorboard_trace_handler("board", use_gzip=True)) as prof:
        for _ in range(6):
            training.step()
            prof.step()
    return sorted(os.listdir("board"))


def main():
    print(json.dumps(globals()[sys.argv[2]]()))


if __name__ == "__main__":
    main()
