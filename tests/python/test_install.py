# SPDX-License-Identifier: Apache-2.0
"""The wheel, built and installed into a fresh virtual environment: everything in it is found there, and nothing of the source tree."""
import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("FRAMEWORKS_PYTHON", "")
TRAIN = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def call(*command, cwd=None, **env):
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "CC", "LANG") if name in os.environ}
    return subprocess.run(list(map(str, command)), cwd=cwd, env={**clean, **env}, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with our wheel, and PyTorch beside it."""
    if not PYTHON or call(PYTHON, "-c", "import mesonpy, torch").returncode != 0:
        pytest.skip("no Python with meson-python and PyTorch: tools/setup all")
    folder = tmp_path_factory.mktemp("install")
    built = call(PYTHON, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, SOURCE,
                 PATH=f"{Path(PYTHON).parent}:{os.environ['PATH']}")
    assert built.returncode == 0, built.stdout + built.stderr
    wheel, = folder.glob("stepscope-*-abi3-*.whl")
    call(PYTHON, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    done = call(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    packages = call(PYTHON, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))").stdout.strip()
    site, = (folder / "venv/lib").glob("python3*/site-packages")
    (site / "zz_torch.pth").write_text(packages + "\n")
    return python


def steps(python, directory):
    done = call(python.parent / "stepscope", "report", directory, "--table", "steps", "--csv")
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines()) - 1


def test_auto(installed, tmp_path):
    done = call(installed, "-c", "import stepscope; print(stepscope.auto())\n" + TRAIN, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.startswith("stepscope: recording into "), done.stderr
    assert steps(installed, done.stdout.strip()) == 3


@pytest.mark.parametrize("flag", ["-B", "-I", "-E"])
def test_the_environment_is_enough(installed, tmp_path, flag):
    done = call(installed, flag, "-c", TRAIN, cwd=tmp_path, STEPSCOPE=f"out={tmp_path / 'run'}")
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 2, done.stderr
    assert steps(installed, tmp_path / "run") == 3


def test_who_does_not_ask_gets_nothing(installed, tmp_path):
    program = "import sys; print([name for name in sys.modules if 'stepscope' in name], 'TorchFinder' in str(sys.meta_path))"
    assert call(installed, "-c", program, cwd=tmp_path).stdout == "[] False\n"
    assert call(installed, "-c", program, cwd=tmp_path, STEPSCOPE="0").stdout == "['_stepscope_hook'] False\n"
    assert call(installed, "-c", program, cwd=tmp_path, STEPSCOPE="1").stdout == "['_stepscope_hook'] True\n"


def test_the_program_and_its_launcher(installed, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for number, command in enumerate(([installed.parent / "stepscope", "run"], [installed, "-m", "stepscope"])):
        end = ["--", installed, "train.py"] if number == 0 else ["train.py"]
        done = call(*command, "-o", f"run{number}", *end, cwd=tmp_path)
        assert done.returncode == 0 and "cannot" not in done.stderr, done.stderr
        assert steps(installed, tmp_path / f"run{number}") == 3


def test_the_headers(installed, tmp_path):
    header, = (installed.parent.parent / "include").rglob("stepscope.h")
    (tmp_path / "use.c").write_text("#include <stepscope/stepscope.h>\nint main(void) { return STEPSCOPE_VERSION[0] != '0'; }\n")
    done = call("gcc", "-DSTEPSCOPE_DISABLE", "-I", header.parent.parent, "-o", tmp_path / "use", tmp_path / "use.c")
    assert done.returncode == 0, done.stderr


def test_types_are_known(installed):
    program = "import stepscope, os; print(sorted(f for f in os.listdir(os.path.dirname(stepscope.__file__)) if f in ('py.typed', '_native.pyi')))"
    assert call(installed, "-c", program).stdout == "['_native.pyi', 'py.typed']\n"
