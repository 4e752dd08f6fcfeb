#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the replay of stepscope with the replay in Python (replay.py), trace by trace.

    oracle.py TRACE...                          prints the replay in Python as one JSON document per trace
    oracle.py --compare STEPSCOPE TRACE...      prints both side by side, and marks differences

TRACE is a trace, a folder of one file per rank (named rank*), or a folder of traces. With --compare, the exit status is
1 if a difference is marked: steps by more than 0.1 %, savings by more than 0.5 points. Savings of the cuts in NARROWER
may also be smaller.

Keys of the JSON document; times are in us, shares are of the step:

- step_us: `window` from the end of the first step to that of the last, `circle` in the second turn, `measured`
- usual_ratio: error of the step with the usual lags on all edges
- violations: edges that end before the work that they wait for
- recorded, without_profiler: the step, and the share that each cut saves
- latency_us, gap_us, depth, ends_us: the usual lags, the depth of the launch queue, the ends of the steps
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replay_cuts  # noqa: E402
from replay import Plan, join, measured, plain, replay, replay_ranks, usual  # noqa: E402
from replay_trace import load  # noqa: E402

NOTHING = "nothing removed"
BETWEEN = "between the steps"
EVERYWHERE = "everywhere"
STEP_LIMIT, CUT_LIMIT = 0.001, 0.005
# (cut, place) of stepscope: the cuts of the replay in Python
CUTS = {
    ("data", None): ("data",), ("sync", None): ("sync",), ("launch", None): ("launches",), ("host", None): ("python",),
    ("host", BETWEEN): ("between",), ("periodic", None): ("irregular",), ("growth", None): ("clock",), ("copy", None): ("copies",),
    ("alloc", None): ("malloc",), ("device", None): ("clone", "dtype"), ("optimizer", None): ("optimizer",), ("precision", None): ("precision",),
    ("recompute", None): ("recompute",), ("comm", None): ("communication",), ("rank", None): ("equal ranks",),
}
# Cuts that stepscope defines more narrowly. Their savings may be smaller than those in Python.
EACH = "a stretch counts as far as each step has it"
NARROWER = {("launch", None): "long stretches of host time and items that only some steps have are not in it",
            ("host", None): EACH, ("host", BETWEEN): EACH, ("sync", None): "waits that only some steps have are not in it"}
ONCE = ("host", "once")    # stepscope names the periodic costs of a single step differently
SUFFIXES = (".json", ".json.gz", ".json.zst")


def is_trace(path):
    return path.name.endswith(SUFFIXES) and path.name != "truth.json"


def traces(words):
    """Yields each trace, or list of traces of the ranks of one run."""
    for word in words:
        path = Path(word)
        if not path.is_dir():
            yield path, [path]
            continue
        found = sorted(file for file in path.iterdir() if is_trace(file))
        if found and all(file.name.startswith("rank") for file in found):
            yield path, found
        else:
            yield from traces(sorted(str(file) for file in path.iterdir() if file.is_dir() or is_trace(file)))


def apply(name, ts, ps):
    """Applies a cut to the plans of all ranks. Returns whether a rank has its cost."""
    if name == "equal ranks":
        return len(ts) > 1 and replay_cuts.equal_ranks(ts, ps)
    cut = replay_cuts.cut_communication if name == "communication" else replay_cuts.CUTS[name]
    return any([cut(t, p) for t, p in zip(ts, ps)])


def mean_step(ts, ps):
    """Returns the mean step of the slowest rank, in us."""
    if len(ts) == 1:
        return replay_cuts.step_of(ts[0], ps[0])
    return max(run.step for run in replay_ranks(ts, ps))


def step_without(ts, names, profiler):
    """Returns the mean step without these costs, in us, or None if the traces do not have any of them."""
    ps = [Plan(t) for t in ts]
    if names and not any([apply(name, ts, ps) for name in names]):
        return None
    if profiler:
        for t, p in zip(ts, ps):
            replay_cuts.cut_profiler(t, p)
    return mean_step(ts, ps)


def savings(ts, profiler):
    base = step_without(ts, (), profiler)
    cuts = []
    for (cut, place), names in CUTS.items():
        step = step_without(ts, names, profiler)
        if step is not None:
            cuts.append({"cut": cut, "place": place, "step_us": step, "saving_ratio": 1 - step / base})
    return {"step_us": base, "cuts": cuts}


