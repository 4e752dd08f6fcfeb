# SPDX-License-Identifier: Apache-2.0
"""`report --style torch` against torch's own table, byte for byte: both get the same events with the same times."""
import json
import os
import random
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, version

TORCH_SAMPLE = os.environ.get("TORCH_SAMPLE", "build/tests/unit/torch_sample")
START = 1_000_000_000
OP, ANNOTATION, TEXT = 3, 8, 20
NAMES = ["aten::mul", "aten::add", "aten::to", "autograd::engine::evaluate_function: SomethingBackward0 that is long",
         "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "x", "größe", "ProfilerStep#7", "ProfilerStep#8"]
SHAPES = ["[2, 3] []", "[]", "[] []", "[[1], [2]] []", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] [100000, 2] [3] [4, 5, 6, 7, 8, 9, 10, 11]", ""]
FRAMES = [("train.py", 12, "main"), ("a/" * 30 + "model.py", 3, "Model.forward"), ("x.py", 1, "f"), ("größe.py", 7, "<lambda>"),
          ("layers.py", 99, "Layer.forward_with_a_name_that_is_quite_long_and_goes_on_for_a_while_longer_than_a_column"),
          ("y.py", 2, "g"), ("z.py", 3, "h")]  # each called by the one before
DURATIONS = [200, 999, 1000, 1500, 12345, 999_999, 1_000_000, 1_234_500, 87_654_321, 999_999_500, 1_000_000_000, 3_210_987_654]


class Sample:
    """Random calls in two threads, as lines for torch_sample and as events for torch."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.symbols, self.lines, self.events, self.order = {}, [], [], 0
        for thread in (1, 2):
            self.lines.append((0, f"T {thread}"))
            now = START + self.random.randrange(5000)
            for _ in range(self.random.randrange(1, 8)):
                now = self.call(thread, now + self.random.randrange(1, 3000), 0, None)
                now = self.free_memory(thread, now)
        self.first = min(event["start_ns"] for event in self.events if event["name"] != "[memory]")

    def symbol(self, kind, text):
        return self.symbols.setdefault((kind, text), 1000 + len(self.symbols)) if text else 0

    def line(self, tick, text):
        self.order += 1
        self.lines.append((self.order, text.format(tick)))

    def allocate(self, thread, tick, around):
        size, address = self.random.choice([4, 1000, 1024, 5000, 3 << 20, 5 << 30]), self.random.randrange(1 << 20, 1 << 40)
        self.line(tick, f"A {thread} {{}} {address} {size}")
        for event in around:
            event["bytes"] += size
        return address, size

    def free_memory(self, thread, now):
        """Outside of all calls: allocated, and half of the time released."""
        if self.random.random() < 0.5:
            return now
        address, size = self.allocate(thread, now + 7, [])
        self.events.append(self.memory(thread, now + 7, size))
        if self.random.random() < 0.5:
            self.line(now + 9, f"F {thread} {{}} {address}")
            self.events.append(self.memory(thread, now + 9, -size))
        return now + 20

    @staticmethod
    def memory(thread, tick, size):
        return {"name": "[memory]", "thread": thread, "start_ns": tick, "end_ns": tick, "text": "", "bytes": size,
                "is_annotation": False}

    def call(self, thread, now, depth, parent):
        name = parent["name"] if parent and self.random.random() < 0.4 else self.random.choice(NAMES)
        is_annotation = name.startswith(("Profiler", "enumerate"))
        text = self.random.choice(SHAPES)
        frame = self.random.randrange(1, len(FRAMES) + 1)
        event = {"name": name, "frame": frame, "thread": thread, "start_ns": now, "text": text, "bytes": 0, "is_annotation": is_annotation,
                 "around": [*(parent["around"] if parent else []), parent] if parent else []}
        self.events.append(event)
        self.line(now, f"B {thread} {{}} {self.symbol(ANNOTATION if is_annotation else OP, name)} {self.symbol(TEXT, text)} {500 + frame}")
        if self.random.random() < 0.3:
            now += 1
            self.allocate(thread, now, [event, *event["around"]])
        for _ in range(self.random.choice([0, 1, 1, 2]) if depth < 4 else 0):
            now = self.call(thread, now + self.random.randrange(1, 100), depth + 1, event)
        now += self.random.choice(DURATIONS)
        event["end_ns"] = now
        self.line(now, f"E {thread} {{}}")
        return now

    def text(self):
        symbols = [f"G {501 + i} {500 + i if i else 0}|{line}|{name}|{file}" for i, (file, line, name) in enumerate(FRAMES)]
        symbols += [f"S {number} {kind} {text}" for (kind, text), number in self.symbols.items()]
        by_thread = [line for _, line in sorted(self.lines)]
        return "\n".join(symbols + by_thread) + "\n"

    def for_torch(self, flops):
        """`flops` by name and start, as we found them: here it is the table that is compared."""
        found = []
        for event in self.events:
            name = "ProfilerStep*" if event["name"].startswith("ProfilerStep#") else event["name"]
            found.append({"name": name, "thread": event["thread"], "start": (event["start_ns"] - self.first) / 1000,
                          "end": (event["end_ns"] - self.first) / 1000, "bytes": event["bytes"],
                          "is_annotation": event["is_annotation"], "shapes": shapes(event["text"]), "stack": stack(event.get("frame", 0)),
                          "flops": flops.get((name, (event["start_ns"] - self.first) / 1000), 0)})
        return found


def stack(frame):
    """Innermost first."""
    return [f"{file}({line}): {name}" for file, line, name in FRAMES[:frame]][::-1]


def shapes(text):
    """As torch has them: a list of tensors is shown as no tensor."""
    found = json.loads("[" + text.replace("] [", "], [") + "]") if text else []
    return [[] if sizes and isinstance(sizes[0], list) else sizes for sizes in found]


WIDTHS = [{}, {"max_src_column_width": 20}, {"max_src_column_width": None}, {"max_src_column_width": 3}]
SORT_KEYS = ["cpu_time", "cpu_time_total", "self_cpu_time_total", "cuda_time", "self_cuda_time_total", "cpu_memory_usage",
             "self_cpu_memory_usage", "count", "key"]


def calls():
    for by in ("name", "shape", "call"):
        for memory in (False, True):
            yield {"by": by, "memory": memory, "options": {}}
    for key in SORT_KEYS:
        yield {"by": "name", "memory": True, "options": {"sort_by": key}}
        yield {"by": "shape", "memory": True, "options": {"sort_by": key, "row_limit": 3}}
    for frames, options in zip((1, 2, 4, 9), WIDTHS):
        yield {"by": "name", "memory": True, "frames": frames, "options": {"sort_by": "count", **options}}
    for by in ("name", "shape"):
        yield {"by": by, "memory": True, "flops": True, "options": {"sort_by": "flops"}}
        yield {"by": by, "memory": False, "flops": True, "options": {"row_limit": -1}}
    for options in ({"row_limit": -1}, {"row_limit": 1}, {"row_limit": 0}, {"header": "a header"}, {"top_level_events_only": True},
                    {"top_level_events_only": True, "row_limit": 2, "header": "two", "sort_by": "count"},
                    {"max_name_column_width": 20}, {"max_name_column_width": None}, {"max_shapes_column_width": 10},
                    {"max_shapes_column_width": None}, {"time_unit": "us"}, {"time_unit": "ms"}, {"time_unit": "s"}):
        yield {"by": "shape", "memory": True, "options": options}


def our_options(call, is_old):
    names = {"sort_by": "--sort", "row_limit": "--limit", "header": "--header", "max_name_column_width": "--name-width",
             "max_shapes_column_width": "--shapes-width", "max_src_column_width": "--source-width", "time_unit": "--time-unit"}
    arguments = ["--style", "torch-1.13" if is_old else "torch", "--columns",
                 ",".join(word for word in ("memory", "flops") if call.get(word)) or "none"]
    arguments += {"name": [], "shape": ["--by", "shape"], "call": ["--events"]}[call["by"]]
    arguments += ["--frames", str(call["frames"])] if "frames" in call else []
    for name, value in call["options"].items():
        if name == "top_level_events_only":
            arguments.append("--top-level")
        elif not (is_old and name == "time_unit"):
            arguments += [names[name], "-1" if value is None else str(value)]
    return arguments


def report(tmp_path, *options):
    return subprocess.run([STEPSCOPE, "report", "run", *options], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          timeout=60, check=True).stdout


@pytest.mark.parametrize("seed", [1, 2])
@every_python
def test_the_same_bytes_as_torch(tmp_path, python, seed):
    sample, wanted = Sample(seed), list(calls())
    subprocess.run([TORCH_SAMPLE, "run"], input=sample.text(), cwd=tmp_path, text=True, check=True, timeout=60)
    is_old = version(python).startswith("1.")
    if is_old:  # where no event is a user's annotation
        for event in sample.events:
            event["is_annotation"] = False
    found = json.loads(report(tmp_path, "--style", "torch", "--events", "--json"))["events"]
    flops = {(event["name"], event["start"]): int(event["flops"]) for event in found}
    assert any(flops.values())
    done = subprocess.run([python, HERE / "torch_table.py"], input=json.dumps({"events": sample.for_torch(flops), "calls": wanted}),
                          capture_output=True, text=True, env=environment(), timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for call, theirs in zip(wanted, json.loads(done.stdout)):
        assert report(tmp_path, *our_options(call, is_old)) == theirs, call


TRAINING = """
import torch
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""


@every_python
def test_operators_that_were_not_recorded_are_not_none(tmp_path, python):
    done = run(tmp_path, python, "-c", TRAINING, options=["--steps", "none"])
    assert done.returncode == 0, done.stderr
    assert report(tmp_path, "--style", "torch").startswith(
        "operators: not measured: no step was recorded with operators; captured 3 steps with steps and phases only, as requested")
