# SPDX-License-Identifier: Apache-2.0
"""Makes ranges usable as decorators."""
import functools
import inspect


def wrap(span, function):
    """Returns the function, with each call in the span.

    Raises TypeError for coroutines and generators. They run in pieces, so one of two interleaved calls would end the
    span of the other.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{span!r} cannot decorate {function!r}, which is a generator or coroutine: use a `with` block in it")
    if not callable(function):
        raise TypeError(f"{span!r} can decorate a function, not {function!r}")

    @functools.wraps(function)
    def in_span(*args, **kwargs):
        with span:
            return function(*args, **kwargs)

    return in_span
