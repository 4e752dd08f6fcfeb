# SPDX-License-Identifier: Apache-2.0
"""Comparisons of recordings of the example trainer. How long steps take is nobody's to say: what is asserted does not depend on it."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")


def trainer(*arguments, steps=24):
    return [TRAINER, "--steps", str(steps), "--layers", "1", "--dim", "32", "--context", "32", "--evaluate-every", "0", "--quiet", *map(str, arguments)]


def record(folder, name, *arguments, steps=24):
    subprocess.run([STEPSCOPE, "run", "--quiet", "--out", name, "--", *trainer(*arguments, steps=steps)], check=True, timeout=300, cwd=folder)


def compare(folder, *arguments, said=""):
    done = subprocess.run([STEPSCOPE, "compare", "--json", *arguments], capture_output=True, timeout=60, cwd=folder, check=False)
    assert done.stderr.decode() == said
    return json.loads(done.stdout), done.returncode


@pytest.fixture(scope="module", name="runs")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    record(folder, "base", "--batch", 8, "--accumulate", 1)
    record(folder, "portions", "--batch", 4, "--accumulate", 2)
    record(folder, "half", "--batch", 4, "--accumulate", 1)
    record(folder, "slow", "--batch", 8, "--accumulate", 1, "--fault", "slow-step=3000")
    record(folder, "deep", "--batch", 8, "--accumulate", 1, "--layers", 2)
    shutil.copytree(folder / "base", folder / "copy")
    return folder


def test_a_run_is_not_different_from_itself(runs):
    answer, status = compare(runs, "base", "copy")
    assert (answer["verdict"]["result"], status) in (("no difference", 0), ("inconclusive", 5))
    for metric in answer["metrics"]:
        assert not metric["delta"] and not metric["change_ratio"]
    assert all(row["delta_ns"] == 0 for row in answer["contributions"])
    assert not answer["differences"] and answer["verdict"]["is_comparable"]


def test_where_lost_time_went(runs):
    """Thirty times as long, and all of it is in one range of one phase. Of one run a side that is certain but where their steps, of half a
    millisecond, waited very long for a processor."""
    answer, status = compare(runs, "base", "slow")
    assert (answer["verdict"]["result"], status) in (("regression", 1), ("inconclusive", 5))
    assert answer["verdict"]["change_ratio"] > 5
    largest = {}
    for row in answer["contributions"]:
        largest.setdefault(row["level"], row)
    assert largest["phase"]["name"] == "optimizer" and largest["phase"]["share_ratio"] > 0.8
    assert largest["operator"]["name"] == "slow step" and largest["operator"]["note"] == "only on the new side"
    if status == 1:
        assert "optimizer" in answer["verdict"]["cause"] and "slow step" in answer["verdict"]["cause"]
    # the same the other way round
    answer, other = compare(runs, "slow", "base")
    assert (answer["verdict"]["result"], other) == (("improvement", 0) if status == 1 else ("inconclusive", 5))


@pytest.mark.parametrize("level", ["phase", "operator"])
def test_contributions_sum_to_the_difference_of_the_mean_step(runs, level):
    answer, _ = compare(runs, "base", "slow")
    metric = next(metric for metric in answer["metrics"] if metric["metric"] == "step_time_mean")
    rows = [row for row in answer["contributions"] if row["level"] == level]
    assert sum(row["delta_ns"] for row in rows) == pytest.approx(metric["delta"], rel=1e-6)
    assert sum(row["base_ns"] for row in rows) == pytest.approx(metric["base"], rel=1e-6)


def test_d11_half_the_batch_is_compared_by_the_token(runs):
    answer, _ = compare(runs, "base", "half")
    assert answer["metrics"][0]["metric"] == "time_per_token"
    assert answer["verdict"]["metric"] in ("time_per_token", "tokens_per_s")  # smaller batches may take longer per token on average only
    assert "tokens per step 256 -> 128" in answer["verdict"]["explanation"]
    differences = {row["fact"]: row for row in answer["differences"]}
    assert (differences["train.micro_batch"]["base"], differences["train.micro_batch"]["new"]) == ("8", "4")
    assert differences["tokens per step"]["factor"] == 0.5 and differences["tokens per step"]["matters"]
    assert not answer["verdict"]["is_comparable"]


def test_d11_the_same_work_in_other_portions_is_named(runs):
    answer, _ = compare(runs, "base", "portions")
    assert answer["metrics"][0]["metric"] == "step_time" and answer["verdict"]["is_comparable"]
    assert "the work per step changed" in answer["verdict"]["explanation"]
    assert "train.micro_batch 8 -> 4" in answer["verdict"]["explanation"]
    calls = {row["name"]: (row["base_calls"], row["new_calls"]) for row in answer["contributions"] if row["level"] == "operator"}
    assert calls["cross_entropy"] == (1, 2)


def test_another_model_is_not_comparable(runs):
    answer, status = compare(runs, "base", "deep")
    assert answer["verdict"]["result"] == "not comparable" and status == 5
    assert "model.layers 1 -> 2" in answer["verdict"]["sentence"]


def test_many_runs_of_both_sides(runs):
    for number in range(3):
        record(runs, f"base{number}", "--batch", 8, "--accumulate", 1)
        record(runs, f"slow{number}", "--batch", 8, "--accumulate", 1, "--fault", "slow-step=3000")
    answer, status = compare(runs, "base0", "base1", "base2", "--", "slow0", "slow1", "slow2")
    assert answer["verdict"]["result"] == "regression" and status == 1
    assert (answer["verdict"]["base_runs"], answer["verdict"]["new_runs"]) == (3, 3)
    assert [run["side"] for run in answer["runs"]] == ["base"] * 3 + ["new"] * 3
    # whether it is certain depends on the machine; of six runs it is known
    assert next(row for row in answer["contributions"] if row["name"] == "slow step")["is_certain"] is not None


def test_a_copy_is_no_repeat(runs):
    done = subprocess.run([STEPSCOPE, "compare", "base", "copy", "--", "slow"], capture_output=True, timeout=60, cwd=runs, check=False)
    assert done.returncode == 2 and b"'base' and 'copy' are the same recording" in done.stderr


def test_what_a_side_lacks_is_said(runs):
    shutil.copytree(runs / "base", runs / "cut")
    largest = max((runs / "cut").glob("*.ssr"), key=lambda path: len(path.read_bytes()))
    data = bytearray(largest.read_bytes())
    data[len(data) // 3:len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    largest.write_bytes(data)
    answer, _ = compare(runs, "base", "cut")
    assert answer["verdict"]["damage"].startswith("new 'cut': ")
    assert [run["damage"] is None for run in answer["runs"]] == [True, False]
    metrics = {row["metric"]: row for row in answer["metrics"]}
    assert metrics["step_period"]["result"] == "not measured"


def test_one_step_a_side_is_no_answer(runs):
    answer, status = compare(runs, "--steps", "3", "base", "slow")
    assert (answer["verdict"]["result"], status) == ("inconclusive", 5)
    for base, new in (("base", "slow"), ("slow", "base")):  # neither is a limit broken, nor kept
        why = "a run with one step does not show how much steps vary"
        answer, status = compare(runs, "--steps", "3", "--tier", "smoke", base, new, said=f"stepscope: inconclusive: step time: {why}\n")
        limit, = [limit for limit in answer["limits"] if limit["check"] == "step_time"]
        assert (limit["result"], answer["gate"]["result"], status) == ("inconclusive", "inconclusive", 5)


def test_a_run_that_was_kept_compares_as_the_run_itself(runs):
    record(runs, "slower", "--batch", 8, "--accumulate", 1, "--fault", "slow-step=4000")
    subprocess.run([STEPSCOPE, "history", "--history", "kept.db", "--quiet", "add", "slow"], check=True, timeout=60, cwd=runs)
    direct, _ = compare(runs, "slow", "slower")
    kept, _ = compare(runs, "--history", "kept.db", "--baseline", "last", "slower")
    assert kept["metrics"] == direct["metrics"] and kept["contributions"] == direct["contributions"]
    # the injected work is CPU time, and the steps are long enough for the question
    used = next(row for row in kept["metrics"] if row["metric"] == "step_cpu_time")
    assert 0 < used["base"] < used["new"]


@pytest.mark.parametrize("end, words", [("exit 3", "exit status 3"), ("kill -9 $$", "killed by SIGKILL"), ("exit 0", None)])
def test_a_run_that_failed_passes_no_gate(tmp_path, end, words):
    """Its steps are those before it failed. The program that failed is a shell, which records nothing itself."""
    program = f'"$@"; {end}'
    subprocess.run([STEPSCOPE, "run", "--quiet", "--out", "run", "--", "sh", "-c", program, "sh", *trainer()], check=False, timeout=300, cwd=tmp_path)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    (tmp_path / "limits.yaml").write_text("max_step_time_increase_pct: 900\nmax_tps_drop_pct: 90\nmin_step_count: 5\n")
    said = f"stepscope: inconclusive: new 'copy' did not complete: {words}\n" if words else ""
    answer, status = compare(tmp_path, "run", "copy", "--thresholds", "limits.yaml", said=said)
    assert (status, answer["gate"]["result"]) == ((5, "inconclusive") if words else (0, "passed"))
    assert (f"new 'copy': the run did not complete: {words}" in (answer["verdict"]["damage"] or "")) == bool(words)
    assert next(metric for metric in answer["metrics"] if metric["metric"] == "step_period")["new"] is not None  # nothing of it is missing
    assert compare(tmp_path, "run", "copy", "--fail-on", "never")[1] == 0
    done = subprocess.run([STEPSCOPE, "history", "add", "--series", "s", "copy"], check=True, capture_output=True, text=True, timeout=60, cwd=tmp_path,
                          env={**os.environ, "STEPSCOPE_HISTORY": str(tmp_path / "history.db")})
    assert (f"'copy' is added, but the run did not complete: {words}" in done.stderr) == bool(words)


def test_a_run_whose_end_nobody_saw_passes_no_gate(tmp_path):
    """All of its processes were killed at once, as a job's are."""
    record(tmp_path, "whole")
    running = subprocess.Popen([STEPSCOPE, "run", "--quiet", "--out", "killed", "--", *trainer(steps=1000000)], cwd=tmp_path, start_new_session=True)
    try:
        until = time.monotonic() + 60
        while sum(path.stat().st_size for path in tmp_path.glob("killed/*.ssr")) < 100000:
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.01)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    (tmp_path / "limits.yaml").write_text("max_step_time_increase_pct: 100000\nmax_tps_drop_pct: 100\nmin_step_count: 5\nmax_mem_increase_mb: 100000\n"
                                           "max_mem_increase_pct: 9000\n")
    words = "neither the program nor 'stepscope run' closed its recording"
    answer, status = compare(tmp_path, "whole", "killed", "--thresholds", "limits.yaml",
                             said=f"stepscope: inconclusive: new 'killed' did not complete: {words}\n")
    assert (status, answer["gate"]["result"]) == (5, "inconclusive")
