# SPDX-License-Identifier: Apache-2.0
"""The results of a window, in the form of torch.profiler. The program `stepscope`, a child process of low priority,
computes the numbers from the recording.
"""
import atexit
import os
import subprocess
import threading

import stepscope
from stepscope import _program
from stepscope._events import EventList, events_of, nothing, rows_of

NICENESS = 10
_running = []  # exports not waited for yet


# ---- the program ----


def program():
    """Returns the path of the program `stepscope`. Raises RuntimeError if it is missing."""
    found = _program.find()
    if not found:
        raise RuntimeError("stepscope: cannot find the program 'stepscope', which reads the recording, beside the library or on "
                           "PATH; set STEPSCOPE_PROGRAM to its path")
    return found


def _environment():
    """Returns an environment in which the child is not recorded as part of the training."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE") and name != "LD_PRELOAD"}


def _start(arguments):
    child = subprocess.Popen([program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=_environment(), close_fds=True)
    try:
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    except OSError:  # the child has already ended
        pass
    return child


def _finish(child):
    out, err = child.communicate()
    if child.returncode != 0:
        raise RuntimeError(err.decode(errors="replace").strip() or f"stepscope: the child ended with {child.returncode}")
    return out.decode(errors="surrogateescape")


def ask(*arguments):
    """Returns the output of the program. Raises RuntimeError with its message if it fails."""
    return _finish(_start(arguments))


def start_export(arguments):
    """Starts an export. wait_for_all() waits for it, at the exit of the program at the latest."""
    atexit.unregister(wait_for_all)
    atexit.register(wait_for_all)
    child = _start(arguments)
    done = []
    reader = threading.Thread(target=lambda: done.append(child.communicate()), name="stepscope", daemon=True)
    reader.start()
    _running.append((child, reader, done))


def wait_for_all():
    """Waits for all started exports. A warning names each one that failed."""
    while _running:
        child, reader, done = _running.pop()
        reader.join()
        if child.returncode != 0:
            import warnings

            text = done[0][1].decode(errors="replace").strip() if done else ""
            warnings.warn(f"stepscope: cannot write a trace: {text}", stacklevel=2)


os.register_at_fork(after_in_child=_running.clear)  # the parent waits for its exports


# ---- a window ----


class Window:
    """The recording between a start and a stop, or between several if acc_events is set."""

    def __init__(self, columns, style, trace_id, has_stacks=True, has_all_threads=False):
        self.columns, self.style, self.trace_id, self.has_stacks = columns, style, trace_id, has_stacks
        self.threads = ["--all-threads"] if has_all_threads else []
        self.first = self.last = 0
        self._events = None
        self.is_finished = False
        self.directory, self.pid = "", os.getpid()

    def add(self, number, directory):
        self.first, self.last = self.first or number, number
        self._events = None
        self.directory = directory

    def _selected(self):
        if not self.is_finished:
            raise RuntimeError("Profiler didn't finish running")
        if not self.first:
            raise RuntimeError("stepscope: nothing was recorded; a previous warning gives the reason")
        stepscope.flush()
        return [self.directory, "--window", f"{self.first}-{self.last}@{self.pid}"]

    def ask(self, command, *options):
        if command == "report":
            options = ("--style", self.style, *self.threads, *options)
        return ask(command, *self._selected(), *options)

    @property
    def function_events(self):
        """The calls. The list is the same each time, since a script may keep or change its events.

        While the window records, the list is empty, as in torch.profiler 2.13.
        """
        if not self.is_finished:
            return nothing()
        if self._events is None:
            self._events = EventList(self, ["--events"], events_of)
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        options = ["--by", "shape"] if group_by_input_shape else []
        is_by_stack = group_by_stack_n > 0
        [][:group_by_stack_n]  # raises torch's TypeError if it is not an integer
        if is_by_stack and self.has_stacks:
            options += ["--frames", str(int(group_by_stack_n))]
        if not self.is_finished:
            return nothing()
        return EventList(self, options, rows_of)

    def total_average(self):
        return self.key_averages().total_average()

    def __str__(self):
        return str(self.function_events)

    def __repr__(self):
        return repr(self.function_events) if self.is_finished and self.first else "<unfinished stepscope.profile>"

    def table(self, *args, **kwargs):
        return self.function_events.table(*args, **kwargs)

    @property
    def self_cpu_time_total(self):
        return self.key_averages().self_cpu_time_total

    def _export_arguments(self, path, form, *options):
        return ["export", *self._selected(), "--format", form, *options, "-o", os.path.abspath(path), "--quiet"]

    def _export(self, path, form, *options):
        ask(*self._export_arguments(path, form, *options))

    def export_chrome_trace(self, path, is_awaited=True):
        """Writes the trace beside `path`, then renames it. The file is compressed if the name ends in .gz.

        If the file cannot be written, the training continues with a warning; torch.profiler writes to its log.
        """
        start_export(self._export_arguments(path, "chrome"))
        if is_awaited:
            wait_for_all()

    def export_stacks(self, path, metric):
        if metric not in EventList.STACK_METRICS:
            raise ValueError(f"metric should be one of: {EventList.STACK_METRICS}")
        self._export(path, "folded", *self.threads)  # always CPU time: devices are not recorded

    def export_memory_timeline(self, path, device=None):
        self._export(path, "memory-timeline", *(["--device", device] if device else []))
