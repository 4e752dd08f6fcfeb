#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""metamorphic.py [--seed N] [--count N] [--save]: changes real traces at random and asks what must be true of any report.

R01 the order of the file does not matter, R03 nor does the time it begins at, R04 nor that numbered events are there twice; R05 to R07 are
declared on the columns, so every report checks them and a defect is on stderr; R08 what it writes is JSON and CSV to strict readers.
R02, a trace cut in two, is in test_kineto_corpus.py. Nothing crashes, and a trace without anything to show ends with status 3.
A trace's number and the seed give the same changes again. test_metamorphic.py runs some hundred of them in the gate."""
import argparse
import collections
import copy
import csv
import datetime
import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
FILES = sorted(p for p in [*(DATA / "traces").rglob("*"), *(DATA / "hta_ns_resolution").iterdir()]
               if p.suffix in (".json", ".gz") and p.stat().st_size < 1 << 20)
EVENTS_MAX = 250
NAMES = ["", " ", "a;b", "a\tb", "<b>&", "\u202eabc", "x" * 5000, "__proto__", "1", "%s%n", "a,b\"c", "\x1b]52;c;x\x07", "\u00e9\u6f22"]
# Moments, which move with the trace, and what a shuffled file says about places in it.
ABSOLUTE = re.compile(r'"(start_ns|end_ns|time_ns|first_ns|last_ns|at_ns|first_time_ns|peak_ns|first_offset|created|wall_start\w*)": [^,\n]*')


def read_events(path):
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=str)
    return document if isinstance(document, list) else document.get("traceEvents", [])


def number(value):
    return float(value) if isinstance(value, (str, int, float)) and str(value).replace(".", "", 1).lstrip("-").isdigit() else 0.0


class Changes:
    """What may happen to an event; times are whole nanoseconds in microseconds, so that sums are exact."""

    def __init__(self, rng, events):
        self.rng, self.events = rng, events

    def any(self):
        return self.rng.choice(self.events)

    def drop(self):
        self.events.pop(self.rng.randrange(len(self.events)))

    def longer(self):
        event = self.any()
        event["dur"] = f"{number(event.get('dur', 0)) * self.rng.choice([0, 0.5, 2, 10, 1000]):.3f}"

    def later(self):
        event = self.any()
        event["ts"] = f"{abs(number(event.get('ts', 0)) + self.rng.choice([-5, -0.001, 0.001, 1, 1000])):.3f}"

    def same_time(self):
        self.any()["ts"] = self.any().get("ts", 0)

    def no_duration(self):
        self.any().pop("dur", None)

    def negative(self):
        self.any()["dur"] = -1

    def renamed(self):
        self.any()["name"] = self.rng.choice(NAMES)

    def moved(self):
        event, other = self.any(), self.any()
        event["pid"], event["tid"] = other.get("pid", 0), other.get("tid", 0)

    def category(self):
        self.any()["cat"] = self.any().get("cat", "other")

    def phase(self):
        self.any()["ph"] = self.rng.choice(["X", "i", "C", "s", "f", "M", "Z", ""])

    def no_args(self):
        self.any()["args"] = self.rng.choice([{}, None, {"correlation": 0}, {"External id": -1, "device": 99}])

    def arg(self):
        args = self.any().get("args")
        if args:
            args[self.rng.choice(sorted(args))] = self.rng.choice([0, -1, 2**63, "x", None, [], [[1, -2]], {}, 1e300, True])

    def twice(self):
        self.events.append(copy.deepcopy(self.any()))


CHANGES = [name for name in vars(Changes) if not name.startswith("_") and name != "any"]


