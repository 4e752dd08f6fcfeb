# SPDX-License-Identifier: Apache-2.0
"""The profiler of `type: simple`: it records the steps and phases of a whole training, without operators."""
import os
import tempfile

import stepscope
from stepscope import _results, _windows
from stepscope._nothing import Nothing


class Simple(Nothing):
    """Records into a new directory, PLACE-..., which is kept, unless a recording runs already (`stepscope run`).

    stop() calls on_trace_ready(self). report() returns the text of `stepscope report` for it.
    """

    def __init__(self, place, on_trace_ready):
        self.place, self.on_trace_ready = place, on_trace_ready
        self.step_num, self.record_steps, self._is_ready = 0, True, False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        self._is_ready = _windows.ready([], None if stepscope.run_directory() else self._make_directory())
        if self._is_ready:
            _windows.observe(self, True)
        self._begin_step()

    def _make_directory(self):
        folder, name = os.path.split(self.place)
        try:
            return tempfile.mkdtemp(prefix=f"{name}-", dir=folder)
        except OSError as problem:
            _windows.warn_once(f"the recording will be removed when the program ends: {problem}")
            return None

    def step(self):
        """Ends the current training step and starts the next one."""
        if self._marks_steps():
            stepscope.step_end()
        self.step_num += 1
        self._begin_step()

    def stop(self):
        """Ends the recording. The step that the last call of step() started is not counted."""
        if not self._is_ready:
            return
        if self._marks_steps():
            _windows.abandon_step()
        self._is_ready = False
        _windows.observe(self, False)
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def report(self):
        stepscope.flush()
        return _results.ask("report", _windows.directory())

    def _begin_step(self):
        if self._is_ready and self.record_steps:
            _windows.announce_step(self.step_num)

    def _marks_steps(self):
        self.record_steps = self._is_ready and self.record_steps and _windows.is_step_announced()
        return self.record_steps
