# SPDX-License-Identifier: Apache-2.0
"""Two ranks: what they exchange, who the others wait for, and who died."""
import json
import subprocess

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, is_before, run, table, version


def two_ranks(tmp_path, python, *arguments, script=HERE / "straggler.py"):
    start = f"{python} {script} {tmp_path / 'meet'} {' '.join(arguments)}"
    return run(tmp_path, "sh", "-c", f"RANK=1 {start} & RANK=0 {start}; wait", options=["--with", "shapes"],
               env={"OMP_NUM_THREADS": 1, "WORLD_SIZE": 2})


def of_rank(tmp_path, name, rank):
    return [row for row in table(tmp_path, name) if row["process"] == f"rank {rank}"]


def findings(tmp_path, rule):
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json"], cwd=tmp_path, timeout=60, env=environment(), capture_output=True,
                          text=True, check=True)
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == rule]


@every_python
def test_collectives_and_the_slow_rank(tmp_path, python):
    done = two_ranks(tmp_path, python)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        rows = of_rank(tmp_path, "collectives", rank)
        reduced = {row["bytes"]: row for row in rows if "reduce" in row["collective"] and row["bytes"]}
        assert "gloo:all_reduce" in {row["collective"] for row in rows}
        assert reduced[(64 * 10 + 10) * 4]["count"] == 6 and reduced[8000]["count"] == 1
        assert all(0 <= row["exposed_ns"] <= row["total_ns"] for row in rows)
    ranks = {row["rank"]: row for row in table(tmp_path, "ranks")}
    assert [ranks[rank]["steps"] for rank in (0, 1)] == [6, 6]
    assert [ranks[rank]["is_slowest"] for rank in (0, 1)] == [False, True]
    # the script sees to these: rank 1 is 100 ms late at least, never waits, and sleeps as long in its own time
    assert ranks[1]["late_ns"] == ranks[0]["waits_ns"] >= 100e6
    assert ranks[1]["waits_ns"] == 0 and ranks[1]["own_ns"] >= 100e6
    waits = [row["communication_ns"] for row in table(tmp_path, "steps") if row["process"] == "rank 0"]
    assert len(waits) == 6 and min(waits) >= 100e6, waits
    slow, = findings(tmp_path, "SS602")  # D01: by when it arrives, as the allreduce makes the steps equally long
    assert slow["where"].startswith("rank 1")
    phases = {row["phase"]: row for row in table(tmp_path, "rank_phases")}
    assert {"step", "forward", "backward", "optimizer"} <= set(phases)
    assert all(row["min_ns"] <= row["mean_ns"] <= row["max_ns"] for row in phases.values())


@every_python
def test_a_killed_rank_is_named(tmp_path, python):
    two_ranks(tmp_path, python, "kill")
    ends = {row["rank"]: row["end"] for row in table(tmp_path, "ranks")}
    assert ends[1] == "killed by SIGKILL"


GROUPS = """
import os, sys, time, torch
import torch.distributed as dist
RANK = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=RANK, world_size=2)
other, alone = dist.new_group([0, 1]), dist.new_group([0])
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    there = f"{sys.argv[1]}.{step}"
    model(torch.randn(8, 16)).pow(2).mean().backward()
    while RANK == 1 and not os.path.exists(there):
        time.sleep(0.002)
    if RANK == 1:
        time.sleep(0.4)
    # two of them hold the threads of their group, and what follows waits behind them; the other group is free
    waits = [dist.all_reduce(torch.ones(1000 * size), async_op=True) for size in (1, 2, 3, 4)]
    if RANK == 0:
        open(there, "w").close()
        dist.all_reduce(torch.ones(50), group=alone)
    waits.append(dist.broadcast(torch.ones(500), 0, group=other, async_op=True))
    for wait in reversed(waits):
        wait.wait()
    optimizer.step()
"""


@every_python
def test_groups_and_handles_out_of_order(tmp_path, python):
    (tmp_path / "groups.py").write_text(GROUPS)
    done = two_ranks(tmp_path, python, script="groups.py")
    assert done.returncode == 0, done.stderr
    rows = {row["bytes"]: row for row in of_rank(tmp_path, "collectives", 0) if row["bytes"]}
    assert {size: rows[size]["count"] for size in (200, 2000, 4000, 8000, 12000, 16000)} == dict.fromkeys(
        (200, 2000, 4000, 8000, 12000, 16000), 3)
    held = min(rows[size]["queue_ns"] for size in (12000, 16000))  # behind those that wait for rank 1
    assert held > max(rows[size]["queue_ns"] for size in (200, 2000, 4000, 8000)) >= 0
    assert all(row["issue_ns"] is not None for row in of_rank(tmp_path, "collectives", 1))
    waits = [row for row in table(tmp_path, "host_waits") if row["cause"] == "communication: waiting for it"]
    assert held >= 0.4e9 and waits[0]["step_own_ns"] >= 0.6e9  # what the script saw to, each time; half of it, of three


