# SPDX-License-Identifier: Apache-2.0
"""What is recorded beside spans: what threads use of the processors, the options of loaders and optimizers, the way of a batch."""
import json
import subprocess

import pytest

from torch_tools import STEPSCOPE, environment, every_python, is_before, run, table, warm

TRAIN = """
import os, threading, time
import torch
torch.set_num_threads(1)
{before}
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 96
    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.ones(8)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
used = []
for x in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers={workers}):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    end = time.thread_time() + 0.008
    while time.thread_time() < end:
        pass
    optimizer.step()
{after}
"""
CROWD = "os.sched_setaffinity(0, {next(iter(os.sched_getaffinity(0)))})\nif os.fork() == 0:\n    end = time.time() + 20\n    while os.getppid() != 1 and time.time() < end: pass\n    os._exit(0)"


def train(tmp_path, python, before="", after="", workers=0, **options):
    (tmp_path / "train.py").write_text(TRAIN.format(before=before, after=after, workers=workers))
    done = warm(tmp_path, python, "train.py", **options)
    assert done.returncode == 0, done.stderr
    return table(tmp_path, "steps")


@pytest.mark.parametrize("budget", ["none", "1%"])
@every_python
def test_counted_steps_say_what_their_thread_used(tmp_path, python, budget):
    steps = train(tmp_path, python, budget=budget)[2:]
    assert len(steps) >= 20
    known = [row for row in steps if row["cpu_ns"] is not None]
    assert len(known) >= 0.9 * len(steps)
    for row in known:
        assert 8e6 <= row["cpu_ns"] <= row["duration_ns"]
        assert row["cpu_ns"] + row["wait_for_processor_ns"] <= row["duration_ns"]
        assert row["process_cpu_ns"] >= 0.95 * row["cpu_ns"]
    assert all(row["waits"] is None for row in steps)


@every_python
def test_a_busy_machine_shows_as_waits_for_a_processor(tmp_path, python):
    steps = train(tmp_path, python, before=CROWD)[2:]
    known = [row for row in steps if row["wait_for_processor_ns"] is not None]
    assert len(known) >= 0.8 * len(steps)
    waited, took = (sum(row[name] for row in known) for name in ("wait_for_processor_ns", "duration_ns"))
    assert 0.2 < waited / took < 0.9, waited / took


@every_python
def test_the_cost_has_the_readings(tmp_path, python):
    train(tmp_path, python)
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    (cost,) = [row for row in table(tmp_path, "cost") if row["events"] > 100]
    more = cost["events_ns"] - cost["events"] * float(facts["cost.event_ns"])
    readings = more / float(facts["cost.use_ns"])
    assert 24 * 2 < readings < 24 * 20, readings


LOADERS = """
import sys
import torch
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter([torch.ones(2)] * 12)
if __name__ == "__main__":
    data = [torch.ones(2)] * 12
    for loader in (torch.utils.data.DataLoader(data, batch_size=3),
                   torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, prefetch_factor=3, persistent_workers=True),
                   torch.utils.data.DataLoader(Stream(), batch_size=2, num_workers=1, multiprocessing_context="spawn"{in_order})):
        for _ in range(2):
            list(loader)
"""


@every_python
def test_the_options_of_loaders_are_facts(tmp_path, python):
    has_order = not is_before(python, 2, 6)
    (tmp_path / "train.py").write_text(LOADERS.replace("{in_order}", ", in_order=False" if has_order else ""))
    done = run(tmp_path, python, "train.py")
    assert done.returncode == 0, done.stderr
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    options = [{key.split(".")[2]: value for key, value in facts.items() if key.startswith(f"data_loader.{number}.")} for number in range(3)]
    order = [option.pop("in_order", None) for option in options]
    assert order == ([None, "true", "false"] if has_order else [None] * 3)
    assert options == [
        {"num_workers": "0", "persistent_workers": "false", "pin_memory": "false", "dataset_kind": "map"},
        {"num_workers": "2", "prefetch_factor": "3", "persistent_workers": "true", "multiprocessing_context": "fork", "pin_memory": "false",
         "dataset_kind": "map"},
        {"num_workers": "1", "prefetch_factor": "2", "persistent_workers": "false", "multiprocessing_context": "spawn", "pin_memory": "false",
         "dataset_kind": "iterable"}]


OPTIMIZERS = """
import os, torch
torch.set_num_threads(3)
os.sched_setaffinity(0, {next(iter(os.sched_getaffinity(0)))})
class Odd(torch.nn.Parameter):
    def numel(self):
        raise ValueError("asked")
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        asked.append(function)
        return super().__torch_function__(function, types, arguments, keywords or {})
asked = []
weights = [torch.nn.Parameter(torch.ones(10, 10)), torch.nn.Parameter(torch.ones(5, dtype=torch.float64))]
optimizers = [torch.optim.Adam([{"params": weights[:1]}, {"params": weights[1:], "foreach": True}]), torch.optim.LBFGS([torch.nn.Parameter(torch.ones(2))])]
optimizers += [torch.optim.SGD([Odd(torch.ones(7))], lr=0.1)]
asked.clear()
for _ in range(3):
    optimizers[0].step()
    optimizers[1].step(lambda: torch.zeros(()))
    optimizers[2].step()
print(len(asked))
"""


