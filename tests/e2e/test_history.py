# SPDX-License-Identifier: Apache-2.0
"""The run history: many writers at once, writers that are killed, files that cannot be written or are damaged."""
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from test_compare_ranks import write_job

STEPSCOPE = os.environ["STEPSCOPE"]


def trace(path, milliseconds, steps=5):
    """A small trace of another profiler, with steps of this length."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1,
               "ts": i * milliseconds * 1000, "dur": milliseconds * 1000} for i in range(steps)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def command(cwd, *arguments):
    return [STEPSCOPE, "history", "--history", str(cwd / "history.db"), *map(str, arguments)]


def history(cwd, *arguments, **more):
    return subprocess.run(command(cwd, *arguments), capture_output=True, text=True, timeout=120, check=False, **more)


def listed(cwd):
    done = history(cwd, "list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def is_whole(cwd):
    with sqlite3.connect(cwd / "history.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_many_writers_at_once_lose_nothing(tmp_path):
    traces = [trace(tmp_path / f"{i}.json", 10 + i) for i in range(48)]
    writers = [subprocess.Popen(command(tmp_path, "add", "--series", "all", *traces[i::12]), stderr=subprocess.PIPE)
               for i in range(12)]
    for writer in writers:
        _, complaint = writer.communicate(timeout=120)
        assert writer.returncode == 0, complaint
    rows = listed(tmp_path)
    assert sorted(row["name"] for row in rows) == sorted(path.name for path in traces)
    assert sorted(row["run"] for row in rows) == list(range(1, 49))
    assert {row["name"]: row["step_time_p50_ns"] for row in rows} == {f"{i}.json": (10 + i) * 1e6 for i in range(48)}
    is_whole(tmp_path)


def test_one_recording_from_many_writers_is_kept_once(tmp_path):
    path = trace(tmp_path / "one.json", 10)
    writers = [subprocess.Popen(command(tmp_path, "add", "-q", path)) for _ in range(8)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 8
    assert [row["run"] for row in listed(tmp_path)] == [1]
    is_whole(tmp_path)


def test_a_killed_writer_leaves_whole_runs(tmp_path):
    traces = [trace(tmp_path / f"{i}.json", 10 + i, steps=400) for i in range(8)]
    assert history(tmp_path, "add", trace(tmp_path / "first.json", 5)).returncode == 0
    chance = random.Random(1)
    for _ in range(4):
        writer = subprocess.Popen(command(tmp_path, "add", "-q", *traces))
        try:
            writer.wait(timeout=chance.random() * 0.1)
        except subprocess.TimeoutExpired:
            writer.kill()
            writer.wait(timeout=60)
        for row in listed(tmp_path):
            assert row["steps"] == (5 if row["name"] == "first.json" else 400)
    is_whole(tmp_path)


def test_who_finds_it_locked_waits(tmp_path):
    assert history(tmp_path, "add", trace(tmp_path / "a.json", 10)).returncode == 0
    database = sqlite3.connect(tmp_path / "history.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    writer = subprocess.Popen(command(tmp_path, "add", "-q", trace(tmp_path / "b.json", 20)))
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(timeout=0.5)
    assert len(listed(tmp_path)) == 1  # readers need not wait
    database.execute("COMMIT")
    assert writer.wait(timeout=120) == 0
    assert len(listed(tmp_path)) == 2


def test_what_a_killed_writer_left_is_taken_back_by_who_reads(tmp_path):
    assert history(tmp_path, "add", trace(tmp_path / "a.json", 10)).returncode == 0
    half_done = ("import os, signal, sqlite3, sys\n"
                 "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                 "database.execute('PRAGMA cache_size = 1')\n"
                 "database.execute('BEGIN IMMEDIATE')\n"
                 "database.execute('DELETE FROM steps')\n"
                 "for i in range(5000):\n"
                 "    database.execute('INSERT INTO facts VALUES(1, ?, ?, ?, ?)', (i + 1000, 'work', 'x' * 500, 'y'))\n"
                 "os.kill(os.getpid(), signal.SIGKILL)\n")
    subprocess.run([sys.executable, "-c", half_done, tmp_path / "history.db"], check=False, timeout=60)
    assert (tmp_path / "history.db-journal").stat().st_size > 0
    done = history(tmp_path, "show", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["facts"]) < 100
    is_whole(tmp_path)


def nobody():
    """Of the super-user no file is safe."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


