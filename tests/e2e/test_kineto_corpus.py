# SPDX-License-Identifier: Apache-2.0
"""Real traces: what our reader makes of them is what Python's json finds in them, to the nanosecond."""
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from random import Random

import pytest

DATA = Path(__file__).resolve().parent.parent / "data"
BUILD = Path(os.environ.get("BUILD", "build"))
DUMP = BUILD / "tests" / "unit" / "model_dump"
FOLDERS = [DATA / name for name in ("traces", "hta_ns_resolution", "large_traces")]
if os.environ.get("MORE_TRACES"):  # by hand: data/large_traces/SOURCES.md
    FOLDERS.append(Path(os.environ["MORE_TRACES"]))
FILES = [p for folder in FOLDERS for p in sorted(folder.rglob("*")) if p.suffix in (".json", ".gz")]

HOST = {
    "cpu_op": "op", "Operator": "op", "python_function": "python", "cuda_runtime": "runtime", "Runtime": "runtime",
    "cuda_driver": "runtime", "mtia_runtime": "runtime", "overhead": "overhead",
}
DEVICE = {"kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy", "gpu_memset": "memset",
          "Memset": "memset", "cuda_sync": "sync", "gpu_user_annotation": "annotation"}
MTIA = {"dma_request": "memcpy", "event_wait": "sync", "event_record": "sync"}


def events_of(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    document = json.loads(data, parse_float=Decimal)
    return document if isinstance(document, list) else document["traceEvents"]


def ns(us):
    return int((Decimal(us) * 1000).to_integral_value(ROUND_HALF_UP))


def kind_and_name(event):
    category, name = event.get("cat"), event["name"]
    if category is None:
        return ("op" if event["pid"] == "CPU functions" else "range"), name
    if category == "Operator" and name.startswith("ProfilerStep#"):
        return "step", name
    if category == "user_annotation":
        return ("step" if name.startswith("ProfilerStep#") else "annotation"), name
    if category == "python_function" and name.startswith("nn.Module: "):
        return "module", name[11:]
    if category == "mtia_ccp_events":
        return MTIA.get(name, "kernel"), name
    return HOST.get(category) or DEVICE.get(category) or "other", name


def counted(events):
    spans = defaultdict(lambda: [0, 0])
    for event in events:
        if event["ph"] == "X":
            row = spans[kind_and_name(event)]
            row[0] += 1
            row[1] += ns(event["dur"])
    return spans


def model_of(path):
    done = subprocess.run([DUMP, path], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", FILES, ids=lambda path: os.path.relpath(path, DATA))
def test_no_event_is_lost(path):
    events, model = events_of(path), model_of(path)
    ours = {(row["kind"], row["name"]): [row["count"], row["dur_ns"]] for row in model["spans"]}
    theirs = counted(events)
    cut_ns = sum(int(ns) for entry in model["ledger"] for ns in re.findall(r"cut .*?(\d+) ns in total", entry["text"]))
    assert {key: row[0] for key, row in ours.items()} == {key: row[0] for key, row in theirs.items()}
    differences = {key: theirs[key][1] - row[1] for key, row in ours.items() if theirs[key][1] != row[1]}
    assert sum(differences.values()) == cut_ns
    assert all(difference > 0 for difference in differences.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: os.path.relpath(path, DATA))
def test_instants_and_steps(path):
    events, model = events_of(path), model_of(path)
    memory = [event for event in events if event["name"] == "[memory]"]
    assert model["allocations"] == len(memory)
    assert model["allocated_bytes"] == sum(max(0, event["args"]["Bytes"]) for event in memory)
    steps = sorted((int(event["name"][13:]), ns(event["dur"])) for event in events
                   if event["ph"] == "X" and event.get("cat") in ("user_annotation", "Operator") and event["name"].startswith("ProfilerStep#"))
    if steps:
        assert sorted((step["number"], step["dur_ns"]) for step in model["steps"]) == steps


TRAINS = [path for path in FILES if any(word in path.name for word in (
    "Apr_03", "worker", "rank-34.Jul_15", "sampled_rank", "step_based", "rank_non_gpu", "gpu_metrics", "mi250"))]


@pytest.mark.parametrize("path", TRAINS, ids=lambda path: os.path.relpath(path, DATA))
def test_steps_that_are_not_marked(tmp_path, path):
    """I08: as many as the trace marks, or as optimizers step where there are marks around a part of them; and it is said."""
    events = events_of(path)
    host = [event for event in events if event["ph"] == "X" and event.get("cat") in ("user_annotation", "cpu_op", "Operator")]
    marked = sum(event["name"].startswith("ProfilerStep#") for event in host)
    updates = sum(event["name"].startswith("Optimizer.step#") for event in host)
    events = [event for event in events if not event["name"].startswith("ProfilerStep#")]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}, default=str))
    model = model_of(tmp_path / "trace.json")
    assert len(model["steps"]) == (min(marked, updates) if marked else updates)
    if updates:
        assert any("marks no steps" in entry["text"] and entry["count"] == len(model["steps"]) for entry in model["ledger"])


