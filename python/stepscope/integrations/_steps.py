# SPDX-License-Identifier: Apache-2.0
"""What the callbacks share: the framework's optimizer steps, marked, and a profiler beside them when one was asked for."""
import numbers

import stepscope
from stepscope import _windows


class Steps:
    """Steps have the framework's numbers. The profiler's schedule counts them; it does not mark them a second time."""

    def __init__(self, settings=None):
        self.settings = settings
        self.open = None
        self.prof = None

    def start(self):
        if self.settings is not None and self.settings.is_recorded_here():
            self.prof = self.settings.profile()
            self.prof.record_steps = False
            self.prof.start()

    def begin(self, number):
        if self.open != number:
            self.end()
            self.open = number
            stepscope.step_begin(number)

    def end(self):
        """Of a step that is open: the schedule goes on behind it."""
        if self.open is None:
            return
        self.open = None
        stepscope.step_end()
        if self.prof is not None:
            self.prof.step()

    def stop(self):
        """Safe to call twice."""
        if self.open is not None:  # an exception, or the end of the training in the middle of one
            self.open = None
            _windows.abandon_step()
        prof, self.prof = self.prof, None
        if prof is not None:
            prof.stop()


def metrics(values):
    """Numbers of a dict, as results of the step."""
    for name, value in (values or {}).items():
        item = getattr(value, "item", None)
        if isinstance(value, numbers.Real):
            stepscope.metric(str(name), float(value))
        elif item is not None and getattr(value, "numel", lambda: 0)() == 1 and not getattr(value, "is_cuda", False):
            stepscope.metric(str(name), float(item()))
