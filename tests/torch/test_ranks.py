# SPDX-License-Identifier: Apache-2.0
"""torchrun with two ranks: the ranks are seen, the launcher is not one of them."""
import pytest

from torch_tools import HERE, every_python, run_ranks, table, version


@every_python
def test_ranks_of_a_launcher(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("Debian's torchrun 1.13 cannot start ranks under its Python 3.11, with or without us")
    done = run_ranks(tmp_path, python, "-m", "torch.distributed.run", "--nproc_per_node", "2", HERE / "ddp.py",
                     env={"OMP_NUM_THREADS": 1})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished") == 2
    trainers = [row for row in table(tmp_path, "processes") if row["role"] == "trainer"]
    assert sorted(row["rank"] for row in trainers) == [0, 1]
    ranks = table(tmp_path, "ranks")
    assert [row["steps"] for row in ranks] == [5, 5]
    assert [row["data_ns"] for row in ranks] == [None, None]  # there is no loader


@every_python
def test_a_rank_that_is_left_out_has_steps_and_phases(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("Debian's torchrun 1.13 cannot start ranks under its Python 3.11, with or without us")
    done = run_ranks(tmp_path, python, "-m", "torch.distributed.run", "--nproc_per_node", "2", HERE / "ddp.py", options=["--ranks", "0"],
                     env={"OMP_NUM_THREADS": 1})
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert [(step["process"], step["has_detail"]) for step in steps] == [("rank 0", True)] * 5 + [("rank 1", False)] * 5
    assert all(step["backward_ns"] > 0 for step in steps)