def test_an_annotation_that_is_an_operator_holds_a_step(tmp_path):
    """Traces up to PyTorch 1.10 do not tell annotations from operators: the program's own range around the loop's body hides nothing."""
    events = events_of(DATA / "traces/kineto/tb_plugin/samples/resnet50_num_workers_4/worker0.pt.trace.json.gz")
    for event in events:
        event["name"] = "train" if event["name"].startswith("ProfilerStep#") else event["name"]
    (tmp_path / "trace.json").write_text(json.dumps(events, default=str))
    model = model_of(tmp_path / "trace.json")
    assert [step["number"] for step in model["steps"]] == list(range(6))
    rows = json.loads(report(tmp_path / "trace.json", "--table", "steps", "--json").stdout)["rows"]
    assert all(row["backward_ns"] > 30e6 and row["other_ns"] < 0.65 * row["duration_ns"] for row in rows)


def test_backwards_that_do_not_say_what_they_accumulate(tmp_path):
    """Where no backward of a trace does, all of them train, if there is an optimizer."""
    parts = [("enumerate(DataLoader)#x.__next__", "user_annotation", 1, 5), ("aten::linear", "cpu_op", 1, 20),
             ("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", 2, 30), ("Optimizer.step#SGD.step", "user_annotation", 1, 10)]
    events, time = [], 0
    for _ in range(6):
        for name, category, thread, duration in parts:
            events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": time, "dur": 1000 * duration})
            time += 1000 * duration + 100
    (tmp_path / "trace.json").write_text(json.dumps(events))
    assert len(model_of(tmp_path / "trace.json")["steps"]) == 6


@pytest.mark.parametrize("threads", [(1, 1), (1, 2)])
def test_between_steps_is_no_less_than_nothing(tmp_path, threads):
    """Steps stay together where another span crosses their ends, and what lies between steps of two threads is counted once."""
    def span(name, start, duration, thread):
        return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": thread, "ts": start, "dur": duration}
    events = [span("crosses", 50, 100, 1), span("ProfilerStep#1", 100, 300, threads[0]), span("ProfilerStep#2", 500, 100, threads[1])]
    events += [span("stepscope::data", 410, 80, 1), span("stepscope::data", 410, 80, 2), span("stepscope::forward", 160, 200, threads[1])]
    (tmp_path / "trace.json").write_text(json.dumps(events))
    done = report(tmp_path / "trace.json", "--json")
    assert done.returncode == 0 and not done.stderr, done.stderr
    steps = model_of(tmp_path / "trace.json")["steps"]
    assert [step["number"] for step in steps] == [1, 2]


def test_which_thread_trains_does_not_depend_on_the_order(tmp_path):
    """Two that have as many operators."""
    def spans(thread, start, *names):
        return [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": start + 20 * i, "dur": 10}
                for i, name in enumerate(names)]
    events = spans(2, 0, "aten::mm", "Optimizer.zero_grad#SGD.zero_grad") + spans(1, 100, "torch::autograd::AccumulateGrad", "MmBackward0")
    steps = []
    for order in (events, events[::-1]):
        (tmp_path / "trace.json").write_text(json.dumps(order))
        steps.append(model_of(tmp_path / "trace.json")["steps"])
    assert steps[0] == steps[1] and len(steps[0]) == 1


def test_what_repeats_is_a_step(tmp_path):
    """Without training: an annotation that takes most of the time, and nothing where nothing does."""
    def steps(names):
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 100 * i, "dur": 80} for i, name in enumerate(names)]
        (tmp_path / "trace.json").write_text(json.dumps(events))
        return [(step["number"], step["dur_ns"]) for step in model_of(tmp_path / "trace.json")["steps"]]

    assert steps([f"request {i}" for i in range(4)]) == [(i, 80000) for i in range(4)]
    assert not steps(["request 1", "request 2"])
    for name in ("train_step_{}", "Iteration#{} of 12", "iter{}", "epoch 1 batch {}", "decode run: {}"):
        assert len(steps([name.format(i) for i in range(12)])) == 12, name
    for name in ("layer_{}", "layer {} of step 7", "batch_norm{}", "{}", "step 3 layer {}"):
        assert not steps([name.format(i) for i in range(12)]), name
    assert len(steps([f"layer_{i}" for i in (0, 0, 0, 1, 0, 2, 0)])) == 5
    assert not steps([f"nccl:all_reduce {i}" for i in range(9)])
    assert not steps(["a", "b", "c", "d", "a", "b", "a"])


