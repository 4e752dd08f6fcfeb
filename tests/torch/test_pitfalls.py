# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with observers of PyTorch, each with the test that shows that it does not with ours: the table names all of them, the tests
below are those that have no better place."""
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from test_start import plain
from torch_tools import HERE, STEPSCOPE, every_python, export, is_before, run, table, warm

PACKAGE = Path(STEPSCOPE).resolve().parent.parent / "python"
TESTS = HERE.parent

# What may go wrong: files and tests. Rows P: programs of any language, here those for Python.
COVERED = {
    "the slot of torch.profiler is taken": "torch/test_pitfalls.py: test_torchs_profiler_around_ours_and_beside_it",
    "a name is kept by its address": "torch/test_pitfalls.py: test_names_that_are_gone",
    "inputs are read after the beginning": "recorder/test_observer.c: inputs_are_not_read_after_the_beginning",
    "something is printed per operator": "torch/test_pitfalls.py: test_nothing_is_printed",
    "offsets are looked for in an odd mode": "torch/test_pitfalls.py: test_odd_modes_while_we_look",
    "another PyTorch is loaded, or none": "torch/test_pitfalls.py: test_two_copies_of_the_library; torch/test_start.py: "
                                          "test_a_torch_that_is_something_else_is_said",
    "pages of the library stay writable": "torch/test_pitfalls.py: test_protections_are_as_without_us",
    "odd tensors, sizes over 2^32": "torch/test_inputs.py: test_inputs_as_torch_profiler test_what_is_not_trusted_has_no_sizes",
    "a fork with open records": "torch/test_pitfalls.py: test_p02_children_of_all_kinds; torch/test_lines.py: test_harmless",
    "callbacks are removed under load": "torch/test_pitfalls.py: test_starts_and_stops_beside_busy_threads; torch/test_lines.py: test_harmless",
    "threads that end": "torch/test_lines.py: test_harmless; recorder/test_threads.c: ten_thousand_short_threads_are_all_there",
    "operators that throw": "torch/test_inputs.py: test_inputs_as_torch_profiler; torch/test_lines.py: test_harmless",
    "forward operators in a backward": "torch/test_steps.py: test_as_many_steps_as_the_script_made; torch/test_modules.py: "
                                       "test_what_is_computed_again_is_counted_once",
    "sequence numbers repeat": "torch/test_pitfalls.py: test_a_graph_that_is_used_twice; torch/test_operators.py: "
                               "test_the_same_operators_as_torch_profiler",
    "records of dispatch modes": "torch/test_flops.py: test_as_flop_counter_with_it_and_without",
    "compilation is taken for work": "torch/test_waits.py: test_compilation_is_named",
    "the end of the data is taken for a batch": "torch/test_loader.py: test_batches_are_counted_by_loader",
    "the program's own sitecustomize is lost": "torch/test_start.py: test_the_users_own_sitecustomize_runs "
                                               "test_flags_that_keep_us_out_leave_the_program_alone; torch/test_getting_in.py: "
                                               "test_the_environment_asks_for_it",
    "importing is changed": "torch/test_start.py: test_torch_is_imported_as_without_us test_a_broken_torch_fails_as_it_does_without_us; "
                            "torch/test_getting_in.py: test_reloading_torchs_package_and_failing_imports",
    "hooks behind all backwards": "torch/test_modules.py: test_whatever_else_looks_at_modules_finds_them_as_without_us",
    "references are kept": "torch/test_getting_in.py: test_nothing_of_the_program_is_kept_alive",
    "no hook of optimizers, optimizers of all kinds": "torch/test_steps.py: test_as_many_steps_as_the_script_made",
    "a collective's issue is taken for its duration": "torch/test_collectives.py: test_collectives_and_the_slow_rank",
    "memory from before the start is freed": "unit/analysis/test_memory.c: frees_of_older_memory_are_counted_and_change_nothing",
    "an address is used again": "unit/analysis/test_memory.c: each_use_of_an_address_has_its_own_category "
                                "an_address_that_is_allocated_again_was_freed",
    "a profiler that is left open crashes by itself": "torch/test_pitfalls.py: test_a_profiler_that_is_left_open",
    "P01 ends of all kinds": "torch/test_kill.py: test_ended_training_can_be_read",
    "P02 children of all kinds": "torch/test_pitfalls.py: test_p02_children_of_all_kinds; torch/test_start.py: "
                                 "test_children_record_into_files_of_their_own",
    "P03 workers of loaders": "torch/test_pitfalls.py: test_p03_many_workers_that_stay; torch/test_loader.py: "
                              "test_workers_that_are_not_forked test_a_killed_worker_is_named test_sixteen_workers_and_little_shared_memory",
    "P04 starts and stops of all kinds": "torch/test_pitfalls.py: test_p04_starts_and_stops; torch/test_profiler.py: test_the_same_states",
    "P05 signals and timers": "torch/test_pitfalls.py: test_p05_no_signal_and_no_timer",
    "P06 code and libraries that go away": "torch/test_lines.py: test_stacks_are_those_that_the_program_saw; torch/test_modules.py: "
                                           "test_a_compiler_sees_the_same; torch/test_pitfalls.py: test_names_that_are_gone",
    # what torch.profiler does to scripts
    "trap: Python functions and idle threads are rows": "torch/test_traps.py: test_what_scripts_do test_idle_threads_are_no_rows",
    "trap: negative self times": "torch/test_traps.py: test_what_scripts_do",
    "trap: an empty last step": "torch/test_traps.py: test_the_step_that_does_not_come_is_none",
    "trap: no stacks are written": "torch/test_traps.py: test_what_scripts_do",
    "trap: the memory timeline raises with sharded models": "torch/test_traps.py: test_memory_of_sharded_models",
    "trap: two ranks on one file": "torch/test_traps.py: test_two_ranks_do_not_share_a_file test_what_scripts_do",
}


@pytest.mark.parametrize("what", COVERED)
def test_every_pitfall_has_its_test(what):
    for part in COVERED[what].split("; "):
        file, names = part.split(": ")
        text = (TESTS / file).read_text()
        for name in names.split():
            assert re.search(rf"(?:^def {name}\(|^static void {name}\(void|TEST\({name}\))", text, re.M), (file, name)


def names_in(tmp_path):
    return [event["name"] for event in export(tmp_path) if event.get("cat") in ("cpu_op", "user_annotation")]


def counts(tmp_path, *names):
    found = Counter(names_in(tmp_path))
    return [found[name] for name in names]


TWO_PROFILERS = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
def work():
    return torch.ones(512, 512).neg()
def theirs():
    return profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True)
def count(prof):  # not the operators that we look at PyTorch with
    return sum(event.name == "aten::neg" and event.input_shapes == [[512, 512]] for event in prof.events())
with theirs() as first:  # begun before ours
    work()
    import stepscope
    stepscope.auto("with=memory,out=run")
    work()
with theirs() as second:
    work()
stepscope.shutdown()
with theirs() as third:
    work()
memory = [max(event.cpu_memory_usage for event in prof.events()) for prof in (first, second, third)]
print([count(prof) for prof in (first, second, third)], len(set(memory)))
"""


