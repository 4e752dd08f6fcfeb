# SPDX-License-Identifier: Apache-2.0
"""Traces that are large, or have one thing that is: all of it is read, in bounded memory. What is measured is the most that was resident
at a time, which includes pages of temporary files, and what this process had when it forked: so texts are compressed as they are made.
RLIMIT_DATA makes the kernel refuse more memory that is no file."""
import gzip
import io
import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

from run_tools import STEPSCOPE, environment

MIB = 2**20
IS_SANITIZED = b"__asan_init" in Path(STEPSCOPE).read_bytes() if os.path.exists(STEPSCOPE) else False
HEAD = b'{"schemaVersion": 1, "traceEvents": [\n'
TAIL = b'{"ph": "X", "cat": "cpu_op", "name": "last", "pid": 1, "tid": 1, "ts": 90000000, "dur": 5}\n]'


def event(name, tid, start, args=b"", category=b"cpu_op"):
    return (b'{"ph": "X", "cat": "%s", "name": "%s", "pid": 1, "tid": %d, "ts": %d, "dur": 5, "args": {%s}},\n'
            % (category, name, tid, start, args))


def query(trace, sql, *options, limit=None):
    """(rows, stderr, MiB resident). limit: (which, bytes) of setrlimit()."""
    command = [STEPSCOPE, "query", str(trace), sql, "--json", *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(trace.parent),
                             preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit else None)
    out, err = child.stdout.read(), child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    rows = [tuple(row.values()) for row in json.loads(out)["rows"]] if child.returncode == 0 else None
    return rows, err, usage.ru_maxrss / 1024


def is_below(memory, most):
    return IS_SANITIZED or memory < most


def write(path, *members):
    """Compressed, out of members that are compressed already."""
    path.write_bytes(b"".join(members))
    return path


def packed(*texts):
    """A member of gzip, out of texts and lists of them."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for text in texts:
            file.writelines([text] if isinstance(text, bytes) else text)
    return out.getvalue()


LONG = packed(b"x" * 1000000) * 300


def test_a_text_of_300_megabytes(tmp_path):
    begin = event(b"large", 1, 20, b'"text": "')[:-4]
    trace = write(tmp_path / "trace.json.gz", packed(HEAD, event(b"first", 1, 10), begin), LONG, packed(b'"}},\n', TAIL, b"}\n"))
    rows, _, memory = query(trace, "select name from spans order by start_ns")
    assert rows == [("first",), ("large",), ("last",)]
    assert is_below(memory, 128)


def test_a_fact_of_300_megabytes(tmp_path):
    trace = write(tmp_path / "trace.json.gz", packed(HEAD, TAIL, b', "large": "'), LONG, packed(b'", "traceName": "t"}\n'))
    rows, _, memory = query(trace, "select name from spans")
    assert rows == [("last",)]
    assert is_below(memory, 128)


def test_names_of_kernels_of_a_mebibyte(tmp_path):
    names = [bytes([letter]) * MIB for letter in b"ab"]
    texts = (event(names[i % 2], 7, 100 + 10 * i, b'"device": 0, "stream": 7', b"kernel") for i in range(64))
    trace = write(tmp_path / "trace.json.gz", packed(HEAD, texts, TAIL, b"}"))
    rows, _, memory = query(trace, "select length(name), name like 'a%' from spans where kind = 'kernel'")
    assert rows == [(MIB, 1), (MIB, 0)] * 32
    assert is_below(memory, 128)


def test_fifty_thousand_threads(tmp_path):
    texts = (event(b"op", 1000 + tid, 10 * start + tid) for start in range(2) for tid in range(50000))
    trace = write(tmp_path / "trace.json.gz", packed(HEAD, texts, TAIL, b"}"))
    rows, _, memory = query(trace, "select count(*), count(distinct track) from spans", "--memory", "64M")
    assert rows == [(100001, 50001)]
    assert is_below(memory, 112)


NAMES = 120_000 if IS_SANITIZED else 300_000
TABLES = {"kernels": "total_ns", "modules": "forward_self_ns"}


@pytest.fixture(scope="module")
def names_trace(tmp_path_factory):
    """Every kernel and every module has a name of its own, as of a program that puts the number of a step into it. The last ones take longest."""
    kernels = (event(b"kernel_%06d" % i, 7, 10 * i, b'"device": 0, "stream": 7', b"kernel") for i in range(NAMES))
    modules = (event(b"nn.Module: part_%06d" % i, 1, 10 * i, b'"Python id": %d' % (i + 1), b"python_function") for i in range(NAMES))
    longer = (text.replace(b'"dur": 5', b'"dur": 7') for text in (
        event(b"kernel_last", 7, 10 * NAMES, b'"device": 0, "stream": 7', b"kernel"),
        event(b"nn.Module: part_last", 1, 10 * NAMES, b'"Python id": %d' % (NAMES + 1), b"python_function")))
    return write(tmp_path_factory.mktemp("names") / "trace.json.gz", packed(HEAD, kernels, modules, longer, TAIL, b"}"))


@pytest.fixture(scope="module")
def names_least(names_trace):
    """MiB without any table."""
    return query(names_trace, "select count(*) from spans", "--memory", "16M")[2]


@pytest.mark.parametrize("table", TABLES)
def test_as_many_names_as_events(names_trace, names_least, table):
    """100,000 of them have a row; the others are one, and nothing is lost."""
    name, of = table[:-1], TABLES[table]
    rows, _, memory = query(names_trace, f"select count(*), sum(calls), sum({of}), max({of}) from {table} group by {name} = '(more names)' order by 1",
                            "--memory", "16M")
    others = NAMES + 1 - 100_000
    assert rows == [(1, others, 5000 * others, 5000 * others), (100_000, 100_000, 5000 * 100_000 + 2000, 7000)]
    assert is_below(memory - names_least, 128), (memory, names_least)


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory):
    """Operators with arguments; most of what is known of them has no place in a few MiB."""
    texts = (event(b"op%d" % (i % 7), 1 + i % 3, 10 * i, b'"x": %d' % i) for i in range(200000))
    return write(tmp_path_factory.mktemp("long") / "trace.json.gz", packed(HEAD, texts, TAIL, b"}"))


SUMS = "select (select sum(start_ns * (dur_ns % 100 + track)) from spans), (select sum(value * (span % 1000)) from span_args)"


def test_little_memory_changes_no_answer(long_trace):
    rows, err, _ = query(long_trace, SUMS)
    again, err_again, _ = query(long_trace, SUMS, "--memory", "1M")
    assert rows == again
    assert "TMPDIR" not in err + err_again
    assert rows[0][0] and rows[0][1]


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer takes memory of its own")
def test_the_kernel_holds_it_to_its_memory(long_trace):
    limit = (resource.RLIMIT_DATA, 52 * MIB)
    rows, err, _ = query(long_trace, SUMS, "--memory", "1M", limit=limit)
    assert rows == query(long_trace, SUMS)[0], err
    assert query(long_trace, SUMS, limit=limit)[0] is None  # all of it in memory is more than that


def test_a_full_disk_is_said_and_changes_no_answer(long_trace):
    rows, err, _ = query(long_trace, SUMS, "--memory", "1M", limit=(resource.RLIMIT_FSIZE, 64 * 1024))
    assert rows == query(long_trace, SUMS)[0]
    assert re.search(r"MiB of memory, more than --memory: cannot reserve \d+ MiB in a temporary file: File too large", err)
    assert "hint: set TMPDIR to a directory on a disk with more space" in err
