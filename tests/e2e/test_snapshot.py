# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots of PyTorch's CUDA allocator (rows M01 to M04): read as data, whatever the pickle is like. The numbers are counted here a second
time, in Python."""
import gzip
import json
import os
import pickle
import subprocess
from pathlib import Path

import made_snapshot
import pytest

MIB = made_snapshot.MIB


def stepscope(*arguments, **how):
    return subprocess.run([os.environ["STEPSCOPE"], *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **how)


def query(path, sql):
    done = stepscope("query", path, sql, "--json")
    assert done.returncode == 0, done.stderr
    return [list(row.values()) for row in json.loads(done.stdout)["rows"]]


def report(path, *options):
    done = stepscope("report", path, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(path, data, protocol=4, pack=bytes):
    path.write_bytes(pack(pickle.dumps(data, protocol)))
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("snapshot") / "snapshot.pickle", made_snapshot.snapshot())
    return report(path).replace(str(path), "PATH")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_m02_every_protocol_gives_the_same(tmp_path, expected, protocol, pack):
    path = write(tmp_path / "snapshot.pickle", made_snapshot.snapshot(), protocol, pack)
    assert report(path).replace(str(path), "PATH") == expected


def test_m02_nothing_hostile_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, ("open('was_run', 'w')",)

    data = made_snapshot.snapshot()
    data["device_traces"][0][0]["frames"] = Evil()
    path = write(tmp_path / "evil.pickle", data, 4)
    done = stepscope("report", path, cwd=tmp_path)
    assert done.returncode == 3 and done.stdout == ""
    assert "STACK_GLOBAL (builtins.exec)" in done.stderr and f"byte {path.read_bytes().index(bytes([0x93]))} " in done.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_m02_a_cut_file_keeps_what_was_complete(tmp_path):
    whole = pickle.dumps(made_snapshot.snapshot(), 4)
    events = -1
    for end in [*range(3, len(whole), 61), len(whole) - 1]:
        path = tmp_path / "cut.pickle"
        path.write_bytes(whole[:end])
        done = stepscope("report", path, "--json", "--table", "ledger")
        assert done.returncode in (0, 3), done.stderr
        if done.returncode == 0:
            assert "cut off" in done.stdout
            assert stepscope("report", path, "--strict").returncode == 1
            found = query(path, "select count(*) from memory_events where track is not null and lifetime_ns is not null")
            events = max(events, found[0][0])
    assert events == 10  # the one of each step, and the one that the ring has lost
    packed = gzip.compress(whole)
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) * 3 // 4])
    assert "damaged" in report(tmp_path / "cut.gz", "--table", "ledger")


@pytest.mark.parametrize("content", [b"\x80\x04N.", pickle.dumps({"a": 1}), pickle.dumps([1, 2]), b"\x80\x02", b"\x80\x04\x95"])
def test_other_pickles_are_no_snapshots(tmp_path, content):
    path = tmp_path / "x.pickle"
    path.write_bytes(content)
    done = stepscope("report", path)
    assert done.returncode == 3 and done.stdout == "" and str(path) in done.stderr


def test_m04_segments_add_up(tmp_path):
    data = made_snapshot.snapshot()
    path = write(tmp_path / "s.pickle", data)
    for device in (0, 1):
        segments = [s for s in data["segments"] if s["device"] == device]
        blocks = [b for s in segments for b in s["blocks"]]
        active = [b for b in blocks if b["state"] == "active_allocated"]
        rows = query(path, f"""SELECT sum(segments) AS n, sum(reserved_bytes) AS r, sum(used_bytes) AS a, sum(rounding_bytes) AS o,
            sum(pending_bytes) AS p, sum(free_bytes) AS f, max(largest_free_bytes) AS l FROM memory_segments
            WHERE device = 'device {device}' AND pool <> 'all'""")
        want = [len(segments), sum(s["total_size"] for s in segments), sum(b["requested_size"] for b in active),
                sum(b["size"] - b["requested_size"] for b in active), sum(b["size"] for b in blocks if "pending" in b["state"]),
                sum(b["size"] for b in blocks if b["state"] == "inactive"), max([b["size"] for b in blocks if b["state"] == "inactive"], default=0)]
        assert rows[0] == want
        total = query(path, f"SELECT reserved_bytes FROM memory_segments WHERE device = 'device {device}' AND pool = 'all'")
        assert total[0] == [want[1]] == [sum(want[2:6])]


def levels(data, device):
    """Bytes alive after every event, from what must have been there before."""
    events = data["device_traces"][device]
    alive, before = {}, {}
    for event in events:
        if event["action"] == "alloc":
            alive[event["addr"]] = event["size"]
        elif event["action"] == "free_requested" and alive.pop(event["addr"], None) is None:
            before[event["addr"]] = event["size"]
    for segment in data["segments"]:
        for block in segment["blocks"]:
            if segment["device"] == device and block["state"] == "active_allocated" and block["address"] not in alive:
                before[("end", block["address"])] = block["requested_size"]
    level = sum(before.values())
    out = [level]
    for event in events:
        level += {"alloc": 1, "free_requested": -1}.get(event["action"], 0) * event["size"]
        out.append(level)
    return out


def test_m03_levels_begin_with_what_the_ring_has_lost(tmp_path):
    data = made_snapshot.snapshot()
    path = write(tmp_path / "s.pickle", data)
    for device in (0, 1):
        rows = query(path, f"SELECT peak_bytes, live_bytes FROM memory WHERE device = 'device {device}' AND category = 'all'")
        assert rows[0] == [max(levels(data, device)), levels(data, device)[-1]]
    assert "max_entries" in report(path, "--table", "ledger", "--csv")
    for event in data["device_traces"][0]:
        event["frames"] = []
    for segment in data["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []
    assert "max_entries" not in report(write(path, data), "--table", "ledger", "--csv")


def test_m01_double_frees_reuse_and_odd_sizes(tmp_path):
    data = {"segments": [], "device_traces": [[]]}
    for action, address, size in [("alloc", 1, 0), ("alloc", 1 << 46, 1 << 41), ("free_requested", 1 << 46, 1 << 41), ("free_completed", 1 << 46, 1 << 41),
                                  ("free_requested", 1 << 46, 1 << 41), ("alloc", 64, 100), ("alloc", 64, 200), ("free_completed", 9, 5),
                                  ("alloc", -5, 3), ("alloc", 7, -3), ("alloc", 1 << 70, 3), ("alloc", None, 3), ("later", 1, 1)]:
        data["device_traces"][0].append({"action": action, "addr": address, "size": size, "stream": 0, "frames": []})
    path = write(tmp_path / "s.pickle", data)
    rows = query(path, "SELECT peak_bytes, live_bytes FROM memory WHERE category = 'all'")
    assert all(value >= 0 for value in rows[0])
    ledger = report(path, "--table", "ledger", "--csv")
    assert "events without a readable address or size" in ledger and ",4," in ledger and "unknown kind" in ledger
    assert "no times" in ledger
    assert stepscope("report", path, "--strict").returncode == 1


def test_lists_that_are_shared_count_once(tmp_path):
    blocks = [{"address": 4096 + 512 * i, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []} for i in range(4000)]
    segments = [{"device": 0, "address": 4096, "total_size": 512 * 4000, "stream": 0, "segment_type": "large", "blocks": blocks} for _ in range(4000)]
    events = [{"action": "alloc", "addr": 1 << 30 | 512 * i, "size": 100, "stream": 0, "frames": [], "time_us": i} for i in range(4000)]
    path = write(tmp_path / "s.pickle", {"segments": segments, "device_traces": [events] * 1000})
    assert query(path, "SELECT used_bytes, segments FROM memory_segments WHERE pool = 'all'")[0] == [500 * 4000, 4000]
    assert query(path, "SELECT DISTINCT device FROM memory") == [["device 0"]]
    assert "unexpected or duplicate values in lists or dictionaries were left out" in report(path, "--table", "ledger", "--csv")
    assert query(path, "SELECT count(*) FROM memory_events") == [[8000]]


@pytest.mark.parametrize("odd", [None, [1], "the third event"])
@pytest.mark.parametrize("place", [0, 5, 20])
def test_an_odd_event_costs_no_other(tmp_path, odd, place):
    data = made_snapshot.snapshot()
    events = data["device_traces"][0]
    path = write(tmp_path / "s.pickle", data)
    sums = "SELECT peak_bytes, live_bytes, allocated_bytes, allocations FROM memory WHERE device = 'device 0'"
    expected = query(path, sums)
    events.insert(place + 3 if odd == "the third event" else place, events[2] if odd == "the third event" else odd)
    write(path, data)
    assert query(path, sums) == expected
    assert "unexpected or duplicate values in lists or dictionaries were left out" in report(path, "--table", "ledger", "--csv")


def test_a_long_name_in_many_frames_is_looked_at_once(tmp_path):
    name = "x" * 1_000_000
    frames = [[{"name": name, "filename": "a.py", "line": 100 * i + k} for k in range(100)] for i in range(4000)]
    events = [{"action": "alloc", "addr": 512 * i, "size": 512, "stream": 0, "time_us": i, "frames": frames[i]} for i in range(4000)]
    path = write(tmp_path / "long.pickle", {"segments": [], "device_traces": [events]})
    assert query(path, "select count(*) from memory_events") == [[4000]]


def test_rows_that_are_many_more_than_the_file_is_large_are_refused(tmp_path):
    one = b"}h\x00h\x01s"  # {"action": "alloc"}
    events = b"](" + one * 5_000_000 + b"e"
    content = b"\x80\x02}(X\x06\0\0\0actionq\x00X\x05\0\0\0allocq\x0100X\x0d\0\0\0device_traces](" + events + b"eu."
    path = tmp_path / "bomb.pickle.gz"
    path.write_bytes(gzip.compress(content))
    done = stepscope("report", path)
    assert done.returncode == 3 and "more than 16 times its size in memory" in done.stderr


def test_old_snapshots_have_histories_and_no_times(tmp_path):
    old = {"segments": [{"device": 0, "address": 4096, "total_size": 4096, "stream": 0, "segment_type": "small",
                         "blocks": [{"size": 1024, "state": "active_allocated",
                                     "history": [{"addr": 4096, "real_size": 1000, "frames": [made_snapshot.frame("f", "/w/a.py", 3)]}]},
                                    {"size": 3072, "state": "inactive"}]}]}
    path = write(tmp_path / "old.pickle", old)
    assert query(path, "SELECT used_bytes, rounding_bytes, free_bytes FROM memory_segments WHERE pool = 'all'")[0] == [1000, 24, 3072]
    assert query(path, "SELECT alive_bytes, line FROM memory_lines")[0] == [1000, "/w/a.py(3): f"]
    assert "_record_memory_history" in report(path, "--table", "ledger")


def test_who_asked_is_an_operator_or_a_node_or_python(tmp_path):
    path = write(tmp_path / "s.pickle", made_snapshot.snapshot())
    found = {row[0] for row in query(path, "SELECT allocated_by FROM memory_peak WHERE allocated_by IS NOT NULL")}
    assert found == {"aten::add", "aten::mm", "_init_group", "ncclCommInitRank"}


def test_everything_else_works_on_it_too(tmp_path):
    path = write(tmp_path / "s.pickle", made_snapshot.snapshot())
    os.chdir(tmp_path)
    done = stepscope("convert", path, "again.ssr")
    assert done.returncode == 0, done.stderr
    for options in (["--table", "memory_segments"], ["--table", "memory_failures"], ["--table", "memory_lines"], ["--table", "ledger"]):
        assert report(path, *options) == report("again.ssr", *options)
    assert stepscope("export", path, "-o", "s.json").returncode == 0
    assert json.loads((tmp_path / "s.json").read_text())["traceEvents"]
    assert stepscope("export", path, "-o", "s.pftrace").returncode == 0
    done = stepscope("diagnose", path)
    assert done.returncode == 0 and "\nunknown: " in done.stdout and "SS204\n" in done.stdout.partition("Cannot tell")[2]
    named = tmp_path / "a name that says nothing"
    path.rename(named)
    assert "fragmented" in report(named, "--table", "memory_failures")


def test_names_that_are_no_utf8_are_repaired(tmp_path):
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(made_snapshot.snapshot(), 4).replace(b"/repo/model.py", b"/repo/m\xb4\xedel.py"))
    assert "/repo/m\ufffd\ufffdel.py(17)" in report(path, "--table", "memory_lines", "--csv")
    assert "not UTF-8" in report(path, "--table", "ledger")


# snapshots of a real GPU, whose processes had limits of their own: why the last request failed; None: the program went on
GPU_FAILURES = {"oom_batch": "full", "oom_growth": "full", "oom_optimizer": "full", "oom_copy": "full", "oom_fragments": "fragmented", "oom_caught": None}


@pytest.mark.parametrize("name", GPU_FAILURES)
def test_fault_snapshot_that_is_full_is_not_fragmented(name):
    """The device had 135 GiB free, and the process 4 GiB: what the device has free is no piece of the process's memory."""
    path = Path(__file__).parents[1] / f"data/gpu/memory/{name}.pickle.gz"
    found = query(path, "SELECT why, asked_bytes, limit_bytes, reserved_bytes FROM memory_failures ORDER BY time_ns DESC LIMIT 1")
    why, asked, limit, reserved = found[0]
    assert why == (GPU_FAILURES[name] or "full") and int(limit) == int(reserved)
    ended = query(path, "SELECT how, asked_bytes, memory_limit_bytes FROM out_of_memory")
    said = " ".join(stepscope("diagnose", path).stdout.split())
    if GPU_FAILURES[name]:
        assert ended == [["allocator", asked, limit]] and said.startswith("out of memory: ")
        assert "at the peak most is " in said
    else:
        assert not ended and not said.startswith("out of memory: ")


def test_memory_that_a_stream_still_uses_is_no_piece(tmp_path):
    """Of 26 MiB that are reserved and not used 8 are pending: the rest does not cover a request of 22."""
    data = made_snapshot.snapshot()
    trace = data["device_traces"][0]
    place = next(index for index, event in enumerate(trace) if event["action"] == "oom")
    trace.insert(place, {**trace[place - 1], "action": "free_requested", "addr": made_snapshot.WEIGHT, "size": 8 << 20})
    why = "SELECT why FROM memory_failures"
    trace[place + 1]["size"] = 22 << 20
    trace[place + 1]["device_free"] = 0
    assert query(write(tmp_path / "pending.pickle", data), why) == [["full"]]
    trace.insert(place + 1, {**trace[place], "action": "free_completed"})
    assert query(write(tmp_path / "free.pickle", data), why) == [["fragmented"]]