@every_python
def test_torchs_profiler_around_ours_and_beside_it(tmp_path, python):
    done = plain(tmp_path, python, "-c", TWO_PROFILERS, PYTHONPATH=PACKAGE)
    assert (done.returncode, done.stdout) == (0, "[2, 1, 1] 1\n"), done.stderr
    assert counts(tmp_path, "aten::neg") == [2]
    freed = [event["args"]["Bytes"] for event in export(tmp_path) if event["name"] == "[memory]"]
    assert freed.count(4 * 512 * 512) >= 4


NAMES = """
import torch
for i in range(10000):
    with torch.autograd.profiler.record_function(f"it#{i}"):
        pass
"""


@every_python
def test_names_that_are_gone(tmp_path, python):
    """Text of a range is freed when it ends; the next one mostly lies in the same place."""
    done = warm(tmp_path, python, "-c", NAMES)
    assert done.returncode == 0, done.stderr
    wrong = [(at, name) for at, name in enumerate(name for name in names_in(tmp_path) if name.startswith("it#")) if name != f"it#{at}"]
    assert not wrong and counts(tmp_path, "it#9999") == [1]


@every_python
def test_nothing_is_printed(tmp_path, python):
    done = run(tmp_path, python, "-c", "import torch\nfor _ in range(1000): torch.ones(2).neg()", options=["--with", "shapes,memory,lines"])
    assert (done.returncode, done.stdout) == (0, "")
    assert all(line.startswith("stepscope: ") for line in done.stderr.splitlines()) and len(done.stderr.splitlines()) <= 3, done.stderr


