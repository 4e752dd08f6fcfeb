# SPDX-License-Identifier: Apache-2.0
"""What each allocation is for, and what memory peaks at and grows by, against what the script knows of its own tensors."""
import json
from collections import Counter

import pytest

from torch_tools import HERE, every_python, export, run, table


def alive_at(events, moments):
    """For each range "moment", by address: (bytes, category) of what was alive when it began."""
    begins = sorted(event["ts"] for event in events if event["name"] == "moment" and event.get("ph") == "X")
    assert len(begins) == moments
    changes = sorted((event for event in events if event["name"] == "[memory]"), key=lambda event: event["ts"])
    alive, found, next_change = {}, [], 0
    for begin in begins:
        while next_change < len(changes) and changes[next_change]["ts"] <= begin:
            args = changes[next_change]["args"]
            if args.get("Bytes", -1) > 0:
                alive[args["Addr"]] = args["Bytes"], args["Category"]
            else:
                alive.pop(args["Addr"], None)
            next_change += 1
        found.append(dict(alive))
    return found


def compare(truth, found):
    """Bytes by (what the script says, what we say)."""
    sums = Counter()
    for lists, alive in zip(truth, found):
        for category, places in lists.items():
            for address, size in places:
                if size:
                    sums[category, alive.get(address, (0, "unseen"))[1]] += size
    return sums


def share(sums, category):
    all_bytes = sum(count for (truth, _), count in sums.items() if truth == category)
    assert all_bytes
    return sums[category, category] / all_bytes


@pytest.mark.parametrize("model", ["gpt", "conv", "lstm"])
@every_python
def test_what_allocations_are_for(tmp_path, python, model):
    done = run(tmp_path, python, HERE / "memory_truth.py", model, options=["--with", "memory"])
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)
    sums = compare(truth, alive_at(export(tmp_path), len(truth)))
    for category in ("parameter", "gradient", "optimizer_state", "input"):
        assert share(sums, category) == 1, (category, sums)
    assert share(sums, "activation") >= 0.95, sums
