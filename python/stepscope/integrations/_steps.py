# SPDX-License-Identifier: Apache-2.0
"""What the callbacks share: the framework's optimizer steps, marked, and a profiler beside them when one was asked for."""
import numbers
import threading

import stepscope
from stepscope import _loader, _windows


_running = []


def waits_for_batch():
    """A framework is about to: what it opens around the wait must lie in the step."""
    for steps in tuple(_running):
        steps.begin_expected()


class Steps:
    """Steps have the framework's numbers. The profiler's schedule counts them; it does not mark them a second time.

    A framework tells of a step when it has the batch. The wait for it belongs to the step, so that begins where the loader is asked.
    """

    def __init__(self, settings=None):
        self.settings = settings
        self.open = None
        self.prof = None
        self.expected = None  # number of the next step, while a wait for a batch begins it
        self.samplers = ()  # ids of those whose loaders it is awaited from; objects would keep the loader alive
        self.thread = None  # the training's; None: it does not run

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
        """Nothing is between here and the step but the wait for its batch from this loader, or these."""
        if self.thread is not None:
            self.expected, self.samplers = number, tuple(_samplers(loader))

    def expect_nothing(self):
        """Another loop, over the same loader maybe."""
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
        """Of a step that is open: the schedule goes on behind it."""
        if self.open is None:
            return
        self.open = None
        stepscope.step_end()
        if self.prof is not None:
            self.prof.step()

    def stop(self):
        """Safe to call twice."""
        _loader.unlisten(self._on_wait)
        self.expect_nothing()
        self.thread = None
        if self in _running:
            _running.remove(self)
        if self.open is not None:  # an exception, or the end of the training in the middle of one
            self.open = None
            _windows.abandon_step()
        prof, self.prof = self.prof, None
        if prof is not None:
            prof.stop()


def _samplers(loader):
    """Ids: frameworks wrap loaders and put them into collections, but a loop over one has its sampler."""
    if isinstance(loader, (list, tuple, dict)):
        for one in loader.values() if isinstance(loader, dict) else loader:
            yield from _samplers(one)
    elif getattr(loader, "_index_sampler", None) is not None:
        yield id(loader._index_sampler)


def metrics(values):
    """Numbers of a dict, as results of the step. A tensor's is read where it is recorded."""
    for name, value in (values or {}).items():
        if isinstance(value, numbers.Real):
            stepscope.metric(str(name), float(value))
        elif hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1 and not getattr(value, "is_cuda", False):
            stepscope.metric(str(name), value)