STAGES = """
import os, sys, time, torch
import torch.distributed as dist
RANK = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=RANK, world_size=2)
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    there, batch = f"{sys.argv[1]}.{step}", torch.randn(8, 16)
    if RANK == 0:
        hidden, gradient = model(batch), torch.empty(8, 16)
        dist.send(hidden.detach(), 1)
        open(there, "w").close()
        dist.recv(gradient, 1)
        hidden.backward(gradient)
    else:
        dist.recv(batch, 0)
        model(batch.requires_grad_()).pow(2).mean().backward()
        while not os.path.exists(there):
            time.sleep(0.002)
        time.sleep(0.1)
        dist.send(batch.grad, 0)
    optimizer.step()
    optimizer.zero_grad()
"""


@every_python
def test_waits_of_a_pipeline_by_hand(tmp_path, python):
    """gloo's send and recv are executed on the thread that trains."""
    (tmp_path / "stages.py").write_text(STAGES)
    done = two_ranks(tmp_path, python, script="stages.py")
    assert done.returncode == 0, done.stderr
    steps = [row for row in table(tmp_path, "steps") if row["process"] == "rank 0"]
    # half of what the script saw to: a busy machine may hold up the recv
    assert len(steps) == 4 and sum(row["communication_ns"] for row in steps) >= 0.2e9
    ranks = {row["rank"]: row for row in table(tmp_path, "ranks")}
    assert ranks[0]["communication_ns"] >= 0.05e9 and ranks[1]["communication_ns"] > 0
    waits = [row for row in table(tmp_path, "host_waits") if row["cause"] == "communication: waiting for it"]
    assert waits[0]["step_own_ns"] >= 0.2e9


FUNCTIONAL = """
import os, sys, time, torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
meet, kind = sys.argv[1:]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=2)
if kind == "by_hand":
    import torch.distributed._functional_collectives as functional
    model = torch.nn.Linear(16, 16)
    def forward(batch):
        return functional.wait_tensor(functional.all_reduce(model(batch).detach(), "sum", dist.group.WORLD)) + model(batch)
else:  # the sum over both ranks is awaited inside of the operator that needs it
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
    forward = parallelize_module(model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    there, batch = f"{meet}.{step}", torch.ones(8, 16)
    if rank == 0:
        open(there, "w").close()
    while not os.path.exists(there):
        time.sleep(0.002)
    time.sleep(0.2 * rank)
    (forward(batch) - batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@every_python
@pytest.mark.parametrize("kind", ["by_hand", "DTensor"])
def test_waits_of_functional_collectives(tmp_path, python, kind):
    """Operators that are waits."""
    if version(python).startswith("1."):
        pytest.skip("this PyTorch has none")
    (tmp_path / "functional.py").write_text(FUNCTIONAL)
    done = two_ranks(tmp_path, python, kind, script="functional.py")
    assert done.returncode == 0, done.stderr
    assert any(row["name"] == "_c10d_functional::wait_tensor" for row in table(tmp_path, "ops"))
    # half of what the script saw to: a busy machine may hold up the one that waits
    assert sum(row["communication_ns"] for row in of_rank(tmp_path, "steps", 0)) >= 0.4e9
    ranks = {row["rank"]: row for row in table(tmp_path, "ranks")}
    assert ranks[0]["communication_ns"] >= 0.1e9 and ranks[1]["own_ns"] >= 0.1e9
    waits = [row for row in table(tmp_path, "host_waits") if row["cause"] == "communication: waiting for it"]
    assert sum(row["step_own_ns"] for row in waits) >= 0.4e9
    reduced, = [row for row in of_rank(tmp_path, "collectives", 0) if row["collective"] == "gloo:all_reduce"]
    assert reduced["exposed_ns"] > reduced["total_ns"] / 2


SHARDED = """
import os, sys, time, torch
import torch.distributed as dist
meet, kind, end = sys.argv[1:]
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=int(os.environ["RANK"]), world_size=2)
class Late(torch.autograd.Function):
    steps = 0
    @staticmethod
    def forward(context, x):
        return x.view_as(x)
    @staticmethod
    def backward(context, gradient):
        Late.steps += 1
        there = f"{meet}{Late.steps}"
        if dist.get_rank() == 0:
            open(there, "w").close()
        else:  # comes to the next collective when the other has waited there for long
            while not os.path.exists(there):
                time.sleep(0.01)
            time.sleep(0.2)
        return gradient
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))
    def forward(self, x):
        return self.layers[2](Late.apply(self.layers[1](self.layers[0](x))))
