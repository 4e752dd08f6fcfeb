# SPDX-License-Identifier: Apache-2.0
"""The probe of CUPTI (bench/c/cupti_probe.c) with a stand-in for CUPTI, under ASan and UBSan: no GPU, no driver. What is expected in
each case is in bench/c/cupti_probe_check.c."""
import glob
import json
import os
import subprocess

import pytest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "c")
FLAGS = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def build(target, *arguments):
    subprocess.run([os.environ.get("CC", "cc"), *FLAGS, *arguments, "-o", target, "-ldl", "-lpthread"], cwd=SOURCE, check=True)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cupti")
    stand_in = build(folder / "libcupti_stand_in.so", "cupti_stand_in.c", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcupti.so.13")
    return build(folder / "check", "cupti_probe.c", "cupti_library.c", "cupti_text.c", "cupti_probe_check.c"), stand_in


def check(built, folder, case, **settings):
    program, stand_in = built
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUPTI_PROBE_", "STAND_IN_"))}
    environment |= {"CUPTI_PROBE_ANYWAY": "1", "CUPTI_PROBE_OUT": "out", "CUPTI_PROBE_KINDS": "10", "CUPTI_PROBE_LIBRARY": str(stand_in),
                    "ASAN_OPTIONS": "detect_leaks=0"} | settings
    return subprocess.run([program, case], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("case, settings", [
    ("records", {"CUPTI_PROBE_RUNTIME": "211"}),
    ("turns", {"CUPTI_PROBE_RUNTIME": "211"}),
    ("release", {}),
    ("graphs", {"CUPTI_PROBE_GRAPHS": "1"}),
    ("pool", {"CUPTI_PROBE_BUFFERS": "4"}),
    ("fork", {}),
    ("held", {"STAND_IN_HELD": "1"}),
    ("none", {"STAND_IN_VERSION_ERROR": "1"}),
])
def test_case(built, tmp_path, case, settings):
    done = check(built, tmp_path, case, **settings)
    assert done.returncode == 0, done.stderr


def test_no_driver(built, tmp_path):
    done = check(built, tmp_path, "none", CUPTI_PROBE_ANYWAY="0")
    assert (done.returncode, done.stderr) == (0, "cupti_probe: no driver here (0)\n")


def report(folder):
    (path,) = glob.glob(os.path.join(folder, "out-*.json"))
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def test_pending_records_are_flushed_at_the_end(built, tmp_path):
    assert check(built, tmp_path, "pending").returncode == 0
    assert report(tmp_path)["rows"] == {"10": 100}


def test_a_flush_that_hangs_does_not_keep_the_program(built, tmp_path):
    assert check(built, tmp_path, "hang").returncode == 0
    assert report(tmp_path)["end_flush_ns"] < 0


def test_callbacks_of_a_graph(built, tmp_path):
    assert check(built, tmp_path, "graphs", CUPTI_PROBE_GRAPHS="1").returncode == 0
    (path,) = glob.glob(os.path.join(tmp_path, "out-*.callbacks.txt"))
    with open(path, encoding="ascii") as file:
        rows = [line.split(" ", 3)[3].rstrip("\n") for line in file]
    assert rows[:3] == ["cbid 9 node 0 (-1) orig 0 (-1) graph 1 (0) orig 0 exec (nil) type 0",
                        "cbid 12 node 0 (-1) orig 0 (-1) graph 0 (-1) orig 0 exec (nil) type 0",
                        "cbid 13 node 100000000 (0) orig 0 (-1) graph 1 (0) orig 0 exec (nil) type 0"]
    assert "cbid 20 node 200000031 (0) orig 100000031 (0) graph 2 (0) orig 1 exec (nil) type 0" in rows
    assert rows[-1].endswith(" execid 2 (0)")
