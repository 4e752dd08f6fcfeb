# SPDX-License-Identifier: Apache-2.0
"""What a window recorded, as torch.profiler shows it. The numbers come from the program `stepscope`, run as a child of low priority on the
recording; nothing is computed here. EventList, FunctionEvent and FunctionEventAvg have the attributes of torch's.
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import threading

import stepscope

NICENESS = 10
_running = []  # exports that nobody waited for yet


# ---- the program ----


def program():
    """Where `stepscope` is: named by `stepscope run`, beside the library, or on PATH."""
    places = [os.environ.get("STEPSCOPE_PROGRAM"), os.path.join(sys.prefix, "bin", "stepscope")]  # the second: pip's
    if not stepscope.unavailable:
        from stepscope import _native

        library = os.path.dirname(os.path.realpath(_native.library_path()))
        places += [os.path.join(library, "..", "stepscope"), os.path.join(library, "..", "bin", "stepscope"),
                   os.path.join(library, "..", "..", "bin", "stepscope"), os.path.join(library, "stepscope")]
    for place in places:
        if place and os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    found = shutil.which("stepscope")
    if not found:
        raise RuntimeError("stepscope: the program 'stepscope', which reads the recording, is neither beside the library nor on "
                           "PATH; STEPSCOPE_PROGRAM may name it")
    return found


def _environment():
    """The child is no part of the training."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE") and name != "LD_PRELOAD"}


def _start(arguments):
    child = subprocess.Popen([program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=_environment(), close_fds=True)
    try:
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    except OSError:  # it is through already
        pass
    return child


def _finish(child):
    out, err = child.communicate()
    if child.returncode != 0:
        raise RuntimeError(err.decode(errors="replace").strip() or f"stepscope: the child ended with {child.returncode}")
    return out.decode(errors="surrogateescape")


def ask(*arguments):
    """What it prints. RuntimeError with its own words when it fails."""
    return _finish(_start(arguments))


def start_export(arguments):
    """An export that is waited for later, at the program's exit at the latest."""
    atexit.unregister(wait_for_all)
    atexit.register(wait_for_all)
    child = _start(arguments)
    done = []
    reader = threading.Thread(target=lambda: done.append(child.communicate()), daemon=True)
    reader.start()
    _running.append((child, reader, done))


def wait_for_all():
    """Exports that were started; what went wrong is said."""
    while _running:
        child, reader, done = _running.pop()
        reader.join()
        if child.returncode != 0:
            import warnings

            text = done[0][1].decode(errors="replace").strip() if done else ""
            warnings.warn(f"stepscope: a trace was not written: {text}", stacklevel=2)


os.register_at_fork(after_in_child=_running.clear)  # they are the parent's


# ---- rows and events ----


def _format_time(us):
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _alias(name):
    return property(lambda self: getattr(self, name))


def _text(name):
    return property(lambda self: _format_time(getattr(self, name)))


class _Named:
    """What rows and events have in common; cuda_* are the names of PyTorch 1.13."""

    node_id, use_device, overload_name = -1, None, ""
    is_async = is_remote = is_legacy = False
    device_time_total = self_device_time_total = 0

    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)
    cuda_time, cuda_time_total = _alias("device_time"), _alias("device_time_total")
    self_cuda_time_total = _alias("self_device_time_total")
    cuda_memory_usage, self_cuda_memory_usage = _alias("device_memory_usage"), _alias("self_device_memory_usage")
    cpu_time_str, device_time_str, cuda_time_str = _text("cpu_time"), _text("device_time"), _text("device_time")
    cpu_time_total_str, device_time_total_str = _text("cpu_time_total"), _text("device_time_total")
    cuda_time_total_str = _text("device_time_total")
    self_cpu_time_total_str, self_device_time_total_str = _text("self_cpu_time_total"), _text("self_device_time_total")
    self_cuda_time_total_str = _text("self_device_time_total")

    @property
    def device_type(self):
        from torch.autograd import DeviceType

        return DeviceType.CPU


class FunctionEventAvg(_Named):
    """One row of key_averages()."""

    scope, cpu_children, cpu_parent = 0, None, None

    def __init__(self, row):
        self.stack = []
        self.input_shapes = ""
        self.__dict__.update(row)
        if self.input_shapes:
            self.input_shapes = json.loads(self.input_shapes)
        self.flops = int(self.flops)

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
                f"self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
                f"cuda_memory_usage={self.device_memory_usage}>")


