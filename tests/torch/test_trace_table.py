# SPDX-License-Identifier: Apache-2.0
"""Traces that torch.profiler wrote: `report --style torch` is what torch.profiler itself printed, byte for byte; steps and phases that the trace
does not mark are those of the loop, also where it was written without Kineto and has no sequence numbers."""
import itertools
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, version, warm

WANTED = ["none", "steps", "steps,shapes,memory,flops", "stack", "steps,stack,shapes,memory", "frames", "steps,frames", "collectives", "collectives,shapes,memory"]
WITHOUT_KINETO = ["none", "steps", "stack", "collectives"]  # such a trace has no shapes, no memory and no lines


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
    # with stacks torch.profiler now and then has a name that is gone: it is unreadable, or not the same in the trace and in the table; a fork
    # would have it at the same place
    for _ in range(5 if "stack" in wanted or "frames" in wanted else 0):
        if done.returncode == 0 and is_same(tmp_path, python):
            break
        assert done.returncode == 0 or "UnicodeDecodeError" in done.stderr, done.stderr
        done = subprocess.run([python, *command], capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    for ours, its in tables(tmp_path, python):
        assert ours == its


def tables(tmp_path, python):
    """(ours, torch.profiler's) of its trace."""
    style = "torch-1.13" if version(python).startswith("1.") else "torch"
    for name, options in (("name", ["--limit", "-1"]), ("shape", ["--by", "shape", "--sort", "self_cpu_time_total"]),
                          ("frames", ["--frames", "3", "--limit", "-1"])):
        if not (tmp_path / f"trace.json.{name}").exists():
            continue
        done = subprocess.run([STEPSCOPE, "report", tmp_path / "trace.json", "--style", style, *options], capture_output=True,
                              text=True, env=environment(), timeout=60, check=True)
        yield done.stdout, (tmp_path / f"trace.json.{name}").read_text(encoding="utf-8")


def is_same(tmp_path, python):
    return all(ours == its for ours, its in tables(tmp_path, python))


def names_of_spans(trace, kind):
    done = subprocess.run([STEPSCOPE, "query", trace, "--csv", f"SELECT name FROM spans WHERE kind = '{kind}' ORDER BY start_ns"],
                          capture_output=True, text=True, env=environment(), timeout=60, check=True)
    return done.stdout.split()[1:]


UPDATED = ["forward", "backward", "optimizer"]


@pytest.mark.parametrize("loop, phases", [("zeroed", UPDATED), ("dropped", UPDATED), ("in_one_call", UPDATED),
                                          ("accumulated_by_hand", ["forward", "backward"] * 4 + ["optimizer"]),
                                          ("accumulated", ["forward", "backward"] * 4 + ["optimizer"])])
@every_python
def test_steps_and_phases_are_those_of_the_loop(tmp_path, python, loop, phases):
    done = warm(tmp_path, python, HERE / "traced_loops.py", loop, tmp_path / "trace.json", is_observed=False)
    assert done.returncode == 0, done.stderr
    assert names_of_spans(tmp_path / "trace.json", "step") == ["step"] * 6
    found = names_of_spans(tmp_path / "trace.json", "phase")
    assert [name for name, _ in itertools.groupby(found)] == phases * 6  # one with a pause in it comes in pieces
