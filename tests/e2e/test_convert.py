# SPDX-License-Identifier: Apache-2.0
"""stepscope convert: what it writes is what it read, whatever that was."""
import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from run_tools import ACTOR, run, run_directory

DATA = Path(__file__).resolve().parent.parent / "data"
BUILD = Path(os.environ.get("BUILD", "build"))
FILES = sorted(p for p in [*(DATA / "traces").rglob("*"), *(DATA / "hta_ns_resolution").iterdir()] if p.suffix in (".json", ".gz"))
RANKS = DATA / "traces/param/et_replay/tests/inputs/dlrm_kineto"
FIRST = DATA / "traces/hta/tests/data/trace_compare/base/base.json.gz"


def stepscope(*arguments, **how):
    return subprocess.run([os.environ["STEPSCOPE"], *map(str, arguments)], capture_output=True, timeout=60, check=False, **how)


def reports(path, folder):
    """The report as text and with all tables, as if it always had one name."""
    folder.mkdir()
    if path.is_dir():
        shutil.copytree(path, folder / "run")
    else:
        (folder / "run").symlink_to(path)
    texts = []
    for options in ([], ["--json"], ["--table", "facts"], ["--table", "ledger"]):
        done = stepscope("report", "run", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    return texts


def is_same(path, tmp_path):
    done = stepscope("convert", path, tmp_path / "a.ssr")
    assert done.returncode == 0 and done.stdout == b"", done.stderr
    assert reports(path, tmp_path / "before") == reports(tmp_path / "a.ssr", tmp_path / "after")


@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: str(path.relative_to(DATA)))
def test_a_converted_trace_has_the_same_report(tmp_path, path):
    is_same(path, tmp_path)


def test_R03_times_that_a_trace_may_have_come_back(tmp_path):
    """Years before 0 and the latest that is read: what is a time in the one is one in the other."""
    on = {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op"}
    events = [{**on, "name": "early", "ts": -4 * 10**14, "dur": 7}, {**on, "name": "late", "ts": 3 * 10**15 - 10, "dur": 10**15}]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    is_same(tmp_path / "trace.json", tmp_path)
    found = stepscope("query", tmp_path / "a.ssr", "--csv", "SELECT name, dur_ns FROM spans ORDER BY start_ns").stdout.decode().split()
    assert found[1:] == ["early,7000", f"late,{10**18}"]


@pytest.mark.parametrize("sample", ["train", "ranks"])
def test_a_converted_recording_has_the_same_report(tmp_path, sample):
    subprocess.run([BUILD / "tests/unit/report_sample", sample, tmp_path / "run"], check=True, timeout=60)
    is_same(tmp_path / "run", tmp_path)


def rank_trace(rank):
    """Two ranks have one pid; kernels cross on a stream, a request crosses threads, a mark and a thread have no name."""
    events = []
    for number in range(3):
        start, on = 1000 * number, {"pid": 1, "tid": 1}
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": start, "dur": 900 + rank, **on},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": start + 10, "dur": 50, **on},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 20, "dur": 5, "args": {"correlation": 1 + number}, **on},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": start + 100, "dur": 300 + 10 * rank,
             "args": {"device": 0, "stream": 7, "correlation": 1 + number}},
            {"ph": "X", "cat": "kernel", "name": "crossing", "pid": 0, "tid": 7, "ts": start + 200, "dur": 400, "args": {"device": 0, "stream": 7}},
            {"ph": "b", "cat": "request", "name": "load", "id": number, "ts": start + 50, **on},
            {"ph": "e", "cat": "request", "name": "load", "id": number, "ts": start + 2500, "pid": 1, "tid": 2},
            {"ph": "i", "s": "t", "name": "mark", "ts": start + 500, **on}]
    return json.dumps({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events})


