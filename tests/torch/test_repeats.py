# SPDX-License-Identifier: Apache-2.0
"""The same program recorded 20 times has one verdict, but for one run at most: a program of PyTorch, and one in C."""
import collections
import json
import os
import subprocess
from pathlib import Path

from torch_tools import HERE, STEPSCOPE, environment, every_python, run

REPEATS = int(os.environ.get("REPEATS", "20"))
GPT = Path(os.environ.get("BUILD", "build-test")) / "examples/c/gpt"


def verdict(tmp_path, recording="run"):
    done = subprocess.run([STEPSCOPE, "diagnose", "--json", recording], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["verdict"]
    return found["verdict"], found["sentence"]


def check(verdicts):
    """Prints all verdicts, so that a failure shows the other ones with their sentences."""
    counts = collections.Counter(word for word, _ in verdicts)
    print(dict(counts), *sorted(verdicts), sep="\n")
    assert len(verdicts) - max(counts.values()) <= 1, counts


@every_python
def test_a_program_of_pytorch_has_one_verdict(tmp_path, python):
    verdicts = []
    for number in range(REPEATS):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(folder, python, HERE / "repeats.py", env={"OMP_NUM_THREADS": 1})
        assert done.returncode == 0, done.stderr
        verdicts.append(verdict(folder))
    check(verdicts)


def test_a_program_in_c_has_one_verdict(tmp_path):
    verdicts = []
    for number in range(REPEATS):
        subprocess.run([STEPSCOPE, "run", "--quiet", "--out", str(number), "--", GPT.resolve(), "--steps", "30", "--layers", "1", "--quiet"],
                       cwd=tmp_path, env=environment(), check=True, capture_output=True)
        verdicts.append(verdict(tmp_path, str(number)))
    check(verdicts)
