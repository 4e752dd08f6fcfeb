# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler writes into a directory for TensorBoard: a file per window of a schedule that repeats."""
import shutil
import subprocess

from torch_tools import HERE, environment, every_python, table, version


def operators(directory):
    return {(row["name"], row["kind"]): [row[key] for key in ("calls", "self_ns", "total_ns")] for row in table(directory, "ops")}


@every_python
def test_R02_windows_of_a_schedule_that_repeats(tmp_path, python):
    subprocess.run([python, HERE / "windows.py", tmp_path / "run"], check=True, capture_output=True, timeout=240, env=environment())
    files = sorted((tmp_path / "run").glob("*.pt.trace.json"))
    assert len(files) == 2
    if version(python).startswith("1."):  # Debian's has no Kineto: times of each file begin at 0, so nothing says how they follow each other
        assert len(table(tmp_path, "ranks")) == 2
        return
    assert [row["step"] for row in table(tmp_path, "steps")] == [3, 4, 5, 9, 10, 11] and len(table(tmp_path, "ranks")) == 1
    sums = {}
    for number, file in enumerate(files):
        (tmp_path / str(number)).mkdir()
        shutil.copy(file, tmp_path / str(number) / "run")
        for name, values in operators(tmp_path / str(number)).items():
            sums[name] = [a if b is None else b if a is None else a + b for a, b in zip(sums.get(name, [None] * 3), values)]
    assert operators(tmp_path) == sums
    threads = [(row["thread"], row["kind"]) for row in table(tmp_path, "threads")]
    assert len(set(threads)) == len(threads), "a thread is one, however many files it is in"
    parts = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps")}
    assert parts["steps that were not recorded"] > 0