@pytest.mark.parametrize("made", ["ranks", "nsys"])
def test_json_reads_back_as_the_same_report(tmp_path, made):
    """Numbers of rows that readers want to differ come back as they were, and whose a device is."""
    path = DATA / "made_nsys/train.sqlite"
    if made == "ranks":
        path = tmp_path / "ranks"
        path.mkdir()
        for rank in range(2):
            (path / f"rank{rank}.json").write_text(rank_trace(rank))
    assert stepscope("convert", path, tmp_path / "a.json").returncode == 0
    for options in ([], ["--table", "marks"], ["--table", "device_busy"], ["--table", "ops", "--by", "thread"]):
        texts = [stepscope("report", name, *options).stdout.decode().split("\nmore:")[0].split("\nMissing and repaired")[0] for name in (path, tmp_path / "a.json")]
        before, after = (text.split("\n")[not options:] for text in texts)
        assert before == after and len(before) > 3


@pytest.mark.parametrize("sample", ["train", "ranks", "faults", "wait"])
def test_json_of_a_recording_has_the_same_steps(tmp_path, sample):
    """Which of them have operators, what they worked on, how long they ran; also once more through .json."""
    subprocess.run([BUILD / "tests/unit/report_sample", sample, tmp_path / "run"], check=True, timeout=60)
    assert stepscope("convert", tmp_path / "run", tmp_path / "a.json").returncode == 0
    assert stepscope("convert", tmp_path / "a.json", tmp_path / "b.json").returncode == 0

    def told(path):
        report = stepscope("report", path).stdout.decode()
        shares = [row.split(",") for row in stepscope("report", path, "--table", "ops", "--csv").stdout.decode().splitlines()]
        return [stepscope("report", path, "--table", "steps", "--csv").stdout, re.findall("^(?:window|Step time).*|^ .*tokens/s.*", report, re.M),
                [row[:1] + row[5:7] for row in shares]]

    before = told(tmp_path / "run")
    assert before == told(tmp_path / "a.json") == told(tmp_path / "b.json")
    assert sample != "wait" or (" 2 with operations" in before[1][0] and "tokens/s" in "".join(before[1]))
    assert not stepscope("query", tmp_path / "a.json", "--csv", "SELECT * FROM span_args WHERE key LIKE 'stepscope%'").stdout.decode().splitlines()[1:]


def diagnosis(path):
    return {**json.loads(stepscope("diagnose", path, "--json").stdout), "run_id": None}


@pytest.mark.parametrize("path", [*FILES[1::3], RANKS], ids=lambda path: str(path.relative_to(DATA)))
def test_json_reads_back_with_the_same_diagnosis(tmp_path, path):
    """Verdict, findings and what each rule said: what the exporter adds for other readers is no fact to our own. Of several ranks in one file
    a launch has numbers that another rank has, too."""
    assert stepscope("convert", path, tmp_path / "a.json").returncode == 0
    before = diagnosis(path)
    assert before == diagnosis(tmp_path / "a.json") and before["checks"]


def reordered(document, order):
    """As other programs write it again: keys sorted, or the events first, or last."""
    if order == "sorted":
        return json.dumps(document, sort_keys=True, separators=(",", ":"))
    events = {"traceEvents": document.pop("traceEvents")}
    return json.dumps({**events, **dict(reversed(document.items()))} if order == "first" else {**document, **events}, indent=1)


@pytest.mark.parametrize("order", ["sorted", "first", "last"])
@pytest.mark.parametrize("source", ["train", "ranks", FIRST], ids=lambda source: getattr(source, "name", source))
def test_json_that_was_written_again_is_still_ours(tmp_path, source, order):
    """What the exporter puts there for others is told from what was recorded, wherever in the file it says who it is."""
    if source in ("train", "ranks"):
        subprocess.run([BUILD / "tests/unit/report_sample", source, tmp_path / "run"], check=True, timeout=60)
        source = tmp_path / "run"
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    assert stepscope("convert", source, tmp_path / "before/a.json").returncode == 0
    (tmp_path / "after/a.json").write_text(reordered(json.loads((tmp_path / "before/a.json").read_text()), order))
    assert diagnosis(tmp_path / "before/a.json") == diagnosis(tmp_path / "after/a.json")
    for table in (["--json"], ["--table", "threads", "--csv"], ["--table", "processes", "--csv"], ["--table", "memory_peak", "--csv"]):
        before, after = (stepscope("report", "a.json", *table, cwd=tmp_path / name).stdout for name in ("before", "after"))
        assert before == after and before
    facts = [sorted(stepscope("report", tmp_path / name / "a.json", "--table", "facts", "--csv").stdout.splitlines()) for name in ("before", "after")]
    assert facts[0] == facts[1]