@pytest.mark.parametrize("step", ["ProfilerStep#{}", "request {}"])
def test_where_nobody_trains_waits_for_data_are_a_phase(tmp_path, step):
    """Steps that are marked, or repeat: the loader takes 60 of 80 ms."""
    events = []
    for start in range(0, 400, 100):
        for category, name, at, dur in (("user_annotation", step.format(start // 100), 0, 80), ("cpu_op", "aten::mm", 65, 10),
                                        ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 2, 60)):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": 1000 * (start + at), "dur": 1000 * dur})
    (tmp_path / "trace.json").write_text(json.dumps(events))
    done = report(tmp_path / "trace.json", "--table", "phases", "--json")
    assert {row["name"]: row["ratio"] for row in json.loads(done.stdout)["rows"]} == {"data": 0.75, "other": 0.25}
    done = subprocess.run([os.environ["STEPSCOPE"], "diagnose", tmp_path / "trace.json", "--json"], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["verdict"]["verdict"] == "data-bound"


def test_a_report_says_what_the_trace_has():
    """Every file of the corpus has a report, and nothing to mend."""
    for path in FILES:
        done = subprocess.run([os.environ["STEPSCOPE"], "report", "--strict", path], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b""), path


def report(*arguments, **how):
    return subprocess.run([os.environ["STEPSCOPE"], "report", *map(str, arguments)], capture_output=True, timeout=60, check=False, **how)


RANKS = DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto"


def test_what_is_said_of_each_rank_alike_is_said_once():
    text = " ".join(report(RANKS).stdout.decode().split())
    assert text.count("the trace names no phases") == 1 and "waits for data (9, phases), 8 times other: the trace lacks their launches" in text


def test_a_directory_is_one_run_with_ranks():
    model = model_of(RANKS)
    alone = [model_of(path) for path in sorted(RANKS.iterdir())]
    assert sorted(process["rank"] for process in model["processes"]) == list(range(8))
    assert len(model["steps"]) == 8
    for field in ("count", "dur_ns"):
        assert sum(row[field] for row in model["spans"]) == sum(row[field] for one in alone for row in one["spans"])


def test_ranks_that_files_do_not_say(tmp_path):
    for rank in (0, 1):
        events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1000000 * rank, "dur": 2}]
        (tmp_path / f"rank_{rank}.json").write_text(json.dumps({"baseTimeNanoseconds": 5000000000 * (2 - rank), "traceEvents": events}))
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "notes.txt").write_text("no trace")
    model = model_of(tmp_path)
    assert [process["rank"] for process in model["processes"]] == [0, 1]
    assert model["processes"][0]["first_ns"] - model["processes"][1]["first_ns"] == 4000000000  # of one wall clock
    said = [entry["text"] for entry in model["ledger"]]
    assert sum("the rank is from the file's name" in text for text in said) == 2
    assert any("other.json" in text and "no list of events" in text for text in said)


def test_standard_input_and_pipes(tmp_path):
    path = DATA / "traces/hta/tests/data/trace_compare/base/base.json.gz"
    from_file = report(path).stdout.replace(str(path).encode(), b"-")
    assert report("-", stdin=path.open("rb")).stdout == from_file
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", path, tmp_path / "pipe"]):
        done = report(tmp_path / "pipe")
    assert done.returncode == 0 and done.stdout.replace(str(tmp_path / "pipe").encode(), b"-") == from_file