class Interval:
    """In microseconds since the first event."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class FunctionEvent(_Named):
    """One call."""

    count, scope, fwd_thread, sequence_nr, device_index = 1, 0, None, -1, 0
    is_python_function, external_id, linked_correlation_id = False, 0, 0
    concrete_inputs, kwinputs, input_dtypes = (), {}, ()

    def __init__(self, event, others):
        self.stack, self.kernels, self.cpu_children = [], [], []
        self.__dict__.update(event)
        self.time_range = Interval(event["start"], event["end"])
        self.input_shapes = json.loads(event["input_shapes"])
        self.trace_name = f"ProfilerStep#{event['step']}" if "step" in event else self.name
        self.flops = int(self.flops)
        self.cpu_parent = others[event["parent"]] if "parent" in event else None
        self.device_resource_id = self.thread
        if self.cpu_parent is not None:
            self.cpu_parent.cpu_children.append(self)

    key = _alias("name")
    cpu_time_total = property(lambda self: self.time_range.elapsed_us())

    def _without_children(self, name):
        return getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    self_cpu_time_total = property(lambda self: self._without_children("cpu_time_total"))
    self_cpu_memory_usage = property(lambda self: self._without_children("cpu_memory_usage"))
    self_device_memory_usage = property(lambda self: self._without_children("device_memory_usage"))

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
                f"end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>")


def _loading(name):
    method = getattr(list, name)

    def call(self, *args, **kwargs):
        self._load()
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


class EventList(list):
    """Rows or calls: a list that is filled when it is looked into; a table needs no list."""

    def __init__(self, window, options, make):
        super().__init__()
        self._window, self._options, self._make = window, options, make

    def _load(self):
        if self._make is not None:
            make, self._make = self._make, None
            list.extend(self, make(json.loads(self._window.ask("report", "--json", *self._options))))

    for _name in ("__iter__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__reversed__", "__add__",
                  "__eq__", "__ne__", "append", "extend", "insert", "remove", "pop", "index", "count", "sort", "reverse", "copy"):
        locals()[_name] = _loading(_name)
    del _name
    __hash__ = None

    def __bool__(self):
        return len(self) > 0

    def __str__(self):
        return self.table()

    def __repr__(self):
        return f"[{', '.join(map(repr, self))}]"

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False, time_unit=None):
        """The text that torch.profiler prints."""
        options = ["--limit", str(row_limit), "--columns", ",".join(self._window.columns) or "none",
                   "--name-width", str(-1 if max_name_column_width is None else max_name_column_width),
                   "--source-width", str(-1 if max_src_column_width is None else max_src_column_width),
                   "--shapes-width", str(-1 if max_shapes_column_width is None else max_shapes_column_width)]
        if sort_by is not None:
            self._check_sort(sort_by)
            options += ["--sort", sort_by]
        if header is not None:
            options += ["--header", header]
        if top_level_events_only:
            options += ["--top-level"]
        if time_unit in ("s", "ms", "us"):
            options += ["--time-unit", time_unit]
        return self._window.ask("report", *self._options, *options)

    @staticmethod
    def _check_sort(name):
        generic = name.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        if generic not in _SORTABLE:
            raise AttributeError(f"'FunctionEventAvg' object has no attribute '{generic}'")

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._window.key_averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        self._window.export_chrome_trace(path)

    def export_stacks(self, path, metric):
        self._window.export_stacks(path, metric)

    def total_average(self):
        """All of it as one row."""
        names = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
                 "device_memory_usage", "self_device_memory_usage", "flops")
        return FunctionEventAvg({"key": "Total", **{name: sum(getattr(event, name) for event in self) for name in names}})


_SORTABLE = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total",
             "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count", "flops", "key",
             "node_id")


def _events_of(answer):
    events = []
    for event in answer["events"]:
        events.append(FunctionEvent(event, events))
    return events


# ---- a window ----


class Window:
    """What was recorded between a start and a stop; with acc_events between several."""

    STACK_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def __init__(self, columns, style, trace_id, has_stacks=True):
        self.columns, self.style, self.trace_id, self.has_stacks = columns, style, trace_id, has_stacks
        self.first = self.last = 0
        self.is_finished = False
        self.directory, self.pid = "", os.getpid()

    def add(self, number, directory):
        self.first, self.last = self.first or number, number
        self.directory = directory

    def _selected(self):
        if not self.is_finished:
            raise RuntimeError("Profiler didn't finish running")
        if not self.first:
            raise RuntimeError("stepscope: nothing was recorded here; a warning said why")
        stepscope.flush()
        return [self.directory, "--window", f"{self.first}-{self.last}@{self.pid}"]

    def ask(self, command, *options):
        if command == "report":
            options = ("--style", self.style, *options)
        return ask(command, *self._selected(), *options)

    @property
    def function_events(self):
        return EventList(self, ["--events"], _events_of)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        options = ["--by", "shape"] if group_by_input_shape else []
        if group_by_stack_n and self.has_stacks:
            options += ["--frames", str(group_by_stack_n)]
        return EventList(self, options, lambda answer: [FunctionEventAvg(row) for row in answer["rows"]])

    def total_average(self):
        return self.key_averages().total_average()

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
        """A file that ends in .gz is compressed, as torch.profiler does it. Beside `path` first, then renamed."""
        if is_awaited:
            self._export(path, "chrome")
        else:
            start_export(self._export_arguments(path, "chrome"))

    def export_stacks(self, path, metric):
        if metric not in self.STACK_METRICS:
            raise ValueError(f"metric should be one of: {self.STACK_METRICS}")
        self._export(path, "folded")  # of devices we have no time: the processor's, where torch.profiler writes nothing

    def export_memory_timeline(self, path, device=None):
        self._export(path, "memory-timeline", *(["--device", device] if device else []))
