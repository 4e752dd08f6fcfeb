# SPDX-License-Identifier: Apache-2.0
"""Common code of the callbacks: marks the framework's optimizer steps and runs a profiler by the settings."""
import numbers
import threading

import stepscope
from stepscope import _loader, _windows


_running = []


def waits_for_batch():
    """Called when a framework is about to wait for a batch.

    The step starts here, so that the framework's ranges around the wait are nested in it.
    """
    for steps in tuple(_running):
        steps.begin_expected()


class Steps:
    """Marks steps with the framework's numbers. The profiler's schedule counts them but does not mark them again.

    A framework reports a step when it has the batch. The wait for the batch belongs to the step, so the step starts
    when the framework asks the loader.
    """

    def __init__(self, settings=None):
        self.settings = settings
        self.open = None
        self.prof = None
        self.expected = None  # number of the step that the next wait for a batch starts; otherwise None
        self.samplers = ()  # ids of the samplers of its loaders; references would keep the loaders alive
        self.thread = None  # id of the training's thread; None while no training runs

    def start(self):
        self.thread = threading.get_ident()
        self._start_profiler()
        _loader.listen(self._on_wait)
        _running.append(self)

    def _start_profiler(self):
        if self.settings is not None and self.settings.is_recorded_here():
            self.prof = self.settings.profile()
            self.prof.record_steps = False
            self.prof.start()

    def expect(self, number, loader):
        """Makes the next wait for a batch from this loader, or one of these, start step `number`.

        The caller does nothing else before that step.
        """
        if self.thread is not None:
            self.expected, self.samplers = number, tuple(_samplers(loader))

    def expect_nothing(self):
        """Called before another loop, which may use the same loader."""
        self.expected, self.samplers = None, ()

    def _on_wait(self, loop):
        if id(getattr(loop, "_index_sampler", None)) in self.samplers:
            self.begin_expected()

    def begin_expected(self):
        if self.expected is not None and self.open is None and threading.get_ident() == self.thread:
            self.begin(self.expected)

    def begin(self, number):
        self.expect_nothing()
        if self.open != number:
            self.end()
            self.open = number
            stepscope.step_begin(number)

    def end(self):
        """Ends the open step, if any, and then advances the schedule."""
        if self.open is None:
            return
        self.open = None
        stepscope.step_end()
        if self.prof is not None:
            self.prof.step()

    def stop(self):
        """Ends the training. May be called twice."""
        _loader.unlisten(self._on_wait)
        self.expect_nothing()
        self.thread = None
        if self in _running:
            _running.remove(self)
        if self.open is not None:  # an exception or the end of the training interrupted the step
            self.open = None
            _windows.abandon_step()
        prof, self.prof = self.prof, None
        if prof is not None:
            prof.stop()


def _samplers(loader):
    """Yields the ids of the samplers of a loader or a collection of loaders.

    Frameworks wrap loaders, but the loop over a loader has the same sampler.
    """
    if isinstance(loader, (list, tuple, dict)):
        for one in loader.values() if isinstance(loader, dict) else loader:
            yield from _samplers(one)
    elif getattr(loader, "_index_sampler", None) is not None:
        yield id(loader._index_sampler)


def metrics(values):
    """Records the numbers of a dict as results of the step. A tensor's value is read only while something is recorded."""
    for name, value in (values or {}).items():
        if isinstance(value, numbers.Real):
            stepscope.metric(str(name), float(value))
        elif hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1 and not getattr(value, "is_cuda", False):
            stepscope.metric(str(name), value)