model = Net()
if kind == "fully_shard":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
else:
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}), device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(4, 16)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
if end == "abort" and dist.get_rank() == 0:
    os.abort()  # its files are not closed
dist.destroy_process_group()
"""


@every_python
@pytest.mark.parametrize("kind, end", [("fully_shard", "done"), ("FSDP1", "done"), ("FSDP1", "abort")])
def test_sharded_models(tmp_path, python, kind, end):
    if version(python).startswith("1."):
        pytest.skip("this PyTorch shards on GPUs only")
    (tmp_path / "sharded.py").write_text(SHARDED)
    done = two_ranks(tmp_path, python, kind, end, script="sharded.py")
    assert done.returncode == 0, done.stderr
    ends = {row["rank"]: row["end"] for row in table(tmp_path, "ranks")}
    assert end == "done" or ends[0] == "killed by SIGABRT"
    rows = of_rank(tmp_path, "collectives", 0)
    assert sum(row["count"] for row in rows if "gather" in row["collective"]) >= 6
    assert kind == "FSDP1" or any(row["name"].startswith("FSDP::all_gather") for row in table(tmp_path, "ops"))
    steps = of_rank(tmp_path, "steps", 0)
    # what came behind them was no beginning of a fourth
    assert [step["is_complete"] for step in steps] == [True] * 3, (ends, done.stderr)
    # for the late one, in the hooks of the backward's nodes
    assert min(step["communication_ns"] for step in steps) > 0.1e9


GRID = """
import json, os, sys, time, torch
import torch.distributed as dist
meet, how = sys.argv[1:]
rank = int(os.environ["RANK"])
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # the first one imports for seconds, in no order
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=4)
def make(ranks):
    if how == "new_group":
        return dist.new_group(list(ranks))
    if rank in ranks:  # behind the back of torch.distributed
        return dist.ProcessGroupGloo(dist.PrefixStore(str(ranks), store), ranks.index(rank), 2, timeout=dist.default_pg_timeout)
store = dist.FileStore(meet + ".by_hand", 4)
groups = {ranks: make(ranks) for ranks in ((0, 1), (2, 3), (0, 2), (1, 3))}
tensor, data = ([ranks for ranks in some if rank in ranks][0] for some in (((0, 1), (2, 3)), ((0, 2), (1, 3))))
spent = {}
def reduce(x, ranks):
    begin = time.perf_counter_ns()
    if how == "new_group":
        dist.all_reduce(x, group=groups[ranks])
    else:
        groups[ranks].allreduce([x]).wait()
    spent[str(list(ranks))] = spent.get(str(list(ranks)), 0) + time.perf_counter_ns() - begin
store.set(f"here {rank}", "")
store.wait([f"here {other}" for other in range(4)])  # all begin at once
for step in range(6):
    out = model(torch.ones(8, 16))
    there = f"{meet}.{step}"
    if rank == 2:
        open(there, "w").close()
    elif rank == 3:  # comes to the next one when the other waits there
        while not os.path.exists(there):
            time.sleep(0.002)
        time.sleep(0.2)
    reduce(torch.ones(50), tensor)
    out.sum().backward()
    for parameter in model.parameters():
        reduce(parameter.grad, data)
    optimizer.step()
with open(f"spent.{rank}.json", "w") as out:
    json.dump(spent, out)
