# SPDX-License-Identifier: Apache-2.0
"""Where torch.profiler fails in real scripts, and what ours does there: one script, so that PyTorch is loaded once."""
import json
import re
import subprocess
from pathlib import Path

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table

BUILD = Path(STEPSCOPE).resolve().parent.parent
TWO_RANKS = """
import os, sys, torch
from stepscope.arguments import Settings
settings = Settings(enabled=True, output_dir="shared", active=1, repeat=1, is_board=False, ranks="all", with_stack=False)
with settings.profile() as prof:
    torch.ones(2)
    prof.step()
"""


@every_python
def test_what_scripts_do(tmp_path, python):
    done = subprocess.run([python, HERE / "traps.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(PYTHONPATH=BUILD / "python"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "CUDA is not available, disabling CUDA profiling" in found["warnings"]
    assert found["python_rows"] == [] and found["negative"] == []
    assert any(source.endswith("traps.py") for source in found["sources"])
    assert set(found["names"].values()) == {0}
    assert found["slicing"] == [3, True, True]
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(re.fullmatch(r"[^ ]+ [1-9]\d*", line) for line in lines)
    assert any("traps.py(" in line and line.rpartition(" ")[0].endswith("aten::addmm") for line in lines)
    times, sizes = json.loads((tmp_path / "timeline.json").read_text())
    assert len(times) == len(sizes) and len(sizes[0]) == 9 and times == sorted(times)
    assert "<html>" in (tmp_path / "timeline.html").read_text()
    assert found["no_stacks"] == "export_stacks() requires with_stack=True"
    assert found["no_timeline"] == "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."
    assert found["described"] == ['a "tiny" one', [1, 2], None, 1, True, True]
    assert found["by_torch"] == [[2], 1, "torch", True, True]
    assert found["toggled"] == ["aten::neg", "aten::ones"]
    assert found["accumulated"] == [3, 3, 3, "mine"]
    assert found["child"] == 0 and found["same"] == 200


@every_python
def test_the_step_that_does_not_come_is_none(tmp_path, python):
    done = run(tmp_path, python, HERE / "profiled.py", "stepscope", "cycles")
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path, "steps")
    assert [row["step"] for row in rows if row["is_complete"]] == list(range(10))
    assert "captured all 10 steps (0-9)" in done.stderr


@every_python
def test_two_ranks_do_not_share_a_file(tmp_path, python):
    ranks = [subprocess.Popen([python, "-c", TWO_RANKS], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(PYTHONPATH=BUILD / "python", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2))
             for rank in (0, 1)]
    for rank in ranks:
        assert rank.wait(timeout=120) == 0, rank.stderr.read()
    names = sorted(path.name for path in (tmp_path / "shared").iterdir())
    assert names == ["key_averages.txt", "profiler_chrome.json", "rank1_key_averages.txt", "rank1_profiler_chrome.json"]
