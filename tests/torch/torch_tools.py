# SPDX-License-Identifier: Apache-2.0
"""What the tests with PyTorch share: which Pythons have it, and running a program under `stepscope run` with them."""
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
HERE = Path(__file__).parent
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME")


@lru_cache
def version(python):
    """Of the PyTorch that it imports; None when it has none."""
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def pythons():
    """The virtual environment's has the newest PyTorch that is tested, Debian's the oldest. TORCH_PYTHONS: others, with colons."""
    wanted = os.environ.get("TORCH_PYTHONS", f"{sys.executable}:/usr/bin/python3").split(":")
    found = [pytest.param(python, id=f"torch-{version(python)}") for python in dict.fromkeys(wanted) if version(python)]
    return found or [pytest.param("", marks=pytest.mark.skip(reason="no Python here has PyTorch: see tools/setup"))]


every_python = pytest.mark.parametrize("python", pythons())


def environment(**more):
    return {**{name: os.environ[name] for name in KEPT if name in os.environ}, **{key: str(value) for key, value in more.items()}}


def run(tmp_path, *program, env=None, options=(), timeout=120):
    """`stepscope run -o run -- program`"""
    return subprocess.run([STEPSCOPE, "run", "-o", "run", *options, "--", *map(str, program)], cwd=tmp_path, timeout=timeout,
                          env=environment(**(env or {})), capture_output=True, text=True, check=False)


def table(tmp_path, name, *options):
    done = subprocess.run([STEPSCOPE, "report", "run", "--table", name, "--json", *options], cwd=tmp_path, timeout=60,
                          env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def export(tmp_path):
    subprocess.run([STEPSCOPE, "export", "run", "-o", "ours.json"], cwd=tmp_path, timeout=60, env=environment(),
                   capture_output=True, check=True)
    return json.loads((tmp_path / "ours.json").read_text())["traceEvents"]
