# SPDX-License-Identifier: Apache-2.0
"""Faults in verdicts and savings of traces that were found in use, by their ids, as simulated trainings of known truth."""
import json
import os
import subprocess

import pytest

pytest.importorskip("numpy", reason="numpy comes with PyTorch (tools/setup test)")
import gpusim_trace  # noqa: E402
from gpusim import Params, simulate, truth  # noqa: E402
from kinds import KINDS, cut_of, with_fault  # noqa: E402

STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
ASYNC = {"sync_end": False, "warm": 12}


def training(kind=None, size=0, **options):
    p = Params(seed=2, **{**(KINDS[kind][0] if kind else {}), "steps": 16, **options})
    return with_fault(p, kind, size) if kind else p


def tool(command, *paths):
    done = subprocess.run([STEPSCOPE, command, "--json", *paths], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(name="write")
def write_traces(tmp_path):
    """Returns a function that writes the trace of a training and returns its path."""
    def write(p, name="trace"):
        return gpusim_trace.write(simulate(p, emit=True), str(tmp_path / (name if p.ranks > 1 else f"{name}.json")))
    return write


@pytest.fixture(name="diagnosed")
def diagnose_traces(write):
    return lambda p: tool("diagnose", write(p))


def savings(found):
    """Returns {cut: largest saving of its findings}."""
    largest = {}
    for row in found["findings"]:
        if row["cut"] and row["saving_ratio"] is not None:
            largest[row["cut"]] = max(largest.get(row["cut"], 0), row["saving_ratio"])
    return largest


def is_near(promised, true):
    """Neither above 1.5 times the truth nor below half of it, by more than 2 points."""
    return 0.5 * true - 0.02 <= promised <= 1.5 * true + 0.02


def test_fault_T1_host_time_of_another_cause_is_no_launch(diagnosed):
    p = training("callback", 15e3)
    found = diagnosed(p)
    assert found["verdict"]["verdict"] == "host-bound"
    assert is_near(savings(found)["host"], truth(p, cut_of("callback")))
    assert savings(found).get("launch", 0) < 0.05


def test_fault_V_D1_a_loss_that_is_read_each_tenth_step_is_healthy(diagnosed):
    found = diagnosed(training(sync_every=10, steps=30, layers=8))
    assert found["verdict"]["verdict"] == "healthy", found["verdict"]
    assert (found["verdict"]["saving_ratio"] or 0) < 0.05


def test_fault_V_D1_a_step_that_is_cut_off_hides_no_queue(write, tmp_path):
    """The last step is incomplete: the others are the device's as before."""
    path = write(training(sync_every=10, steps=30, layers=8))
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    steps = [event for event in document["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    last = max((event for event in steps if event["cat"] == "user_annotation"), key=lambda event: event["ts"])
    del last["dur"]
    last["ph"] = "B"
    (tmp_path / "open.json").write_text(json.dumps(document))
    done = subprocess.run([STEPSCOPE, "query", "--json", tmp_path / "open.json", "SELECT length_ns, is_complete FROM steps"], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["rows"]
    lengths = sorted(row["length_ns"] for row in rows if row["is_complete"])
    assert len(lengths) < len(rows) and lengths[-1] < 1.1 * lengths[0]


def test_fault_V_C1_reading_the_loss_less_often_is_no_improvement(write):
    often, seldom = (write(training(sync_every=every, steps=30, layers=8), f"every{every}") for every in (1, 10))
    for base, new in ((often, seldom), (seldom, often)):
        step, = [row for row in tool("compare", base, new)["metrics"] if row["metric"] == "step_time"]
        assert abs(step["change_ratio"]) < 0.05


@pytest.mark.parametrize("buckets", (2, 8))
def test_fault_V_D2_G6_a_slow_rank_saves_its_delay_once(diagnosed, buckets):
    p = training("straggler_compute", 0.1, buckets=buckets)
    assert is_near(savings(diagnosed(p)).get("rank", 0), truth(p, cut_of("straggler_compute")))


@pytest.mark.parametrize("kind, size, cut", (("opt_heavy", 600, "optimizer"), ("dtype", 200, "device")))
def test_fault_V_D3_work_of_the_device_is_seen(diagnosed, kind, size, cut):
    p = training(kind, size)
    assert truth(p, cut_of(kind)) > 0.1
    found = diagnosed(p)
    assert found["verdict"]["verdict"] != "healthy" and savings(found).get(cut, 0) > 0.05


def test_fault_V_D4_the_device_works_between_the_steps(diagnosed):
    p = training("between", 2e3, layers=8, **ASYNC)
    assert truth(p, {"between"}) < 0.05
    found = diagnosed(p)
    assert found["verdict"]["verdict"] != "host-bound" and savings(found).get("host", 0) < 0.05


def test_fault_V_D5_a_callback_behind_a_wait_is_not_the_wait(diagnosed):
    p = training("callback", 60e3, python=True)
    found = diagnosed(p)
    assert found["verdict"]["verdict"] == "host-bound"
    assert savings(found).get("sync", 0) <= truth(p, {"sync"}) * 1.5 + 0.02 < savings(found)["host"]


def test_fault_V_D6_python_stacks_do_not_hide_a_wait(diagnosed):
    found = [savings(diagnosed(training("item", 100, python=python))).get("sync", 0) for python in (False, True)]
    assert min(found) > 0.05 and found[1] == pytest.approx(found[0], abs=0.05)


@pytest.mark.parametrize("kind, size", (("straggler_host", 3e3), ("straggler_data", 1e4)))
def test_fault_V_D7_hosts_that_run_ahead_do_not_hide_a_late_rank(diagnosed, kind, size):
    p = training(kind, size, steps=12, **ASYNC)
    found = savings(diagnosed(p))
    assert found.get("comm", 0) <= truth(p, {"comm"}) * 1.5 + 0.02
    assert is_near(max(found.get("rank", 0), found.get("data", 0)), truth(p, cut_of(kind)))


def test_fault_V_D8_loaders_of_all_ranks_are_data(diagnosed):
    p = training("data_const", 9e4, ranks=4, workers=2)
    found = diagnosed(p)
    assert truth(p, {"data"}) > 0.2
    assert found["verdict"]["verdict"] == "data-bound", found["verdict"]
    assert is_near(savings(found)["data"], truth(p, {"data"}))


def test_fault_V_D9_a_late_rank_has_a_phase_that_differs(diagnosed):
    found = diagnosed(training("straggler_host", 6e3))
    places = [row["where"] for row in found["findings"] if row["cut"] == "rank"]
    assert places == ["rank 3"], places  # its phases differ by microseconds


@pytest.mark.parametrize("size", (0.2, 0.85))
def test_fault_V_D10_F2_a_clock_that_falls_is_named(diagnosed, size):
    p = training("throttle", size)
    found = diagnosed(p)
    assert found["verdict"]["verdict"] != "healthy"
    assert is_near(savings(found)["growth"], truth(p, cut_of("throttle")))


def test_fault_V_D11_waits_save_what_the_host_would_run_ahead(diagnosed):
    p = training(layers=17, items=17, scale=0.3)
    assert is_near(savings(diagnosed(p)).get("sync", 0), truth(p, {"sync"}))


@pytest.mark.parametrize("kind, size", (("callback", 5e3), ("data_main", 4e3), ("item", 30)))
def test_fault_V_C5_a_cost_of_the_host_is_not_mostly_kernels(write, kind, size):
    p = training(kind, size)
    cause = tool("compare", write(training(**KINDS[kind][0]), "base"), write(p, "new"))["verdict"]["cause"]
    assert cause and "kernel: " not in cause


def test_fault_Q4_copies_of_all_parameters_are_a_checkpoint(diagnosed):
    p = training("ckpt", 3e4, steps=20)
    found = savings(diagnosed(p))
    assert is_near(max(found.get("checkpoint", 0), found.get("periodic", 0)), truth(p, cut_of("ckpt")))


@pytest.mark.parametrize("kind, size, cuts", (("sync_call", 1e3, ("sync",)), ("malloc", 1e3, ("alloc",)), ("gc", 3e4, ("gc", "host", "periodic"))),
                         ids=("Q5", "Q6", "Q7"))
def test_fault_Q5_Q6_Q7_a_cause_besides_launches_is_named(diagnosed, kind, size, cuts):
    p = training(kind, size)
    found = savings(diagnosed(p))
    assert is_near(max(found.get(cut, 0) for cut in cuts), truth(p, cut_of(kind)))
