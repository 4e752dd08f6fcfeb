# SPDX-License-Identifier: Apache-2.0
"""Floating point operations, computed from recorded inputs, against what PyTorch itself counts by its two definitions."""
import json

import pytest

from torch_tools import HERE, every_python, run, table, version, warm

MODELS = ["gpt", "conv", "lstm", "sparse", "attention", "many"]


def ours(tmp_path, python, *arguments):
    """Rows of the table of operations, and what the program printed."""
    done = warm(tmp_path, python, HERE / "flops.py", *arguments, options=["--with", "shapes"])
    assert done.returncode == 0, done.stderr
    return table(tmp_path, "ops"), json.loads(done.stdout) if done.stdout else None


def total(rows, *without):
    return sum(row["flops"] or 0 for row in rows if not row["name"].startswith(without or "-"))


@pytest.mark.parametrize("model", MODELS)
@every_python
def test_as_flop_counter_with_it_and_without(tmp_path, python, model):
    is_old = version(python).startswith("1.")
    if is_old and model not in ("gpt", "conv"):
        pytest.skip("PyTorch counts from 2.0 on")
    (tmp_path / "plain").mkdir()
    plain, _ = ours(tmp_path / "plain", python, model)
    assert (total(plain) > 0) == (model != "lstm")  # which is one operator that has no formula
    if is_old:
        return
    counted, truth = ours(tmp_path, python, model, "counted")
    # it leaves out the CPU's kernel of attention
    assert total(counted, "aten::_scaled_dot_product_flash_attention_for_cpu") == truth
    assert total(plain) == total(counted)
    assert model != "attention" or total(counted) > truth


@pytest.mark.parametrize("model", ["gpt", "conv", "many"])
@every_python
def test_of_modules_and_steps(tmp_path, python, model):
    """Forward per module as PyTorch's counter; with the backward, modules and steps have all that the operators have."""
    is_old = version(python).startswith("1.")
    if is_old and model == "many":
        pytest.skip("PyTorch counts from 2.0 on")
    rows, truth = ours(tmp_path, python, model, "plain" if is_old else "modules")
    modules, whole = {row["module"]: row for row in table(tmp_path, "modules")}, total(rows)
    root = next(iter(modules.values()))
    for path, row in modules.items():
        forward = row["flops"] and row["flops"] - row["backward_flops"]
        assert is_old or (forward or 0) == truth.get(path, 0), path
        inside = [one for other, one in modules.items() if other == path or row is root or other.startswith(path + ".")]
        assert (row["flops"] or 0) == sum(one["self_flops"] or 0 for one in inside), path
    steps = [row["flops"] for row in table(tmp_path, "steps")]
    assert root["backward_flops"] > 0 and sum(steps) == whole and len(set(steps)) == 1
    assert model == "many" or root["flops"] == whole


@every_python
def test_of_functions_that_are_transformed(tmp_path, python):
    (tmp_path / "plain").mkdir()
    plain, _ = ours(tmp_path / "plain", python, "transforms")
    assert total(plain) == 308928  # as PyTorch counts from 2.0 on
    if not version(python).startswith("1."):
        counted, truth = ours(tmp_path, python, "transforms", "counted")
        assert total(counted) == truth == total(plain)


@pytest.mark.parametrize("model", [*MODELS, "transforms"])
@every_python
def test_as_the_profiler(tmp_path, python, model):
    if version(python).startswith("1."):
        pytest.skip("Debian's PyTorch counts none: it has no Kineto")
    rows, truth = ours(tmp_path, python, model, "profiled")
    found = {row["name"]: row["profiler_flops"] for row in rows if row["profiler_flops"]}
    assert found == truth and found


@every_python
def test_without_inputs_it_is_not_known(tmp_path, python):
    done = run(tmp_path, python, HERE / "flops.py", "gpt")
    assert done.returncode == 0, done.stderr
    assert all({row["flops"] for row in table(tmp_path, name)} == {None} for name in ("ops", "modules", "steps"))