MODES = {
    "float64 is the default": "torch.set_default_dtype(torch.float64)",
    "no gradients": "torch.set_grad_enabled(False)",
    "inference": "enter(torch.inference_mode())",
    "meta is the default": "torch.set_default_device('meta')",
    "fake tensors": "from torch._subclasses.fake_tensor import FakeTensorMode; enter(FakeTensorMode())",
    "counting": "from torch.utils.flop_counter import FlopCounterMode; enter(FlopCounterMode(display=False))",
    "torch.profiler runs": "enter(torch.profiler.profile())",
}
# There sequence numbers may be missing, which is said; everything else is found in every mode.
WITHOUT_SEQUENCE = ("fake tensors", "counting")
ODD_MODE = """
import contextlib, torch
stack = contextlib.ExitStack()
enter = stack.enter_context
%s
import stepscope
stepscope.auto("with=shapes:memory,out=run")
stack.close()
torch.set_grad_enabled(True)
if hasattr(torch, "set_default_device"):
    torch.set_default_device("cpu")
x, w = (torch.ones(3, 5, dtype=torch.float32, requires_grad=True) for _ in range(2))
for _ in range(3):
    torch.mul(x, w).sum().backward()
"""


@pytest.mark.parametrize("mode", MODES)
@every_python
def test_odd_modes_while_we_look(tmp_path, python, mode):
    """What was found is right; what was not is said."""
    newer = {"meta is the default": (2, 0), "fake tensors": (2, 0), "counting": (2, 1)}
    if is_before(python, *newer.get(mode, ())):
        pytest.skip("this PyTorch has no such mode")
    done = warm(tmp_path, python, "-c", ODD_MODE % MODES[mode], env={"PYTHONPATH": PACKAGE}, is_observed=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    events = export(tmp_path)
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    products = [event["args"] for event in events if event["name"] == "aten::mul"][-9:]
    assert facts["torch.shapes"] == "yes"
    forward = [args for args in products if args["Input Dims"] == [[3, 5], [3, 5]]]
    assert len(forward) >= 3 and all(args["Input type"][:2] == ["float", "float"] for args in forward)
    nodes = [event["args"] for event in events if event["name"] == "MulBackward0"][-3:]
    assert len(nodes) == 3
    if mode not in WITHOUT_SEQUENCE or facts["torch.sequence"] == "yes":
        assert facts["torch.sequence"] == "yes"
        assert [args["Sequence number"] - nodes[0]["Sequence number"] for args in nodes] == [0, 2, 4]
    else:
        assert facts["torch.sequence"] == "sequence numbers were not found in this PyTorch's records"
        assert not any("Sequence number" in args for args in nodes)


@every_python
def test_two_copies_of_the_library(tmp_path, python):
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libtorch_cpu.so.9", tmp_path / "empty.c"], check=True, timeout=60)
    done = run(tmp_path, python, "-c", "import ctypes; ctypes.CDLL('./libtorch_cpu.so.9')\nimport torch\nprint(torch.ones(2).sum().item())")
    assert (done.returncode, done.stdout) == (0, "2.0\n")
    assert "stepscope: cannot observe PyTorch: RuntimeError: 2 copies of libtorch_cpu.so are loaded" in done.stderr


PROTECTIONS = """
import torch
with open("/proc/self/maps") as maps:
    lines = [line.split() for line in maps]
print([(line[1], line[2]) for line in lines if line[-1].rpartition("/")[2].startswith("libc10.so")])
"""


@every_python
def test_protections_are_as_without_us(tmp_path, python):
    ours = run(tmp_path, python, "-c", PROTECTIONS, options=["--with", "memory"])
    assert ours.stdout == plain(tmp_path, python, "-c", PROTECTIONS).stdout != "[]\n", ours.stderr
    assert {row["key"]: row["value"] for row in table(tmp_path, "facts")}["torch.memory"] == "yes"


CHILDREN = """
import os, subprocess, sys, threading, torch
over, begun = False, set()
def work():
    while not over:
        torch.ones(100000).neg()
        begun.add(threading.get_ident())
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
torch.ones(8).neg()
while len(begun) < 2:
    pass
def ended(child):
    assert os.waitpid(child, 0)[1] == 0
for i in range(10):
    with torch.autograd.profiler.record_function("open"):
        child = os.fork()
        if child == 0:
            torch.ones(8).cos()
            os._exit(0)
    ended(child)
reader, writer = os.pipe()
child = os.fork()
if child == 0:  # a daemon
    os.setsid()
    if os.fork() == 0:
        torch.ones(8).sin()
        os.write(writer, b"x")
    os._exit(0)
ended(child)
assert os.read(reader, 1) == b"x"
over = True
[thread.join() for thread in threads]
code = "import torch; torch.ones(8).tan()"
subprocess.run([sys.executable, "-c", code], check=True)
ended(os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ))
torch.ones(8).exp()
"""


@every_python
def test_p02_children_of_all_kinds(tmp_path, python):
    (tmp_path / "children.py").write_text(CHILDREN)
    done = run(tmp_path, python, "children.py")
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path, "aten::cos", "aten::sin", "aten::tan", "aten::exp", "open") == [10, 1, 2, 1, 10]


