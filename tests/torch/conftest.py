# SPDX-License-Identifier: Apache-2.0
"""With ONE_PYTORCH in the environment each test function runs with one of the versions of PyTorch that are installed.

Its name chooses the version, so that half of the functions run with each of two versions, always the same half. A function
that skips older versions runs with the newest. The gate sets ONE_PYTORCH, since a Python with PyTorch needs seconds to
start; `make test-all` runs all tests with all versions.
"""
import collections
import inspect
import os
import zlib

SKIPS = "pytest.skip("


def may_skip(function):
    """Looks into the function and into those of its module that it calls."""
    source = inspect.getsource(function)
    called = [other for name, other in vars(inspect.getmodule(function)).items() if inspect.isfunction(other) and f"{name}(" in source]
    return any(SKIPS in inspect.getsource(other) for other in [function, *called])


def python_of(item):
    return item.callspec.params.get("python") if hasattr(item, "callspec") else None


def choose(function, pythons):
    """pythons: the newest first."""
    return pythons[0 if may_skip(function) else zlib.crc32(function.__name__.encode()) % len(pythons)]


def pytest_collection_modifyitems(config, items):
    if not os.environ.get("ONE_PYTORCH"):
        return
    pythons = collections.defaultdict(list)
    for item in items:
        if python_of(item) and python_of(item) not in pythons[item.function]:
            pythons[item.function].append(python_of(item))
    chosen = {function: choose(function, found) for function, found in pythons.items() if found}
    dropped = [item for item in items if python_of(item) and python_of(item) != chosen[item.function]]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]
