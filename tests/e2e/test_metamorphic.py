# SPDX-License-Identifier: Apache-2.0
"""What must be true of reports on whole and on changed traces: see metamorphic.py, which also runs 100,000 of them (tests/metamorphic-results.txt)."""
import metamorphic
import pytest

SMALL = [path for path in metamorphic.FILES if path.stat().st_size < 1 << 16]  # the others: metamorphic.py --corpus, in `make test-all`


def test_whole_traces(tmp_path):
    """R01 to R10."""
    problems = [(str(path), problem) for _, path, problem, _ in metamorphic.run_corpus(SMALL, tmp_path) if problem]
    assert not problems


@pytest.mark.parametrize("part", range(4))
def test_changed_traces(tmp_path, part):
    problems = [(i, str(path), problem) for i, path, problem, _ in metamorphic.run(f"gate {part}", 0, 100, tmp_path) if problem]
    assert not problems


def test_it_finds_what_is_wrong(tmp_path):
    """A report that the order of the file changes, or that is no JSON, would be seen."""
    checker = metamorphic.Checker(tmp_path)
    with pytest.raises(metamorphic.Failed):
        checker.same("R01", '"self_ns": 1', '"self_ns": 2')
    checker.same("R03", '"start_ns": 1, "a": 2', '"start_ns": 3, "a": 2')
