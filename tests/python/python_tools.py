# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: running programs with it, under `stepscope run` and without, and reading back."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
PACKAGE = Path(STEPSCOPE).resolve().parent.parent / "python"
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME")
# STEPSCOPE_PYTHONS: more interpreters, with colons
PYTHONS = list(dict.fromkeys([sys.executable, *filter(None, os.environ.get("STEPSCOPE_PYTHONS", "").split(":"))]))

every_interpreter = pytest.mark.parametrize("python", PYTHONS)


def environment(**more):
    return {**{name: os.environ[name] for name in KEPT if name in os.environ}, **{key: str(value) for key, value in more.items()}}


def plain(tmp_path, python, *program, **env):
    """Without the launcher; the package can be imported."""
    env = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": 1, **env}
    return subprocess.run([str(python), *map(str, program)], cwd=tmp_path, env=environment(**env), capture_output=True, text=True,
                          timeout=300, check=False)


def run(tmp_path, python, *program, options=(), env=None):
    """`stepscope run -o run -- python program`; all steps have operators."""
    env = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": 1, "STEPSCOPE_BUDGET": "none", **(env or {})}
    return subprocess.run([STEPSCOPE, "run", "-o", "run", *options, "--", str(python), *map(str, program)], cwd=tmp_path,
                          env=environment(**env), capture_output=True, text=True, timeout=300, check=False)


def table(tmp_path, name, where="run"):
    done = subprocess.run([STEPSCOPE, "report", where, "--table", name, "--json"], cwd=tmp_path, timeout=60, env=environment(),
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def events(tmp_path, where="run"):
    subprocess.run([STEPSCOPE, "export", where, "-o", "ours.json"], cwd=tmp_path, timeout=60, env=environment(),
                   capture_output=True, check=True)
    return json.loads((tmp_path / "ours.json").read_text())["traceEvents"]


def spans(tmp_path, where="run"):
    """Names of the program's spans in order of their start, without its steps."""
    found = [event for event in events(tmp_path, where) if event.get("ph") == "X" and event.get("cat") != "Trace" and
             not event["name"].startswith("ProfilerStep#")]
    return [event["name"] for event in sorted(found, key=lambda event: (event["ts"], -event["dur"]))]
