# SPDX-License-Identifier: Apache-2.0
"""stepscope: where does each step of a training run go?

    import stepscope

    for batch in loader:
        with stepscope.step(tokens=batch.numel()):
            with stepscope.range("augment"):
                ...

Records under `stepscope run`, with STEPSCOPE=1 in the environment, or after `stepscope.auto()`; otherwise every call does
nothing. Importing this imports neither PyTorch nor anything else that is large.
"""
try:
    from stepscope._native import init as _init
    from stepscope._native import (
        active, counter, flush, is_recording, mark, memory_alloc, memory_free, metadata, metric, micro_batch, phase, pop, push,
        range, run_directory, shutdown, step_begin, step_count, step_end, thread_name)
    unavailable = ""
except ImportError as _problem:
    from stepscope import _absent
    from stepscope._absent import init as _init
    from stepscope._absent import (
        active, counter, flush, is_recording, mark, memory_alloc, memory_free, metadata, metric, micro_batch, phase, pop, push,
        range, run_directory, shutdown, step_begin, step_count, step_end, thread_name)
    _absent.note(_problem)
    unavailable = _absent.reason  # why nothing can be recorded; "" when it can

__version__ = "0.1.0"
_ELSEWHERE = {  # looked up when first used, because they import PyTorch or other large things
    **dict.fromkeys(("_KinetoProfile", "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
                     "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"), "profiler"),
    **dict.fromkeys(("add_arguments", "from_args", "from_yaml", "profiler_end", "profiler_init"), "arguments"),
}
# not `range`: `from stepscope import *` must leave Python's own alone
__all__ = ["active", "counter", "flush", "init", "is_recording", "mark", "memory_alloc", "memory_free", "metadata", "metric",
           "micro_batch", "phase", "pop", "push", "run_directory", "shutdown", "step", "step_begin", "step_count", "step_end", "thread_name",
           "unavailable", "auto"]


class step:
    """A step of the training: begins here, ends with the `with` block or, without one, where the next begins.

    Without a number it counts on from the one before. Tokens and samples become tokens/s.
    """

    _next = 0

    def __init__(self, number=None, tokens=None, samples=None):
        if number is None:
            number = step._next
        step_begin(number, tokens, samples)
        step._next = number + 1

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        step_end()


def init(options=None):
    """Starts recording now, PyTorch's operators too; RuntimeError says why that is not possible.

    Options are a list such as "with=shapes,out=runs/a" in the names of `stepscope run --help`; the environment wins over it.
    """
    from stepscope import _hook

    was_active = active()
    _init(options)
    if not was_active:
        _hook.observe()


def auto(options=None):
    """Starts recording this process, and what it starts, without `stepscope run`. Says on stderr where; returns the directory.

    Options are a list such as "with=shapes:memory,out=runs/a" in the names of `stepscope run --help`. Under `stepscope run`, and
    when it records already, this only makes sure that PyTorch is observed. Never raises: what cannot be recorded is said.
    """
    from stepscope import _hook

    return _hook.record(options)


def load_ipython_extension(shell):
    """`%load_ext stepscope`"""
    from stepscope import _notebook

    _notebook.load(shell)


def __getattr__(name):
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'stepscope' has no attribute '{name}'")
    from importlib import import_module

    found = getattr(import_module(f"stepscope.{_ELSEWHERE[name]}"), name)
    globals()[name] = found
    return found