def answer(path, files):
    """Returns the replay in Python of a trace, or of the ranks of one run."""
    ts = [load(file) for file in files]
    if len(ts) > 1:
        join(ts)
    t = ts[0]
    ends = measured(t)
    n = len(ends)
    mean = (ends[-1] - ends[0]) / max(1, n - 1)
    run, lags = replay_ranks(ts, [plain(x) for x in ts])[0], replay(t, usual(t)) if len(ts) == 1 else None
    return {"trace": Path(path).name, "ranks": len(ts), "steps": n, "items": [len(x.items) for x in ts],
            "step_us": {"measured": mean, "window": run.first, "circle": run.step, "is_circle": replay_is_circle(t) if len(ts) == 1 else True},
            "usual_ratio": lags.first / mean - 1 if lags and n > 1 else None, "violations": sum(x.violations for x in ts),
            "recorded": savings(ts, False), "without_profiler": savings(ts, True),
            "latency_us": [x.L0 for x in ts], "gap_us": [x.G0 for x in ts], "depth": [x.depth for x in ts], "ends_us": run.line[:n]}


def replay_is_circle(t):
    replay_cuts.step_of(t, plain(t))
    return t.circle


# ---- side by side ----

def rows_of(stepscope, path):
    done = subprocess.run([stepscope, "query", str(path), "SELECT * FROM what_if", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])
    return {(row["cut"], None if row["place"] in (None, EVERYWHERE) else row["place"]): row for row in json.loads(done.stdout)["rows"]}


class Sides:
    """Prints numbers of both replays, and counts those that differ."""

    def __init__(self):
        self.differences = 0

    def show(self, text, ours, theirs, is_equal, form, reason=None):
        mark = "" if is_equal else "  <-- differs" if reason is None else f"  ({reason})"
        self.differences += not is_equal and reason is None
        print(f"    {text:28} {form(ours):>14} {form(theirs):>14}{mark}")


def us(value):
    return "-" if value is None else f"{value:.3f} us"


def points(value):
    return "-" if value is None else f"{100 * value:.2f} %"


def is_near(a, b, limit):
    """Returns whether two savings are equal within the limit. A cut that is missing on one side counts as no saving."""
    return abs((a or 0) - (b or 0)) <= limit


def compare(stepscope, path, theirs, skip=()):
    """Prints both replays of a trace. `theirs` is that in Python. Returns the number of differences."""
    try:
        ours = rows_of(stepscope, path)
    except RuntimeError as error:
        print(f"{path}: stepscope: {error}")
        return 1
    base = ours.get((NOTHING, None))
    without = theirs["without_profiler"]
    if base is None:
        print(f"{path}: the table what_if is empty; in Python {without['step_us']:.1f} us")
        return 1
    sides = Sides()
    step_us = base["step_ns"] / 1000
    print(f"{path}: {theirs['steps']} steps, {sum(theirs['items'])} items; measured {theirs['step_us']['measured']:.1f} us; stepscope, Python:")
    sides.show("step without the profiler", step_us, without["step_us"], abs(step_us / without["step_us"] - 1) <= STEP_LIMIT, us)
    sides.show("error with usual lags", base["usual_error_ratio"], theirs["usual_ratio"],
               theirs["usual_ratio"] is None or is_near(base["usual_error_ratio"], theirs["usual_ratio"], STEP_LIMIT), points)
    known = {(row["cut"], row["place"]): row["saving_ratio"] for row in without["cuts"]}
    ours.setdefault(("periodic", None), ours.get(ONCE, {}))
    for key in [*CUTS, *(key for key in ours if key not in CUTS and key not in (ONCE, (NOTHING, None)))]:
        mine, other = ours.get(key, {}).get("saving_ratio"), known.get(key)
        if (mine is None and other is None) or key[0] in skip:
            continue
        is_narrower = key in NARROWER and (mine or 0) < (other or 0)
        sides.show(" ".join(word for word in key if word), mine, other, key not in CUTS or is_near(mine, other, CUT_LIMIT), points,
                   NARROWER[key] if is_narrower else None)
    return sides.differences


def main():
    parser = argparse.ArgumentParser(prog="tests/truth/oracle.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("--compare", metavar="STEPSCOPE", help="compare with this program")
    parser.add_argument("--skip", action="append", default=[], metavar="CUT", help="a cut that --compare leaves out")
    chosen = parser.parse_args()
    differences = 0
    for path, files in traces(chosen.traces):
        try:
            found = answer(path, files)
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            continue
        if chosen.compare:
            differences += compare(chosen.compare, path, found, chosen.skip)
        else:
            print(json.dumps(found), flush=True)
    if chosen.compare:
        print(f"{differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
