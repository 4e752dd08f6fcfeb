# SPDX-License-Identifier: Apache-2.0
"""What must be true of reports on whole and on changed traces: see metamorphic.py, which also runs 100,000 of them (tests/metamorphic-results.txt)."""
import random

import metamorphic
import pytest

SMALL = [path for path in metamorphic.FILES if path.stat().st_size < 1 << 16]  # the others: metamorphic.py --corpus, in `make test-all`


def test_whole_traces(tmp_path):
    """R01 to R10."""
    problems = [(str(path), problem) for _, path, problem, _ in metamorphic.run_corpus(SMALL, tmp_path) if problem]
    assert not problems


@pytest.mark.parametrize("part", range(4))
def test_changed_traces(tmp_path, part):
    problems = [(i, str(path), problem) for i, path, problem, _ in metamorphic.run(f"gate {part}", 0, 50, tmp_path) if problem]
    assert not problems


def test_it_finds_what_is_wrong(tmp_path):
    """A report that the order of the file changes, or that is no JSON, would be seen."""
    checker = metamorphic.Checker(tmp_path)
    with pytest.raises(metamorphic.Failed):
        checker.same("R01", '"self_ns": 1', '"self_ns": 2')
    checker.same("R03", '"start_ns": 1, "a": 2', '"start_ns": 3, "a": 2')


def span(name, start, duration=5, category="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


# What changed traces have shown, made small.
FOUND = {
    "numbered spans between equal ones": [span("call", 10, 0, "cuda_runtime", correlation=n, **{"External id": 4}) for n in (59, 60, 59)],
    "two threads that do as much": [span(name, 100 * i + 50 * tid, 40, tid=tid, **{"External id": 2 * i + tid})
                                    for i, name in enumerate(["aten::linear", "MmBackward", "Optimizer.step#SGD.step"] * 3) for tid in (1, 2)],
    "steps that begin together": [span("ProfilerStep#1", 10, 100, "user_annotation"), span("ProfilerStep#2", 10, 122, "user_annotation"), span("a", 12)],
    "launched by what is no thread": [span("a", 1, 50), span("cudaLaunchKernel", 5, 4, "cuda_runtime", correlation=7),
                                      span("k", 20, 5, "kernel", 0, 7, correlation=8, device=0),
                                      span("cudaLaunchKernel", 15, 4, "cuda_runtime", "", "", correlation=8)],
    "a stream below 0": [span("k", 1, 5, "kernel", 0, -1, device=0, stream=7)],
    "more bytes than there are": [span("Memset", 1, 5, "gpu_memset", 0, 7, device=0, stream=7, bytes=1e300)],
    "a block that is released and taken again at once":
        [{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
          "args": {"Bytes": size, "Addr": 4096, "Device Id": 0, "Device Type": 1, "Ev Idx": number}} for size, number in ((-8, 1), (8, 2), (-8, 3))],
    "begun at once, without a category": [span("a", 1, 9)] + [{"ph": "b", "name": name, "pid": 3, "tid": 0, "ts": 2, "id": 1} for name in "xy"],
    "what a terminal obeys": [span("\x1b]52;c;x\x07", 1)],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(tmp_path, name):
    checker = metamorphic.Checker(tmp_path)
    for seed in range(8):
        checker.check(random.Random(seed), FOUND[name], ["ops.csv", *metamorphic.EXPORTS])
    checker.reporter.close()
