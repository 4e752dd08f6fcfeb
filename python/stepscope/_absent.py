# SPDX-License-Identifier: Apache-2.0
"""Substitutes for the names of `_native` if it cannot be loaded. They do nothing, so a marked program still runs."""
import sys

reason = ""  # why `_native` cannot be loaded, in one line


class Span:
    """A substitute for a range."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def __call__(self, function):
        return function


_span = Span()


def _give_span(name):
    return _span


def _do_nothing(*args, **kwargs):
    return None


range = phase = micro_batch = _give_span
push = pop = mark = counter = metric = metadata = thread_name = memory_alloc = memory_free = _do_nothing
step_begin = step_end = step_count = shutdown = flush = _do_nothing


def init(options=None):
    """Raises RuntimeError, since nothing can be recorded."""
    raise RuntimeError(reason)


def active():
    """Returns 0: nothing is recorded."""
    return 0


def run_directory():
    """Returns "": nothing is recorded."""
    return ""


def is_recording():
    """Returns false: nothing is recorded."""
    return False


def note(problem):
    """Keeps the reason, with a hint if the Python version is the likely cause."""
    global reason
    version = ".".join(map(str, sys.version_info[:2]))
    hint = ""
    if hasattr(sys, "_is_gil_enabled") and "t" in getattr(sys, "abiflags", ""):
        hint = " (a free-threaded build of Python has another ABI)"
    elif sys.implementation.name != "cpython" or sys.version_info < (3, 8):
        hint = " (CPython 3.8 or newer is needed)"
    reason = f"the extension for Python {version} cannot be loaded: {problem}{hint}"
