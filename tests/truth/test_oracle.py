# SPDX-License-Identifier: Apache-2.0
"""oracle.py finds the traces, and marks each difference of two replays."""
import json

import pytest

pytest.importorskip("numpy", reason="numpy comes with PyTorch (tools/setup test)")
import gpusim_trace  # noqa: E402
import oracle  # noqa: E402
from gpusim import Params, simulate  # noqa: E402
from replay_cuts import savings  # noqa: E402
from replay_trace import load  # noqa: E402


def test_traces_and_ranks_of_a_folder(tmp_path):
    for name in ("b.json", "a.json.gz", "truth.json", "SOURCES.md", "run/rank0.pt.trace.json", "run/rank1.pt.trace.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [(path.name, [file.name for file in files]) for path, files in oracle.traces([str(tmp_path)])]
    assert found == [("a.json.gz", ["a.json.gz"]), ("b.json", ["b.json"]), ("run", ["rank0.pt.trace.json", "rank1.pt.trace.json"])]


@pytest.fixture(name="path", scope="module")
def written(tmp_path_factory):
    p = Params(seed=2, steps=6, fault={"sync_call": 300.0}, fault2={"malloc": 200.0, "gc": 2000.0})
    return gpusim_trace.write(simulate(p, emit=True), str(tmp_path_factory.mktemp("oracle") / "trace.json"))


def test_an_answer_has_the_numbers_of_the_replay(path):
    found = oracle.answer(path, [path])
    step, cuts = savings(load(path), profiler=True)
    without = found["without_profiler"]
    assert without["step_us"] == step and found["violations"] == 0 and found["steps"] == 6
    assert {row["cut"]: row["saving_ratio"] for row in without["cuts"]}["sync"] == cuts["sync"]
    assert found["recorded"]["step_us"] > step


def fake(folder, answer, change):
    """Returns a program that prints the answer as the table what_if, after change(rows)."""
    without = answer["without_profiler"]
    rows = [{"cut": oracle.NOTHING, "place": None, "step_ns": without["step_us"] * 1000, "usual_error_ratio": answer["usual_ratio"]}]
    rows += [{"cut": row["cut"], "place": row["place"], "saving_ratio": row["saving_ratio"]} for row in without["cuts"]]
    change({(row["cut"], row["place"]): row for row in rows}, rows)
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'rows': rows})}\nEND\n")
    program.chmod(0o755)
    return str(program)


CHANGES = {
    "equal": (lambda by_cut, rows: None, 0),
    "step 0.2 % longer": (lambda by_cut, rows: by_cut[oracle.NOTHING, None].update(step_ns=by_cut[oracle.NOTHING, None]["step_ns"] * 1.002), 1),
    "saving 0.4 points off": (lambda by_cut, rows: by_cut["sync", None].update(saving_ratio=by_cut["sync", None]["saving_ratio"] + 0.004), 0),
    "saving 0.6 points off": (lambda by_cut, rows: by_cut["sync", None].update(saving_ratio=by_cut["sync", None]["saving_ratio"] + 0.006), 1),
    "cut missing": (lambda by_cut, rows: rows.remove(by_cut["alloc", None]), 1),
    "a narrower cut saves less": (lambda by_cut, rows: by_cut["launch", None].update(saving_ratio=0.0), 0),
    "a narrower cut saves more": (lambda by_cut, rows: by_cut["launch", None].update(saving_ratio=0.5), 1),
    "a periodic cost of one step": (lambda by_cut, rows: by_cut["periodic", None].update(cut="host", place="once"), 0),
    "a cut that the replay in Python does not have": (lambda by_cut, rows: rows.append({"cut": "magic", "place": None, "saving_ratio": 0.5}), 0),
    "no table": (lambda by_cut, rows: rows.clear(), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_differences_are_counted(name, path, tmp_path, capsys):
    change, expected = CHANGES[name]
    answer = oracle.answer(path, [path])
    assert oracle.compare(fake(tmp_path, answer, change), path, answer) == expected
    assert ("differs" in capsys.readouterr().out) == (expected > 0 and name != "no table")


def test_a_program_that_fails_is_a_difference(path, capsys):
    assert oracle.compare("false", path, oracle.answer(path, [path])) == 1
    assert "stepscope:" in capsys.readouterr().out
