# SPDX-License-Identifier: Apache-2.0
"""Data loading: the slow part is named, with the shares that the script saw itself; and nothing of the program is changed."""
import json
import re
import shutil
import statistics
import subprocess

import pytest

from test_diagnosis import diagnose
from test_start import plain
from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table, warm

POINTS = 0.02
ATTEMPTS = 4  # a busy machine sleeps for longer, or comes between our stamp and the script's


def loop(tmp_path, python, *arguments):
    done = (run if "spawn" in arguments or "forkserver" in arguments else warm)(tmp_path, python, HERE / "loaders.py", *arguments)
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path, "data_loader")
    return json.loads(done.stdout.splitlines()[-1]), rows[0], rows[1:]


@pytest.mark.parametrize("part, workers, limit", [
    ("dataset", 2, "dataset code"), ("collate", 2, "collate"), ("loop", 2, "main process"), ("both", 1, "too few workers"),
    ("handing", 2, "handing over"), ("accident", 2, "main process"), ("sampler", 2, "sampler"), ("pinning", 2, "pinning memory"),
    ("dataset", 0, "dataset code"), ("collate", 0, "collate"), ("loop", 0, "main process"), ("sampler", 0, "sampler"),
    ("pinning", 0, "pinning memory")])
@every_python
def test_the_slow_part_is_named(tmp_path, python, part, workers, limit):
    for attempt in range(ATTEMPTS):
        try:
            check_slow_part(tmp_path, python, part, workers, limit)
            return
        except AssertionError:
            if attempt + 1 == ATTEMPTS:
                raise
            shutil.rmtree(tmp_path / "run", ignore_errors=True)


def limits(limit, waits, workers):
    """Where a busy machine makes even a loop that sleeps wait long, by the script's own stamps, which are around ours, another part is the slow
    one: a twentieth of the time, or with workers of the median batch's, or a fifth for the few that take longer."""
    waited, median = sum(waits), statistics.median(waits)
    is_slow = median > 0.045 * (1 - waited) / len(waits) or waited > 0.19 if workers else waited > 0.045
    others = {"handing over"} if workers else {"handing over", "dataset code", "collate"}
    return {limit} | (others if limit == "main process" and is_slow else set())


def check_slow_part(tmp_path, python, part, workers, limit):
    saw, row, of_workers = loop(tmp_path, python, part, workers)
    assert row["limited_by"] in limits(limit, saw["waits"], workers), row["sentence"]
    assert row["batches"] == 24
    assert row["wait_ratio"] == pytest.approx(sum(saw["waits"]), abs=POINTS)
    assert len(of_workers) == workers and sum(worker["batches"] for worker in of_workers) == (24 if workers else 0)
    for made in of_workers or [row]:
        pid = int(re.search(r"pid (\d+)", made["part"]).group(1)) if workers else list(map(int, saw["parts"]))[0]
        dataset, collate = saw["parts"][str(pid)]
        assert made["dataset_ratio"] == pytest.approx(dataset, abs=POINTS)
        assert made["collate_ratio"] == pytest.approx(collate, abs=POINTS)
    assert row["sampler_ratio"] == pytest.approx(saw["sampler"], abs=POINTS)
    assert row["pin_ratio"] == (pytest.approx(saw["pinning"], abs=POINTS) if part == "pinning" else None)
    if workers:
        is_made = part in ("loop", "handing", "accident", "sampler", "pinning")
        assert row["sentence"].startswith("apart from ") == is_made
        assert (row["ready"] > 1) == is_made  # the queue is full, or empty
    check_advice(tmp_path, part, workers)


ADVICE = {("dataset", 2): "more workers", ("collate", 2): "more workers", ("both", 1): "more workers", ("handing", 2): "hand over less",
          ("sampler", 2): "a cheaper sampler", ("sampler", 0): "a cheaper sampler", ("pinning", 2): "pin less", ("pinning", 0): "pin less",
          ("dataset", 0): "num_workers above 0", ("collate", 0): "num_workers above 0"}


def check_advice(tmp_path, part, workers):
    """That of more workers only where they help."""
    if part in ("loop", "accident"):  # whose waits are no problem
        return
    found = {finding["rule"]: finding for finding in diagnose(tmp_path)[0]["findings"]}
    assert found["SS101"]["advice"].startswith(ADVICE[part, workers]), found["SS101"]
    assert ("SS102" in found) == (workers == 0 and part in ("dataset", "collate"))
    assert part != "handing" or found["SS104"]["cut"] == "handover"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@every_python
