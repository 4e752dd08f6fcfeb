# SPDX-License-Identifier: Apache-2.0
"""tools/doc_outputs writes and checks the outputs in documents: in a small tree, with a program that prints its arguments."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/doc_outputs"
PROGRAM = """#!/bin/sh
printf '%s\\n' "$*" second '' Ranks 'rank 0' '' last
[ "$1" != fail ] || exit 3
[ "$1" != slower ] || exit 1
"""


def tree(root, text):
    (root / "docs").mkdir()
    (root / "docs/page.md").write_text(text)
    (root / "program").write_text(PROGRAM)
    (root / "program").chmod(0o755)
    return root


def page(command, block):
    return f"# Page\n\n<!-- output: {command} -->\n```\n{block}```\n\nText.\n"


def run(root, *words):
    return subprocess.run([sys.executable, TOOL, root / "program", "--root", root, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command, block", (
    ("stepscope report 'a b'", "report a b\nsecond\n\nRanks\nrank 0\n\nlast\n"),
    ("stepscope slower", "slower\nsecond\n\nRanks\nrank 0\n\nlast\n"),
    ("stepscope report a | head -2", "report a\nsecond\n"),
    ("stepscope report a | sed -n 2,4p", "second\n\nRanks\n"),
    ("stepscope report a | sed -n '1p;/^Ranks/,/^$/p'", "report a\nRanks\nrank 0\n"),
), ids=("whole", "exit status 1", "head", "sed", "sed with patterns"))
def test_a_block_is_written_and_then_right(tmp_path, command, block):
    root = tree(tmp_path, page(command, "old\n"))
    assert run(root).returncode == 0
    assert (root / "docs/page.md").read_text() == page(command, block)
    done = run(root, "--check")
    assert (done.returncode, done.stdout) == (0, "")


def test_each_block_is_written_alone(tmp_path):
    command = "stepscope report a | head -1"
    text = page(command, "old\n") + page("stepscope query b | head -1", "") + "```\nno output\n```\n"
    assert run(tree(tmp_path, text)).returncode == 0
    assert (tmp_path / "docs/page.md").read_text() == page(command, "report a\n") + page("stepscope query b | head -1", "query b\n") + "```\nno output\n```\n"


def test_a_wrong_block_fails_and_stays(tmp_path):
    root = tree(tmp_path, page("stepscope report a | head -1", "report b\n"))
    done = run(root, "--check")
    assert done.returncode == 1 and "docs/page.md: stepscope report a | head -1: the block is not what the program prints" in done.stdout
    assert "report b\n" in (root / "docs/page.md").read_text()


@pytest.mark.parametrize("text, told", (
    (page("stepscope fail", "old\n"), "exit status 3"),
    (page("python3 -c 1", "old\n"), "is no command of stepscope"),
    (page("stepscope report a | sort", "old\n"), "only head -N and sed -n A,Bp"),
    (page("stepscope report a | sed -n 90,99p", "old\n"), "no line is at 90"), (page("stepscope report a | sed -n 1p;/x/p", "old\n"), "no line is at /x/"),
    ("<!-- output: stepscope report a -->\n\nText.\n", "no fenced block follows"),
), ids=("exit status", "another program", "another filter", "no line", "no pattern", "no block"))
@pytest.mark.parametrize("way", ((), ("--check",)), ids=("write", "check"))
def test_a_command_that_cannot_be_used_is_named(tmp_path, text, told, way):
    root = tree(tmp_path, text)
    done = run(root, *way)
    assert done.returncode == 1 and told in done.stdout
    assert (root / "docs/page.md").read_text() == text
