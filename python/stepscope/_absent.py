# SPDX-License-Identifier: Apache-2.0
"""The names of `_native` where that cannot be loaded: they do nothing, so that a marked program runs all the same."""
import sys

reason = ""  # why, in a line


class Span:
    """In place of a range."""

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
    """What was asked for cannot be done."""
    raise RuntimeError(reason)


def active():
    """Nothing is recorded."""
    return 0


def run_directory():
    """Nothing is recorded."""
    return ""


def is_recording():
    """Nothing is recorded."""
    return False


def note(problem):
    """Remembers why, and adds what would not be guessed."""
    global reason
    version = ".".join(map(str, sys.version_info[:2]))
    hint = ""
    if hasattr(sys, "_is_gil_enabled") and "t" in getattr(sys, "abiflags", ""):
        hint = " (a free-threaded build of Python has another ABI)"
    elif sys.implementation.name != "cpython" or sys.version_info < (3, 8):
        hint = " (CPython 3.8 or newer is needed)"
    reason = f"the extension for Python {version} cannot be loaded: {problem}{hint}"