def test_workers_that_are_not_forked(tmp_path, python, method):
    _, row, workers = loop(tmp_path, python, "dataset", 2, method)
    assert row["batches"] == 24 and row["limited_by"]
    assert [worker["batches"] for worker in workers] == [12, 12]
    (started,) = [wait for wait in table(tmp_path, "host_waits") if wait["cause"] == "starting workers of a data loader"]
    assert started["count"] == 1 and started["own_ns"] > 0
    assert len([process for process in table(tmp_path, "processes") if process["role"] == "worker"]) == 2


@every_python
def test_results_are_the_same(tmp_path, python):
    saw, _, _ = loop(tmp_path, python, "both", 1)
    alone = plain(tmp_path, python, HERE / "loaders.py", "both", 1)
    assert json.loads(alone.stdout)["loss"] == saw["loss"]


FAILS = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("sample 5")
        return torch.ones(2)
def collate(samples):
    if WHERE == "collate":
        raise ValueError("no batch")
    return torch.stack(samples)
WHERE = "{where}"
method = "fork" if {workers} else None
for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers={workers}, collate_fn=collate, multiprocessing_context=method):
    pass
"""


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("where", ["dataset", "collate"])
@every_python
def test_exceptions_look_as_without_us(tmp_path, python, where, workers):
    (tmp_path / "fails.py").write_text(FAILS.format(where=where, workers=workers))
    ours, theirs = warm(tmp_path, python, "fails.py"), warm(tmp_path, python, "fails.py", is_observed=False)
    assert ours.returncode == theirs.returncode == 1
    assert theirs.stderr in ours.stderr and "stepscope/python" not in ours.stderr


KILLED = """
import os, signal, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == 21:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(2)
for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context="fork"):
    pass
"""


@every_python
def test_a_killed_worker_is_named(tmp_path, python):
    (tmp_path / "killed.py").write_text(KILLED)
    done = run(tmp_path, python, "killed.py")
    assert done.returncode == 1 and "Error" in done.stderr
    ended = [row["end"] for row in table(tmp_path, "data_loader")[1:] if row["end"]]
    assert ended == ["killed by SIGKILL"]
    assert [row["signal"] for row in table(tmp_path, "processes") if row["signal"]] == ["SIGKILL"]
    assert any(re.match(r"worker \d of a data loader \(pid \d+\) ended: SIGKILL", row["name"]) for row in table(tmp_path, "marks"))


STREAM = """
import torch
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(7))
train = torch.utils.data.DataLoader(Stream(), batch_size=3, num_workers={workers}, persistent_workers={workers} > 0,
                                    multiprocessing_context="fork" if {workers} else None)
check = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=None)
count = [0, 0]
for epoch in range(3):
    for _ in train:
        count[0] += 1
    for _ in check:
        count[1] += 1
print(count)
"""


@pytest.mark.parametrize("workers", [0, 2])
@every_python
def test_batches_are_counted_by_loader(tmp_path, python, workers):
    (tmp_path / "stream.py").write_text(STREAM.format(workers=workers))
    done = warm(tmp_path, python, "stream.py")
    assert done.returncode == 0, done.stderr
    loops = [row for row in table(tmp_path, "data_loader") if row["part"] == "loop"]
    assert str([row["batches"] for row in loops]) == done.stdout.strip()
    assert loops[0]["loader"].startswith("0: Stream, batch size 3") and loops[1]["loader"] == "1: TensorDataset, no workers"


UNSHARED = (["-m"], ["-rm"])
SMALL = """
import torch
data = torch.utils.data.TensorDataset(torch.arange(320.0))
print(sum(batch[0].sum().item() for batch in torch.utils.data.DataLoader(data, batch_size=4, num_workers=16, multiprocessing_context="fork")))
"""


@every_python
def test_sixteen_workers_and_little_shared_memory(tmp_path, python):
    """A container's 64 MB, mounted in namespaces of our own, which root has the right to, and others where user namespaces are allowed."""
    (tmp_path / "small.py").write_text(SMALL)
    small = "mount -t tmpfs -o size=64m none /dev/shm && df -k /dev/shm | grep -q ' 65536 '"
    tried = [subprocess.run(["unshare", *how, "sh", "-c", small], capture_output=True, text=True, check=False) for how in UNSHARED]
    usable = [how for how, done in zip(UNSHARED, tried) if done.returncode == 0]
    if not usable:
        pytest.skip("no /dev/shm of 64 MB can be mounted here: " + "; ".join(done.stderr.strip() for done in tried))
    done = subprocess.run(["unshare", *usable[0], "sh", "-c", small + ' && exec "$@"', "sh", STEPSCOPE, "run", "-o", "run", "--", python, "small.py"],
                          cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "51040.0\n"), done.stderr
    assert len([row for row in table(tmp_path, "processes") if row["role"] == "worker"]) == 16
    assert not [row for row in table(tmp_path, "ledger") if row["what"] == "dropped"]
