# SPDX-License-Identifier: Apache-2.0
"""Builders of small traces and the fixture `trace`, which writes one and reads tables of it, for test_hard_*.py. A test file imports
fixture_trace, so that pytest finds the fixture."""
import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pytest

STEP = 1000  # us
TESTS = Path(__file__).resolve().parent.parent


def span(name, start, duration, category="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def kernel(name, start, duration, stream=7, **args):
    return span(name, start, duration, "kernel", 0, stream, device=0, stream=stream, **args)


def launch(start, correlation, name="cudaLaunchKernel", category="cuda_runtime"):
    return span(name, start, 5, category, correlation=correlation)


def step(number, start, duration=STEP, **where):
    return span(f"ProfilerStep#{number}", start, duration, "user_annotation", **where)


class Trace:
    def __init__(self, folder):
        self.path = folder / "trace.json"

    def write(self, events, **keys):
        self.path.write_text(json.dumps({"traceEvents": events, **keys}))
        return self

    def run(self, *arguments):
        done = subprocess.run([os.environ["STEPSCOPE"], "report", self.path, *arguments], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and b"defect" not in done.stderr, done.stderr
        return done.stdout.decode()

    def table(self, name):
        return json.loads(self.run("--table", name, "--json"))["rows"]

    def query(self, sql):
        done = subprocess.run([os.environ["STEPSCOPE"], "query", self.path, "--csv", sql], capture_output=True, timeout=60, check=True)
        return list(csv.reader(io.StringIO(done.stdout.decode())))[1:]

    def ledger(self):
        return [row["sentence"] for row in self.table("ledger")]


@pytest.fixture(name="trace")
def fixture_trace(tmp_path):
    return Trace(tmp_path)
