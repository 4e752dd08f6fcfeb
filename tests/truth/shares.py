# SPDX-License-Identifier: Apache-2.0
"""Shares of right and wrong answers among the measured cases of cases.py, with their limits."""
import math
import re

from kinds import names

GROUPS = ("sync", "async", "CPU", "all")
LEAST = 0.02        # smaller promises and findings do not count


def wilson(found, count, z=1.96):
    """Returns the 95 % interval of a share."""
    share, width = found / count, 1 + z * z / count
    middle, half = share + z * z / 2 / count, z * math.sqrt(share * (1 - share) / count + z * z / 4 / count / count)
    return max(0.0, (middle - half) / width), min(1.0, (middle + half) / width)


def group_of(row):
    """Returns whether the host waits for the device at the end of each step (sync), runs ahead (async), or has no device."""
    if row["variant"].get("device") is False:
        return "CPU"
    return "sync" if row["variant"].get("sync_end", True) else "async"


def promises(row):
    """Returns (rule or cut, promised, true) of the findings that promise 2 % or more."""
    found = [(finding.get("cut") or finding["rule"], finding["s"]) for finding in row["out"]["findings"]]
    return [(key, promised, row["out"]["rule_truth"][key]) for key, promised in found if promised and promised >= LEAST and key in row["out"]["rule_truth"]]


def is_named(row, kind):
    return names(kind, row["out"]["findings"])


class Share:
    """A share of cases and the limit of a claim. `which` lists the wrong answers; is_right tells that `found` are right ones."""

    def __init__(self, text, group, found, count, at_least=None, at_most=None, which="", is_right=False):
        self.text, self.group, self.found, self.count = text, group, found, count
        self.at_least, self.at_most, self.which, self.is_right = at_least, at_most, which, is_right

    def cells(self):
        if not self.count:
            return [self.text, self.group, "0 of 0", "-", "-", self.limit()]
        low, high = wilson(self.found, self.count)
        return [self.text, self.group, f"{self.found} of {self.count}", f"{100 * self.found / self.count:.1f} %", f"{100 * low:.1f} to {100 * high:.1f}",
                self.limit()]

    def limit(self):
        if self.at_least is not None:
            return f">= {self.at_least} %"
        return f"<= {self.at_most} %" if self.at_most is not None else "-"

    def wrong_text(self):
        """Returns the name of the wrong answers, which `which` lists."""
        text = f"{self.text}, {self.group}"
        return re.sub(r"\b(named|called)\b", r"not \1", text) if self.is_right else text

    def wrong(self):
        """Returns (text, wrong answers in %, the most that are allowed) of a share with a limit, or None."""
        if not self.count or (self.at_least is None and self.at_most is None):
            return None
        per_cent = 100 * self.found / self.count
        return (self.wrong_text(), 100 - per_cent, 100 - self.at_least) if self.is_right else (self.wrong_text(), per_cent, self.at_most)


def counted(keys):
    """Returns the number of each key, as text."""
    keys = list(keys)
    return ", ".join(f"{key} {keys.count(key)}" for key in sorted(set(keys)))


def text_of(row):
    kinds = " + ".join(row[key] for key in ("kind", "kind2") if key in row)
    return f"{row['part']} {row['seed']}, {kinds}{' ' + str(row['target']) if 'target' in row else ''}, {group_of(row)}"


def wrong_cases(rows):
    """Yields (case, text) of the wrong answers: faults that are not named, promises that are wrong, wrong verdicts."""
    for row in rows:
        faults = [(row["kind"], row["true"])] + ([(row["kind2"], row["true2"])] if "kind2" in row else [])
        for kind, true in faults if row["part"] != "healthy" else ():
            if true >= 0.05 and not is_named(row, kind):
                yield text_of(row), f"{kind} of {100 * true:.1f} % is not named"
        for key, promised, true in promises(row):
            is_false = promised > true + 0.02 if row["part"] == "healthy" else promised > 1.5 * true + 0.02 or promised < 0.5 * true - 0.02
            if is_false:
                yield text_of(row), f"{key} promises {100 * promised:.1f} %, at most {100 * true:.1f} % are true"
        if (row["out"]["verdict"] == "healthy") != (row["part"] == "healthy") and not 0 < row["true"] < 0.10:
            yield text_of(row), row["out"]["sentence"]
        if row["part"] == "pair" and (row["out"]["saving"] or 0) > row["both"] + 0.05:
            yield text_of(row), f"together {100 * row['out']['saving']:.1f} %, at most {100 * row['both']:.1f} % are possible"