def test_the_backend_that_readers_want_is_no_finding(tmp_path):
    """Devices, DistributedDataParallel and no word on how processes communicate: SS604 cannot tell, also of what was converted."""
    on = {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op"}
    events = json.loads(rank_trace(0))["traceEvents"] + [{**on, "name": "DistributedDataParallel.forward", "ts": 5, "dur": 4}]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}))
    assert stepscope("convert", tmp_path / "a.json", tmp_path / "b.json").returncode == 0
    for name in ("a.json", "b.json"):
        check, = [check for check in diagnosis(tmp_path / name)["checks"] if check["rule"] == "SS604"]
        assert check["result"] == "cannot tell"
    facts = [stepscope("query", tmp_path / name, "--csv", "SELECT * FROM facts WHERE key LIKE 'distributed%'").stdout for name in ("a.json", "b.json")]
    assert facts[0] == facts[1]


def test_properties_of_devices_come_back(tmp_path):
    """For other readers, as the trace had them: numbers, lists, names that must be escaped, a device without work."""
    devices = [{"id": 0, "name": 'A "quoted" one', "numSms": 132, "computeMajor": 9, "sizes": [1, 2]}, {"id": 3, "name": "idle", "totalGlobalMem": 85017493504}]
    (tmp_path / "a.json").write_text(json.dumps({"deviceProperties": devices, **json.loads(rank_trace(0))}))
    for source, target in (("a.json", "b.json"), ("a.json", "c.ssr"), ("c.ssr", "d.json"), ("b.json", "e.json")):
        assert stepscope("convert", tmp_path / source, tmp_path / target).returncode == 0
    for name in ("b.json", "d.json", "e.json"):
        assert json.loads((tmp_path / name).read_text())["deviceProperties"] == devices


@pytest.mark.parametrize("told", [{"rank": 3}, {"rank": 0, "world_size": 1, "backend": "gloo"}, {"rank": 1, "world_size": 2, "backend": "nccl"}, None])
def test_the_rank_of_a_process_alone_comes_back(tmp_path, told):
    """Readers want a rank in every file: one that the trace did not say is none when we read it again, one that it said stays."""
    document = {"distributedInfo": told, "traceEvents": json.loads(rank_trace(0))["traceEvents"]}
    (tmp_path / "a.json").write_text(json.dumps({key: value for key, value in document.items() if value}))
    assert stepscope("convert", tmp_path / "a.json", tmp_path / "b.json").returncode == 0
    rows = [json.loads(stepscope("report", tmp_path / name, "--table", "processes", "--json").stdout)["rows"] for name in ("a.json", "b.json")]
    assert [row["rank"] for row in rows[0]] == [row["rank"] for row in rows[1]] == [told["rank"] if told else None]
    written = json.loads((tmp_path / "b.json").read_text())["distributedInfo"]
    assert written["backend"] == (told.get("backend", "unknown") if told else "none")


def test_ranks_and_lists_of_files(tmp_path):
    is_same(RANKS, tmp_path)
    assert stepscope("convert", *sorted(RANKS.iterdir()), tmp_path / "list.ssr").returncode == 0
    assert (tmp_path / "list.ssr").stat().st_size > 1000


def of_all(*paths):
    """What was read: operations, ranks, steps with their times, and what the ledger says."""
    tables = []
    for table in ("ops", "ranks", "steps", "ledger"):
        done = stepscope("report", *paths, "--table", table, "--csv")
        assert done.returncode == 0 and done.stdout, done.stderr
        tables.append(done.stdout)
    return tables


