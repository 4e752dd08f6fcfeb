# SPDX-License-Identifier: Apache-2.0
"""Our schedule against the real torch.profiler.schedule(). Skipped where torch is not installed; the same comparison with a
port of its function is in tests/unit/recorder/test_schedule.c."""
import itertools
import os
import shlex
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = 64
NAMES = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
SOURCES = ("options", "options_resolve", "option_rows", "option_values", "schedule")


@pytest.fixture(scope="module")
def profiler():
    warnings.simplefilter("ignore")
    try:
        import torch.profiler
    except Exception as reason:  # a broken installation raises all sorts of things
        pytest.skip(f"torch.profiler cannot be imported: {reason}")
    return torch.profiler


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """A function from lists of options to our answers, one line each."""
    program = tmp_path_factory.mktemp("schedule") / "schedule_letters"
    sources = [Path(__file__).with_name("schedule_letters.c")] + [ROOT / f"src/recorder/{name}.c" for name in SOURCES]
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{ROOT}/include",
                    f"-I{ROOT}/src", *sources, "-o", program], check=True)

    def answers(lists):
        result = subprocess.run([program], input="\n".join(lists) + "\n", capture_output=True, text=True, check=True)
        return result.stdout.splitlines()

    return answers


def torch_letters(profiler, values):
    letters = {profiler.ProfilerAction.NONE: ".", profiler.ProfilerAction.WARMUP: "w",
               profiler.ProfilerAction.RECORD: "r", profiler.ProfilerAction.RECORD_AND_SAVE: "S"}
    try:
        action = profiler.schedule(**dict(zip(NAMES, values)))
    except AssertionError:
        return "refused"
    return "".join(letters[action(step)] for step in range(STEPS))


def as_list(values):
    return ",".join(f"{name}={value}" for name, value in zip(NAMES, values))


def compare(profiler, ask, grid):
    for values, ours in zip(grid, ask([as_list(values) for values in grid]), strict=True):
        theirs = torch_letters(profiler, values)
        assert ours.startswith("refused: ") if theirs == "refused" else ours == theirs, as_list(values)


def test_every_step_has_the_action_that_torch_gives_it(profiler, ask):
    compare(profiler, ask, list(itertools.product((0, 1, 2, 5, 9), (0, 1, 2, 4), (1, 2, 3, 7), (0, 1, 2, 3),
                                                  (0, 1, 4, 10), (0, 1, 2))))


def test_what_torch_refuses_is_refused(profiler, ask):
    good = (1, 1, 1, 1, 1, 0)
    grid = [good[:i] + (-1,) + good[i + 1:] for i in range(5)] + [(1, 1, 0, 1, 1, 0)]
    assert all(torch_letters(profiler, values) == "refused" for values in grid)
    compare(profiler, ask, grid)
