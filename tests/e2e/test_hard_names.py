# SPDX-License-Identifier: Apache-2.0
"""Hard cases of names in traces, each with its row of the catalogue: mangled, hostile, very many, or with characters that a terminal obeys."""
import csv
import io
import json
import os
import re
import subprocess

from hard_tools import STEP, Trace, fixture_trace, kernel, launch, span, step

HARD = ["a;b", "a b", "a\tb", "a\nb", 'a"b', "<b>&c", "%s", "a\\b", "a|b", "a,b", " a", "", "17", "__proto__", "=1+1", "\u202eabc", "a\u200bb", "e\u0301",
        "\u6f22\u5b57", "\U0001f525", "\x1b[31mred", "\x1b]52;c;x\x07"]


def test_N02_mangled_names_are_for_programs(trace):
    """People see what C++ calls it, however long; what is told apart, and what programs read, is the name."""
    name = "_ZN7cutlass13device_kernelIN4cute5tupleIJ" + "".join(f"{'NS3_' if i else 'NS1_1C'}ILi{i}EEE" for i in range(100)) + "EEEEEvv"
    text = "void cutlass::device_kernel<cute::tuple<" + ", ".join(f"cute::C<{i}>" for i in range(100)) + " > >()"
    trace.write([kernel(name, 0, 5), kernel("_ZN2at3addEi", 10, 3), kernel("_ZN2at3addEi.cold", 20, 2)])
    assert len(name) > 1024
    assert [row["kernel"] for row in trace.table("kernels")] == [name, "_ZN2at3addEi", "_ZN2at3addEi.cold"]
    assert trace.query("SELECT kernel FROM kernels WHERE kernel GLOB '_ZN2*'") == [["_ZN2at3addEi"], ["_ZN2at3addEi.cold"]]
    shown = trace.run("--table", "kernels", "--columns", "kernel")
    assert "void cutlass::device_kernel<cute::tuple<cute::C<0>, " in shown and "at::add(int)\n" in shown and "_Z" not in shown
    record = trace.write([kernel(name, 0, 5)]).run("--table", "kernels")  # a single row is written in full
    assert text in " ".join(record.split())


ADD = "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi"
PLAIN = "void at::native::vectorized_elementwise_kernel<4>(int)"


def memory_bound(duration, name=ADD):
    """Steps in which one elementwise kernel takes most of the time."""
    return [event for number in range(8) for event in (
        step(number, STEP * number * 2, STEP), launch(STEP * number * 2 + 10, number + 1), kernel(name, STEP * number * 2 + 20, duration, correlation=number + 1))]


def test_N02_sentences_are_for_people_in_every_form(trace, tmp_path):
    """Findings, the answer of a comparison and a comment have the name as it is written in sources; rows keep that of the trace."""
    def run(*arguments):
        return subprocess.run([os.environ["STEPSCOPE"], *arguments], capture_output=True, text=True, timeout=60, check=True,
                              env={**os.environ, "COLUMNS": "1000"}).stdout

    trace.write(memory_bound(700))
    for form in ((), ("--json",), ("--sarif",)):
        text = run("diagnose", trace.path, *form)
        assert PLAIN in " ".join(text.split()) and "_ZN2" not in text, form
    fingers = [result["partialFingerprints"] for result in json.loads(text)["runs"][0]["results"]]
    assert {"stepscope/v1": f"SS304:{PLAIN}"} in fingers
    other = Trace(tmp_path / "other")
    other.path.parent.mkdir()
    other.write(memory_bound(900, ADD.replace("ILi4E", "ILi8E")))
    compare = ("compare", trace.path, other.path, "--fail-on", "never")
    text = run(*compare, "--markdown", tmp_path / "comment.md")
    assert "renamed: void at::native::" in " ".join(run(*compare, "--table", "contributions").split()) and "_ZN2" not in text
    comment = (tmp_path / "comment.md").read_text()
    assert "_ZN2" not in comment
    rows = json.loads(run(*compare, "--json"))
    assert any(ADD in str(row["note"]) for row in rows["contributions"])


def test_N02_stacks_and_causes_of_profiles(tmp_path):
    """What perf writes: a comparison names the function in its answer, rows of the table keep the mangled name."""
    for name, count in (("base", 10), ("new", 90)):
        (tmp_path / f"{name}.folded").write_text(f"main;{ADD} {count}\nmain;b 100\n")
    command = [os.environ["STEPSCOPE"], "compare", tmp_path / "base.folded", tmp_path / "new.folded", "--fail-on", "never"]
    text = subprocess.run([*command, "--markdown", tmp_path / "comment.md"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"function: {PLAIN} 9.1 % -> 47.4 %" in " ".join(text.split()) and "_ZN2" not in text
    assert "vectorized&#95;elementwise&#95;kernel" in (comment := (tmp_path / "comment.md").read_text()).replace("_", "&#95;") and "_ZN2" not in comment
    document = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout)
    assert PLAIN in document["verdict"]["cause"] and ADD in [row["function"] for row in document["functions"]]
    stacks = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "new.folded", "--table", "sampled_stacks"],
                            capture_output=True, text=True, timeout=60, check=True).stdout
    assert "main;void at::native::" in stacks


