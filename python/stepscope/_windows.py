# SPDX-License-Identifier: Apache-2.0
"""The windows that a profiler in the program records. They are part of the recording that already runs (`stepscope
run`, `stepscope.auto()`). Otherwise they have their own recording in a temporary directory, which is deleted at the end
of the program.

The recorder decides which events to record (src/recorder/session_capture.c); the program `stepscope` reads them
(_results.py).
"""
import atexit
import os
import shutil
import tempfile
import threading
import warnings
import weakref

import stepscope
from stepscope import _lines, _results, _torch

_native = getattr(stepscope, "_native", None)  # None if stepscope.unavailable has a reason

DETAIL, SHAPES, MEMORY = 2, 4, 8  # bits of stepscope_active
_own = None  # the recording that only these windows use
_is_refused = False  # a start failed; the recorder still names the directory
_observers = weakref.WeakSet()  # profilers that want PyTorch observed; one that is never stopped leaves with its object
_has_lines = None
_is_unwritten = False  # a window has ended, and its events may still be in the buffers
_said = set()
_lock = threading.RLock()  # threads may start profilers at the same time
_followed = {}  # window number -> mark of its thread, thread id, count of too deep operators at its start


class _Own:
    def __init__(self, directory, is_kept, words):
        self.directory, self.is_kept, self.words, self.pid = directory, is_kept, words, os.getpid()
        self.is_begun = self.is_running = False


def warn_once(message, stacklevel=3):
    if message not in _said:
        _said.add(message)
        warnings.warn(message if message.startswith("Warning: ") else f"stepscope: {message}", stacklevel=stacklevel)


def _start_own(words, out):
    """Starts a recording that contains only the windows.

    If a later profiler wants more kinds of data, the recording stops and starts again with them.
    """
    global _own
    if _own is None:
        directory = os.path.abspath(out) if out else tempfile.mkdtemp(prefix="stepscope-")
        _own = _Own(directory, bool(out), set())
        atexit.register(_end_own)
    else:
        if out and os.path.abspath(out) != _own.directory:
            warn_once(f"out={out!r}: a program has one recording, and this program records into {_own.directory!r}")
        if _own.is_running and (_own.words >= set(words) or _observers):
            return  # a new start would end the windows of other profilers; shapes and memory need none
        stepscope.shutdown()
        _own.is_running = False
    _begin_own(words)


def _begin_own(words):
    global _own, _is_refused
    wanted = _own.words | set(words)
    place = _own.directory.replace("\\", "\\\\").replace(",", "\\,")
    extra = f"with={':'.join(sorted(wanted))}," if wanted else ""
    try:
        stepscope._init(f"steps=none,sample_process=false,{extra}out={place}")
    except RuntimeError:
        if not _own.is_begun:  # the next profiler may name another directory
            atexit.unregister(_end_own)
            if not _own.is_kept:
                shutil.rmtree(_own.directory, ignore_errors=True)
            _own, _is_refused = None, True
        else:  # the words of this profiler may be the cause: the next profiler tries with its own
            _own.words = set()
        raise
    _own.words, _own.is_begun, _own.is_running = wanted, True, True


def _end_own():
    if _own is None or _own.pid != os.getpid() or _own.is_kept:
        return  # a forked child, or a directory that the user named
    _results.wait_for_all()
    stepscope.shutdown()
    shutil.rmtree(_own.directory, ignore_errors=True)


def ready(words, out=None):
    """Prepares the recording of operators. Returns false, after a warning, if that is impossible."""
    if stepscope.unavailable:
        warn_once(f"nothing is recorded: {stepscope.unavailable}")
        return False
    with _lock:
        return _get_ready(words, out)


def _get_ready(words, out):
    try:
        if _own is not None or not _native.active() and (_is_refused or not _native.run_directory()):
            _start_own(words, out)
        _torch.attach()
        if "memory" in words:
            _torch.want_memory()
        if "lines" in words and _own is not None and "lines" not in _own.words:
            warn_once("with_stack: no Python lines, because an earlier profiler without Python lines still records")
        elif "lines" in words and not _finds_lines():
            warn_once("with_stack: Python lines are not read in this recording (`stepscope run --with lines` reads them)")
    except Exception as problem:  # the program continues
        warn_once(f"nothing is recorded: {problem}")
        return False
    stepscope.metadata("profiler", "stepscope")  # in a forked child this first event starts its recording
    if not _native.run_directory():
        warn_once("nothing is recorded: recording is switched off (STEPSCOPE=0 or enabled=false)")
        return False
    return True


def _finds_lines():
    """Returns true if Python lines can be read. Tries once per process, since a recording may start after attach()."""
    global _has_lines
    if _has_lines is None:
        _has_lines = _native.torch_lines_find()
        if _has_lines:
            _lines.check(_native)
    return _has_lines


def observe(who, is_wanted):
    """Starts the observer of PyTorch with the first profiler that wants it, and stops it with the last one.

    This applies only to the recording of the windows alone: outside of windows an operator then costs nothing.
    """
    with _lock:
        was_wanted = bool(_observers)
        (_observers.add if is_wanted else _observers.discard)(who)
        if _own is None or bool(_observers) == was_wanted:
            return
        if is_wanted:
            _torch.tell()
        else:
            _native.torch_stop()


def begin(bits):
    """Starts a window and returns its number, or 0 if nothing is recorded.

    The window contains the operators of the calling thread, and of the threads that work for it.
    """
    with _lock:
        wants_inputs = bits & SHAPES and not _native.active() & SHAPES
        mark = _native.torch_follow()
        number = _native.window_begin(bits)
        if not number:  # end() is not called for it
            _native.torch_unfollow(mark)
            warn_once("nothing is recorded: the recording has ended")
            return 0
        _followed[number] = (mark, threading.get_ident(), _native.torch_too_deep())
        if wants_inputs:
            _restart_observer()
        return number


def end(number):
    global _is_unwritten
    with _lock:
        had_inputs = _native.active() & SHAPES
        _native.window_end(number)
        _is_unwritten = True
        mark, thread, deep = _followed.pop(number, (0, 0, None))
        if thread == threading.get_ident():  # in another thread PyTorch does not find the mark; keeping it costs nothing
            _native.torch_unfollow(mark)
        if had_inputs and not _native.active() & SHAPES:
            _restart_observer()
    if deep is not None and _native.torch_too_deep() != deep:
        warn_once("operators and ranges nested more than 256 deep are not recorded")


def _flush_before_fork():
    """Writes the buffers before a fork.

    If the child asks for results of earlier windows, it reads them from the recording. Only this process can write
    them.
    """
    global _is_unwritten
    if _is_unwritten:
        _is_unwritten = False
        stepscope.flush()


os.register_at_fork(before=_flush_before_fork)


def _restart_observer():
    """Restarts the observer, which reads the inputs of operators only while a window wants them."""
    _native.torch_stop()
    _native.torch_start()


def _forget_other_threads():
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_other_threads)


def directory():
    return _native.run_directory()


def announce_step(number):
    if not stepscope.unavailable:
        _native.step_announce(number)


def is_step_announced():
    """Returns false if the program has started its own step since announce_step()."""
    if stepscope.unavailable:
        return True
    return _native.step_is_announced()


def abandon_step():
    if not stepscope.unavailable:
        _native.step_abandon()
