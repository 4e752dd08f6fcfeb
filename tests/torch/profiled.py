# SPDX-License-Identifier: Apache-2.0
"""A training script as it is written for torch.profiler. `profiled.py torch|stepscope CASE` runs it with the one or the other, and prints
what it found as JSON. Used by test_profiler.py."""
import copy
import gc
import json
import os
import pickle
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist
from torch import nn

if sys.argv[1] == "torch":
    from torch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
else:
    from stepscope import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

HAS_KINETO = not torch.__version__.startswith("1.")
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


def loading():
    """Loops over a loader with workers, a checkpoint, collections of garbage: of some of this PyTorch has no records."""
    data = torch.utils.data.TensorDataset(torch.randn(32, 16))
    with profile(activities=CPU) as prof:
        for _ in range(2):
            for batch, in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork"):
                batch.neg()
        gc.collect()
        torch.save({"weights": torch.ones(4)}, "model.pt")
    return sorted({row.key for row in prof.key_averages()}), sorted({event.name for event in prof.events()})


class Forking(nn.Module):
    """jit.fork: PyTorch hands on to its own thread what is observed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul(2)

    @torch.jit.export
    def twice(self, x: torch.Tensor) -> torch.Tensor:
        work = torch.jit.fork(self.forward, x)
        return torch.jit.wait(work) + 1


FORKING = Forking()


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


class Other(threading.Thread):
    """Runs operators beside the training."""

    def __init__(self):
        super().__init__()
        self.is_over, self.rounds = False, 0
        self.start()

    def run(self):
        while not self.is_over:
            with record_function("of another thread"):
                torch.ones(3).neg().sigmoid()
            self.rounds += 1

    def wait(self, rounds):
        begun = self.rounds
        while self.rounds < begun + rounds:
            time.sleep(0)


def threads(config=None):
    """Threads that run operators, begun before the profiler and in it, and one that works for the profiled one. Which rows there are."""
    torch.set_num_interop_threads(1)  # which of several takes a task is a matter of chance
    training = Training()
    forked = torch.jit.script(FORKING) if HAS_KINETO else None  # Debian's 1.13 does not survive its own threads
    for _ in range(3 if forked else 0):
        forked.twice(torch.ones(2))
    before = Other()
    before.wait(1)
    with profile(activities=CPU, **({"experimental_config": config} if config else {})) as prof:
        other = Other()
        training.step()
        before.wait(5)
        other.wait(5)
        if forked:
            forked.twice(torch.ones(2))
    for thread in before, other:
        thread.is_over = True
        thread.join()
    return {"rows": rows(prof), "threads": len({event.thread for event in prof.events()})}


def all_threads():
    """What torch.profiler sees when it is asked for all threads."""
    return [row[0] for row in threads(torch._C._profiler._ExperimentalConfig(profile_all_threads=True))["rows"]]


def attributes():
    """Of calls, one by one; what is a number of this process is left out, or compared with the first one."""
    training, found = Training(), []
    training.step()
    with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
        training.step()
        torch.cat([torch.ones(2, 3), torch.ones(1, 3)], 0).sum([0, 1], True)
    first = min(event.sequence_nr for event in prof.events() if event.sequence_nr >= 0)
    for event in prof.events():
        one = {name: getattr(event, name) for name in NAMES if hasattr(event, name)}
        one["sequence_nr"] = event.sequence_nr - (first if event.sequence_nr >= 0 else 0)
        one["device_type"] = str(event.device_type)
        if event.name == "[memory]":
            one["trace_name"] = None
        found.append([event.name, one])
    scopes = sorted([row.key, row.scope, row.node_id, row.is_async] for row in prof.key_averages())
    return {"events": found, "names": public(prof.events()[0]), "lists": public(prof.events()), "averages": public(prof.key_averages()[0]),
            "scopes": scopes}


def lists():
    """What scripts do with the lists."""
    training = Training()
    with profile(activities=CPU, record_shapes=True) as prof:
        training.step()

    def names(found):
        return sorted(row.key for row in found)

    averages, found = prof.key_averages, []
    found.append([names(averages() + averages()), names([] + averages()), names(2 * averages()), names(averages() * 2)])
    found.append([names(averages()[1:]), type(averages()[:2]).__name__, names(averages().copy()), averages() == averages(),
                  names(copy.copy(averages())), names(pickle.loads(pickle.dumps(averages()))), len(copy.deepcopy(prof.events()))])
    rows = averages()
    rows.sort(key=lambda row: (row.count, row.key))
    lines = rows.table(row_limit=3).splitlines()
    found.append([[line.split()[0] for line in lines[3:6]], len(lines), [row.key for row in rows][:5]])
    rows += [rows[0]]
    found.append([len(rows), len(rows.table(row_limit=-1).splitlines())])
    del rows[3:]
    found.append([names(rows), len(str(rows).splitlines()), rows.total_average().count])
    rows.clear()
    found.append([rows.table(), bool(rows), rows.self_cpu_time_total])
    total, event = averages().total_average(), prof.events().total_average()
    found.append([total.key, total.count, event.key, event.count])
    first, second = (row for row in prof.events() if row.key == "aten::addmm")
    first_row, = (row for row in averages() if row.key == "aten::addmm")
    first_row += second
    found.append([first_row.count, first.cpu_parent.name, [child.name for child in first.cpu_children], first in prof.events(),
                  prof.events().supported_export_stacks_metrics() if hasattr(prof.events(), "supported_export_stacks_metrics") else None])
    prof.events().export_chrome_trace("list.json")
    with open("list.json", encoding="utf-8") as trace:
        found.append([(event["name"], event["tid"], sorted(event)) for event in json.load(trace)])
    found.append([line.split()[0] for line in averages(group_by_input_shape=True).table(sort_by="count").splitlines()[3:-2] if line])
    return found


NAMES = ("trace_name", "thread", "fwd_thread", "scope", "input_shapes", "structured_input_shapes", "structured_input_strides",
         "concrete_inputs", "kwinputs", "input_dtypes", "is_async", "is_remote", "is_user_annotation", "is_python_function", "activity_type",
         "linked_correlation_id", "node_id", "overload_name", "stack", "kernels", "python_id", "python_parent_id", "event_metadata", "flops",
         "use_device", "is_legacy", "cpu_memory_usage", "self_cpu_memory_usage", "count", "total_device_percent")


def public(thing):
    return [name for name in dir(thing) if not name.startswith("_")]


def misuse():
    """What a script may get wrong, and what it is told."""
    found, calls = [], []

    def attempt(name, call):
        try:
            found.append([name, repr(call())[:20]])
        except Exception as problem:
            found.append([name, type(problem).__name__, str(problem).split("\n", maxsplit=1)[0]])

    attempt("stop only", profile(activities=CPU).stop)
    attempt("stop while waiting", profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=1)).stop)
    attempt("stop while warming up", profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1)).stop)
    prof = profile(activities=CPU, on_trace_ready=lambda prof: calls.append(1))
    attempt("step only", prof.step)
    for call in (prof.start, prof.start, prof.stop, prof.stop):
        attempt(f"twice: {call.__name__}", call)
    found.append(calls)
    for name, options in (("no activity", {"activities": []}), ("a number", {"activities": CPU, "schedule": 5}),
                          ("stopped", {"activities": CPU, "schedule": lambda step: getattr(ProfilerAction, "DEVICE_STOPPED", None)})):
        attempt(name, lambda options=options: profile(**options) and 1)
    with profile(activities=CPU) as prof:
        torch.ones(1)
    attempt("sort", lambda: prof.key_averages().table(sort_by="nothing"))
    attempt("no rows", lambda: len(prof.key_averages().table(row_limit=0).splitlines()))
    attempt("stacks", lambda: prof.export_stacks("stacks.txt"))
    attempt("nowhere", lambda: prof.export_chrome_trace("/nonexistent/trace.json"))
    attempt("in a row", lambda: profile(CPU))
    for types in (["x"], ["CPU_OP", "user_annotation"], ["GPU_MEMCPY"]):
        attempt("a type", profile(activities=[{ProfilerActivity.CPU: types}]).start)
    attempt("a timeout", profile(activities=CPU, post_processing_timeout_s=-1.0, schedule=schedule(wait=1, warmup=1, active=1)).start)
    attempt("a timeout", profile(activities=CPU, post_processing_timeout_s=-1.0).start)
    return found


def board():
    """Traces for TensorBoard, there when the profiler has stopped."""
    training = Training()
    with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
                 on_trace_ready=tensorboard_trace_handler("board", use_gzip=True)) as prof:
        for _ in range(6):
            training.step()
            prof.step()
    return sorted(os.listdir("board"))


def metadata():
    """What is said of a trace is in that one, from the warm-up to the end of what it records."""
    found = []

    def tell(prof):
        prof.export_chrome_trace("said.json")
        with open("said.json", encoding="utf-8") as file:
            found.append({key: value for key, value in json.load(file).items() if key.startswith("my")})

    prof = profile(activities=CPU)
    prof.add_metadata("my early", "0")
    prof.preset_metadata_json("my preset", '{"x": 1}')
    with prof:
        prof.add_metadata("my", "1")
        torch.ones(1)
    prof.add_metadata("my late", "2")
    tell(prof)
    with profile(activities=CPU) as other:
        torch.ones(1)
    tell(other)
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=1, repeat=2), on_trace_ready=tell) as prof:
        for step in range(7):
            prof.add_metadata(f"my {step}", "")
            prof.step()
    try:
        with profile(activities=CPU) as prof:
            prof.add_metadata("my", 5)
    except Exception as problem:
        found.append([type(problem).__name__, str(problem)])
    return found


def inputs():
    """Lists of tensors and of values, also where they are all there is."""
    with profile(activities=CPU, record_shapes=True) as prof:
        torch._foreach_sqrt([torch.ones(4, 6)])
        torch.block_diag(torch.ones(2, 2), torch.ones(3, 1))
        torch.cat([torch.ones(2, 2), torch.ones(3, 2)])
        nn.functional.layer_norm(torch.ones(2, 3, requires_grad=True), (3,)).sum().backward()
    prof.export_chrome_trace("inputs.json")
    with open("inputs.json", encoding="utf-8") as file:
        args = {event["name"]: event["args"] for event in json.load(file)["traceEvents"] if "args" in event}
    names = ("aten::_foreach_sqrt", "aten::block_diag", "aten::cat")
    return [[event.name, event.input_shapes, event.structured_input_shapes, event.structured_input_strides] for event in prof.events()
            if event.name in names], [event.concrete_inputs for event in prof.events() if event.name == "aten::native_layer_norm_backward"], [
                [args[name]["Input Dims"], args[name]["Input Strides"]] for name in names]


def asyncs():
    """Ranges that no thread can call its own: what gloo executes, and what ends in another thread, or behind the profiler."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(100)
    future = torch.futures.Future()
    dist.all_reduce(tensor)
    with profile(activities=CPU, profile_memory=True) as prof:
        with record_function("around"):
            dist.all_gather([torch.ones(100)], tensor)  # copies in gloo's thread
            with record_function("later") as later:
                later._call_end_callbacks_on_future(future)
            thread = threading.Thread(target=future.set_result, args=(1,))
            with record_function("inside"):
                torch.ones(3)
                thread.start()
                thread.join()
                time.sleep(0.05)
        left_open = record_function("left open")
        left_open.__enter__()
        torch.ones(5)
    left_open.__exit__(None, None, None)
    dist.destroy_process_group()
    names = ["around", "gloo:all_gather", "later", "inside", "aten::ones", "left open"]
    names += ["aten::copy_"] if HAS_KINETO else []  # 1.13 does not follow gloo's threads there
    events = [event for event in prof.events() if event.name in names]
    table = {line.split()[0]: line.split()[1:4] for line in prof.key_averages().table(row_limit=-1).splitlines() if "gloo:" in line}
    took = {event.name: event.cpu_time_total for event in events}
    total = prof.events().self_cpu_time_total
    return {"events": sorted([event.name, event.is_async, event.is_async and event.self_cpu_time_total, event.is_async and
                              event.self_cpu_memory_usage, event.cpu_parent.name if event.cpu_parent else ""] for event in events),
            "rows": sorted([row.key, row.is_async, row.is_async and row.self_cpu_time_total] for row in prof.key_averages() if row.key in names),
            "table": table, "is_short": took["later"] < 50e3 < took["inside"],
            "is_sum": abs(total - sum(row.self_cpu_time_total for row in prof.key_averages())) < 1e-4 * total}


def releases():
    """What was there before is released in the window, as is what is made there."""
    before = torch.ones(3000)
    with profile(activities=CPU, profile_memory=True) as prof:
        del before
        torch.ones(500)
    prof.export_chrome_trace("memory.json")
    with open("memory.json", encoding="utf-8") as file:
        trace = json.load(file)
    return [event["args"]["Bytes"] for event in trace["traceEvents"] if event["name"] == "[memory]"]


def main():
    print(json.dumps(globals()[sys.argv[2]]()), flush=True)
    if "threads" in sys.argv[2]:
        os._exit(0)  # a Python that ends with PyTorch's own threads sometimes crashes, with and without us


if __name__ == "__main__":
    main()