def starts_of(path, folder):
    """Of each rank's first step, in microseconds since the first of them."""
    assert stepscope("export", path, "-o", folder / "exported.json").returncode == 0
    starts = sorted(event["ts"] for event in json.loads((folder / "exported.json").read_text())["traceEvents"] if event.get("name") == "ProfilerStep#0")
    return [start - starts[0] for start in starts]


@pytest.fixture(name="job")
def two_ranks(tmp_path):
    """traces/ of two ranks, of which the second begins a millisecond later, and converted/, each of them by itself."""
    (tmp_path / "traces").mkdir()
    (tmp_path / "converted").mkdir()
    for rank in range(2):
        trace = tmp_path / f"traces/rank{rank}.json"
        trace.write_text(json.dumps({"baseTimeNanoseconds": 1700000000 * 10**9 + rank * 10**6, **json.loads(rank_trace(rank))}))
        assert stepscope("convert", trace, tmp_path / f"converted/rank{rank}.ssr").returncode == 0
    return tmp_path


def test_converted_ranks_are_read_together_as_their_traces_are(job):
    """A directory of them, and files that are given, in whatever order: one time line, nothing missing."""
    tables = of_all(job / "traces")
    first, second = sorted((job / "converted").iterdir())
    assert of_all(job / "converted") == of_all(first, second) == of_all(second, first) == tables
    assert stepscope("convert", second, first, job / "all.ssr").returncode == 0
    assert of_all(job / "all.ssr") == tables
    assert [starts_of(job / name, job) for name in ("traces", "converted", "all.ssr")] == 3 * [[0, 1000]]


def test_a_converted_recording_alone_in_a_directory_is_read(job):
    (job / "converted/rank1.ssr").unlink()
    assert of_all(job / "converted") == of_all(job / "converted/rank0.ssr")


def test_a_copy_of_a_converted_rank_is_said(job):
    """And read once, as one of a trace is; what is no copy, but of the same rank, is there."""
    *tables, _ = of_all(job / "converted/rank0.ssr")
    shutil.copy(job / "converted/rank0.ssr", job / "converted/rank1.ssr")
    *again, ledger = of_all(job / "converted")
    assert again == tables and b"its text is that of another file: it is read once" in ledger
    (job / "other.json").write_text(rank_trace(0).replace("aten::mm", "aten::bmm"))
    assert stepscope("convert", job / "other.json", job / "converted/rank1.ssr").returncode == 0
    assert b"another file says that it is of the same rank" in of_all(job / "converted")[-1]


def test_beside_traces_a_converted_recording_is_not_read_and_that_is_said(job):
    """It may be what the traces were converted to: nothing counts twice, and the traces are all there. info lists all of them."""
    *tables, _ = of_all(job / "traces")
    shutil.copy(job / "converted/rank0.ssr", job / "traces")
    *again, ledger = of_all(job / "traces")
    assert again == tables
    assert b"a recording that 'stepscope convert' made among the traces was not read" in ledger and b"rank0.ssr" in ledger
    files = stepscope("info", job / "traces").stdout
    assert b"rank0.ssr" in files and b"rank0.json" in files and b"rank1.json" in files


def test_in_a_run_directory_a_converted_recording_is_no_part_of_the_run(tmp_path):
    subprocess.run([BUILD / "tests/unit/report_sample", "train", tmp_path / "run"], check=True, timeout=60)
    *tables, _ = of_all(tmp_path / "run")
    assert stepscope("convert", tmp_path / "run", tmp_path / "run/run.ssr").returncode == 0
    *again, ledger = of_all(tmp_path / "run")
    assert again == tables
    assert b"made is no part of the run: give it by itself" in ledger and b"run.ssr" in ledger


