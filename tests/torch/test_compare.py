# SPDX-License-Identifier: Apache-2.0
"""Comparisons of runs of PyTorch: what the operators tell of the work per step, and which of them are new."""
import json
import subprocess

from torch_tools import HERE, STEPSCOPE, environment, every_python, run


def record(tmp_path, python, name, *arguments, options=("--with", "shapes")):
    done = run(tmp_path, python, HERE / "compared.py", *arguments, options=["--out", name, *options])
    assert done.returncode == 0, done.stderr


def compare(tmp_path, *arguments):
    done = subprocess.run([STEPSCOPE, "compare", "--json", *arguments], cwd=tmp_path, timeout=60, env=environment(),
                          capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return json.loads(done.stdout), done.returncode


@every_python
def test_what_operators_tell_of_a_difference(tmp_path, python):
    record(tmp_path, python, "base", 64)
    record(tmp_path, python, "batch", 8)
    record(tmp_path, python, "tanh", 64, "Tanh")

    # D11: another batch is seen in the inputs of operators, though the program does not say what a step has to do
    answer, status = compare(tmp_path, "base", "batch")
    assert answer["verdict"]["result"] == "not comparable" and status == 5
    assert "the work per step changed: inputs of " in answer["verdict"]["sentence"]
    assert answer["verdict"]["work"] is None
    changed = [row for row in answer["differences"] if row["kind"] == "work"]
    assert changed and all("64" in row["base"] and "8" in row["new"] for row in changed)

    answer, _ = compare(tmp_path, "base", "tanh")
    notes = {row["name"]: row["note"] for row in answer["contributions"] if row["level"] == "operator"}
    assert notes["aten::tanh"] == "only on the new side" and notes["aten::relu"] == "only in the base"
    assert not [row for row in answer["differences"] if row["kind"] in ("hardware", "software")]
    assert {"phase", "operator", "module"} <= {row["level"] for row in answer["contributions"]}


@every_python
def test_two_runs_of_one_command_have_the_same_settings(tmp_path, python):
    """What a recording says of its own processes is no setting of the program's."""
    for name in ("base", "new"):
        record(tmp_path, python, name, 64)
    answer, _ = compare(tmp_path, "base", "new")
    assert not [row for row in answer["differences"] if row["kind"] != "clock"]


@every_python
def test_D11_what_a_recording_without_sizes_tells_of_the_work(tmp_path, python):
    """That gradients of two batches are added up; of half the batch nothing, and that is said."""
    record(tmp_path, python, "base", 64, options=[])
    record(tmp_path, python, "half", 32, options=[])
    record(tmp_path, python, "added", 32, "ReLU", 2, options=[])

    answer, _ = compare(tmp_path, "base", "half")
    assert not [row for row in answer["differences"] if row["kind"] == "work"]
    assert "whether both sides do the same work per step is unknown: neither input sizes" in answer["verdict"]["work"]

    answer, status = compare(tmp_path, "base", "added")
    assert answer["verdict"]["result"] == "not comparable" and status == 5
    assert "the work per step changed: forwards and backwards per step 1 -> 2" in answer["verdict"]["sentence"]
