# SPDX-License-Identifier: Apache-2.0
"""Broken copies of real traces: never "healthy" where the whole trace is not, never a saving above the step, no crash.

MUTATIONS in the environment sets their number (default: 50). The nth mutation is the same in each run.
"""
import collections
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "truth"))
import zstd_text  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "data" / "gpu_truth"
STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
COUNT = int(os.environ.get("MUTATIONS", "50"))
# Cut files, lost ids, shifted clocks and lost durations that were called healthy; and one that has no operators.
ONCE_WRONG = (70, 219, 257, 452, 753, 845)
TRACES = ("compile", "item", "fp32", "pageable", "graph")
CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cpu_op", "user_annotation")
texts = {}


def text_of(name):
    if name not in texts:
        texts[name] = zstd_text.decompress((DATA / f"{name}.json.zst").read_bytes()).decode()
    return texts[name]


def is_of(event, category):
    return event.get("cat") == category


def drop(chance, document):
    """Drops a category, or a part of it."""
    category, part = chance.choice(CATEGORIES), chance.choice((0.02, 0.3, 1.0))
    document["traceEvents"] = [e for e in document["traceEvents"] if not is_of(e, category) or chance.random() >= part]


def shift_clock(chance, document):
    """Shifts what devices did against the host."""
    shift = chance.choice((-5000, -50, 50, 5000))
    for event in document["traceEvents"]:
        if event.get("cat") in CATEGORIES[:3]:
            event["ts"] += shift


def change_pids(chance, document):
    pid = chance.choice((1, 7, 15, 4711))
    host = max(collections.Counter(e["pid"] for e in document["traceEvents"] if is_of(e, "cpu_op")).items(), key=lambda item: item[1], default=(None,))[0]
    for event in document["traceEvents"]:
        if event.get("pid") == host:
            event["pid"] = pid


def rename(chance, document):
    for event in document["traceEvents"]:
        if is_of(event, "kernel"):
            event["name"] = f"kernel_{hash(event['name']) % 7}" if chance.random() < 0.5 else "ncclDevKernel_AllReduce"


def lose_durations(chance, document):
    category, part = chance.choice(CATEGORIES), chance.choice((0.05, 1.0))
    for event in document["traceEvents"]:
        if is_of(event, category) and chance.random() < part:
            event["dur"] = chance.choice((0, -5, 1e9))


def lose_correlations(chance, document):
    part = chance.choice((0.05, 0.5, 1.0))
    for event in document["traceEvents"]:
        if "correlation" in event.get("args", {}) and chance.random() < part:
            event["args"]["correlation"] = chance.choice((0, 1, 2**63))


def double(chance, document):
    document["traceEvents"] += [dict(e) for e in document["traceEvents"] if chance.random() < 0.1 and e.get("ph") == "X"]


def shuffle(chance, document):
    chance.shuffle(document["traceEvents"])


KINDS = (drop, shift_clock, change_pids, rename, lose_durations, lose_correlations, double, shuffle)


def mutated(number):
    """Returns the name of the trace, the words of the mutation, and its text."""
    chance = random.Random(number)
    name = chance.choice(TRACES)
    if number % 5 == 0:
        part = chance.uniform(0.1, 0.99)
        return name, f"cut at {part:.2f}", text_of(name)[:int(part * len(text_of(name)))]
    document, kinds = json.loads(text_of(name)), chance.sample(KINDS, chance.choice((1, 1, 2)))
    for kind in kinds:
        kind(chance, document)
    return name, ", ".join(kind.__name__ for kind in kinds), json.dumps(document)


def check_saving(saving_ns, ratio, words):
    assert saving_ns is None or saving_ns >= 0, words
    assert ratio is None or 0 <= ratio <= 1, words


@pytest.mark.parametrize("number", sorted({*range(COUNT), *ONCE_WRONG}))
def test_mutation(tmp_path, number):
    name, words, text = mutated(number)
    path = tmp_path / "trace.json"
    path.write_text(text)
    done = subprocess.run([STEPSCOPE, "diagnose", "--json", path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 3), (name, words, done.returncode, done.stderr[-2000:])
    if done.returncode == 3:
        return
    found = json.loads(done.stdout)
    if name != "graph":
        assert found["verdict"]["verdict"] != "healthy", (name, words, found["verdict"])
    check_saving(found["verdict"]["saving_ns"], found["verdict"]["saving_ratio"], words)
    for finding in found["findings"]:
        check_saving(finding["saving_ns"], finding["saving_ratio"], (name, words, finding))
        if finding["cut"]:
            assert finding["saving_low_ratio"] <= finding["saving_ratio"] <= finding["saving_high_ratio"], (name, words)