def test_what_no_pipe_can_bring(tmp_path):
    """A recording, anything else: said as what it is. Of half of an archive that half is read."""
    subprocess.run([os.environ["STEPSCOPE"], "convert", "--no-progress", FILES[0], tmp_path / "trace.ssr"], capture_output=True, timeout=60, check=True)
    with tarfile.open(tmp_path / "ranks.tar.gz", "w:gz") as archive:
        archive.add(RANKS, ".")
    for data, words in ((b"", b"'-' is empty"), (b"hello", b"not a trace"), ((tmp_path / "trace.ssr").read_bytes(), b"pass it by path")):
        done = report("-", input=data)
        assert done.returncode == 3 and done.stdout == b"" and words in done.stderr, done.stderr
    done = report("-", "--table", "ledger", "--csv", input=(tmp_path / "ranks.tar.gz").read_bytes()[:3000])
    assert done.returncode == 0 and b"cut off near byte 3000" in done.stdout


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"traceEvents": []}', '{"a": {"b": 1}}'])
def test_nothing_to_read(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    done = report(tmp_path / "trace.json")
    assert done.returncode == 3 and done.stdout == b"" and b"trace.json" in done.stderr


@pytest.mark.parametrize("how", ["file", "stream", "files", "directory", "converted"])
def test_windows_are_of_recordings(tmp_path, how):
    """All of a trace is no answer to who asked for a part of it."""
    for number, path in enumerate(FILES[:2]):
        shutil.copy(path, tmp_path / f"{number}{path.suffix}")
    copies = sorted(tmp_path.iterdir())
    if how == "converted":
        subprocess.run([os.environ["STEPSCOPE"], "convert", FILES[0], tmp_path / "a.ssr"], capture_output=True, timeout=60, check=True)
    what = {"file": copies[:1], "stream": ["-"], "files": copies, "directory": [tmp_path], "converted": [tmp_path / "a.ssr"]}[how]
    with copies[0].open("rb") as stream:
        done = report(*what, "--window", 1, stdin=stream)
    assert (done.returncode, done.stdout) == (2, b"") and b"has no profiler windows to choose from" in done.stderr


def test_a_file_that_is_given_twice_is_read_once(tmp_path):
    """Also by another name: a report of it is that of the file, and says so."""
    shutil.copy(FILES[0], tmp_path / "a.json.gz")
    shutil.copy(FILES[1], tmp_path / "b.json.gz")
    (tmp_path / "link.json.gz").symlink_to("a.json.gz")
    said = b"files were given more than once; each is read once (2)"
    for names in (["a.json.gz"], ["a.json.gz", "b.json.gz"]):
        once = report(*names, "--table", "ops", "--csv", cwd=tmp_path).stdout
        assert report(*names, "link.json.gz", "./a.json.gz", "--table", "ops", "--csv", cwd=tmp_path).stdout == once and once
        assert said in report(*names, "link.json.gz", "./a.json.gz", cwd=tmp_path).stdout
        assert said not in report(*names, cwd=tmp_path).stdout


def test_the_order_of_the_file_does_not_matter(tmp_path):
    """R01 and R03: shuffled, and moved in time by half a million years of a double's precision."""
    for path in FILES[::5]:
        events = events_of(path)
        if len(events) > 8000:
            continue
        reports = []
        for shift in (0, 0, 10**15):
            for event in events:
                event["ts"] = Decimal(event.get("ts", 0)) + shift
            (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}, default=str))
            model = model_of(tmp_path / "trace.json")
            reports.append(sorted(map(json.dumps, model["spans"])))
            Random(1).shuffle(events)
        assert reports[0] == reports[1] == reports[2], path


def test_what_is_not_measured_has_a_reason_that_is_true_of_a_trace():
    names = [line.split()[0] for line in report("--tables").stdout.decode().splitlines()]
    for path in [FILES[0], *DATA.glob("traces/tracelens/**/gaunernst*")]:
        for name in names:
            text = report(path, "--table", name, "--json").stdout.decode()
            said = [part for part in ("--with", "stepscope_", "stepscope.step", "stepscope run", "the recorder") if part in text.split('"rows"')[-1]]
            assert not said, (path, name, said)


def test_strict(tmp_path):
    good = DATA / "traces/hta/tests/data/trace_compare/base/base.json.gz"
    assert report(good, "--strict").returncode == 0
    (tmp_path / "cut.json").write_bytes(gzip.decompress(good.read_bytes())[:-3])
    assert report(tmp_path / "cut.json").returncode == 0
    done = report(tmp_path / "cut.json", "--strict")
    assert done.returncode == 1 and b"cut off" in done.stderr and b"cut off" in done.stdout


SAME = {"steps": ["step", "dur_ns", "data_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns"], "phases": None,
        "ops": ["name", "calls", "total_ns", "self_ns", "step_self_ns", "min_ns", "max_ns", "flops", "memory_bytes"],
        "memory": None, "counters": None, "marks": ["name", "process", "step"], "ranks": ["process", "steps", "mean_ns"], "step_time": ["mean_ns", "p50_ns", "max_ns"]}


@pytest.mark.parametrize("sample", ["train", "ranks"])
def test_what_we_export_reads_back_as_the_recording(tmp_path, sample):
    subprocess.run([BUILD / "tests/unit/report_sample", sample, tmp_path / "run"], check=True, timeout=60)
    subprocess.run([os.environ["STEPSCOPE"], "export", tmp_path / "run", "-o", tmp_path / "trace.json.gz"], check=True, timeout=60,
                   capture_output=True)
    for name, columns in SAME.items():
        tables = []
        for path in ("run", "trace.json.gz"):
            rows = json.loads(report(tmp_path / path, "--table", name, "--json").stdout)["rows"]
            rows = [{key: value for key, value in row.items() if columns is None or key in columns} for row in rows]
            tables.append(sorted(rows, key=str))
        assert tables[0] == tables[1] and (tables[0] or sample == "ranks"), name


