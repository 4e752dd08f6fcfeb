# SPDX-License-Identifier: Apache-2.0
"""`report --style torch` of a trace that torch.profiler wrote is what torch.profiler itself printed, byte for byte."""
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, version, warm

WANTED = ["none", "steps", "steps,shapes,memory,flops", "stack", "steps,stack,shapes,memory"]
WITHOUT_KINETO = ["none", "steps", "stack"]  # such a trace has no shapes and no memory


def has_kineto(python):
    done = subprocess.run([python, "-c", "import torch; print(torch.autograd.kineto_available())"], capture_output=True, text=True,
                          env=environment(), timeout=300, check=True)
    return done.stdout.strip() == "True"


@pytest.mark.parametrize("wanted", WANTED)
@every_python
def test_the_same_bytes_as_the_profiler(tmp_path, python, wanted):
    if wanted not in WITHOUT_KINETO and not has_kineto(python):
        pytest.skip("this PyTorch was built without Kineto: its traces hold times only")
    command = [HERE / "traced.py", tmp_path / "trace.json", wanted]
    done = warm(tmp_path, python, *command, is_observed=False)
    for _ in range(5):  # with stacks, one time in twenty torch.profiler has a name that is gone; a fork would have it at the same place
        if "UnicodeDecodeError" not in done.stderr:
            break
        done = subprocess.run([python, *command], capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    style = "torch-1.13" if version(python).startswith("1.") else "torch"
    for name, options in (("name", ["--limit", "-1"]), ("shape", ["--by", "shape", "--sort", "self_cpu_time_total"])):
        done = subprocess.run([STEPSCOPE, "report", tmp_path / "trace.json", "--style", style, *options], capture_output=True,
                              text=True, env=environment(), timeout=60, check=True)
        assert done.stdout == (tmp_path / f"trace.json.{name}").read_text(encoding="utf-8")
