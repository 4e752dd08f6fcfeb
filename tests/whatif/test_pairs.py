# SPDX-License-Identifier: Apache-2.0
"""Measured savings, and the claims on the savings of stepscope, on numbers made by hand."""
from pathlib import Path

import pairs

HERE = Path(__file__).resolve().parent


def row(program, measured, own, largest=None):
    cut = pairs.PROGRAMS[program]
    return {"program": program, "cut": cut, "measured": measured, "cuts": {cut: own} if own else {}, "largest": largest or cut}


def claims(*rows):
    return {text: (wrong, limit, unit) for text, wrong, limit, unit in pairs.claims(rows)}


def test_each_program_is_here():
    found = {path.stem for path in HERE.glob("*.c")} | {path.stem for path in HERE.glob("*.py")} - {"pair", "pairs", "launch", "test_pairs"}
    assert found == set(pairs.PROGRAMS)


def test_a_saving_is_the_median_of_all_pairs():
    assert pairs.saving([10.0], [6.0]) == (0.4, 0.4, 0.4)
    middle, low, high = pairs.saving([10.0, 10.0, 20.0], [5.0, 5.0, 5.0])
    assert (middle, low, high) == (0.5, 0.5, 0.75)
    assert pairs.saving([10.0], [11.0])[0] < 0


def test_right_savings_keep_all_claims():
    found = claims(row("grows", [0.4, 0.3, 0.5], [0.4, 0.3, 0.5]), row("loader_computes", [0.2, 0.0, 0.4], [0.1, 0.0, 0.3], "data"),
                   row("reads_values", [0.0, -0.1, 0.1], [0.0, 0.0, 0.05]))
    assert all(wrong <= limit for wrong, limit, _ in found.values()), found
    assert found["recordings whose fault is not the largest cut"] == (0, 0, "of 2")


def test_wrong_savings_are_counted():
    found = claims(row("grows", [0.4, 0.3, 0.5], [0.2, 0.1, 0.25]),                 # misses the interval
                   row("grows", [0.4, 0.3, 0.5], [0.3, 0.2, 0.35], "periodic"),     # overlaps; the median is outside; not the largest
                   row("closure_metric", [0.2, 0.1, 0.3], [0.5, 0.1, 0.9]),         # too high, too wide
                   row("closure_metric", [0.2, 0.1, 0.3], None),                    # no answer
                   row("optimizer_single", [0.5, 0.4, 0.6], [0.9, 0.9, 0.9]),       # does not count
                   row("reads_values", [0.0, -0.1, 0.1], [0.02, 0.0, 0.04]))
    assert found["intervals that miss the measured one"] == (2, 0, "of 5")
    assert found["intervals without the measured median"] == (3, 0, "of 5")
    assert found["savings above 1.5 x the measured upper end + 2 points"] == (1, 0, "of 5")
    assert round(found["width of an interval, largest"][0]) == 80 and round(found["width of an interval, median"][0], 6) == 15
    assert found["recordings whose fault is not the largest cut"] == (1, 0, "of 5")
    assert found["`sync` of reads_values"] == (2, 1, "%")


def test_no_answer_is_not_a_saving_of_0():
    assert claims(row("reads_values", [0.0, -0.1, 0.1], None))["`sync` of reads_values"] == (100, 1, "%")