"""


def run_grid(tmp_path, python, how):
    (tmp_path / "grid.py").write_text(GRID)
    start = " & ".join(f"RANK={rank} {python} grid.py {tmp_path / 'meet'} {how}" for rank in range(4))
    done = run(tmp_path, "sh", "-c", f"{start}; wait", options=["--with", "shapes"], env={"OMP_NUM_THREADS": 1, "WORLD_SIZE": 4})
    assert done.returncode == 0, done.stderr
    return [json.loads((tmp_path / f"spent.{rank}.json").read_text()) for rank in range(4)]


@every_python
def test_D01_who_is_late_is_told_within_each_process_group(tmp_path, python):
    """Tensor and data parallel pairs, rank 3 late for rank 2, who is late for rank 0 therefore. By the script's own stamps."""
    spent = run_grid(tmp_path, python, "new_group")
    times = table(tmp_path, "collective_times")
    pairs = "[0, 1]", "[2, 3]", "[0, 2]", "[1, 3]"
    sizes = sorted((members, size) for members in pairs for size in ((200,) if members in pairs[:2] else (16, 256)))
    assert sorted((row["group_members"], row["bytes"]) for row in times) == sizes
    assert {(row["count"], row["recorded_ranks"]) for row in times} == {(6, 2)} and len({row["group"] for row in times}) == 4
    for members in pairs:  # nobody is longer in one than the call of it lasts
        assert 0 < sum(row["mean_ns"] * 2 * row["count"] for row in times if row["group_members"] == members) <= sum(
            rank.get(members, 0) for rank in spent)
    late = 6 * 0.2e9  # what the script saw to; half of it, as a busy machine may wake up a waiting thread late
    ranks = {row["process"]: row for row in table(tmp_path, "rank_collectives")}
    assert ranks["rank 2"]["waits_total_ns"] >= late / 2 and ranks["rank 2"]["waits_for"].startswith("rank 3")
    assert late / 2 <= ranks["rank 0"]["waits_total_ns"] <= sum(spent[0].values()) and ranks["rank 0"]["waits_for"].startswith("rank 2")
    jobs = {row["rank"]: row for row in table(tmp_path, "ranks")}
    assert [jobs[rank]["is_slowest"] for rank in range(4)] == [False, False, False, True]
    assert late / 2 <= jobs[3]["caused_ns"] * 6 <= sum(sum(rank.values()) for rank in spent[:3]) / 3  # each of the others in the mean
    assert {row["late_ns"] for row in jobs.values()} == {None}  # there is no collective that all of them come to
    slow, = findings(tmp_path, "SS602")
    assert slow["where"].startswith("rank 3") and "each of the others waits" in slow["evidence"]
    assert {(row["group_ranks"], row["process"]) for row in table(tmp_path, "collectives")} == {(2, f"rank {rank}") for rank in range(4)}
    check_exports(tmp_path, times, {None} if is_before(python, 2, 4) else {"undefined"})


def check_exports(tmp_path, times, descriptions):
    """They say of each collective what torch.profiler says, and are read back as the same."""
    subprocess.run([STEPSCOPE, "export", "run", "-o", "trace.json"], cwd=tmp_path, timeout=60, env=environment(), check=True)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    told = {event["args"]["Process Group Ranks"]: event["args"] for event in events if event["name"] == "gloo:all_reduce"}
    assert told.keys() == {"[0, 1]", "[2, 3]", "[0, 2]", "[1, 3]"} and {args["Group size"] for args in told.values()} == {2}
    assert len({args["Process Group Name"] for args in told.values()}) == 4
    assert {args.get("Process Group Description") for args in told.values()} == descriptions
    subprocess.run([STEPSCOPE, "convert", "run", "run.ssr"], cwd=tmp_path, timeout=60, env=environment(), check=True)
    for other in ("trace.json", "run.ssr"):
        assert table(tmp_path, "collective_times", recording=other) == times, other


@every_python
def test_D01_collectives_of_several_groups_are_not_taken_for_one(tmp_path, python):
    """Groups that were not made by torch.distributed have no names: what is the first collective of each rank is none of all four."""
    run_grid(tmp_path, python, "by_hand")
    assert table(tmp_path, "collective_times") == table(tmp_path, "rank_collectives") == []
    ranks = table(tmp_path, "ranks")
    assert [row["is_slowest"] for row in ranks] == [False, False, False, True] and {row["caused_ns"] for row in ranks} == {None}
    slow, = findings(tmp_path, "SS602")
    assert slow["where"].startswith("rank 3") and "behind the others" in slow["evidence"]


@every_python
def test_ranks_on_one_machine_have_one_clock(tmp_path, python):
    assert two_ranks(tmp_path, python).returncode == 0
    ranks = table(tmp_path, "rank_collectives")
    assert [row["clock_ahead_ns"] for row in ranks] == [0, 0]
