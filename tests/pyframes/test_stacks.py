# SPDX-License-Identifier: Apache-2.0
"""src/pyframes on every CPython of this machine: stacks equal to what the interpreter itself says. Which versions are not here is said."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KNOWN = range(8, 15)
PROBE = os.environ["PYFRAMES_PROBE"]


def version(python):
    done = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"],
                          capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


def pythons():
    """One of each version and place: those that are called, the distribution's, and pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [sys.executable, "/usr/bin/python3", *sorted(map(str, pyenv.glob("3.*/bin/python")))]
    found += [shutil.which(f"python3.{minor}") for minor in KNOWN]
    return list({os.path.realpath(path): path for path in found if path and os.path.exists(path)}.values())


VERSIONS = {python: version(python) for python in pythons()}
VERSIONS = {python: found for python, found in VERSIONS.items() if found}
KNOWN_ONES = [python for python, (number, name) in VERSIONS.items() if name == "cpython" and int(number.split(".")[1]) in KNOWN]


@pytest.mark.parametrize("python", KNOWN_ONES)
def test_stacks_are_those_of_the_interpreter(python):
    done = subprocess.run([python, "check_stacks.py", PROBE], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 1500


def test_every_version_is_here():
    here = {int(number.split(".")[1]) for number, _ in VERSIONS.values()}
    missing = ", ".join(f"3.{minor}" for minor in KNOWN if minor not in here)
    if missing:
        pytest.skip(f"stacks are not tested with {missing}: no such Python here")


REFUSED = {
    "3.7.16 (default, Nov 8 2026) [GCC 12]": "3.8 to 3.14",
    "3.15.0 (main) [GCC 12]": "3.8 to 3.14",
    "2.7.18 (default) [GCC 12]": "3.8 to 3.14",
    "": "3.8 to 3.14",
    "3.10.14 (75b3de9d9035, Apr 21 2024) [PyPy 7.3.16 with GCC 10.2.1]": "not CPython",
    "3.13.0 experimental free-threading build (main) [GCC 12]": "free-threaded",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_known_is_refused(text):
    import ctypes

    probe = ctypes.CDLL(PROBE)
    probe.probe_stack.restype = ctypes.c_char_p
    assert re.search(REFUSED[text], probe.probe_stack(text.encode(), None, None, 0).decode())