UNDER_LOAD = """
import threading, torch
from stepscope import _native
over = False
def work():
    x = torch.ones(100000)
    while not over:
        torch.neg(x)  # without the lock of the interpreter for most of the time
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(20000):
    _native.torch_stop()
    _native.torch_start()
over = True
[thread.join() for thread in threads]
torch.ones(2).neg()
"""


@every_python
def test_starts_and_stops_beside_busy_threads(tmp_path, python):
    done = warm(tmp_path, python, "-c", UNDER_LOAD, env={"PYTHONPATH": PACKAGE}, timeout=400)
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path, "aten::neg") != [0]


TWICE = """
import threading, torch
model = torch.nn.Linear(4, 2)
def train():
    loss = model(torch.ones(3, 4)).sum()
    loss.backward(retain_graph=True)
    loss.backward()
train()
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""


@every_python
def test_a_graph_that_is_used_twice(tmp_path, python):
    """Its nodes run twice with the same numbers, and those of another thread have them, too: each belongs to its own forward."""
    done = warm(tmp_path, python, "-c", TWICE)
    assert done.returncode == 0, done.stderr
    events, flows = export(tmp_path), {}
    for event in events:
        if event.get("cat") == "fwdbwd":
            flows.setdefault(event["id"], {})[event["ph"]] = event
    begins = {(event["tid"], event["ts"], event["name"]): event for event in events if event.get("ph") == "X"}
    of = lambda flow, name: begins.get((flow["tid"], flow["ts"], name))
    pairs = [(of(ends["s"], "aten::addmm"), of(ends["f"], "AddmmBackward0")) for ends in flows.values()]
    pairs = [(forward, backward) for forward, backward in pairs if backward]
    assert len(pairs) == 4 and all(forward and forward["tid"] == backward["tid"] for forward, backward in pairs)
    assert len({id(forward) for forward, _ in pairs}) == 2
    module = next(row for row in table(tmp_path, "modules") if row["module"] == "Linear")
    assert module["backward_ns"] > 0


LEFT_OPEN = "import torch\nprof = torch.profiler.profile()\nprof.start()\ntorch.ones(2).neg()\nprint('end', flush=True)"


@every_python
def test_a_profiler_that_is_left_open(tmp_path, python):
    ours, theirs = run(tmp_path, python, "-c", LEFT_OPEN), plain(tmp_path, python, "-c", LEFT_OPEN)
    assert ours.stdout == theirs.stdout == "end\n"
    # with Python 3.14 PyTorch itself sometimes crashes there
    assert ours.returncode in (0, theirs.returncode if theirs.returncode >= 0 else 128 - theirs.returncode)
    assert counts(tmp_path, "aten::neg") != [0]


MANY_WORKERS = """
import torch
data = torch.utils.data.TensorDataset(torch.arange(256.0))
loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=64, persistent_workers=True, multiprocessing_context="fork")
print([sum(batch[0].sum().item() for batch in loader) for _ in range(2)])
"""


@every_python
def test_p03_many_workers_that_stay(tmp_path, python):
    (tmp_path / "many.py").write_text(MANY_WORKERS)
    done = run(tmp_path, python, "many.py", timeout=400)
    assert (done.returncode, done.stdout) == (0, "[32640.0, 32640.0]\n"), done.stderr
    workers = [row["batches"] for row in table(tmp_path, "data_loader") if row["part"] != "loop"]
    assert workers == [4] * 64


STARTS = """
import threading, torch, stepscope
def here():
    torch.ones(2).neg()
