# SPDX-License-Identifier: Apache-2.0
"""What must be true of reports on changed traces: see metamorphic.py, which also runs 100,000 of them (tests/metamorphic-results.txt)."""
import metamorphic
import pytest


@pytest.mark.parametrize("part", range(4))
def test_changed_traces(tmp_path, part):
    problems = [(i, str(path), problem) for i, path, problem, _ in metamorphic.run(f"gate {part}", 30, tmp_path) if problem]
    assert not problems


def test_it_finds_what_is_wrong(tmp_path):
    """A report that the order of the file changes, or that is no JSON, would be seen."""
    checker = metamorphic.Checker(tmp_path)
    with pytest.raises(metamorphic.Failed):
        checker.same("R01", '"self_ns": 1', '"self_ns": 2')
    checker.same("R03", '"start_ns": 1, "a": 2', '"start_ns": 3, "a": 2')
