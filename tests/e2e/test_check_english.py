# SPDX-License-Identifier: Apache-2.0
"""tools/check_english.py counts each pattern where it is, and lets none become more frequent."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/check_english.py"
PLAIN = "/* SPDX-License-Identifier: Apache-2.0\n *\n * list.c: reads a list of numbers from a file and adds them up.\n */\nint list_read(void);\n"


def tree(root, comment="", document="", message=""):
    for name, text in {"src/base/list.c": PLAIN + comment + f'\nstatic const char *const text = "{message}";\n', "README.md": f"# List\n\n{document}\n",
                       "include/list.h": "", "docs/list.md": "", "examples/list.md": ""}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "tools").mkdir(exist_ok=True)
    return root


def checked(root, *options):
    return subprocess.run([sys.executable, TOOL, "--root", root, *options], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words, pattern", (
    ("It keeps what was read.", "P1"), ("That is said in the ledger.", "P2"), ("A number comes behind its name.", "P3"), ("From the begin of the file.", "P4"),
    ("Nobody knows the number.", "P8"), ("The number lies in the list.", "P9"), ("It is 0, else 1.", "P10"), ("It reads the file anew.", "P11"),
    ("The file has a number there.", "P12"), ("word " * 41 + ".", "long")))
@pytest.mark.parametrize("place", ("comment", "document", "message"))
def test_a_pattern_may_not_become_more_frequent(tmp_path, words, pattern, place):
    root = tree(tmp_path)
    assert checked(root, "--update").returncode == 0 and checked(root).returncode == 0
    tree(tmp_path, **{place: f"/* {words} */" if place == "comment" else words})
    done = checked(root)
    group = {"comment": "comments src/base", "document": "documents .", "message": "messages src/base"}[place]
    assert done.returncode == 1 and f"{group}: {pattern}: 1, " in done.stdout, done.stdout


def test_code_tables_and_headings_are_no_text(tmp_path):
    root = tree(tmp_path)
    checked(root, "--update")
    tree(tmp_path, document="## What is it\n\n| what is it |\n|---|\n| nobody |\n\n```\nbehind\n```\n\nA list of `what is` numbers.\n",
         comment="/* An example:\n *\n *     what is behind\n */")
    assert checked(root).stdout == ""


def test_what_was_reached_may_only_fall(tmp_path):
    root = tree(tmp_path, comment="/* It keeps what is read. */")
    checked(root, "--update")
    tree(tmp_path)
    assert checked(root, "--update").returncode == 0
    tree(tmp_path, comment="/* It keeps what is read. */")
    assert "P1: 1, " in checked(root).stdout
    assert checked(root, "--where", "P1", "src/base").stdout == "src/base/list.c: comments: It keeps what is read.\n"