@pytest.mark.parametrize("path", FILES[1::4], ids=lambda path: os.path.relpath(path, DATA))
def test_an_exported_trace_is_the_same_trace(tmp_path, path):
    subprocess.run([os.environ["STEPSCOPE"], "export", path, "-o", tmp_path / "trace.json.gz"], check=True, timeout=60, capture_output=True)
    models = [model_of(path), model_of(tmp_path / "trace.json.gz")]
    spans = [{(row["kind"], row["name"]): row for row in model["spans"] if not row["name"].startswith("PyTorch Profiler")} for model in models]
    assert spans[0] == spans[1]
    for key in ("allocations", "allocated_bytes", "marks", "values", "links"):
        assert models[0][key] == models[1][key]
    assert [step["number"] for step in models[0]["steps"]] == [step["number"] for step in models[1]["steps"]]


def test_calls_of_python_are_stacks():
    path = next(DATA.glob("traces/tracelens/**/gaunernst*"))
    lines = json.loads(report(path, "--table", "stacks", "--json").stdout)
    assert lines["rows"]


def test_steps_and_files():
    path = DATA / "hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
    assert b"2 complete steps" in report(path, "--steps", "102-103").stdout
    done = report(path, "--steps", "7")
    assert done.returncode == 3 and b"its steps are 101 to 105" in done.stderr
    info = subprocess.run([os.environ["STEPSCOPE"], "info", RANKS], capture_output=True, timeout=60, check=True).stdout
    assert info.count(b"_step_12.") == 8


def test_every_event_twice(tmp_path):
    """R04: nothing is counted double where the writer numbered its events."""
    path = DATA / "traces/hta/tests/data/triton_example/triton_example.json.gz"
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)
    document["traceEvents"] = [event for event in document["traceEvents"] for _ in range(2)]
    (tmp_path / "twice.json").write_text(json.dumps(document))
    once, twice = model_of(path), model_of(tmp_path / "twice.json")
    numbered = [[row for row in model["spans"] if row["kind"] in ("op", "runtime", "kernel", "memcpy")] for model in (once, twice)]
    assert numbered[0] and numbered[0] == numbered[1]
    assert any("duplicate" in entry["text"] and entry["count"] >= len(numbered[0]) for entry in twice["ledger"])


def test_every_allocation_twice(tmp_path):
    """R04: memory that was allocated once is there once, with those of the same size beside it."""
    path = DATA / "traces/tracelens/tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz"
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["traceEvents"] *= 2
    (tmp_path / "twice.json").write_text(json.dumps(document))
    for table in ("memory", "modules", "memory_peak"):
        once, twice = (report(trace, "--table", table, "--csv").stdout for trace in (path, tmp_path / "twice.json"))
        assert once == twice and once.count(b"\n") > 1, table


def test_an_event_twice_with_another_between(tmp_path):
    """What differs in nothing but its grid may come between the two."""
    def kernel(grid):
        return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 45,
                "args": {"device": 0, "stream": 7, "correlation": 5, "grid": [grid, 1, 1], "block": [128, 1, 1]}}
    counts = []
    for grids in ((1, 1, 2), (1, 2, 1)):
        (tmp_path / "trace.json").write_text(json.dumps([kernel(grid) for grid in grids]))
        counts.append([row["count"] for row in model_of(tmp_path / "trace.json")["spans"]])
    assert counts == [[2], [2]]


