# SPDX-License-Identifier: Apache-2.0
"""Exports of Nsight Systems: what is in the tables is in ours, and a database that means harm gets nothing but read."""
import json
import os
import random
import sqlite3
import subprocess

import made_nsys
import pytest


def stepscope(*arguments, **how):
    return subprocess.run([os.environ["STEPSCOPE"], *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **how)


def query(path, sql):
    done = stepscope("query", path, sql, "--json")
    assert done.returncode == 0, done.stderr
    return [list(row.values()) for row in json.loads(done.stdout)["rows"]]


def ledger(path):
    done = stepscope("report", path, "--table", "ledger", "--csv")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", name="export")
def fixture_export(tmp_path_factory):
    return made_nsys.write(str(tmp_path_factory.mktemp("nsys") / "a name that says nothing"))


@pytest.mark.parametrize("kind, tables", [("kernel", ("KERNEL", "GRAPH_TRACE")), ("memcpy", ("MEMCPY",)), ("memset", ("MEMSET",)), ("sync", ("SYNCHRONIZATION",)),
                                          ("runtime", ("RUNTIME",)), ("overhead", ("OVERHEAD",))])
def test_rows_and_times_are_those_of_the_export(export, kind, tables):
    with sqlite3.connect(f"file:{export}?mode=ro", uri=True) as database:
        want = [database.execute(f"SELECT count(*), sum(end - start), min(start) FROM CUPTI_ACTIVITY_KIND_{table}").fetchone() for table in tables]
    found = query(export, f"SELECT count(*), sum(dur_ns) FROM spans WHERE kind = '{kind}'")
    assert found == [[sum(row[0] for row in want), sum(row[1] for row in want)]]


def test_processes_have_their_own_devices_and_steps(export):
    assert query(export, "SELECT DISTINCT process, device FROM tracks WHERE kind = 'device' ORDER BY device") == [["pid 111", 0], ["pid 112", 1]]
    assert query(export, "SELECT process, step FROM steps ORDER BY process, step") == [[f"pid {pid}", step] for pid in (111, 112) for step in range(10, 14)]
    assert query(export, "SELECT sum(work_count) FROM launches") == [[40]]
    assert query(export, "SELECT total_ns, calls FROM kernels WHERE kernel = 'CUDA graph 3'") == [[64_000, 8]]
    assert "the trace lacks their launches" not in ledger(export)


DEVICE_TABLES = ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET", "SYNCHRONIZATION")


@pytest.mark.parametrize("more", ["", "".join(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET deviceId = 0;" for table in DEVICE_TABLES)], ids=["one each", "one of both"])
def test_a_device_clock_that_is_30_us_behind(tmp_path, more):
    """Copies begin 3 us after the begin of their launch, and nothing begins sooner; both processes have the same correlations."""
    early = "".join(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET start = start - 30000, end = end - 30000;" for table in DEVICE_TABLES)
    right = made_nsys.write(str(tmp_path / "right"), steps=10, more=more)
    wrong = made_nsys.write(str(tmp_path / "wrong"), steps=10, more=early + more)
    assert "before its launch" not in ledger(right)
    sentences = [line for line in ledger(wrong).splitlines() if "before its launch: the device's times are put 27.00 us later, the least" in line]
    assert len(sentences) == (1 if more else 2)
    starts = "SELECT kind, start_ns, dur_ns FROM spans WHERE kind IN ('kernel', 'memcpy', 'memset', 'sync') ORDER BY 1, 2, 3"
    before, after = query(right, starts), query(wrong, starts)
    assert [[kind, start - 3000, dur] for kind, start, dur in before] == after
    assert query(wrong, "SELECT sum(early_count) FROM launches") == [[0]]


def test_a_wait_that_crosses_a_range_is_known_to_a_step(export, tmp_path):
    """It begins within a range of NVTX and ends behind it, so that it is on a further track of the thread."""
    crossing = made_nsys.write(str(tmp_path / "x"), more="UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = start - 12000 WHERE nameId = 102;")
    sql = "SELECT part, total_ns FROM step_breakdown WHERE part LIKE 'idle: s%' OR part = 'compute kernels'"
    assert "end later than the one in which they begin" in ledger(crossing) and query(crossing, sql) == query(export, sql)
    assert query(crossing, "SELECT sum(step_self_ns) FROM ops") == query(export, "SELECT sum(step_self_ns) FROM ops")


def test_what_is_not_read_or_not_there_is_said(export, tmp_path):
    text = ledger(export)
    assert "OSRT_API" in text and "--cuda-graph-trace=node" in text and "Not all events were collected." in text
    path = made_nsys.write(str(tmp_path / "x"), without=("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "TARGET_INFO_GPU", "StringIds"))
    text = ledger(path)
    assert "no ranges of NVTX" in text and "no calls of the runtime" in text and "no names" in text
    assert query(path, "SELECT count(*) FROM spans WHERE kind = 'kernel'") == [[24]]
    path = made_nsys.write(str(tmp_path / "y"), more="ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO begin; ALTER TABLE NVTX_EVENTS DROP COLUMN text;")
    assert "no column 'start'" in ledger(path)


def test_rows_that_cannot_be_are_left_out_and_counted(tmp_path):
    path = made_nsys.write(str(tmp_path / "x"), more="""INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        ('soon', 5, 0, 1, 7, 1, 0, 105, 106, 1, 1, 1, 1, 1, 1, 1, 0, 0, NULL), (9223372036854775807, 5, 0, 1, 7, 1, 0, 105, 106, 1, 1, 1, 1, 1, 1, 1, 0, 0, NULL),
        (7, 5, 99999, 1, -4, -1, -1, 'x', 99999, -1, -1, 1, 1, 1, 1, 1, -1, 0, NULL);""")
    text = ledger(path)
    assert "rows without a time" in text and ",2," in text and "rows without an end" in text
    assert stepscope("report", path, "--strict").returncode == 1


def test_times_have_the_limits_of_other_traces(tmp_path):
    """The latest start that any importer takes, one behind it, one before the first, and a span that is too long to be one."""
    latest, earliest, longest = 3 * 10**18, -4 * 10**17, 10**18
    rows = [(latest, latest + longest), (latest + 1, latest + 2), (earliest, earliest + longest + 1), (earliest - 1, 5)]
    path = made_nsys.write(str(tmp_path / "x"), without=("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",), more="DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;" + "".join(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, 0, 1, 7, 1, 0, 105, 106, 1, 1, 1, 1, 1, 1, 1, 0, 0, NULL);" for start, end in rows))
    durations = [row[0] for row in query(path, "SELECT dur_ns FROM spans WHERE kind = 'kernel' ORDER BY start_ns")]
    assert len(durations) == 2 and durations[1] == longest and durations[0] != longest + 1
    text = ledger(path)
    assert "rows without a time that can be read were left out" in text and "rows without an end" in text


@pytest.mark.parametrize("harm", [
    "DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS start, n AS end, 59 AS eventType FROM r;",
    "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END;",
    "ALTER TABLE NVTX_EVENTS RENAME COLUMN text TO text_; ALTER TABLE NVTX_EVENTS ADD COLUMN text AS (hex(zeroblob(1000000000)));",
    "DROP TABLE NVTX_EVENTS; CREATE VIRTUAL TABLE NVTX_EVENTS USING fts4(start, end, eventType);",
    "CREATE TABLE [x'; DROP TABLE StringIds; --] (a);",
], ids=["view", "trigger", "generated", "virtual", "name"])
def test_a_schema_that_means_harm_does_none(tmp_path, harm):
    path = made_nsys.write(str(tmp_path / "x"), more=harm)
    before = (tmp_path / "x").read_bytes()
    done = stepscope("report", path)
    assert done.returncode == 0, done.stderr
    assert "ncclDevKernel" in stepscope("report", path, "--table", "kernels", "--csv").stdout
    assert (tmp_path / "x").read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["x"]


PAGE = 4096


def interior(child, last, header=0):
    """A page of a tree whose 600 children are one page, and the last one another."""
    page = bytearray(PAGE)
    page[PAGE - 5:] = child.to_bytes(4, "big") + b"\1"
    page[header:header + 12] = b"\5" + bytes(2) + (600).to_bytes(2, "big") + (PAGE - 5).to_bytes(2, "big") + bytes(1) + last.to_bytes(4, "big")
    page[header + 12:header + 12 + 1200] = (PAGE - 5).to_bytes(2, "big") * 600
    return page


def test_pages_that_are_in_a_tree_many_times_end_it(tmp_path):
    path = tmp_path / "x"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA page_size = {PAGE}")
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT UNIQUE)")
    data = bytearray(path.read_bytes())
    count = len(data) // PAGE
    leaf = data[:PAGE]
    leaf[:12] = leaf[100:112]  # the header, and where its two rows are
    index = leaf[:]
    index[3:5] = b"\0\1"
    index[8:10] = leaf[10:12]  # without SQL, it may come again
    pages = [leaf, index] + [interior(count + 2 + i, count + 2 + i) for i in range(4)]
    first = interior(count + 6, count + 1, 100)
    first[:100] = data[:100]
    first[28:32] = (count + len(pages)).to_bytes(4, "big")
    first[103:105] = b"\0\0"  # no child but the last: the table; then
    path.write_bytes(bytes(first + data[PAGE:]) + b"".join(map(bytes, pages)))
    sane = stepscope("report", path)
    assert sane.returncode == 3 and "nothing that can be used" in sane.stderr
    data = bytearray(path.read_bytes())
    data[103:105] = b"\0\1"
    data[108:112] = (count + 6).to_bytes(4, "big")
    data[112:114] = (PAGE - 5).to_bytes(2, "big")
    data[PAGE - 5:PAGE - 1] = (count + 1).to_bytes(4, "big")
    path.write_bytes(bytes(data))
    done = stepscope("report", path)
    assert done.returncode == 3 and "interrupted" in done.stderr, done.stderr


def test_texts_that_are_in_a_table_many_times_end_it(tmp_path):
    path = made_nsys.write(str(tmp_path / "x"), more="DELETE FROM StringIds WHERE id > 103; UPDATE StringIds SET value = printf('%.900c', 'x') || id; PRAGMA page_size = 4096; VACUUM;")
    with sqlite3.connect(path) as database:
        size, root = database.execute("PRAGMA page_size").fetchone()[0], database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'StringIds'").fetchone()[0]
    data = bytearray((tmp_path / "x").read_bytes())
    assert size == PAGE and data[(root - 1) * PAGE] == 13
    count = len(data) // PAGE
    data += data[(root - 1) * PAGE:root * PAGE]
    data[(root - 1) * PAGE:root * PAGE] = interior(count + 1, count + 1)
    data[28:32] = (count + 1).to_bytes(4, "big")
    (tmp_path / "x").write_bytes(bytes(data))
    assert "more text than the file has bytes" in ledger(path)


def test_a_launch_without_all_of_its_shape_has_no_occupancy(tmp_path):
    path = made_nsys.write(str(tmp_path / "x"), more="UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET blockY = NULL;")
    with_all = made_nsys.write(str(tmp_path / "y"))
    sql = "SELECT count(*) FROM kernels WHERE blocks_per_sm IS NOT NULL"
    assert query(path, sql) == [[0]] and query(with_all, sql) != [[0]]


def test_damaged_files_give_what_can_be_read_or_an_error(tmp_path):
    whole = (open(made_nsys.write(str(tmp_path / "whole"), steps=20), "rb")).read()
    chance = random.Random(7)
    found = set()
    for turn in range(60):
        data = bytearray(whole[: len(whole) * (turn % 6 + 1) // 6])
        for _ in range(turn % 5 * 10 + 1):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        (tmp_path / "x").write_bytes(data)
        done = stepscope("report", tmp_path / "x")
        assert done.returncode in (0, 3), (done.returncode, done.stderr)
        assert (done.stdout == "") == (done.returncode == 3)
        found.add(done.returncode)
    assert found == {0, 3}


def test_a_file_that_is_cut_off_keeps_what_its_pages_have(tmp_path):
    whole = open(made_nsys.write(str(tmp_path / "whole"), steps=200), "rb").read()
    counts = []
    for eighths in (2, 5, 7, 8):
        path = tmp_path / "cut"
        path.write_bytes(whole[: len(whole) * eighths // 8])
        counts.append(query(path, "SELECT count(*) FROM spans")[0][0])
        assert (f"damaged,{len(whole) - len(whole) * eighths // 8},all,cut," in ledger(path)) == (eighths < 8)
        assert stepscope("report", path, "--strict").returncode == 1
    assert 0 < counts[0] < counts[1] < counts[2] < counts[3]
    path.write_bytes(whole[:600])
    done = stepscope("report", path)
    assert done.returncode == 3 and "nsys export --type sqlite" in done.stderr


@pytest.mark.parametrize("log", ["wal", "journal"])
def test_changes_that_lie_beside_it_are_said(export, log, tmp_path):
    path = tmp_path / "x.sqlite"
    path.write_bytes(open(export, "rb").read())
    (tmp_path / f"x.sqlite-{log}").write_bytes(b"")
    assert "was not closed" not in ledger(path)
    (tmp_path / f"x.sqlite-{log}").write_bytes(b"changes")
    assert "was not closed" in ledger(path) and f"x.sqlite-{log}" in ledger(path)


def test_strict_is_about_what_the_export_lacks(tmp_path):
    diagnosed = made_nsys.write(str(tmp_path / "diagnosed"))
    whole = made_nsys.write(str(tmp_path / "whole"), without=("DIAGNOSTIC_EVENT",))
    nameless = made_nsys.write(str(tmp_path / "nameless"), without=("DIAGNOSTIC_EVENT", "StringIds"))
    assert [stepscope("report", path, "--strict").returncode for path in (diagnosed, whole, nameless)] == [1, 0, 1]


def test_other_databases_are_no_exports(tmp_path):
    with sqlite3.connect(tmp_path / "x") as database:
        database.execute("CREATE TABLE t (a)")
    done = stepscope("report", tmp_path / "x")
    assert done.returncode == 3 and "no export of nsys" in done.stderr
    (tmp_path / "y").write_bytes(b"SQLite format 3\0" + bytes(200))
    done = stepscope("report", tmp_path / "y")
    assert done.returncode == 3 and done.stdout == ""


def test_a_converted_export_has_the_same_report(export, tmp_path):
    os.chdir(tmp_path)
    os.symlink(export, "run")
    assert stepscope("convert", "run", "again.ssr").returncode == 0
    first, second = stepscope("report", "run").stdout, stepscope("report", "again.ssr").stdout
    assert first.replace("again.ssr", "run") == second.replace("again.ssr", "run")
    assert stepscope("diagnose", "run").returncode in (0, 1)
