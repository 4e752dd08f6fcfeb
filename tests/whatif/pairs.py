# SPDX-License-Identifier: Apache-2.0
"""Runs and records the programs with a fault, and judges the savings of stepscope by the measured ones.

A row is a recording of a fault: {"program", "cut": the fault's own cut, "measured": [saving, low, high], "cuts": {cut:
[saving, low, high]}, "largest": the cut of the finding with the largest saving}. Savings are shares of a step.
"""
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
# The fault's own cut. `data` names the loaders, too.
PROGRAMS = {"checkpoint_often": "checkpoint", "closure_metric": "host", "grows": "growth", "loader_computes": "workers", "loader_sleeps": "data",
            "loader_thread": "data", "optimizer_single": "optimizer", "python_in_forward": "host", "rank_computes_longer": "rank", "reads_values": "sync"}
NO_GAIN = {"reads_values"}
NOT_COUNTED = {"optimizer_single"}
# Programs that wait for workers, threads or ranks: a wait for a processor is partly hidden in their waits.
WAITING = ("loader_", "rank_")


def time_of(program):
    """Returns the key of the step time that is compared."""
    return "mean_ms" if program.startswith(WAITING) else "quiet_ms"


# ---- running ----

def fork(program, variant):
    """Runs a Python program in a fork of this process, which has imported PyTorch. Returns its result, or None if it failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.environ.update(WHATIF_OUT=file.name, WHATIF_FORK="1")
                sys.argv = [program, variant]
                warnings.simplefilter("ignore")  # more workers than processors
                runpy.run_path(program, run_name="__main__")
                sys.stdout.flush()
                status = 0
            except SystemExit as end:
                status = end.code or 0
            except BaseException:  # the fork must not return
                traceback.print_exc()
            finally:
                os._exit(status)
        if os.waitpid(pid, 0)[1] == 0:
            with open(file.name, encoding="utf-8") as result:
                return json.load(result)
    return None


def run(command, variant, cwd, environment, record=()):
    """Runs a program in a new process. `record` are the words before it. Returns its result, or None if it failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([*record, *command, variant], env={**environment, "WHATIF_OUT": file.name}, cwd=cwd, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode == 0:
            return json.load(file)
    print(done.stderr.decode()[-500:], file=sys.stderr)
    return None


# ---- savings ----

def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def saving(fault, without):
    """Returns (saving, low, high) of 1 - without / fault over all pairs of runs: the median and an interval of about 95 %.

    The interval is that of Hodges and Lehmann by order statistics; few runs widen it.
    """
    ratios = sorted(1 - b / a for a in fault for b in without)
    n = len(ratios)
    cut = max(0, int(n / 2 - 1.96 * (len(fault) * len(without) * (len(fault) + len(without) + 1) / 12) ** 0.5))
    return median(ratios), ratios[cut], ratios[n - 1 - cut]


def answer(stepscope, recording):
    """Returns the savings of all cuts, and the cut of the finding with the largest saving."""
    def call(*words):
        return json.loads(subprocess.run([stepscope, *words], capture_output=True, check=True, timeout=120).stdout)

    cuts = {}
    for row in call("query", recording, "SELECT * FROM what_if", "--json")["rows"]:
        known = cuts.get(row["cut"])
        if row["saving_ratio"] is not None and (known is None or row["saving_ratio"] > known[0]):
            cuts[row["cut"]] = [row["saving_ratio"], row["saving_low_ratio"], row["saving_high_ratio"]]
    findings = [(finding["saving_ratio"], finding["cut"]) for finding in call("diagnose", recording, "--json")["findings"]
                if finding.get("cut") and finding["saving_ratio"] and finding["cut"] != "processors"]  # removed from all others
    return {"cuts": cuts, "largest": max(findings)[1] if findings else None}


# ---- judging ----

def own(row):
    """Returns [saving, low, high] of the fault's own cut, or None if stepscope has none."""
    return row["cuts"].get(row["cut"])


def overlaps(row):
    return own(row) is not None and own(row)[1] <= row["measured"][2] and own(row)[2] >= row["measured"][1]


def holds(row):
    """A program whose variant without the fault was slower, by chance, saves nothing."""
    return own(row) is not None and own(row)[1] <= max(0, row["measured"][0]) <= own(row)[2]


def is_too_high(row):
    return own(row) is not None and own(row)[0] > 1.5 * row["measured"][2] + 0.02


def is_largest(row):
    return row["largest"] == row["cut"] or (row["program"].startswith("loader_") and row["largest"] == "data")


def claims(rows):
    """Yields (text, wrong recordings or points, limit, unit) of the recordings of one budget."""
    counted = [row for row in rows if row["program"] not in NOT_COUNTED]
    gains = [row for row in rows if row["program"] not in NO_GAIN]
    widths = [100 * (own(row)[2] - own(row)[1]) for row in counted if own(row) is not None]
    yield "intervals that miss the measured one", sum(not overlaps(row) for row in counted), 0, f"of {len(counted)}"
    yield "intervals without the measured median", sum(not holds(row) for row in counted), len(counted) // 10, f"of {len(counted)}"
    yield "savings above 1.5 x the measured upper end + 2 points", sum(is_too_high(row) for row in counted), 0, f"of {len(counted)}"
    yield "width of an interval, median", median(widths) if widths else 100, 25, "points"
    yield "width of an interval, largest", max(widths, default=100), 45, "points"
    yield "recordings whose fault is not the largest cut", sum(not is_largest(row) for row in gains), len(gains) // 9, f"of {len(gains)}"
    values = [100 * row["cuts"].get("sync", [0])[0] if row["cuts"] else 100 for row in rows if row["program"] in NO_GAIN]
    if values:
        yield "`sync` of reads_values", max(values), 1, "%"
