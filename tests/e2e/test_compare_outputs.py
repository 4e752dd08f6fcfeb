# SPDX-License-Identifier: Apache-2.0
"""What `stepscope compare` writes for CI systems, read by strict parsers; names that would be markup, commands or broken bytes."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
SCHEMA = Path(__file__).resolve().parent.parent / "data" / "junit.xsd"
HOSTILE = ["a|b\\|c", "]]><failure/>", "::error::pwned", "line\nline\r::error file=x::y", "\x01\x1b[31mred\x7f", "<b onclick='x'>&amp;",
           "@everybody #1 https://example.org www.example.org", "`code` *bold* [link](x) <!-- x -->", "--> x", "\u202eturned\u200b",
           "\ufffe\uffff", "bad\udcff\udc80bytes", "x" * 5000, "100%0A::warning::x", "-->", "| --- |"]


def trace(path, factor, names=("work",), steps=60, extra=0):
    """Steps of 100 ms and their operators, a little uneven."""
    events = []
    for step in range(steps):
        start, length = step * 200000, int(100000 * factor * (1 + 0.002 * ((step * 7) % 11 - 5)))
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": start, "dur": length})
        each = length // (len(names) + extra + 1)
        for i, name in enumerate([*names, *(f"op {j} {'y' * 60}" for j in range(extra))]):
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start + i * each, "dur": each - 1})
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}, ensure_ascii=False)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def compare(cwd, *arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run([STEPSCOPE, "compare", *map(str, arguments)], capture_output=True, timeout=120, check=False, cwd=cwd,
                          env={**clean, **{name: str(value) for name, value in environment.items()}})


def hostile(tmp_path):
    folder = tmp_path / "a|b]]> ::error::x\n@me"
    folder.mkdir()
    return trace(tmp_path / "base.json", 1, HOSTILE), trace(folder / "ne<w>&.json", 1.3, HOSTILE)


def cells(line):
    """Of a row of a table, as GitHub divides it."""
    return re.split(r"(?<!\\)\|", line.strip().strip("|"))


def test_markdown_keeps_its_form(tmp_path):
    base, new = hostile(tmp_path)
    done = compare(tmp_path, base, new, "--markdown", "out.md", "--tier", "default", "--name", "x --> <b>")
    assert done.returncode == 1, done.stderr
    text = (tmp_path / "out.md").read_bytes().decode("utf-8", "strict")
    assert text.startswith("<!-- stepscope:compare:x_____") and text.count("<!--") == 1 and text.count("-->") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\u200b]", text)
    assert set(re.findall(r"</?(\w+)", text)) == {"details", "summary", "code", "sub"}
    outside = re.sub(r"&#\d+;", "", text)
    assert "@" not in outside and "https://" not in outside and "::error" not in re.findall(r"^.*", outside, re.M)
    width = None
    for line in text.splitlines():
        if not line.startswith("|"):
            width = None
        else:
            width = width or len(cells(line))
            assert len(cells(line)) == width, line
    assert "pwned" in text and "turned" in text


def test_markdown_fits_into_a_comment(tmp_path):
    base = trace(tmp_path / "base.json", 1, ["|" * 4000 + str(i) for i in range(60)], steps=40, extra=300)
    new = trace(tmp_path / "new.json", 1.3, ["|" * 4000 + str(i) for i in range(60)], steps=40, extra=300)
    assert compare(tmp_path, base, new, "--markdown", "out.md").returncode == 1
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 65000
    assert text.count("<details>") == text.count("</details>") and text.rstrip().endswith("</sub>")
    assert re.search(r"\d+ rows were left out", text)


def test_junit_is_well_formed_and_valid(tmp_path):
    base, new = hostile(tmp_path)
    assert compare(tmp_path, base, new, "--junit", "out.xml", "--tier", "perf", "--fail-on", "regression").returncode == 1
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases) == int(root.get("tests"))
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) > 0
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert {case.get("classname") for case in cases} == {"stepscope.compare", "stepscope.limits"}
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)
    if not shutil.which("xmllint"):
        pytest.skip("xmllint is missing: apt-get install libxml2-utils")
    subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SCHEMA, tmp_path / "out.xml"], check=True, timeout=60,
                   stderr=subprocess.DEVNULL)


def test_annotations_and_what_github_is_given(tmp_path):
    base, new = hostile(tmp_path)
    (tmp_path / "summary").write_text("before\n")
    done = compare(tmp_path, base, new, "--github", "--tier", "default", "--json", GITHUB_STEP_SUMMARY=tmp_path / "summary",
                   GITHUB_OUTPUT=tmp_path / "output")
    json.loads(done.stdout)
    lines = [line for line in done.stderr.decode().splitlines() if line.lstrip().startswith("::")]
    assert lines and all(re.fullmatch(r"::(error|warning|notice) title=[^:,]*::[^\r\n]*", line) for line in lines), lines
    assert any(line.startswith("::error title=limit broken%3A step time::") for line in lines)
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.startswith("before\n<!-- stepscope") and len(summary) < 1 << 20
    output = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert output["result"] == "failed" and output["verdict"] == "regression" and 0.29 < float(output["change_ratio"]) < 0.31


def test_benchmark_action_reads_the_numbers(tmp_path):
    base, new = hostile(tmp_path)
    compare(tmp_path, base, new, "--benchmark-smaller", "small.json", "--benchmark-bigger", "big.json", "--name", 'a"\n|')
    small, big = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("small.json", "big.json"))
    for entry in small + big:
        assert isinstance(entry["name"], str) and isinstance(entry["unit"], str) and isinstance(entry["value"], (int, float))
        assert isinstance(entry.get("range", ""), str) and isinstance(entry.get("extra", ""), str)
    named = {entry["name"].rsplit("/", 1)[1]: entry for entry in small}
    assert named["step_time"]["unit"] == "ms" and abs(named["step_time"]["value"] - 130) < 2
    assert not {entry["name"] for entry in big} & {entry["name"] for entry in small}


@pytest.mark.parametrize("factor, arguments, expected", [
    (1, [], 0), (1.3, [], 1), (1.3, ["--fail-on", "never"], 0), (1, ["--tier", "nightly"], 5),  # too few steps for that tier
    (1, ["--tier", "default"], 0), (1.3, ["--tier", "default"], 1), (1.3, ["--tier", "default", "--fail-on", "never"], 0),
    (1.1, ["--tier", "default"], 5), (0.7, ["--tier", "default"], 0), (1, ["--tier", "fast"], 2), (1, ["--fail-on", "x"], 2),
    (1, ["--fail-on", "limits"], 2), (1, ["--thresholds", "nosuch.yaml"], 3), (1.3, ["--baseline", "last"], 2)])
def test_exit_status(tmp_path, factor, arguments, expected):
    base, new = trace(tmp_path / "base.json", 1), trace(tmp_path / "new.json", factor)
    done = compare(tmp_path, base, new, *arguments, XDG_DATA_HOME=tmp_path)
    assert done.returncode == (3 if arguments[:1] == ["--baseline"] else expected), done.stderr


def test_what_never_fails_is_no_failure_anywhere(tmp_path):
    base, new = trace(tmp_path / "base.json", 1), trace(tmp_path / "new.json", 1.3)
    done = compare(tmp_path, base, new, "--tier", "default", "--fail-on", "never", "--junit", "out.xml", "--json", GITHUB_ACTIONS="true")
    assert done.returncode == 0 and b"::error" not in done.stdout
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root.get("failures") == "0" and int(root.get("skipped")) > 0 and not root.findall(".//failure")
    gate = json.loads(done.stdout[done.stdout.index(b"{"):].split(b"\n::")[0])["gate"]
    assert gate["result"] == "passed" and gate["message"].startswith("passed because of --fail-on never: step time: increased by 30.0 %")


def test_a_baseline_of_the_history_compares_as_the_run_itself(tmp_path):
    base, new = trace(tmp_path / "base.json", 1), trace(tmp_path / "new.json", 1.3)
    direct = json.loads(compare(tmp_path, base, new, "--json").stdout)
    own = {"STEPSCOPE_HISTORY": tmp_path / "history.db"}
    environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
    subprocess.run([STEPSCOPE, "history", "add", "-q", "--series", "s", base, new], check=True, timeout=60, env=environment)
    base.unlink()  # what was kept is enough
    for word in ("last", "best", "1", "base.json"):
        done = compare(tmp_path, "--baseline", word, "--series", "s", new, "--json", **own)
        assert done.returncode == 1, (word, done.stderr)
        kept = json.loads(done.stdout)
        assert kept["metrics"] == direct["metrics"] and kept["contributions"] == direct["contributions"]
    done = compare(tmp_path, "--baseline", "last:2", "--series", "s", trace(tmp_path / "other.json", 1.1), "--json", **own)
    assert json.loads(done.stdout)["verdict"]["base_runs"] == 2
    done = compare(tmp_path, "--baseline", "last:9", "--series", "s", new, "--json", **own)
    assert done.returncode == 1 and done.stderr == b"", done.stderr
    assert json.loads(done.stdout)["verdict"]["base_runs"] == 1  # not itself
    done = compare(tmp_path, "--baseline", "nosuch", "--series", "s", new, **own)
    assert done.returncode == 3 and b"there is no run 'nosuch'" in done.stderr
    done = compare(tmp_path, "--baseline", "last", "--series", "t", new, **own)
    assert done.returncode == 3


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    base, new = trace(tmp_path / "base.json", 1), trace(tmp_path / "new.json", 1)
    assert compare(tmp_path, base, new, "--junit", "no/where.xml").returncode == 4
    assert compare(tmp_path, base, new, "--github", GITHUB_STEP_SUMMARY=tmp_path).returncode == 4


def modules(path, tree, slow=""):
    """12 steps in which the module "net" calls these: (name, operator it calls itself or None, modules inside). `slow` takes 0.9 ms more."""
    events = []

    def add(name, start, duration, category, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": args})

    def call(name, operator, inside, start):
        at = start + 5
        if operator:
            add(operator, at, 200 + 900 * (name == slow), "cpu_op")
            at += 210 + 900 * (name == slow)
        for child in inside:
            at = call(*child, at)
        add(f"nn.Module: {name}", start, at - start, "python_function", **{"Python id": len(events) + 1})
        return at + 5

    for step in range(12):
        add(f"ProfilerStep#{step}", step * 20000, 19000, "user_annotation")
        call("net", None, tree, step * 20000 + 10)
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_modules_that_were_renamed(tmp_path):
    """By their places and operators, also in a container of another name; what calls something else is another module."""
    base = [("embed", "aten::embedding", []), ("layers", None, [("layers.0", "aten::linear", []), ("layers.1", "aten::linear", [])]),
            ("act", "aten::relu", [])]
    new = [("embed", "aten::embedding", []), ("blocks", None, [("blocks.0", "aten::linear", []), ("blocks.1", "aten::linear", [])]),
           ("gate", "aten::sigmoid", [])]
    done = compare(tmp_path, modules(tmp_path / "a.json", base), modules(tmp_path / "b.json", new, "blocks.1"), "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["contributions"] if row["level"] == "module"}
    assert {name: row["note"] for name, row in rows.items() if row["note"]} == {
        "blocks (renamed)": "renamed: layers -> blocks", "blocks.0 (renamed)": "renamed: layers.0 -> blocks.0",
        "blocks.1 (renamed)": "renamed: layers.1 -> blocks.1", "act": "only in the base", "gate": "only on the new side"}
    assert rows["blocks.1 (renamed)"]["delta_ns"] == 900_000 and rows["blocks.0 (renamed)"]["delta_ns"] == 0