def test_N03_hostile_names_stay_as_they_are(trace):
    """One that is read 2^40 times, one whose text doubles with each letter, a deep one, and those after them."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    hostile = ["_ZcvT_I" + "JcvT_I" * 40, "_Z1f1AIiiES_IS0_S0_E" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[1:34]), "_Z1f" + "1AI" * 5400 + "i"]
    trace.write([kernel(name, 10 * i, 9 - i) for i, name in enumerate([*hostile, "_ZN2at3addEi"])])
    lines = trace.run("--table", "kernels", "--columns", "kernel").splitlines()
    assert [line.strip()[:12] for line in lines[2:6]] == ["_ZcvT_IJcvT_", "_Z1f1AIiiES_", "_Z1f1AI1AI1A", "at::add(int)"]
    assert [row["kernel"] for row in trace.table("kernels")][:3] == hostile


def test_N04_names_that_begin_alike_stay_apart(trace):
    names = ["k" * 63 + "a", "k" * 63 + "b", "void Kernel<int>(int)", "void Kernel2<int>(int)", "void Kernel<float>(int)"]
    trace.write([span("a", 0, 90)] + [kernel(name, 10 * i, 5) for i, name in enumerate(names)])
    assert sorted(row["kernel"] for row in trace.table("kernels")) == sorted(names)


def shown(names):
    """What viewers and terminals would show as they please, or obey, is blank where it may reach them."""
    return {re.sub("[\0-\x1f]", " ", name) for name in names}


def test_N05_any_name_survives_any_output(trace, tmp_path):
    trace.write([span(name, 10 * i, 5) for i, name in enumerate(HARD)])
    expected = sorted(name or "(no name)" for name in HARD)
    assert sorted(row["name"] for row in trace.table("ops") if row["calls"]) == expected
    rows = list(csv.DictReader(io.StringIO(trace.run("--table", "ops", "--csv"), newline=""), strict=True))
    plain = shown(expected)
    assert {row["name"] for row in rows if row["calls"]} == plain and len([row for row in rows if row["calls"]]) == len(HARD)
    for suffix, form, names in ((".json", shown, plain), (".ssr", set, set(expected))):
        out = Trace(tmp_path)
        out.path = tmp_path / f"out{suffix}"
        subprocess.run([os.environ["STEPSCOPE"], "convert", "--no-progress", trace.path, out.path], capture_output=True, timeout=60, check=True)
        assert form(row["name"] for row in out.table("ops") if row["calls"]) == names
    for suffix in (".folded", ".speedscope.json", ".pftrace"):
        subprocess.run([os.environ["STEPSCOPE"], "export", "--quiet", trace.path, "-o", tmp_path / f"out{suffix}"], timeout=60, check=True)
    lines = (tmp_path / "out.folded").read_text().splitlines()
    assert len(lines) <= len(HARD) and all(re.fullmatch(r"[^\0-\x20]* \d+", line) for line in lines)
    frames = json.loads((tmp_path / "out.speedscope.json").read_text())["shared"]["frames"]
    assert shown(expected) <= shown(frame["name"] for frame in frames)


def test_N07_more_names_than_anybody_reads(trace):
    """record_function(f"step {i} loss {x}"): all but the 100,000 rows with the most self time are one row, wherever they are in the file."""
    count, slow = 100_100, {f"step {i} loss": 4 + i // 1000 for i in (100_099, 50_000)}
    spans = [span(f"step {i:06} loss", 10 * i, 3, "user_annotation") for i in range(count - 2)]
    trace.write([step(0, 0, 10 * count + 2000)] + spans + [span(name, 10 * count + 1000 * i, time) for i, (name, time) in enumerate(slow.items())])
    assert trace.query("SELECT count(*), sum(calls), sum(self_ns) FROM ops") == [["100002", str(count), str(1000 * (10 * count + 2000))]]
    assert trace.query("SELECT calls, total_ns, max_ns FROM ops WHERE name = '(more names)' AND kind = 'rest'") == [["100", "", "3000"]]
    assert trace.query("SELECT name, self_ns FROM ops WHERE kind <> 'rest' ORDER BY self_ns DESC LIMIT 2") == [
        [name, str(1000 * time)] for name, time in slow.items()]
    assert trace.query("SELECT max(name) FROM ops WHERE self_ns = 3000 AND kind <> 'rest'") == [["step 099997 loss"]]


def test_N08_files_of_frames_by_any_name(trace):
    files = ["<string>", "<frozen runpy>", "<eval_with_key>.123", "{'a': 1}", "~/x:y", "/" + "d/" * 2500 + "x.py"]
    trace.write([step(0, 0)] + [span(f"{file}({i}): f{i}", 10 + 100 * i, 50, "python_function", **{"Python id": i + 1})
                                for i, file in enumerate(files)])
    frames = trace.query("SELECT function, file, line FROM frames WHERE function IS NOT NULL")
    for i, file in enumerate(files):
        (_, path, line), = [frame for frame in frames if frame[0] == f"f{i}"]
        assert path.endswith(file) and line == str(i or "")


def test_N06_nothing_reaches_the_terminal(trace):
    """No escape sequence, no text that runs backwards; columns stay in their places."""
    trace.write([span(name, 10 * i, 5) for i, name in enumerate(HARD)])
    text = trace.run("--table", "ops")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), text


def test_N06_no_name_of_a_file_reaches_the_terminal(tmp_path):
    (tmp_path / "a\x1b]52;c;x\x07\n\x1b[31m.json").write_text('{"traceEvents": [{"ph": "X", "name": "')
    for command in ("report", "validate", "convert"):
        arguments = [command, *os.listdir(tmp_path), *(["to.ssr"] if command == "convert" else [])]
        done = subprocess.run([os.environ["STEPSCOPE"], *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode and ".json" in done.stderr and not re.search("[\x00-\x09\x0b-\x1f\x7f]", done.stdout + done.stderr), done
