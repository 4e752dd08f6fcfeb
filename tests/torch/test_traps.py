# SPDX-License-Identifier: Apache-2.0
"""Where torch.profiler fails in real scripts, and what ours does there: one script, so that PyTorch is loaded once."""
import json
import re
import subprocess
from pathlib import Path

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, run, table, until_ranks_end, version

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


IDLE = """
import threading, torch
from stepscope import profile
idle = threading.Condition()
thread = threading.Thread(target=lambda: idle.acquire() and idle.wait(), daemon=True)
thread.start()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 4)), batch_size=4, num_workers=2,
                                   multiprocessing_context="fork")
with profile(with_stack=True) as prof:
    for batch, in data:
        batch.mm(batch.t())
rows = prof.key_averages()
own = sum(row.self_cpu_time_total for row in rows)
print([row.key for row in rows if ".py(" in row.key or "built-in" in row.key], abs(own / prof.profiler.self_cpu_time_total - 1) < 0.01)
print(sorted(row.key for row in rows if row.key == "aten::mm"))
"""


@every_python
def test_idle_threads_are_no_rows(tmp_path, python):
    """torch.profiler with stacks counts threads that wait, the loader's among them, as work."""
    (tmp_path / "idle.py").write_text(IDLE)
    done = subprocess.run([python, "idle.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
                          env=environment(PYTHONPATH=BUILD / "python"))
    assert (done.returncode, done.stdout) == (0, "[] True\n['aten::mm']\n"), done.stderr


SHARDED = """
import os, torch
import torch.distributed as dist
from stepscope import profile
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(1)
inner = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
if {whole}:
    model = FullyShardedDataParallel(inner, device_id=torch.device("cpu"))
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    model = fully_shard(inner, mesh=init_device_mesh("cpu", (2,)))
optimizer = torch.optim.AdamW(model.parameters())
with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
    for _ in range(3):
        model(torch.randn(4, 16)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
prof.export_memory_timeline(f"timeline{{dist.get_rank()}}.json", device="cpu")
dist.barrier()
dist.destroy_process_group()
"""


@every_python
@pytest.mark.parametrize("whole", [True, False])
def test_memory_of_sharded_models(tmp_path, python, whole):
    """torch.profiler's data flow graph gives up: "version mismatch"."""
    if version(python).startswith("1."):
        pytest.skip("Debian's torchrun 1.13 cannot start ranks under its Python 3.11, with or without us")
    (tmp_path / "sharded.py").write_text(SHARDED.format(whole=whole))
    done = until_ranks_end(lambda: subprocess.run(
        [python, "-m", "torch.distributed.run", "--nproc_per_node", "2", "sharded.py"], cwd=tmp_path, capture_output=True, text=True,
        timeout=240, check=False, env=environment(PYTHONPATH=BUILD / "python", OMP_NUM_THREADS=1)))
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        times, sizes = json.loads((tmp_path / f"timeline{rank}.json").read_text())
        assert len(times) == len(sizes) > 10 and max(map(sum, sizes)) > 0


@every_python
def test_two_ranks_do_not_share_a_file(tmp_path, python):
    ranks = [subprocess.Popen([python, "-c", TWO_RANKS], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(PYTHONPATH=BUILD / "python", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2))
             for rank in (0, 1)]
    for rank in ranks:
        assert rank.wait(timeout=300) == 0, rank.stderr.read()
    names = sorted(path.name for path in (tmp_path / "shared").iterdir())
    assert names == ["key_averages.txt", "profiler_chrome.json", "rank1_key_averages.txt", "rank1_profiler_chrome.json"]
