#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""metamorphic.py [--corpus | --seed N --first N --count N] [--save]: what must be true of any report, of whole real traces and of changed ones.

R01 the order of the file does not matter, R03 nor does the time it begins at, R04 nor that numbered events are there twice; R02 of a trace
cut in two between steps the counts add up; R05 to R07 are declared on the columns, so every report checks them and a broken one is a defect;
R08 what it writes can be read by strict readers, R09 and R10 also by those of the formats it exports, as far as `stepscope validate` knows them.
Nothing crashes, and a trace without anything to show is said to be one. --corpus: every trace there is, as a whole. Else parts of those
under 1 MB with random changes: a trace's number and the seed give the same changes again, so that a long run can be made in pieces.
test_metamorphic.py runs some of both in the gate. Needs STEPSCOPE and BUILD; which sanitizers look on is that build's."""
import argparse
import collections
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
from decimal import Decimal
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
FOLDERS = [DATA / name for name in ("traces", "hta_ns_resolution", "oracles/traces", "large_traces")]
CORPUS = sorted(p for folder in FOLDERS for p in folder.rglob("*") if p.suffix in (".json", ".gz"))
FILES = [p for p in CORPUS if p.stat().st_size < 1 << 20]
EVENTS_MAX = 250
EXPORTS = ["trace.json", "trace.pftrace", "trace.speedscope.json", "trace.folded", "trace.memory.html"]
NAMES = ["", " ", "a;b", "a\tb", "<b>&", "\u202eabc", "x" * 5000, "__proto__", "1", "%s%n", "a,b\"c", "\x1b]52;c;x\x07", "\u00e9\u6f22"]
# Moments, which move with the trace, and what a shuffled file says about places in it.
ABSOLUTE = re.compile(r'"(?:start_ns|end_ns|time_ns|first_ns|last_ns|at_ns|first_time_ns|peak_ns|first_offset|created|wall_start\w*)": [^,\n]*')


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

    def asynchronous(self):
        self.any().update(ph=self.rng.choice("ben"), id=self.rng.randrange(3))

    def no_args(self):
        self.any()["args"] = self.rng.choice([{}, None, {"correlation": 0}, {"External id": -1, "device": 99}])

    def arg(self):
        args = self.any().get("args")
        if args:
            args[self.rng.choice(sorted(args))] = self.rng.choice([0, -1, 2**63, "x", None, [], [[1, -2]], {}, 1e300, True])

    def twice(self):
        self.events.append(json.loads(json.dumps(self.any())))


CHANGES = [name for name in vars(Changes) if not name.startswith("_") and name != "any"]


class Trace:
    """The events of a file as texts, so that a copy of some of them costs little."""

    def __init__(self, path):
        events = read_events(path)
        texts = [(event.get("ph") == "M", json.dumps(event)) for event in events]
        self.metadata = [text for is_metadata, text in texts if is_metadata][:30]
        self.timed = [text for is_metadata, text in texts if not is_metadata]

    def mutated(self, rng):
        """A stretch of it with some changes, what belongs to its beginning included."""
        start, length = rng.randrange(max(1, len(self.timed) - EVENTS_MAX)), rng.randrange(2, EVENTS_MAX)
        events = json.loads("[" + ",".join(self.metadata + self.timed[start:start + length]) + "]")
        changes = Changes(rng, events)
        for _ in range(rng.choice([0, 1, 3, 10])):
            if events:
                getattr(changes, rng.choice(CHANGES))()
        return events


def text_of(events, base=10**18):
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events})


def is_numbered(event):
    """Its writer gave it a number, by which it is known when it comes again (R04)."""
    args = event.get("args")
    return event.get("ph") == "X" and isinstance(args, dict) and any(args.get(key) for key in ("Ev Idx", "External id", "correlation", "Python id"))


class Failed(Exception):
    pass


def reject(word):
    raise Failed(f"R08: {word} is no JSON")


