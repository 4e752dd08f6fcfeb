# SPDX-License-Identifier: Apache-2.0
"""No code decides by the words of a sentence: a build in which each sentence is w1, w2, ... reads, finds, compares and exits as this one does."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# One input of each format, cut and damaged ones, and recordings that golden tests read.
INPUTS = ("made_snapshots", "made_nsys", "nvidia_smi", "with_stack", "stacks", "gpu_metrics_input", "guides/train")


@pytest.fixture(name="wordless", scope="module")
def make_wordless(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wordless")
    subprocess.run([sys.executable, ROOT / "tools/wordless", folder], check=True)
    subprocess.run(["meson", "setup", folder / "build", folder, "--buildtype=plain", "-Dwerror=false"], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", folder / "build", "src/stepscope"], check=True, capture_output=True)
    return folder / "build"


@pytest.mark.parametrize("name", INPUTS)
def test_decisions_do_not_read_sentences(wordless, name):
    done = subprocess.run([sys.executable, ROOT / "tools/same_outputs", "--only", name, os.environ["BUILD"], wordless], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and not done.stdout.startswith("0 inputs"), done.stdout


def test_sentences_are_replaced_and_words_of_cells_are_not(tmp_path):
    name = "src/analysis/evidence/ledger.c"
    sentences = re.findall(r'"([^"\\n]*[a-z]{2,} [a-z]{2,} [a-z]{2,}[^"\\n]*)"', (ROOT / name).read_text())
    subprocess.run([sys.executable, ROOT / "tools/wordless", tmp_path], check=True)
    copy = (tmp_path / name).read_text()
    assert len(sentences) > 3 and not [text for text in sentences if text in copy] and "CELL_CODE_WRITERS" in copy
    assert (tmp_path / "src/model/cell_words.h").read_text() == (ROOT / "src/model/cell_words.h").read_text()
