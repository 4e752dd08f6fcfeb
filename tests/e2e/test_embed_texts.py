# SPDX-License-Identifier: Apache-2.0
"""A rule compares columns only with words that the tables can hold."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULE = "-- id: X1\n-- tells if: EXISTS (SELECT 1 FROM ledger WHERE what IN ('dropped', 'damaged'))\n-- advice: where part = 'any text'\n{}\n"


def embed(tmp_path, statement):
    rule = tmp_path / "rule.sql"
    rule.write_text(RULE.format(statement))
    return subprocess.run([sys.executable, ROOT / "tools/embed_texts", ROOT / "src/model/cell_words.h", tmp_path / "out.c", "built_in.h", "a", "b", rule],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("statement", (
    "SELECT 1 FROM step_breakdown WHERE part = 'idle: launch'", "SELECT 1 FROM step_breakdown WHERE part LIKE 'idle: %'",
    "SELECT 1 FROM between_steps WHERE part = 'between steps: data'", "SELECT 1 FROM ops WHERE name LIKE 'aten::%' OR name = 'optimizer'",
    "SELECT 1 FROM facts WHERE key = 'anything' AND value <> 'some words'", "SELECT 'a text', part FROM step_breakdown"))
def test_words_of_tables_and_given_names_pass(tmp_path, statement):
    done = embed(tmp_path, statement)
    assert (done.returncode, done.stderr) == (0, "")
    assert statement.split("'")[0] in (tmp_path / "out.c").read_text()


@pytest.mark.parametrize("statement, word", (
    ("SELECT 1 FROM step_breakdown WHERE part = 'idle: launches'", "idle: launches"), ("SELECT 1 FROM ledger WHERE sentence LIKE 'no events%'", "no events%"),
    ("SELECT 1 FROM step_breakdown WHERE part LIKE 'idle:%x'", "idle:%x"), ("SELECT 1 FROM ledger WHERE what NOT IN ('torn tail', 'torn')", "torn"),
    ("SELECT 1 FROM phases WHERE name = 'optimiser'", "optimiser"), ("SELECT 1 FROM between_steps WHERE part = 'between steps: loading'", "loading")))
def test_other_words_are_refused(tmp_path, statement, word):
    done = embed(tmp_path, statement)
    assert done.returncode == 1 and word in done.stderr and "cell_words.h" in done.stderr
    assert not (tmp_path / "out.c").exists()
