# SPDX-License-Identifier: Apache-2.0
"""Comparisons of jobs of several ranks: files of one job are one run, files of repeated runs are runs."""
import json
import os
import subprocess

import pytest

from made_trace import Trace
from test_rank_faults import write_devices

STEPSCOPE = os.environ["STEPSCOPE"]
STEPS, STEP, BASE = 40, 1000, 1790000000000000000
DATA, KERNEL = 20, 900


def write_job(folder, ranks=4, second=0, step=STEP, has_clock=True):
    """A file per rank: they wait for one another, so that their steps are nearly the same. Recorded `second` s after others."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = {"baseTimeNanoseconds": BASE + second * 1000000000} if has_clock else {}
    for rank in range(ranks):
        trace = Trace(distributedInfo={"backend": "nccl", "rank": rank, "world_size": ranks}, **clock)
        start = 1000
        for number in range(STEPS):
            dur = step + (number * 7) % 11 + (number + rank) % 2
            trace.step(number, start, dur)
            trace.op("aten::mm", start + 1, dur - 10)
            start += dur + 1
        trace.write(folder / f"rank{rank}.json")
    return sorted(folder.iterdir())


def compare(*arguments):
    done = subprocess.run([STEPSCOPE, "compare", "--json", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(done.stdout), done.stderr


def runs_of(answer):
    return answer["verdict"]["base_runs"], answer["verdict"]["new_runs"]


def test_files_of_one_job_are_one_run(tmp_path):
    """Their steps differ by 0.01 %, which says nothing about the next run of the job."""
    base, new = write_job(tmp_path / "base"), write_job(tmp_path / "new", second=60, step=STEP + 20)
    answer, said = compare(*base, "--", *new)
    directories, _ = compare(tmp_path / "base", tmp_path / "new")
    assert runs_of(answer) == (1, 1) and answer["verdict"]["result"] == directories["verdict"]["result"] == "inconclusive"
    assert answer["metrics"] == directories["metrics"]
    assert [run["run"] for run in answer["runs"]] == ["rank0.json and 3 more ranks"] * 2
    assert "4 files of the base side are ranks of one job" in said and "4 files of the new side are ranks of one job" in said


def test_repeated_jobs_are_runs(tmp_path):
    jobs = [write_job(tmp_path / f"{side}{number}", second=10 * number, step=STEP + 3 * number)
            for number, side in enumerate(("base", "new", "base", "new"))]
    answer, _ = compare(*jobs[0], *jobs[2], "--", *jobs[1], *jobs[3])
    assert runs_of(answer) == (2, 2)


def test_jobs_that_ran_at_the_same_time_are_told_apart_by_their_folders(tmp_path):
    jobs = [write_job(tmp_path / str(number), ranks=2, second=number // 2 * 60, step=STEP + number) for number in range(4)]
    answer, _ = compare(jobs[0][0], jobs[1][0], jobs[1][1], jobs[0][1], "--", *jobs[2], *jobs[3])
    assert runs_of(answer) == (2, 2)
    assert len({run["run"] for run in answer["runs"]}) == 1 and all(run["steps"] == STEPS for run in answer["runs"])


def test_one_rank_of_each_of_several_runs_is_a_repeat(tmp_path):
    files = [write_job(tmp_path / str(number), second=10 * number, step=STEP + number)[number % 2] for number in range(4)]
    answer, said = compare(files[0], files[1], "--", files[2], files[3])
    assert runs_of(answer) == (2, 2) and not said


def test_without_a_clock_ranks_of_one_folder_are_one_job(tmp_path):
    jobs = [write_job(tmp_path / str(number), has_clock=False, step=STEP + number) for number in range(4)]
    answer, _ = compare(*jobs[0], *jobs[1], "--", *jobs[2], *jobs[3])
    assert runs_of(answer) == (2, 2)


def test_ranks_of_one_job_on_both_sides_are_said(tmp_path):
    files = write_job(tmp_path, ranks=3)
    answer, said = compare(*files[:2], "--", files[2])
    assert runs_of(answer) == (1, 1) and "are ranks of one job: they wait for one another" in said


def test_D01_whose_lateness_the_communication_is(tmp_path):
    """Rank 1 computes 1 ms longer, for which two of three wait in their collectives."""
    for side, longer in (("base", 0), ("new", 1000)):
        (tmp_path / side).mkdir()
        write_devices(tmp_path / side, [(DATA, KERNEL), (DATA, KERNEL + longer), (DATA, KERNEL)])
    answer, _ = compare(tmp_path / "base", tmp_path / "new")
    late = {row["name"].split(",")[0]: row["delta_ns"] for row in answer["contributions"] if row["level"] == "late rank"}
    assert late == {"rank 0": 0, "rank 1": pytest.approx(2 / 3 * 1_000_000), "rank 2": 0}
    assert answer["verdict"]["result"] == "regression" and "late rank: rank 1" in answer["verdict"]["cause"]
    # the other way round it is what was gained
    answer, _ = compare(tmp_path / "new", tmp_path / "base")
    assert answer["verdict"]["result"] == "improvement" and "late rank: rank 1" in answer["verdict"]["cause"]


def test_D02_all_ranks_slower_make_nobody_late(tmp_path):
    for side, longer in (("base", 0), ("new", 1000)):
        (tmp_path / side).mkdir()
        write_devices(tmp_path / side, [(DATA, KERNEL + longer)] * 3)
    answer, _ = compare(tmp_path / "base", tmp_path / "new")
    assert answer["verdict"]["result"] == "regression" and "late rank" not in answer["verdict"]["cause"]