def of_single(rows):
    for group in GROUPS:
        chosen = [row for row in rows if group in (group_of(row), "all")]
        is_all = group == "all"
        for least, of_all, of_each in ((0.05, 92, 85), (0.10, 97, None)):
            large = [row for row in chosen if row["true"] >= least]
            yield Share(f"faults of {100 * least:.0f} % and more named", group, sum(is_named(row, row["kind"]) for row in large), len(large),
                        at_least=of_all if is_all else of_each, which=counted(row["kind"] for row in large if not is_named(row, row["kind"])), is_right=True)
        found = [promise for row in chosen for promise in promises(row)]
        high = [key for key, promised, true in found if promised > 1.5 * true + 0.02]
        low = [key for key, promised, true in found if promised < 0.5 * true - 0.02]
        yield Share("promises above 1.5 x truth + 2 points", group, len(high), len(found), at_most=3 if is_all else None, which=counted(high))
        yield Share("promises below half of the truth - 2 points", group, len(low), len(found), at_most=8 if is_all else None, which=counted(low))
        ten = [row for row in chosen if row["true"] >= 0.10]
        silent = [row["kind"] for row in ten if row["out"]["verdict"] == "healthy"]
        yield Share("'healthy' with 10 % and more to save", group, len(silent), len(ten), at_most=3 if is_all else None, which=counted(silent))


def of_healthy(rows):
    sick = [f"{row['kind']} {row['out']['verdict']}" for row in rows if row["out"]["verdict"] != "healthy"]
    yield Share("healthy trainings called healthy", "all", len(rows) - len(sick), len(rows), at_least=98, which=counted(sick), is_right=True)
    false = [key for row in rows for key in {key for key, promised, true in promises(row) if promised > true + 0.02}]
    wrong = sum(any(promised > true + 0.02 for _, promised, true in promises(row)) for row in rows)
    yield Share("healthy trainings with a false saving of 2 points", "all", wrong, len(rows), at_most=2, which=counted(false))


def of_pair(rows):
    faults = [(row, kind) for row in rows for kind, true in ((row["kind"], row["true"]), (row["kind2"], row["true2"])) if true >= 0.05]
    missed = [kind for row, kind in faults if not is_named(row, kind)]
    yield Share("faults of pairs of 5 % and more named", "all", len(faults) - len(missed), len(faults), at_least=85, which=counted(missed), is_right=True)
    both = [row for row in rows if min(row["true"], row["true2"]) >= 0.05]
    yield Share("both faults of a pair named", "all", sum(is_named(row, row["kind"]) and is_named(row, row["kind2"]) for row in both), len(both))
    yield Share("together above the possible + 5 points", "all", sum((row["out"]["saving"] or 0) > row["both"] + 0.05 for row in rows), len(rows), at_most=2)


def shares(rows):
    """Returns the shares of all measured cases."""
    found = []
    for part, function in (("single", of_single), ("healthy", of_healthy), ("pair", of_pair)):
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            found += function(chosen)
    return found


def verdicts(rows):
    """Yields (kind, number of each verdict) of single faults that cost more than 20 %."""
    for kind in dict.fromkeys(row["kind"] for row in rows if row["part"] == "single"):
        yield kind, counted(row["out"]["verdict"] for row in rows if row["part"] == "single" and row["kind"] == kind and row["true"] > 0.2)