@every_python
def test_the_tensors_of_optimizers_are_facts(tmp_path, python):
    """Those that step, and a subclass of tensors is not asked in Python."""
    (tmp_path / "train.py").write_text(OPTIMIZERS)
    done = warm(tmp_path, python, "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == warm(tmp_path, python, "train.py", is_observed=False).stdout
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    assert [facts[f"optimizer.{number}"] for number in range(2)] == ["Adam", "LBFGS"]
    assert [facts[f"optimizer.0.parameter_{what}"] for what in ("tensors", "bytes", "dtypes", "devices")] == ["2", "440", "float32, float64", "cpu"]
    assert facts["optimizer.0.foreach"] == "default, true"
    assert facts["optimizer.1.foreach"] == "not an option of this optimizer" and facts["optimizer.1.parameter_bytes"] == "8"
    assert facts["optimizer.2.parameter_bytes"] == "28"
    assert facts["processors"] == "1" and facts["torch.threads"] == "3"


HANDOVER = """
import gc, sys, types
import multiprocessing.queues as queues
import torch
original = queues._ForkingPickler
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, index):
        return [torch.full((3,), float(index))] * 8
if {is_pinned}:
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available, torch.accelerator.current_device_index = (lambda: True), (lambda: 0)
        torch.accelerator.current_accelerator, torch.accelerator.set_device_index = (lambda: types.SimpleNamespace(type="cpu")), (lambda index: None)
    else:
        torch.cuda.is_available = lambda: True
        torch.cuda.current_device, torch.cuda.set_device = (lambda: 0), (lambda index: None)
    torch.utils.data._utils.pin_memory.pin_memory = lambda data, *device: data
if __name__ == "__main__":
    own = torch.multiprocessing.get_context("fork").Queue()
    total = 0
    for n, batch in enumerate(torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2{options})):
        own.put((n, batch[0]))
        total += float(own.get()[1].sum())
    gc.collect()
    print(total, queues._ForkingPickler is original)
"""
SPANS = """SELECT s.name, s.process, s.start_ns, s.dur_ns, a.key, a.value
           FROM spans s JOIN span_args a ON a.track = s.track AND a.span = s.span WHERE s.name IN ('DataLoader.dispatch', 'DataLoader.pickle', 'DataLoader.unpickle')
           ORDER BY s.process, s.start_ns"""


def handovers(tmp_path):
    """By kind: batch -> its span, with its facts."""
    done = subprocess.run([STEPSCOPE, "query", "run", "--json", SPANS], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    spans = {}
    for row in json.loads(done.stdout)["rows"]:
        spans.setdefault((row["process"], row["start_ns"], row["dur_ns"], row["name"]), {})[row["key"].partition("loader_")[2]] = int(row["value"])
    found = {"dispatch": {}, "pickle": {}, "unpickle": {}}
    for (process, start, duration, name), facts in spans.items():
        if "batch" in facts:
            kind = found[name.partition(".")[2]]
            assert facts["batch"] not in kind
            kind[facts["batch"]] = {**facts, "process": process, "start": start, "end": start + duration}
    return found


@pytest.mark.parametrize("options, is_pinned, budget", [("", False, "none"), ("", False, "0.1%"), (", in_order=False", False, "none"),
                                                        (", pin_memory=True", True, "none"), (", multiprocessing_context='spawn'", False, "none")])
@every_python
def test_the_way_of_each_batch(tmp_path, python, options, is_pinned, budget):
    if "in_order" in options and is_before(python, 2, 6):
        pytest.skip("this PyTorch has batches in order only")
    (tmp_path / "train.py").write_text(HANDOVER.format(options=options, is_pinned=is_pinned))
    done = run(tmp_path, python, "train.py", budget=budget)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(60 * 59 / 2 * 3), "True"]  # the program's result; and its pickler is the one it had
    found = handovers(tmp_path)
    assert all(sorted(batches) == list(range(15)) for batches in found.values()), found
    workers = {}
    for batch, sent in found["dispatch"].items():
        pickled, unpickled = found["pickle"][batch], found["unpickle"][batch]
        assert workers.setdefault(sent["worker"], pickled["process"]) == pickled["process"]
        assert pickled["bytes"] == unpickled["bytes"] > 100
        assert unpickled.get("loop", sent["loop"]) == sent["loop"]
        assert sent["process"] == unpickled["process"]
    assert sorted(workers) == [0, 1] and len(set(workers.values())) == 2
    loop, *of_workers = table(tmp_path, "data_loader")
    assert loop["dispatched"] == 15 == sum(row["dispatched"] for row in of_workers)
    assert loop["pickling_ns"] == sum(row["pickling_ns"] for row in of_workers) == sum(span["end"] - span["start"] for span in found["pickle"].values())
    assert loop["unpickling_ns"] == sum(span["end"] - span["start"] for span in found["unpickle"].values())
    assert loop["pickled_bytes"] == sum(span["bytes"] for span in found["pickle"].values())
