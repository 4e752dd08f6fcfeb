# SPDX-License-Identifier: Apache-2.0
"""stepscope: where does each step of a training run go?

    import stepscope

    for batch in loader:
        with stepscope.step(tokens=batch.numel()):
            with stepscope.range("augment"):
                ...

The calls record under `stepscope run`, with STEPSCOPE=1 in the environment, or after `stepscope.auto()`; otherwise they
do nothing. The import is light: it does not import PyTorch.
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
    unavailable = _absent.reason  # why recording is impossible; "" if it is possible

__version__ = "0.1.0"
_ELSEWHERE = {  # imported at first use, since they import PyTorch or other large modules
    **dict.fromkeys(("_KinetoProfile", "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
                     "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"), "profiler"),
    **dict.fromkeys(("add_arguments", "from_args", "from_yaml", "profiler_end", "profiler_init"), "arguments"),
}
# without `range`: `from stepscope import *` must not replace Python's range
__all__ = ["active", "counter", "flush", "init", "is_recording", "mark", "memory_alloc", "memory_free", "metadata", "metric",
           "micro_batch", "phase", "pop", "push", "run_directory", "shutdown", "step", "step_begin", "step_count", "step_end", "thread_name",
           "unavailable", "auto"]


class step:
    """Starts a training step. It ends with the `with` block or, without one, where the next step starts.

    The default number is the previous step's plus one. The counts of tokens and samples give tokens/s and samples/s.
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
    """Starts recording, including PyTorch's operators. Raises RuntimeError with the reason if that is not possible.

    `options` is a list such as "with=shapes,out=runs/a", with the names of `stepscope run --help`. The environment
    takes precedence.
    """
    from stepscope import _hook

    was_active = active()
    _init(options)
    if not was_active:
        _hook.observe()


def auto(options=None):
    """Starts recording this process and its children, without `stepscope run`. Prints the directory on stderr.

    `options` is a list such as "with=shapes:memory,out=runs/a", with the names of `stepscope run --help`. If the
    process is already recorded, as under `stepscope run`, the function only makes sure that PyTorch is observed.

    Returns the directory, or "" if nothing is recorded. Never raises: stderr gives the reason.
    """
    from stepscope import _hook

    return _hook.record(options)


def load_ipython_extension(shell):
    """Called by `%load_ext stepscope`."""
    from stepscope import _notebook

    _notebook.load(shell)


def __getattr__(name):
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'stepscope' has no attribute '{name}'")
    from importlib import import_module

    found = getattr(import_module(f"stepscope.{_ELSEWHERE[name]}"), name)
    globals()[name] = found
    return found