def mutated(rng, whole):
    """A stretch of a trace with some changes, what belongs to its beginning included."""
    metadata = [event for event in whole if event.get("ph") == "M"][:30]
    timed = [event for event in whole if event.get("ph") != "M"]
    start, length = rng.randrange(max(1, len(timed) - EVENTS_MAX)), rng.randrange(2, EVENTS_MAX)
    events = copy.deepcopy(metadata + timed[start:start + length])
    changes = Changes(rng, events)
    for _ in range(rng.choice([0, 1, 3, 10])):
        if events:
            getattr(changes, rng.choice(CHANGES))()
    return events


def text_of(events, base=10**18):
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events})


class Failed(Exception):
    pass


class Checker:
    def __init__(self, folder):
        self.path = Path(folder) / "trace.json"
        self.counts = collections.Counter()

    def report(self, text, *arguments):
        self.path.write_text(text)
        done = subprocess.run([os.environ["STEPSCOPE"], "report", self.path.name, *arguments], cwd=self.path.parent, capture_output=True,
                              timeout=60, check=False)
        if done.returncode not in (0, 3):
            raise Failed(f"status {done.returncode}: {done.stderr[-300:]!r}")
        if b"defect" in done.stderr:
            raise Failed(f"R05-R07: {done.stderr[-300:]!r}")
        return done.stdout.decode() if done.returncode == 0 else None

    def same(self, what, before, after):
        self.counts[what] += 1
        before, after = (text and ABSOLUTE.sub("", text) for text in (before, after))
        if before != after:
            lines = list(zip((before or "").split("\n"), (after or "").split("\n")))
            raise Failed(f"{what}: {next((pair for pair in lines if pair[0] != pair[1]), (len(before or ''), len(after or '')))}")

    def check(self, rng, events):
        first = self.report(text_of(events), "--json")
        if first is None:
            self.counts["nothing to show"] += 1
            return
        json.loads(first, parse_constant=lambda word: (_ for _ in ()).throw(Failed(f"R08: {word} is no JSON")))
        self.counts["R05-R08"] += 1
        # PyTorch without Kineto writes times in whole microseconds and nothing else: there the order says what is inside of what
        if all("cat" in event for event in events if event.get("ph") == "X"):
            shuffled = list(events)
            rng.shuffle(shuffled)
            self.same("R01", first, self.report(text_of(shuffled), "--json"))
        self.same("R03", first, self.report(text_of(events, 2 * 10**18), "--json"))
        if self.counts["R05-R08"] % 10 == 0:
            self.csv(events)

    def csv(self, events):
        rows = list(csv.reader(io.StringIO(self.report(text_of(events), "--csv", "--table", "ops"), newline=""), strict=True))
        self.counts["R08 CSV"] += 1
        if len({len(row) for row in rows}) > 1:
            raise Failed("R08: rows of CSV of different length")


def run(seed, count, folder):
    """Yields (number, file, problem or None) for each trace that was made."""
    traces = {}
    checker = Checker(folder)
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        path = FILES[i % len(FILES)]
        if path not in traces:
            traces[path] = read_events(path)
        problem = None
        try:
            if traces[path]:
                checker.check(rng, mutated(rng, traces[path]))
        except (Failed, subprocess.TimeoutExpired) as error:
            problem = str(error)
        yield i, path, problem, checker


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--save", action="store_true", help="also write tests/metamorphic-results.txt")
    arguments = parser.parse_args()
    start, failures, lines = time.monotonic(), 0, []
    checker = None
    with tempfile.TemporaryDirectory() as folder:
        for i, path, problem, checker in run(arguments.seed, arguments.count, folder):
            if problem:
                failures += 1
                lines.append(f"FAIL {i} {path.relative_to(DATA)}: {problem}")
                print(lines[-1], flush=True)
    lines.append(f"{arguments.count} changed traces of {len(FILES)} files, seed {arguments.seed}: {failures} failed")
    lines.append("; ".join(f"{count} {what}" for what, count in sorted(checker.counts.items())))
    lines.append(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {time.monotonic() - start:.0f} s")
    print("\n".join(lines[-3:]))
    if arguments.save:
        (DATA.parent / "metamorphic-results.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
