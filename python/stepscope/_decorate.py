# SPDX-License-Identifier: Apache-2.0
"""Ranges as decorators."""
import functools
import inspect


def wrap(span, function):
    """The function in the span. What runs in pieces cannot be one: of two calls at a time one would end the other."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{span!r} cannot decorate {function!r}, which runs in pieces: use a `with` block inside of it")
    if not callable(function):
        raise TypeError(f"{span!r} can decorate a function, not {function!r}")

    @functools.wraps(function)
    def in_span(*args, **kwargs):
        with span:
            return function(*args, **kwargs)

    return in_span