def test_again_and_out_of_it(tmp_path):
    """A recording that was converted converts to the same bytes, and to what the trace converts to."""
    for source, target in ((FIRST, "a.ssr"), (tmp_path / "a.ssr", "b.ssr"), (FIRST, "a.json"), (tmp_path / "a.ssr", "b.json"),
                           (FIRST, "a.pftrace"), (tmp_path / "a.ssr", "b.pftrace")):
        assert stepscope("convert", source, tmp_path / target).returncode == 0
    for kind in ("ssr", "json", "pftrace"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes(), kind


def test_broken_files_are_mended(tmp_path):
    """H1: what others refuse is good JSON afterwards, each mended thing is said, and --strict tells by its status."""
    whole = gzip.decompress(FIRST.read_bytes())
    broken = whole.replace(b'"name": "aten::empty"', b'"name": "a "quoted" name\x01"', 1)[:-200]
    (tmp_path / "broken.json").write_bytes(broken)
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    done = stepscope("convert", tmp_path / "broken.json", tmp_path / "whole.json")
    assert done.returncode == 0 and b"unescaped quotes" in done.stderr and b"cut off" in done.stderr and b"first at byte" in done.stderr
    events = json.loads((tmp_path / "whole.json").read_text())["traceEvents"]
    assert any("quoted" in event.get("name", "") for event in events)
    done = stepscope("convert", tmp_path / "broken.json", tmp_path / "whole.json", "--strict", "--quiet")
    assert done.returncode == 1 and (tmp_path / "whole.json").exists()
    assert stepscope("convert", FIRST, tmp_path / "good.json", "--strict").returncode == 0


def test_a_cut_or_damaged_recording_loses_a_part(tmp_path):
    """R11, R12: what was before the cut is there, and what is missing is said."""
    assert stepscope("convert", RANKS / sorted(os.listdir(RANKS))[0], tmp_path / "a.ssr").returncode == 0
    whole = (tmp_path / "a.ssr").read_bytes()
    for length in range(0, len(whole), len(whole) // 40 + 1):
        (tmp_path / "cut.ssr").write_bytes(whole[:length])
        done = stepscope("report", tmp_path / "cut.ssr")
        assert done.returncode in (0, 3) and (done.returncode == 3 or b"cut off" in done.stdout), length
        changed = bytearray(whole)
        changed[length] ^= 0x55
        (tmp_path / "changed.ssr").write_bytes(changed)
        done = stepscope("report", tmp_path / "changed.ssr")
        assert done.returncode in (0, 3) and (done.returncode == 3 or b"damaged" in done.stdout or b"cut off" in done.stdout), length


def events_of(path):
    return json.loads(stepscope("query", path, "select events from run", "--json").stdout)["rows"][0]["events"]


def test_an_exported_trace_has_as_many_events_as_its_recording(tmp_path):
    """A begin and its end are two events of the recorder; in a trace they are one. Of one that is cut off only what is there counts."""
    run(tmp_path, ACTOR, "ranks", 2, "only", 0, "steps", 9, 500, "names", 4, "all", "steps", 5, 500)
    recording, trace = run_directory(tmp_path), tmp_path / "trace.json"
    assert stepscope("export", recording, "-o", trace).returncode == 0
    assert stepscope("convert", trace, tmp_path / "again.ssr").returncode == 0
    assert events_of(recording) == events_of(trace) == events_of(tmp_path / "again.ssr") > 100
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(lines[:-20]))
    assert 0 < events_of(trace) < len(lines)


def test_usage(tmp_path):
    assert stepscope("convert", FIRST).returncode == 2
    assert stepscope("convert", FIRST, tmp_path / "a.unknown").returncode == 2
    assert stepscope("convert", FIRST, tmp_path / "a.ssr", "--steps", "1009").returncode == 2
    assert stepscope("convert", tmp_path / "missing", tmp_path / "a.ssr").returncode == 3
    assert stepscope("convert", FIRST, tmp_path / "no" / "a.ssr").returncode == 4
    assert not list(tmp_path.iterdir())


def test_steps_that_are_not_there_are_refused_as_of_the_trace(tmp_path):
    assert stepscope("convert", FIRST, "x.ssr", cwd=tmp_path).returncode == 0
    done, of_trace = (stepscope("report", path, "--steps", "99999", cwd=tmp_path) for path in ("x.ssr", FIRST))
    assert done.returncode == of_trace.returncode == 3 and done.stderr == of_trace.stderr and b"no step" in done.stderr