MEASURE = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)"""  # a process of its own: what a child takes is not less than its parent took


def piped(pieces, *arguments):
    """The report on what comes through a pipe, and how many MiB it took; 0 under a sanitizer, which takes more."""
    command = [sys.executable, "-c", MEASURE, os.environ["STEPSCOPE"], "report", "-", *arguments]
    environment = {**os.environ, "MALLOC_PERTURB_": "1"}  # what is allocated counts, also where it is not used
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        for piece in pieces:
            child.stdin.write(piece)
        text, errors = child.communicate()
    assert child.returncode == 0, errors
    is_sanitized = b"__asan_init" in Path(os.environ["STEPSCOPE"]).read_bytes()
    return text.decode(), 0 if is_sanitized else int(errors.split()[-1]) / 1024


EVENT = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 1, "tid": %d, "ts": %d, "dur": 5, "args": {%s}}'


def test_a_value_of_300_mb():
    """J17: in bounded memory, and only that value is cut."""
    first, second = (EVENT % ("a", 1, 10, '"Sub trace": "?", "External id": 7')).encode().split(b"?")
    text, memory = piped([b'{"traceEvents": [', first, *[b"x" * (1 << 20)] * 300, second, b",", (EVENT % ("b", 1, 20, "")).encode(), b"]}"],
                         "--table", "ops", "--json")
    assert [row["calls"] for row in json.loads(text)["rows"] if row["calls"]] == [1, 1]
    assert memory < 120


def test_a_name_of_a_megabyte():
    """N01: kept as a whole, and printed short."""
    name = "kernel<" + "x" * (1 << 20) + ">"
    text, memory = piped([b'{"traceEvents": [', ",".join(EVENT % (name, 1, 10 * i, "") for i in range(30)).encode(), b"]}"], "--table", "ops")
    assert memory < 120 and len(text) < 10000
    text, _ = piped([b"[", (EVENT % (name, 1, 10, "")).encode(), b"]"], "--table", "ops", "--json")
    assert json.loads(text)["rows"][0]["name"] == name


def test_50000_threads():
    """I11: linear, and in bounded memory."""
    text, memory = piped([b"[", ",".join(EVENT % ("a", i, i, "") for i in range(1, 50001)).encode(), b"]"], "--table", "ops", "--json")
    assert json.loads(text)["rows"][0]["calls"] == 50000
    assert memory < 500


# ---- sets of files ----

def ranks_of(*arguments):
    done = report(*arguments, "--table", "ranks", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def test_archives_and_lists_of_files_are_one_run(tmp_path):
    """By content: tar, tar.gz and zip of the files of eight ranks, and their names one by one, are what the directory is."""
    files = sorted(RANKS.iterdir())
    expected = ranks_of(RANKS)
    assert [row["process"] for row in expected] == [f"rank {i}" for i in range(8)]
    for kind in ("tar", "gztar", "xztar", "zip"):
        archive = shutil.make_archive(str(tmp_path / kind), kind, RANKS)
        os.rename(archive, tmp_path / "x.bin")
        assert ranks_of(tmp_path / "x.bin") == expected, kind
        done = report("-", "--table", "ranks", "--json", input=(tmp_path / "x.bin").read_bytes())
        assert json.loads(done.stdout)["rows"] == expected, kind
    assert ranks_of(*files) == expected
    orders = [report(*some, "--table", "processes", "--json").stdout for some in (files, reversed(files))]
    assert [row["rank"] for row in json.loads(orders[0])["rows"]] == list(range(8)) and orders[0] == orders[1]
    model = model_of(tmp_path / "x.bin")
    assert not [entry for entry in model["ledger"] if entry["kind"] != 10]


def rich_trace(rank):
    """Of all that a model has: steps, calls of Python, allocations, counters, marks, flows, a thread that crosses itself, facts, repairs."""
    on = {"pid": 10 + rank, "tid": 1}
    events = [{"ph": "X", "cat": "cpu_op", "name": f"broken of {rank}", "ts": 5, "dur": -1, **on}]
    for number in range(3):
        at = 1000 * number + 7 * rank
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": 900, **on},
            {"ph": "X", "cat": "python_function", "name": f"train_{rank}.py({number}): f", "ts": at, "dur": 800, **on, "args": {"Python id": number + 1}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": 90 + rank, **on,
             "args": {"Sequence number": number, "Input Dims": [[2, rank + 1]], "of": rank}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 5, "args": {"correlation": 1 + number}, **on},
            {"ph": "X", "cat": "kernel", "name": f"k{rank % 2}", "pid": 0, "tid": 7, "ts": at + 100, "dur": 300,
             "args": {"device": 0, "stream": 7, "correlation": 1 + number}},
            {"ph": "X", "cat": "cpu_op", "name": "back", "ts": at + 500, "dur": 9, "pid": 10 + rank, "tid": 2},
            {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": number, "ts": at + 10, **on},
            {"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": number, "ts": at + 500, "pid": 10 + rank, "tid": 2},
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": at + 15, **on,
             "args": {"Addr": 4096 * (number + 1), "Bytes": 512 + rank, "Device Id": -1, "Device Type": 0}},
            {"ph": "C", "name": "loss", "ts": at + 50, "args": {"value": rank + number}, **on},
            {"ph": "i", "s": "t", "name": f"mark {rank}", "ts": at + 60, **on}]
    return json.dumps({"deviceProperties": [{"id": 0, "name": f"GPU {rank}"}], "baseTimeNanoseconds": 10**15, "traceEvents": events})


@pytest.mark.parametrize("made", ["dlrm", "rich"])
def test_members_of_an_archive_come_in_any_order(tmp_path, made):
    """The report, all its tables and an export are those of the directory: of a zip, of tars, and of a tar that comes through a pipe."""
    folder = tmp_path / "run"
    if made == "dlrm":
        shutil.copytree(RANKS, folder)
    else:
        folder.mkdir()
        for rank in range(12):  # rank10 is behind rank9
            (folder / f"rank{rank}.json").write_text(rich_trace(rank))
        (folder / "empty.json").write_text("")
        (folder / "rank3.odd.json").write_text("no json")
    files = sorted(folder.iterdir())
    Random(5).shuffle(files)

    def outputs(path, **how):
        kept = [report(path, *options, **how) for options in (["--json"], ["--table", "facts"], ["--table", "ledger", "--csv"], ["--table", "marks"])]
        exported = subprocess.run([os.environ["STEPSCOPE"], "export", path, "-o", tmp_path / "out.json"], capture_output=True, timeout=60, check=True, **how)
        texts = [done.stdout.decode() for done in kept] + [(tmp_path / "out.json").read_text()]
        assert all(done.returncode == 0 for done in kept) and exported.returncode == 0
        return [re.sub(r'"run_id": "[^"]*"', "", text.replace(f"{folder}/", "")) for text in texts]

    expected = outputs(folder)
    assert len(set(expected)) == len(expected)
    for name, mode in (("run.tar", "w"), ("run.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as archive:
            for file in files:
                archive.add(file, file.name)
    with zipfile.ZipFile(tmp_path / "run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    for name in ("run.tar", "run.tar.gz", "run.zip"):
        assert outputs(tmp_path / name) == expected, name
        assert outputs("-", input=(tmp_path / name).read_bytes()) == expected, name


def test_archives_that_are_not_good(tmp_path):
    trace = (DATA / "traces/hta/tests/data/trace_compare/base/base.json.gz").read_bytes()
    with zipfile.ZipFile(tmp_path / "mixed.zip", "w") as archive:
        archive.writestr("notes.txt", "no trace")
        archive.writestr("../../rank_1.json.gz", trace)
        archive.writestr("empty.json", "[]")
    model = model_of(tmp_path / "mixed.zip")
    assert len(model["steps"]) == 2 and any("empty" in entry["text"] for entry in model["ledger"])
    (tmp_path / "cut.zip").write_bytes((tmp_path / "mixed.zip").read_bytes()[:-40])  # its directory is gone: read from the front
    assert len(model_of(tmp_path / "cut.zip")["steps"]) == 2
    (tmp_path / "cut.zip").write_bytes((tmp_path / "mixed.zip").read_bytes()[:20000])
    assert report(tmp_path / "cut.zip").returncode in (0, 3)
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x02.")
    done = report(tmp_path / "none.zip")
    assert done.returncode == 3 and b"none.zip': 'data.pkl' is a pickle, but not a memory snapshot" in done.stderr and b"_dump_snapshot" in done.stderr


def ledger_of(path):
    done = report(path, "--strict", "--csv", "--table", "ledger")
    return done.returncode, done.stdout.decode()


def test_nothing_in_an_archive_or_directory_is_passed_over(tmp_path):
    """What is read is no error, and what is not read is said, or is the reason why nothing was."""
    files = sorted((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker[01]*.gz"))
    whole, nested, only = tmp_path / "whole.zip", tmp_path / "nested.zip", tmp_path / "only.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        for path in files:
            archive.write(path, path.name)
    (tmp_path / "cut.zip").write_bytes(whole.read_bytes()[:80000])
    done = report(tmp_path / "cut.zip")
    assert done.returncode == 0 and b"rank" in done.stdout and not done.stderr
    with zipfile.ZipFile(nested, "w") as archive, zipfile.ZipFile(only, "w") as other:
        archive.write(whole, "whole.zip")
        archive.write(files[0], files[0].name)
        other.write(whole, "whole.zip")
    status, text = ledger_of(nested)
    assert status == 1 and "'whole.zip' is a nested archive" in text
    assert b"'whole.zip' is a nested archive" in report(only).stderr
    ranks = tmp_path / "ranks"
    (ranks / "folder").mkdir(parents=True)
    shutil.copy(files[0], ranks)
    (ranks / "worker2.pt.trace.json").touch()
    (ranks / "worker3.pt.trace.json").write_bytes(bytes(100))
    (ranks / "._worker0.json").write_bytes(bytes(100))
    shutil.copy(whole, ranks)
    status, text = ledger_of(ranks)
    assert status == 1 and "._worker0" not in text
    for said in ("worker2.pt.trace.json' is empty", "worker3.pt.trace.json' is not a trace", "whole.zip' is a nested archive", "folders"):
        assert said in text


def test_other_json_beside_a_trace_is_no_damage(tmp_path):
    """As a model's config.json is. One that is cut off may have been a trace."""
    shutil.copy(next((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker0*.gz")), tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "resnet", "lr": 0.1, "layers": [1, 2]}')
    status, text = ledger_of(tmp_path)
    assert status == 0 and "other,1,all,config.json,," in text and "is JSON, but not a trace" in text, text
    (tmp_path / "config.json").write_text('{"model_type": "resnet", "lr": 0.1, "layers": [1, 2')
    status, text = ledger_of(tmp_path)
    assert status == 1 and "damaged,1,all,config.json" in text, text


@pytest.mark.parametrize("names", [["a.trace", "b.trace"], ["a", "b"], ["a.json", "b.trace"], ["a.log", "b.txt"]])
@pytest.mark.parametrize("is_packed", [False, True])
def test_traces_of_a_directory_have_any_name(tmp_path, names, is_packed):
    """Beside what is none: nothing of that is said, and pipes are not opened."""
    files = sorted((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker[01]*.gz"))
    for path, name in zip(files, names):
        text = gzip.decompress(path.read_bytes())
        (tmp_path / name).write_bytes(gzip.compress(text, 1) if is_packed else text)
    expected = sorted(names)
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as checkpoint:
        checkpoint.writestr("archive/data.pkl", b"\x80\x02.")
    (tmp_path / "train.log").write_text('{"loss": 0.1}\n{"loss": 0.2}\n')
    (tmp_path / "notes").write_text("[INFO] step 3\n")
    (tmp_path / ".hidden").write_bytes(gzip.decompress(files[0].read_bytes()))
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.ssr")
    status, text = ledger_of(tmp_path)
    assert status == 0 and not re.search(r"model\.pt|train\.log|notes|hidden|pipe", text), text
    done = report(tmp_path, "--json", "--table", "processes")
    assert [row["rank"] for row in json.loads(done.stdout)["rows"]] == [0, 1], done
    info = subprocess.run([os.environ["STEPSCOPE"], "info", tmp_path], capture_output=True, timeout=60, check=True, text=True).stdout
    assert re.findall(r"^  (\S+)  +[\d.]+ (?:KiB|MiB)", info, re.M) == expected, info


def test_what_a_directory_without_traces_has(tmp_path):
    (tmp_path / "rank0").mkdir()
    done = report(tmp_path)
    assert done.returncode == 3 and b"found 0 other files and 1 folders, which are not searched" in done.stderr and b"/*/*.json" in done.stderr


def test_of_many_files_the_first_are_looked_at(tmp_path):
    for number in range(10010):
        (tmp_path / str(number)).touch()
    shutil.copy(next((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker0*.gz")), tmp_path)
    status, text = ledger_of(tmp_path)
    assert status == 0 and re.search(r"^other,other,10,.*files were not examined", text, re.M), text


def test_R04_a_trace_and_its_copy_are_one(tmp_path):
    """Compressed or not, linked, in a directory, an archive or on the command line; with the files of other ranks beside them."""
    files = sorted((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker[01]*.gz"))
    alone, doubled = tmp_path / "alone", tmp_path / "doubled"
    for folder in (alone, doubled):
        folder.mkdir()
        for path in files:
            shutil.copy(path, folder)
    (doubled / "y.json").write_bytes(gzip.decompress(files[1].read_bytes()))
    (doubled / "z.json.gz").hardlink_to(doubled / files[0].name)
    copies = ["y.json", "z.json.gz"]  # those whose names come last are left out
    with zipfile.ZipFile(tmp_path / "doubled.zip", "w") as archive:
        for path in sorted(doubled.iterdir(), reverse=True):
            archive.write(path, path.name)

    def tables(*operands):
        done = [report(*operands, "--table", table, "--json") for table in ("processes", "kernels", "ranks", "steps")]
        assert not any(one.returncode for one in done)
        return [json.loads(one.stdout)["rows"] for one in done]

    expected = tables(alone)
    for operands in ([doubled], [tmp_path / "doubled.zip"], sorted(doubled.iterdir())):
        assert tables(*operands) == expected
        told = [row for row in csv.DictReader(io.StringIO(report(*operands, "--table", "ledger", "--csv").stdout.decode())) if "read once" in row["sentence"]]
        # a link on the command line is found by its inode, before it is read
        assert sorted(row["where"] for row in told if row["where"]) == copies[:len(copies) if len(operands) == 1 else 1]


def test_a_list_with_a_name_that_does_not_exist(tmp_path):
    path = str(next((DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto").glob("worker0*.gz")))
    done = report(path, tmp_path / "nothere.json")
    assert done.returncode == 3 and b"nothere.json" in done.stderr and b"takes one run" not in done.stderr


def test_the_library_of_archives_is_loaded_when_one_is_met(tmp_path):
    """Without it everything else works, and what is missing is said."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x02.")
    (tmp_path / "libarchive.so.13").write_text("not it")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = report(tmp_path / "a.zip", env=environment)
    assert done.returncode == 4 and b"libarchive.so.13 cannot be loaded" in done.stderr and b"hint: unpack it" in done.stderr
    assert report(FILES[0], env=environment).returncode == 0


def test_a_bomb_is_given_up(tmp_path):
    """400 MB of blanks in 400 kB: what stands before them is read, and it is said."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        with archive.open("rank0.json", "w") as member:
            member.write(b'[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1},')
            for _ in range(400):
                member.write(b" " * (1 << 20))
    done = report(tmp_path / "bomb.zip")
    assert done.returncode == 0 and b"damaged" in done.stdout


def test_files_that_are_no_traces_are_not_passed_over():
    done = report(FILES[0], __file__)
    assert done.returncode == 3 and b"is not a trace" in done.stderr
    assert report(FILES[0], RANKS).returncode == 2