class Reporter:
    """tests/e2e/many_reports.c, started again when it has ended."""

    def __init__(self, folder):
        self.folder, self.child = folder, None

    def ask(self, what, text):
        if not self.child:
            program = Path(os.environ.get("BUILD", "build-test")) / "tests/e2e/many_reports"
            self.child = subprocess.Popen([program, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # pylint: disable=consider-using-with
        data = text.encode()
        try:
            self.child.stdin.write(b"%s %d\n" % (what.encode(), len(data)) + data)
            self.child.stdin.flush()
            status, length = self.child.stdout.readline().split()
        except (BrokenPipeError, ValueError) as error:
            status = self.close()
            raise Failed(f"{what}: the program ended with {status}") from error
        answer = self.child.stdout.read(int(length)).decode()
        if status == b"defect":
            raise Failed(f"{what}: {answer[:300]}")
        return answer if status == b"ok" else None

    def close(self):
        child, self.child = self.child, None
        if not child:
            return 0
        child.stdin.close()
        child.stdout.close()
        return child.wait(timeout=60)


class Checker:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.reporter = Reporter(folder)
        self.counts = collections.Counter()

    def same(self, what, before, after):
        self.counts[what] += 1
        if before == after:
            return
        before, after = (ABSOLUTE.sub("", text or "") for text in (before, after))
        if before != after:
            lines = list(zip(before.split("\n"), after.split("\n")))
            raise Failed(f"{what}: {next((pair for pair in lines if pair[0] != pair[1]), (len(before), len(after)))}")

    def check(self, rng, events, exports):
        """R01, R03, R05 to R08 of any trace."""
        first = self.reporter.ask("json", text_of(events))
        if first is None:
            self.counts["nothing to show"] += 1
            return
        json.loads(first, parse_constant=reject)
        self.counts["R05-R08"] += 1
        # PyTorch without Kineto writes times in whole microseconds and nothing else: there the order says what is inside of what
        if all("cat" in event for event in events if event.get("ph") == "X"):
            shuffled = list(events)
            rng.shuffle(shuffled)
            self.same("R01", first, self.reporter.ask("json", text_of(shuffled)))
        self.same("R03", first, self.reporter.ask("json", text_of(events, 2 * 10**18)))
        for what in exports:
            self.written(what, events)

    def written(self, what, events):
        text = self.reporter.ask(what, text_of(events))
        if text is None:
            return
        self.counts[f"R08 {what}"] += 1
        if what == "ops.csv":
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
            if len({len(row) for row in rows}) > 1:
                raise Failed("R08: rows of CSV of different length")
        elif what.endswith(".json"):
            json.loads((self.folder / what).read_text(encoding="utf-8"), parse_constant=reject)
        elif what.endswith(".folded"):
            for line in (self.folder / what).read_text(encoding="utf-8").split("\n")[:-1]:
                if not re.fullmatch(r"[^\0-\x1f]+ \d+", line):
                    raise Failed(f"R08: {line!r} is no line of a flame graph")

    # ---- of whole traces ----

    def rows(self, table, events):
        text = self.reporter.ask(f"{table}.csv", text_of(events))
        return list(csv.DictReader(io.StringIO(text or "", newline="")))

    def twice(self, events):
        """R04: what its writer numbered is known when it comes again."""
        doubled = [event for event in events for _ in range(1 + is_numbered(event))]
        if len(doubled) == len(events):
            return
        for table in ("ops", "kernels"):
            self.same("R04", *("\n".join(map(str, self.rows(table, some))) for some in (events, doubled)))

    def calls(self, events):
        counts = collections.Counter({row["name"]: int(row["calls"]) for row in self.rows("ops", events) if row["calls"]})
        return counts + collections.Counter(f"step {row['step']}" for row in self.rows("steps", events))

    def in_two(self, events):
        """R02, where the trace marks steps: nothing is lost or counted twice between two of them."""
        steps = [event for event in events if event.get("ph") == "X" and event["name"].startswith("ProfilerStep#")]
        starts = sorted(Decimal(event["ts"]) for event in steps if event.get("cat") != "gpu_user_annotation")
        if len(set(starts)) < 2:
            return
        border = starts[len(starts) // 2]
        parts = [[event for event in events if event.get("ph") == "M" or (Decimal(event.get("ts", 0)) < border) == is_before]
                 for is_before in (True, False)]
        self.counts["R02"] += 1
        whole, halves = self.calls(events), self.calls(parts[0]) + self.calls(parts[1])
        if whole != halves:
            raise Failed(f"R02: {[(key, whole[key], halves[key]) for key in whole | halves if whole[key] != halves[key]][:5]}")

    def check_whole(self, path):
        events = read_events(path)
        self.check(random.Random(str(path)), events, ["ops.csv", *EXPORTS])
        self.twice(events)
        self.in_two(events)


def run_corpus(paths, folder):
    """Yields (number, file, problem or None, checker) for each whole trace."""
    checker = Checker(folder)
    for i, path in enumerate(paths):
        problem = None
        try:
            checker.check_whole(path)
        except Failed as error:
            problem = str(error)
        yield i, path, problem, checker
    checker.reporter.close()


def run(seed, first, count, folder):
    """Yields (number, file, problem or None, checker) for each trace that was made."""
    traces = {}
    checker = Checker(folder)
    for i in range(first, first + count):
        rng = random.Random(f"{seed} {i}")
        path = FILES[i % len(FILES)]
        if path not in traces:
            traces[path] = Trace(path)
        problem = None
        try:
            if traces[path].timed:
                checker.check(rng, traces[path].mutated(rng), ["ops.csv", *EXPORTS] if i % 10 == 0 else [])
        except Failed as error:
            problem = str(error)
        yield i, path, problem, checker
    checker.reporter.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--corpus", nargs="?", const="", metavar="PART", help="whole traces, as they are, whose path has that part")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--save", action="store_true", help="add a line to tests/metamorphic-results.txt")
    arguments = parser.parse_args()
    start, failures, checker = time.monotonic(), [], None
    whole = [path for path in CORPUS if arguments.corpus is not None and arguments.corpus in str(path)]
    with tempfile.TemporaryDirectory() as folder:
        runs = run_corpus(whole, folder) if whole else run(arguments.seed, arguments.first, arguments.count, folder)
        for i, path, problem, checker in runs:
            if problem:
                failures.append(f"FAIL {i} {path.relative_to(DATA)}: {problem}")
                print(failures[-1], flush=True)
    what = f"{len(whole)} whole traces" if whole else \
        f"changed traces {arguments.first} to {arguments.first + arguments.count - 1} of {len(FILES)} files, seed {arguments.seed}"
    counts = ", ".join(f"{count} {name}" for name, count in sorted(checker.counts.items()))
    line = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}: {what}: {len(failures)} failed ({counts}; {time.monotonic() - start:.0f} s)"
    print(line)
    if arguments.save:
        with open(DATA.parent / "metamorphic-results.txt", "a", encoding="utf-8") as results:
            results.write("\n".join([line, *failures]) + "\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