for _ in range(2):
    stepscope.init("out=run")
    here()
with stepscope.profile() as outer:
    try:
        with stepscope.profile() as inner:
            here()
            raise KeyError("mine")
    except KeyError as problem:
        print(problem)
    here()
prof = stepscope.profile()
prof.start()
thread = threading.Thread(target=prof.stop)
thread.start()
thread.join()
prof.stop()
busy = [threading.Thread(target=lambda: [stepscope.flush() for _ in range(50)]) for _ in range(2)]
[thread.start() for thread in busy]
stepscope.shutdown()
stepscope.shutdown()
[thread.join() for thread in busy]
stepscope.init("out=run")
here()
left_open = stepscope.profile(on_trace_ready=lambda prof: prof.export_chrome_trace("late.json"))
left_open.start()
here()
print("end")
"""


@every_python
def test_p04_starts_and_stops(tmp_path, python):
    """Nested, twice, from another thread, never, with an exception inside, during a flush."""
    done = plain(tmp_path, python, "-c", STARTS, PYTHONPATH=PACKAGE)
    assert done.returncode == 0 and done.stdout == "'mine'\nend\n" and "Traceback" not in done.stderr, done.stderr
    assert counts(tmp_path, "aten::neg") == [6]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("damaged", "missing tail")]


ACROSS = """
import io, torch, stepscope
from torch.autograd.profiler import record_function
stepscope.auto("out=run")
def again():
    stepscope.shutdown()
    stepscope.init("out=run")
    stepscope._torch.tell()
class Net(torch.nn.Module):
    def forward(self, x):
        again()
        return torch.neg(x)
class File(io.BytesIO):
    is_new = True
    def write(self, data):
        if self.is_new:
            self.is_new = False
            again()
        return super().write(data)
x = torch.ones(2)
for range in (record_function, stepscope.range):
    with range("across"):
        again()
        with range("inside"):
            torch.neg(x)
Net()(x)
torch.save(x, File())
first, second = stepscope.range("first"), stepscope.range("second")
first.__enter__()
again()
second.__enter__()
first.__exit__(None, None, None)
torch.neg(x)
second.__exit__(None, None, None)
"""


@every_python
def test_what_is_open_when_a_recording_ends_does_not_end_in_the_next(tmp_path, python):
    done = plain(tmp_path, python, "-c", ACROSS, PYTHONPATH=PACKAGE)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    ledger = {row["what"]: row["count"] for row in table(tmp_path, "ledger")}
    assert ledger["open"] == 5 and "unmatched end" not in ledger
    assert counts(tmp_path, "aten::neg") == [4]


SIGNALS = """
import re, threading, torch
threading.Thread(target=int).start()  # with the first one the C library takes a signal for itself
torch.ones(2).neg()
with open("/proc/self/status") as status, open("/proc/self/timers") as timers:
    print(re.findall(r"^(Sig(?:Ign|Cgt|Blk)):\\s*(\\w+)", status.read(), re.M), timers.read())
"""


@every_python
def test_p05_no_signal_and_no_timer(tmp_path, python):
    if not Path("/proc/self/timers").exists():
        pytest.skip("this kernel has no /proc/PID/timers")
    ours, theirs = run(tmp_path, python, "-c", SIGNALS), plain(tmp_path, python, "-c", SIGNALS)
    assert ours.stdout == theirs.stdout and "SigCgt" in ours.stdout, ours.stderr


METRIC = """
import stepscope, torch
model = torch.nn.Linear(4, 1)
for number in range(3):
    with stepscope.step(number):
        loss = model(torch.ones(2, 4)).sum()
        stepscope.metric("loss", loss)
        print(loss.item())
"""


@every_python
def test_a_metric_may_have_a_graph(tmp_path, python):
    """PyTorch warns where such a tensor becomes a number, and the warning may be an error."""
    done = run(tmp_path, python, "-W", "error::UserWarning", "-c", METRIC)
    assert done.returncode == 0, done.stderr
    row, = table(tmp_path, "metrics")
    losses = [float(line) for line in done.stdout.split()]
    assert row["name"] == "loss" and row["count"] == 3 and row["last"] == pytest.approx(losses[-1]), row
