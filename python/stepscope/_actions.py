# SPDX-License-Identifier: Apache-2.0
"""Lightning's actions as ranges: hooks of callbacks and of the model, batches, loops.

Lightning tells its profiler where each action starts and ends. Without a profiler of the program that is a
PassThroughProfiler, which does nothing. Its methods are wrapped in C, so tracebacks do not change. The ranges are
recorded in all steps, some 40 per step: they show time of callbacks that no operator shows.
"""
import sys

import stepscope

_PACKAGES = ("lightning.pytorch.profilers", "pytorch_lightning.profilers")
_OURS = "[Callback]StepscopeCallback"  # steps start and end in it and would split its range
MOST_NAMES = 2000  # of actions: each adds a name to the recording

_watched = set()
_ranges = {}  # action -> its range


def watch(native):
    """Watches Lightning's profiler if the program has imported it. Called when the program makes an optimizer."""
    for package in _PACKAGES:
        kind = getattr(sys.modules.get(package), "PassThroughProfiler", None)
        if kind is not None and package not in _watched:
            _watched.add(package)
            kind.start = native.around(kind.start, before=begin, argument=1)
            kind.stop = native.around(kind.stop, before=end, argument=1)


def begin(action):
    """Starts the range of an action."""
    found = _ranges.get(action)
    if found is None:
        if len(_ranges) == MOST_NAMES or stepscope.unavailable or action.startswith(_OURS):
            return
        from stepscope import _native

        found = _ranges[action] = _native.action_range(action)
    found.__enter__()


def end(action):
    """Ends it. An action that no begin() started has no range."""
    found = _ranges.get(action)
    if found is not None:
        found.__exit__()