@pytest.fixture
def open_folder():
    """One that others may enter. Those of pytest are its user's alone, which every pytest that begins sees to again."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
        os.chmod(folder, 0o755)


def test_a_file_that_cannot_be_written_can_be_read(open_folder):
    try:
        subprocess.run([STEPSCOPE, "--version"], check=True, timeout=60, stdout=subprocess.DEVNULL, preexec_fn=nobody)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("nobody but the super-user may run this build")
    path = trace(open_folder / "a.json", 10)
    assert history(open_folder, "add", path).returncode == 0
    (open_folder / "history.db").chmod(0o444)
    open_folder.chmod(0o555)
    done = history(open_folder, "list", preexec_fn=nobody)
    assert done.returncode == 0 and "a.json" in done.stdout, done.stderr
    done = history(open_folder, "add", path, preexec_fn=nobody)
    assert done.returncode == 4 and "cannot" in done.stderr and "history.db" in done.stderr, done.stderr
    assert done.stdout == ""


def test_a_damaged_file_is_told_and_never_fatal(tmp_path):
    assert history(tmp_path, "add", *(trace(tmp_path / f"{i}.json", 10 + i) for i in range(5))).returncode == 0
    assert history(tmp_path, "baseline", "set", "main", "2").returncode == 0
    whole = (tmp_path / "history.db").read_bytes()
    chance, told = random.Random(2), 0
    for round_ in range(24):
        broken = bytearray(whole)
        if round_ % 2:
            for _ in range(chance.randrange(1, 200)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
        else:
            del broken[chance.randrange(1, len(broken)):]
        (tmp_path / "history.db").write_bytes(broken)
        for arguments in (["list"], ["show", "main"], ["add", tmp_path / "3.json"], ["remove", "4"]):
            done = history(tmp_path, *arguments)
            assert done.returncode in (0, 2, 3, 4), (round_, arguments, done.returncode, done.stderr)
            assert done.returncode == 0 or done.stderr.startswith("stepscope: error: "), done.stderr
            told += "is damaged" in done.stderr
    assert told > 20


def test_a_file_of_another_version_is_refused_and_left_alone(tmp_path):
    path = trace(tmp_path / "a.json", 10)
    assert history(tmp_path, "add", path).returncode == 0
    for version, said in ((1, "from an earlier stepscope"), (4, "from a later stepscope"),
                          (0, "damaged: it has no version")):
        with sqlite3.connect(tmp_path / "history.db") as database:
            database.execute(f"PRAGMA user_version = {version}")
        before = (tmp_path / "history.db").read_bytes()
        for arguments in (["list"], ["show"], ["add", path], ["remove", "1"]):
            done = history(tmp_path, *arguments)
            assert done.returncode == 3 and said in done.stderr, (version, arguments, done.stderr)
            assert ("add the runs to a new file" in done.stderr) == (version == 1), done.stderr
        assert (tmp_path / "history.db").read_bytes() == before


def test_a_file_of_version_2_is_brought_up_to_date_by_who_writes(tmp_path):
    first, second = trace(tmp_path / "a.json", 10), trace(tmp_path / "b.json", 12)
    for path in (first, second):
        document = json.loads(path.read_text())
        document["traceEvents"] += [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": event["ts"] + 10, "dur": 5000}
                                    for event in document["traceEvents"]]
        path.write_text(json.dumps(document))
    assert history(tmp_path, "add", "--series", "train", first).returncode == 0
    with sqlite3.connect(tmp_path / "history.db") as database:
        database.executescript("DROP TABLE functions; DROP TABLE telemetry; ALTER TABLE parts RENAME COLUMN amount TO ns;"
                               "PRAGMA user_version = 2")
        kept = list(database.execute("SELECT * FROM parts"))
    before = (tmp_path / "history.db").read_bytes()
    done = history(tmp_path, "list")
    assert done.returncode == 3 and "'stepscope history add' updates it" in done.stderr, done.stderr
    assert (tmp_path / "history.db").read_bytes() == before
    assert history(tmp_path, "add", "--series", "train", second).returncode == 0
    with sqlite3.connect(tmp_path / "history.db") as database:
        assert list(database.execute("SELECT * FROM parts WHERE run = 1")) == kept and kept
    done = subprocess.run([STEPSCOPE, "compare", "--history", tmp_path / "history.db", "--series", "train", "--baseline", "1", "--json", second],
                          capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout)["contributions"], done.stderr


def test_a_pipe_is_read_from_its_beginning(tmp_path):
    path = trace(tmp_path / "a.json", 10, steps=1000)
    compare = [STEPSCOPE, "compare", "--json", path, "/dev/fd/0"]
    for arguments in (command(tmp_path, "add", "/dev/fd/0"), compare):
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            done = subprocess.run(arguments, stdin=cat.stdout, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    assert [row["steps"] for row in listed(tmp_path)] == [1000]


def test_metrics_that_do_not_say_what_run_they_are_of_are_known_by_their_path(tmp_path):
    for given, kept in (({}, 2), ({"run_id": None}, 2), ({"run_id": [], "timestamp": {}}, 2),
                        ({"run_id": "", "timestamp": ""}, 2), ({"run_id": "dpo_1_a"}, 2), ({"timestamp": "2026-11-21T07:03:09"}, 2),
                        ({"run_id": "dpo_1_a", "timestamp": "2026-11-21T07:03:09"}, 1),
                        ({"run_id": 7, "timestamp": 8}, 1)):
        (tmp_path / "history.db").unlink(missing_ok=True)
        for name, median in (("a", 0.4), ("b", 0.5), ("a", 0.6)):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "metrics.json").write_text(json.dumps(
                {"run_id": None, **given, "duration_seconds": 9,
                 "perf": {"step_time": {"count": 70, "median": median}}}))
            done = history(tmp_path, "add", f"{tmp_path}/{name}/metrics.json")
            assert done.returncode == 0, done.stderr
        rows = listed(tmp_path)
        assert len(rows) == kept, (given, rows)
        assert {row["step_time_p50_ns"] for row in rows} == ({0.5e9, 0.6e9} if kept == 2 else {0.6e9}), given
        assert {row["name"] for row in rows} == {str(given.get("run_id") or "metrics.json")}


def noisy(path, seed, slower=1.0, scatter=0.012):
    """Runs that differ by 1.2 % from each other, with steps that differ by 2 %."""
    chance = random.Random(seed)
    level = 10000 * slower * (1 + chance.gauss(0, scatter))
    start, events = 0, []
    for number in range(60):
        dur = round(level * (1 + chance.gauss(0, 0.02)))
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": start, "dur": dur})
        start += dur + 1
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def compare_with_best(cwd, run):
    done = subprocess.run([STEPSCOPE, "compare", "--json", "--history", cwd / "history.db", "--series", "t", "--baseline", "best", run],
                          capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout)["verdict"]


def test_the_best_of_many_is_lucky_and_no_regression_of_the_others(tmp_path):
    """None of these runs is slower than another but by chance; the best is the luckiest."""
    kept = [noisy(tmp_path / f"kept{number}.json", f"kept{number}") for number in range(40)]
    assert history(tmp_path, "add", "--quiet", "--series", "t", *kept).returncode == 0
    answers = [compare_with_best(tmp_path, noisy(tmp_path / "new.json", f"new{number}")) for number in range(40)]
    assert sum(answer["result"] == "regression" for answer in answers) <= 3, [answer["result"] for answer in answers]
    assert "the fastest of 40 runs" in answers[0]["noise"]
    slow = [compare_with_best(tmp_path, noisy(tmp_path / "new.json", f"slow{number}", slower=1.08)) for number in range(5)]
    assert {answer["result"] for answer in slow} == {"regression"}


def test_fault_V_H1_the_best_of_runs_that_scatter_little_passes(tmp_path):
    """Runs that differ by 0.4 %: the history knows that, so 1 % is not assumed."""
    kept = [noisy(tmp_path / f"kept{number}.json", f"kept{number}", scatter=0.004) for number in range(40)]
    assert history(tmp_path, "add", "--quiet", "--series", "t", *kept).returncode == 0
    equal = [compare_with_best(tmp_path, noisy(tmp_path / "new.json", f"new{number}", scatter=0.004))["result"] for number in range(20)]
    slow = [compare_with_best(tmp_path, noisy(tmp_path / "new.json", f"slow{number}", slower=1.05, scatter=0.004))["result"] for number in range(10)]
    assert equal.count("no difference") >= 10 and "regression" not in equal, equal
    assert slow.count("regression") >= 9, slow


def test_a_change_of_the_program_is_no_noise_of_its_history(tmp_path):
    """Twenty runs of 20 ms a step, then twenty of 10 ms: runs differ by 1.2 %."""
    kept = [noisy(tmp_path / f"kept{number}.json", f"kept{number}", slower=2.0 if number < 20 else 1.0) for number in range(40)]
    assert history(tmp_path, "add", "--quiet", "--series", "t", *kept).returncode == 0
    assert compare_with_best(tmp_path, noisy(tmp_path / "new.json", "new", slower=1.1))["result"] == "regression"


def test_the_default_place(tmp_path):
    path = trace(tmp_path / "a.json", 10)
    clean = {name: value for name, value in os.environ.items() if name not in ("STEPSCOPE_HISTORY", "XDG_DATA_HOME")}
    for more, expected in (({"HOME": tmp_path / "home"}, "home/.local/share/stepscope/history.db"),
                           ({"XDG_DATA_HOME": tmp_path / "data"}, "data/stepscope/history.db"),
                           ({"XDG_DATA_HOME": "relative", "HOME": tmp_path / "other"},
                            "other/.local/share/stepscope/history.db"),
                           ({"STEPSCOPE_HISTORY": tmp_path / "own.db"}, "own.db")):
        environment = {**clean, **{name: str(value) for name, value in more.items()}}
        subprocess.run([STEPSCOPE, "history", "add", path], check=True, timeout=60, env=environment, cwd=tmp_path,
                       stderr=subprocess.DEVNULL)
        assert (tmp_path / expected).stat().st_mode & 0o777 == 0o600
    clean.pop("HOME", None)
    done = subprocess.run([STEPSCOPE, "history"], capture_output=True, text=True, timeout=60, env=clean, check=False)
    assert done.returncode == 4 and "HOME is not set" in done.stderr




def test_files_of_one_job_are_kept_as_one_run(tmp_path):
    """And known again by any order of them, and by their directory."""
    base, new = write_job(tmp_path / "base"), write_job(tmp_path / "new", second=60)
    done = history(tmp_path, "add", "--series", "job", *base, *new)
    assert done.returncode == 0 and done.stderr.count("4 files are ranks of one job and count as one run, 'rank0.json and 3 more ranks'") == 2
    assert [row["name"] for row in listed(tmp_path)] == ["rank0.json and 3 more ranks"] * 2
    assert "updated as run 1 " in history(tmp_path, "add", "--series", "job", *reversed(base)).stderr
    assert "updated as run 2 " in history(tmp_path, "add", "--series", "job", tmp_path / "new").stderr


def test_ranks_of_jobs_of_other_times_stay_runs(tmp_path):
    files = [write_job(tmp_path / str(number), second=60 * number)[number] for number in range(3)]
    assert history(tmp_path, "add", *files).returncode == 0
    assert len(listed(tmp_path)) == 3


def test_one_file_that_cannot_be_read_adds_none(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    done = history(tmp_path, "add", trace(tmp_path / "good.json", 10), tmp_path / "broken.json")
    assert done.returncode == 3
    assert not listed(tmp_path)


def test_a_baseline_stays_in_its_series(tmp_path):
    noisy(tmp_path / "a.json", "a")
    add = lambda *words: subprocess.run([STEPSCOPE, "history", "--history", tmp_path / "h.db", *words], capture_output=True, text=True, timeout=60, check=False)
    assert add("add", "--series", "t", tmp_path / "a.json").returncode == 0
    moved = add("add", "--series", "u", tmp_path / "a.json")
    assert moved.returncode == 0 and "series 'u', moved from 't'" in moved.stderr
    assert add("baseline", "set", "main", "last", "--series", "u").returncode == 0
    refused = add("add", "--series", "t", tmp_path / "a.json")
    assert refused.returncode == 2 and "run 1 is the baseline 'main' of series 'u'" in refused.stderr
    assert add("add", "--series", "u", tmp_path / "a.json").returncode == 0
