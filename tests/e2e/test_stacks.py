# SPDX-License-Identifier: Apache-2.0
"""Profiles of stacks that real samplers wrote: what the table `functions` says is what a count by hand says."""
import collections
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data/stacks"
FILES = sorted(path for path in DATA.iterdir() if path.suffix != ".md")
SCALES = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9, "bytes": 1, "none": 1}


def stepscope(*arguments, status=0):
    done = subprocess.run([os.environ["STEPSCOPE"], *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def folded(path):
    """(names of the functions, weight) of each line."""
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [frame for frame in stack.split(";") if not re.match(r"(process|thread) ", frame)]
        if path.name.startswith("torch"):
            yield [re.sub(r"^.*?\(\d+\):_", "", frame) for frame in frames], 1000 * int(count)
        else:
            yield [re.sub(r" \([^()]*\)$", "", frame) for frame in frames if frame], int(count)


def speedscope(path):
    document = json.loads(path.read_text())
    names = [frame["name"] for frame in document["shared"]["frames"]]
    for profile in document["profiles"]:
        scale = SCALES[profile["unit"]]
        if profile["type"] == "sampled":
            for sample, weight in zip(profile["samples"], profile["weights"]):
                frames = [names[i] for i in sample]
                if frames and re.match(r"thread \(\d+\)", frames[0]):  # whose it is, which the profile's name says
                    frames.pop(0)
                yield frames, round(Fraction(str(weight)) * scale)
            continue
        stack, last = [], 0
        for event in profile["events"]:
            at = round(Fraction(str(event["at"])) * scale)
            if stack:
                yield list(stack), at - last
            last = at
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                assert stack.pop() == names[event["frame"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_functions_are_those_of_a_count_by_hand(path):
    selves, totals = collections.Counter(), collections.Counter()
    for frames, weight in (speedscope if path.suffix == ".json" else folded)(path):
        selves[frames[-1] if frames else "(no stack)"] += weight
        totals.update({name: weight for name in set(frames or ["(no stack)"])})
    got_selves, got_totals = collections.Counter(), {}
    for row in csv.DictReader(io.StringIO(stepscope("report", path, "--table", "functions", "--csv"))):
        unit = "ns" if row["self_ns"] else "count"
        got_selves[row["function"]] += int(row[f"self_{unit}"])
        got_totals.setdefault(row["function"], []).append(int(row[f"total_{unit}"]))
    assert +got_selves == +selves
    assert set(got_totals) == set(totals)
    for name, values in got_totals.items():  # functions of one name in several files: their stacks may overlap
        assert max(values) <= totals[name] <= sum(values), name
    assert sum(selves.values()) > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_converted_profile_says_the_same(path, tmp_path):
    stepscope("convert", path, tmp_path / "a.ssr")
    for table in ("functions", "sampled_stacks", "sampled_threads"):
        arguments = ["--table", table, "--by", "thread", "--csv"]
        assert stepscope("report", tmp_path / "a.ssr", *arguments) == stepscope("report", path, *arguments)


@pytest.mark.parametrize("suffix", [".folded", ".speedscope.json"])
@pytest.mark.parametrize("path", [path for path in FILES if "perf" not in path.name], ids=lambda path: path.name)
def test_an_exported_profile_says_the_same(path, suffix, tmp_path):
    def functions(file):
        rows = csv.DictReader(io.StringIO(stepscope("report", file, "--table", "functions", "--csv")))
        return sorted((row["function"], row["file"], row["self_ns"], row["self_count"], row["total_ns"]) for row in rows)

    is_time = path.suffix == ".json" or path.name.startswith("torch")
    out = tmp_path / f"out{suffix}"
    stepscope("export", path, "-o", out)
    if suffix == ".folded" and is_time:  # whole microseconds, and no blanks
        total = sum(int(line.rpartition(" ")[2]) for line in out.read_text().splitlines())
        exact = sum(int(row[2]) for row in functions(path))
        assert abs(1000 * total - exact) <= 1000 * len(out.read_text().splitlines())
    else:
        assert functions(out) == functions(path)


def test_what_is_broken_is_said_and_strict_fails(tmp_path):
    file = tmp_path / "broken.txt"
    file.write_text("a;b 3\nno number\na;c 4\n")
    assert "repaired: lines without a stack and a number behind it were left out (1, broken.txt)" in " ".join(stepscope("report", file).split())
    stepscope("report", "--strict", file, status=1)
    file.write_text("no stacks\n")
    stepscope("report", file, status=3)


@pytest.mark.parametrize("name", ["a.folded", "a.collapsed", "a.folded.gz"])
def test_single_frames_are_stacks_in_a_file_that_is_named_so(name, tmp_path):
    text = b"idle 3\nidle 4\nmain 1\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (tmp_path / "notes.txt").write_bytes(text)
    stepscope("report", tmp_path / name)
    stepscope("report", tmp_path / "notes.txt", status=3)
    stepscope("export", tmp_path / name, "-o", tmp_path / "b.folded")
    assert sorted((tmp_path / "b.folded").read_text().splitlines()) == ["idle 7", "main 1"]
    stepscope("report", tmp_path / "b.folded")


@pytest.mark.parametrize("option, words", [("--steps", "it has no steps to choose from"), ("--window", "has no windows of a profiler to choose from")])
@pytest.mark.parametrize("path", ["stacks/pyspy.folded", "stacks/pyspy.speedscope.json", "nvidia_smi/gpu_usage.csv"])
def test_what_has_no_steps_is_not_shown_as_some_of_them(path, option, words, tmp_path):
    for arguments in (["report", option, "1"], ["export", option, "1", "-o", tmp_path / "x.json"]):
        done = subprocess.run([os.environ["STEPSCOPE"], *arguments, DATA.parent / path], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (2, "") and words in done.stderr


def test_a_thread_that_no_profile_names_stays_in_the_stack(tmp_path):
    profile = {"type": "sampled", "name": 'Thread 7 "a"', "unit": "none", "startValue": 0, "endValue": 2, "samples": [[0, 2], [1, 2]], "weights": [1, 1]}
    frames = [{"name": "thread (7): a"}, {"name": "thread (8): b"}, {"name": "f"}]
    (tmp_path / "x.json").write_text(json.dumps({"shared": {"frames": frames}, "profiles": [profile]}))
    rows = csv.DictReader(io.StringIO(stepscope("report", tmp_path / "x.json", "--table", "sampled_stacks", "--csv")))
    assert sorted(row["stack"] for row in rows) == ["f", "thread (8): b;f"]


def test_an_id_that_is_no_number_of_ours_is_a_frame(tmp_path):
    (tmp_path / "x").write_text('process 99999999999999999999:"x";a 4\n')
    rows = list(csv.DictReader(io.StringIO(stepscope("report", tmp_path / "x", "--table", "sampled_stacks", "--csv"))))
    assert [row["stack"] for row in rows] == ['process 99999999999999999999:"x";a']


def test_long_lines_are_looked_at_no_further_than_needed(tmp_path):
    with open(tmp_path / "x", "wb") as file:
        file.truncate(1 << 40)
        file.write(b"nothing of ours")
    stepscope("report", tmp_path / "x", status=3)


def test_an_empty_file_and_a_link_to_itself_are_called_so(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (("empty", "is empty"), ("loop", "symbolic links")):
        done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / name], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 3 and words in done.stderr


@pytest.mark.parametrize("path", ["stacks/pyspy.folded", "nvidia_smi/gpu_usage.csv", "made_nsys/train.sqlite"])
def test_hints_are_of_what_was_given(path, tmp_path):
    for command in (["export", "-o", tmp_path / "x.memory.html"], ["validate"]):
        done = subprocess.run([os.environ["STEPSCOPE"], *command, DATA.parent / path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 3 and "--with memory" not in done.stderr and ("stepscope report" in done.stderr) == (command == ["validate"])


@pytest.mark.parametrize("path, words", [("stacks/pyspy.folded", "profile of stacks"), ("made_nsys/train.sqlite", "export of nsys"),
                                         ("nvidia_smi/gpu_usage.csv", "telemetry"), ("made_snapshots/train.pickle", "snapshot")])
def test_reasons_are_in_the_words_of_the_format(path, words):
    for name in ("modules", "memory_totals", "metrics", "marks", "lines"):
        done = subprocess.run([os.environ["STEPSCOPE"], "report", DATA.parent / path, "--table", name], capture_output=True, text=True, timeout=60, check=True)
        text = " ".join(done.stdout.split())
        assert not any(word in text for word in ("PyTorch", "torch.profiler", "--with", "stepscope_")), (name, text)
        assert words in text or name != "metrics", (name, text)


def test_callers_may_come_late(tmp_path):
    (tmp_path / "late").write_text("idle 1\n" * 1000 + "a;b 4\n")
    assert "a" in stepscope("report", tmp_path / "late", "--table", "functions", "--csv")


@pytest.mark.parametrize("suffix", [".folded", ".speedscope.json"])
@pytest.mark.parametrize("path", ["made_snapshots/train.pickle", "nvidia_smi/gpu_usage.csv", "nvidia_smi/dmon.txt"])
def test_what_has_no_stacks_is_not_exported_as_such(path, suffix, tmp_path):
    out = tmp_path / f"out{suffix}"
    done = subprocess.run([os.environ["STEPSCOPE"], "export", DATA.parent / path, "-o", out], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "no operators and no samples" in done.stderr and "--with lines" not in done.stderr
    assert not out.exists()


def test_the_note_of_an_import_has_no_hint_for_recordings(tmp_path):
    done = subprocess.run([os.environ["STEPSCOPE"], "export", DATA.parent / "made_nsys/train.sqlite", "-o", tmp_path / "a.folded"],
                          capture_output=True, text=True, timeout=60, check=True)
    assert "note: the input has no stacks of Python: each stack is an operator alone" in done.stderr


def test_counts_are_at_no_time(tmp_path):
    def times(file):
        rows = csv.DictReader(io.StringIO(stepscope("query", file, "SELECT weight, time_ns FROM samples", "--csv")))
        return [row["time_ns"] for row in rows]

    (tmp_path / "a.folded").write_text("a;b 3\nc 4\n")
    assert times(tmp_path / "a.folded") == ["", ""]
    for unit, expected in (("bytes", ["", ""]), ("nanoseconds", ["0", "3"])):
        profile = {"type": "sampled", "name": "p", "unit": unit, "startValue": 0, "endValue": 7, "samples": [[0], [0]], "weights": [3, 4]}
        (tmp_path / "a.json").write_text(json.dumps({"exporter": "speedscope@1", "shared": {"frames": [{"name": "a"}]}, "profiles": [profile]}))
        assert times(tmp_path / "a.json") == expected


OTHERS = [("stacks/pyspy.folded", "stacks (collapsed)"), ("stacks/pyspy.speedscope.json", "stacks (speedscope)"), ("nvidia_smi/gpu_usage.csv", "nvidia-smi"),
          ("made_snapshots/train.pickle", "snapshots"), ("made_nsys/train.sqlite", "nsys")]


@pytest.mark.parametrize(("path", "kind"), OTHERS)
def test_where_only_traces_are_read_other_files_are_called_what_they_are(path, kind, tmp_path):
    def refused(*arguments, **options):
        done = subprocess.run([os.environ["STEPSCOPE"], "report", *arguments], capture_output=True, timeout=60, check=False, **options)
        return done.returncode, done.stderr.decode()

    file = DATA.parent / path
    status, words = refused("-", stdin=file.open("rb"))
    assert status == 3 and kind in words and "give its path" in words
    is_of_a_rank = "nvidia_smi" not in path and "nsys" not in path  # those are read together
    second = shutil.copy(file, tmp_path)
    status, words = refused(file, second)
    assert is_of_a_rank or (status == 3 and kind in words and "hint: give that file by itself" in words)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / file.name).write_bytes(file.read_bytes())
    status, words = refused(tmp_path / "folder")
    assert is_of_a_rank or (status == 3 and kind in words and "give that file itself" in words)
    other = DATA.parent / ("stacks/pyspy.folded" if "speedscope" in path else "stacks/pyspy.speedscope.json")
    assert refused(file, other)[0] == 3
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(file, file.name)
    status, words = refused(tmp_path / "a.tar")
    assert is_of_a_rank or (status == 3 and kind in words and "give that file itself" in words)
    status, words = refused("-", stdin=(tmp_path / "a.tar").open("rb"))
    assert status == 3 and kind in words
    # of two kinds the first one that is of ranks counts, and the other is said
    (tmp_path / "folder" / other.name).write_bytes(other.read_bytes())
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        for one in sorted((file, other), key=lambda path: path.name):
            archive.add(one, one.name)
    for place in (tmp_path / "folder", tmp_path / "b.tar"):
        text = stepscope("report", place, "--table", "ledger", "--csv")
        assert sum("which is not read together with the others" in line for line in text.splitlines()) == 1, place


@pytest.mark.parametrize("path", ["stacks/pyspy.folded", "stacks/pyspy.speedscope.json", "made_snapshots/train.pickle"])
def test_files_of_ranks_are_one_run(path, tmp_path):
    def rows(table, *operands):
        return list(csv.DictReader(io.StringIO(stepscope("report", *operands, "--table", table, "--csv"))))

    names = [tmp_path / f"of_rank{rank}{os.path.splitext(path)[1]}" for rank in (2, 10)]
    for name in names:
        name.write_bytes((DATA.parent / path).read_bytes())
    (tmp_path / "notes.txt").write_text("of no kind")
    table, of_one = ("memory", "process") if "pickle" in path else ("sampled_threads", "process")
    alone = rows(table, names[0])
    packed = tmp_path.parent / f"{tmp_path.name}_packed"
    archives = [Path(shutil.make_archive(str(packed / kind), kind, tmp_path)) for kind in ("zip", "tar", "gztar", "xztar")]
    with zipfile.ZipFile(packed / "folders.zip", "w") as archive:  # snapshots have one name in each rank's folder
        for name in names:
            archive.write(name, f"of/{name.stem.removeprefix('of_')}/all{name.suffix}")
        archive.writestr("of/._all" + names[0].suffix, "of macOS")
        archives.append(packed / "folders.zip")
    for operands in ([tmp_path], names, *([path] for path in archives)):
        together = rows(table, *operands)
        ranks = [row["rank"] for row in rows("processes", *operands)]
        assert ranks == ["2", "10"]
        assert {row[of_one] for row in together} == {"rank 2", "rank 10"} and len(together) == 2 * len(alone)
        assert sum("the rank is not in the file" in row["sentence"] for row in rows("ledger", *operands)) == 2
        assert "the rank is not in the file" in stepscope("report", *operands)
        assert [row for row in rows("ledger", *operands) if row["what"] in ("damaged", "repaired")] == []
    names[0].write_bytes((DATA.parent / path).read_bytes()[:9])
    text = stepscope("report", tmp_path, "--table", "ledger", "--csv")
    assert "damaged" in text if names[0].suffix == ".pickle" else "another kind" in text
    assert len(rows(table, tmp_path)) == len(alone)
    stepscope("report", "--strict", shutil.make_archive(str(packed / "bad"), "zip", tmp_path), status=int(names[0].suffix == ".pickle"))


@pytest.mark.parametrize("path", ["stacks/pyspy.folded", "stacks/pyspy.speedscope.json", "made_snapshots/train.pickle"])
def test_R04_a_copy_is_no_rank_of_its_own(path, tmp_path):
    """Compressed or not, in a directory, an archive or on the command line."""
    suffix, text = os.path.splitext(path)[1], (DATA.parent / path).read_bytes()
    folder = tmp_path / "folder"
    folder.mkdir()
    alone = folder / f"b{suffix}"
    alone.write_bytes(text)
    tables = ("processes", "functions" if "stacks" in path else "memory")
    expected = [stepscope("report", folder, "--table", table, "--csv") for table in tables]
    names = [alone, folder / f"c{suffix}.gz", folder / f"d{suffix}"]
    names[1].write_bytes(gzip.compress(text))
    names[2].write_bytes(text)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.write(name, name.name)
    for operands in ([folder], [tmp_path / "all.zip"], names):
        assert [stepscope("report", *operands, "--table", table, "--csv") for table in tables] == expected
        assert stepscope("report", *operands, "--table", "ledger", "--csv").count("its text is that of another file: it is read once") == 2


def test_j19_lines_behind_a_damaged_member_of_gzip_are_read(tmp_path):
    """But for the first: nobody knows whether it began in the member that is damaged."""
    members = [bytearray(gzip.compress(f"first{i} 1\nmiddle{i} 1\nlast{i} 1\n".encode())) for i in range(6)]
    members[3][2] = 0  # its method
    path = tmp_path / "stacks.folded.gz"
    path.write_bytes(b"".join(members))
    table = stepscope("report", path, "--table", "functions", "--csv")
    named = {f"{place}{i}" for place in ("first", "middle", "last") for i in range(6) if f",{place}{i}," in table}
    assert {f"{place}{i}" for place in ("first", "middle", "last") for i in range(6)} - named == {"first3", "middle3", "last3", "first4"}
    assert "damaged,1,all,stacks.folded.gz," in stepscope("report", path, "--table", "ledger", "--csv")
    stepscope("report", path, "--strict", status=1)


def test_an_archive_that_is_cut_off_gives_what_came_before(tmp_path):
    path = DATA / "pyspy.folded"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for rank in range(2):
            archive.write(path, f"rank{rank}.folded")
    whole = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(whole[:path.stat().st_size + 200])
    text = stepscope("report", tmp_path / "a.zip", "--table", "ledger", "--csv")
    assert "damaged" in text
    assert "rank 0" in stepscope("report", tmp_path / "a.zip", "--table", "sampled_threads", "--csv")
    stepscope("report", "--strict", tmp_path / "a.zip", status=1)


def test_stacks_in_an_archive_may_have_long_lines(tmp_path):
    """The first bytes that tell what a member is hold no whole line of 512 bytes."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("notes.md", "of no kind")
        archive.writestr("one", ";".join(f"frame{i}" for i in range(3000)) + " 4\n")
        archive.writestr("two.folded", "idle 3")
    assert "idle" in stepscope("report", tmp_path / "a.zip", "--table", "functions", "--csv")
    text = stepscope("report", tmp_path / "a.zip", "--table", "sampled_threads", "--csv")
    assert len(text.splitlines()) == 3
    assert "files that are of another kind were not read" in stepscope("report", tmp_path / "a.zip", "--table", "ledger", "--csv")


def test_of_very_many_stacks_the_heaviest_are_shown(tmp_path):
    path = tmp_path / "many.folded"
    path.write_text("".join(f"a;f{i} {1 + i % 7}\n" for i in range(150_000)) + "a;most 9\n")
    lines = stepscope("report", path, "--table", "sampled_stacks", "--csv").splitlines()
    sums = {line.rsplit(",", 1)[1]: int(line.split(",")[2]) for line in lines[1:]}
    assert len(lines) == len(sums) + 1 == 100_002 and max(sums.values()) == sums["(more names)"]
    assert sums["a;most"] == 9 and sum(sums.values()) == sum(1 + i % 7 for i in range(150_000)) + 9


def test_units_that_are_not_known_are_not_added_up(tmp_path):
    profiles = [{"type": "sampled", "name": unit, "unit": unit, "startValue": 0, "endValue": 5, "samples": [[0]], "weights": [5]} for unit in ("none", "furlongs")]
    file = tmp_path / "a.speedscope.json"
    file.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "f"}]}, "profiles": profiles}))
    rows = list(csv.DictReader(io.StringIO(stepscope("report", file, "--table", "functions", "--csv"))))
    assert [row["self_count"] for row in rows] == ["5", "5"]
    stepscope("export", file, "-o", tmp_path / "b.folded")
    assert (tmp_path / "b.folded").read_text() == "f 5\n"  # of the first unit alone


@pytest.mark.parametrize(("weights", "words"), [([], "none has a weight"), ([9e18], "none has a weight")])
def test_profiles_without_weights_are_not_called_empty(weights, words, tmp_path):
    profile = {"type": "sampled", "name": "p", "unit": "bytes", "startValue": 0, "endValue": 5, "samples": [[0]], "weights": weights}
    file = tmp_path / "a.speedscope.json"
    file.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "f"}]}, "profiles": [profile]}))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and words in done.stderr


def test_members_behind_the_first_ten_thousand_are_counted(tmp_path):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for i in range(10003):
            archive.writestr(f"s{i}.folded", "main;f 3\n")
    ledger = stepscope("report", tmp_path / "many.zip", "--table", "ledger", "--csv")
    assert [line for line in ledger.splitlines() if ",3," in line and "files behind the first 10,000 were not read" in line]


def test_sums_beyond_64_bits_are_not_measured_and_their_shares_are(tmp_path):
    """Two functions with three and one parts of more than 64 bits hold: 75 % and 25 %, not twice 100 %."""
    most = 2**63 - 1
    path = tmp_path / "large.folded"
    path.write_text(f"main;a {most}\n" * 3 + f"main;b {most}\n")
    rows = {row["function"]: row for row in json.loads(stepscope("report", path, "--table", "functions", "--json"))["rows"]}
    assert {name: (row["self_ratio"], row["total_ratio"]) for name, row in rows.items()} == {"a": (0.75, 0.75), "b": (0.25, 0.25), "main": (0, 1)}
    assert {name: (row["self_count"], row["total_count"]) for name, row in rows.items()} == {"a": (None, None), "b": (most, most), "main": (0, None)}
    [row] = csv.DictReader(io.StringIO(stepscope("report", path, "--table", "ledger", "--csv")))
    assert row["count"] == "4" and "exceeds 9.2e18" in row["sentence"]
    stacks = csv.DictReader(io.StringIO(stepscope("report", path, "--table", "sampled_stacks", "--csv")))
    assert [(row["stack"], row["self_count"], row["ratio"]) for row in stacks] == [("main;a", "", "0.75"), ("main;b", str(most), "0.25")]
    stepscope("export", path, "-o", tmp_path / "again.folded")  # nothing of it is lost
    assert sorted((tmp_path / "again.folded").read_text().splitlines()) == sorted(path.read_text().splitlines())
    changed = stepscope("compare", path, tmp_path / "again.folded", "--table", "functions", "--csv", "--fail-on", "never")
    [whole] = [row for row in csv.DictReader(io.StringIO(changed)) if row["function"] == "a"]
    assert (whole["base_self_ratio"], whole["base_self"], whole["new_self"]) == ("0.75", "", "")
