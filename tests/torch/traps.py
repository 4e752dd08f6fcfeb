# SPDX-License-Identifier: Apache-2.0
"""What scripts do with a profiler, and where torch.profiler lets them down. Prints what it found as JSON. Used by test_traps.py."""
import json
import os
import sys
import warnings

import torch
from torch import nn

from stepscope import ProfilerActivity, profile, record_function, schedule


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


def with_everything(found):
    """Lines, shapes and memory: no function of Python is a row, stacks and the memory timeline are written, names of all times."""
    training = Training()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, profile_memory=True, with_stack=True,
                     with_flops=True) as prof:
            for _ in range(3):
                training.step()
    found["warnings"] = [str(warning.message) for warning in caught]
    rows = prof.key_averages(group_by_stack_n=4)
    found["python_rows"] = [row.key for row in rows if ".py(" in row.key]
    found["sources"] = sorted({frame.rpartition("(")[0] for row in rows for frame in row.stack if "traps.py" in frame})
    found["names"] = {name: getattr(rows[0], name) for name in ("cuda_time", "cuda_time_total", "self_cuda_time_total",
                                                               "cuda_memory_usage", "self_cuda_memory_usage", "device_time_total")}
    found["negative"] = [event.name for event in prof.events() if event.self_cpu_time_total < 0]
    prof.export_stacks("stacks.txt", "self_cuda_time_total")
    prof.export_memory_timeline("timeline.json", device="cpu")
    prof.export_memory_timeline("timeline.html")
    rows.sort(key=lambda row: row.cpu_time_total, reverse=True)
    found["slicing"] = [len(rows[:3]), rows[0].cpu_time_total >= rows[-1].cpu_time_total, rows.total_average().count == sum(
        row.count for row in rows)]


def without_stacks(found):
    with profile() as prof:
        torch.ones(2)
    try:
        prof.export_stacks("no.txt")
    except AssertionError as problem:
        found["no_stacks"] = str(problem)
    try:
        prof.export_memory_timeline("no.json")
    except ValueError as problem:
        found["no_timeline"] = str(problem)


def described(found):
    """What a script says of the trace is in it, whatever it contains."""
    with profile(with_flops=True) as prof:
        torch.ones(2)
        prof.add_metadata("model", 'a "tiny" one')
        prof.add_metadata_json("sizes", "[1, 2]")
        prof.add_metadata_json("broken", "[1,")
        prof.add_metadata_json("traceEvents", "[]")
    prof.export_chrome_trace("described.json")
    with open("described.json", encoding="utf-8") as file:
        trace = json.load(file)
    found["described"] = [trace.get(key) for key in ("model", "sizes", "broken", "with_flops")]
    found["described"] += [trace["trace_id"] == prof.get_trace_id(), len(trace["traceEvents"]) > 0]


def by_torch(found):
    """backend="torch": its recording, through the same names, as for a device that we do not record."""
    ready = []
    with profile(backend="torch", record_shapes=True, schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                 on_trace_ready=lambda prof: ready.append(prof.step_num)) as prof:
        for _ in range(3):
            torch.neg(torch.ones(2))
            prof.step()
    prof.export_chrome_trace("theirs.json")
    rows = {row.key: row.count for row in prof.key_averages()}
    found["by_torch"] = [ready, rows["aten::neg"], type(prof.events()).__module__.partition(".")[0], os.path.exists("theirs.json"),
                         "aten::neg" in prof.key_averages().table()]


def toggled(found):
    """Operators while the collection is off are not there."""
    cpu = [ProfilerActivity.CPU]
    with profile(activities=cpu) as prof:
        torch.ones(2)
        prof.toggle_collection_dynamic(False, cpu)
        torch.zeros(2)
        prof.toggle_collection_dynamic(True, cpu)
        torch.neg(torch.ones(2))
    found["toggled"] = sorted({row.key for row in prof.key_averages()} & {"aten::ones", "aten::zeros", "aten::neg"})


def accumulated(found):
    """acc_events: the rows of all cycles."""
    by, ready = schedule(wait=1, warmup=0, active=1, repeat=3), []
    with profile(schedule=by, acc_events=True, on_trace_ready=ready.append, custom_trace_id_callback=lambda: "mine") as prof:
        for _ in range(6):
            torch.neg(torch.ones(2))
            prof.step()
    counts = {row.key: row.count for row in prof.key_averages()}
    found["accumulated"] = [counts["aten::neg"], counts["ProfilerStep*"], len(ready), prof.get_trace_id()]


def in_one_file(found):
    """Another process writes the same file: it is always a whole one."""
    child = os.fork()
    with profile() as prof:
        for _ in range(200):
            torch.ones(2)
    for _ in range(3):
        prof.export_chrome_trace("same.json")
    if child == 0:
        sys.stdout.flush()
        os._exit(0)
    found["child"] = os.waitpid(child, 0)[1]
    with open("same.json", encoding="utf-8") as file:
        found["same"] = sum(event["name"] == "aten::ones" for event in json.load(file)["traceEvents"])


def main():
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in (with_everything, without_stacks, described, by_torch, toggled, accumulated, in_one_file):
            case(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
