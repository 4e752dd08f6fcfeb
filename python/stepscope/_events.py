# SPDX-License-Identifier: Apache-2.0
"""Rows and calls, built from the answers of the program `stepscope` (_results.py).

They have the attributes and methods of FunctionEventAvg, FunctionEvent and EventList in PyTorch 2.13, and also the
names of PyTorch 1.13. An attribute that the profiler was not asked to record has the value that torch gives it.
"""
import copyreg
import json
from collections import namedtuple

import torch
from torch.autograd import DeviceType

_is_1 = torch.__version__.startswith("1.")
Kernel = namedtuple("Kernel", ["name", "device", "duration"])


def _format_time(us):
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _alias(name):
    return property(lambda self: getattr(self, name))


def _text(name):
    return property(lambda self: _format_time(getattr(self, name)))


class _Named:
    """Attributes common to rows and calls; cuda_* are the names of PyTorch 1.13."""

    node_id, use_device, device_type = -1, None, DeviceType.CPU
    is_remote = is_legacy = False
    self_cpu_percent = total_cpu_percent = total_device_percent = -1

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


class FunctionEventAvg(_Named):
    """One row of key_averages(). Rows of the same key can be added."""

    _SUMS = ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage",
             "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count", "flops")
    _OF_THE_FIRST = ("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes", "stack",
                     "scope", "device_type", "is_legacy", "use_device", "is_user_annotation")

    def __init__(self, row=None):
        self.node_id = 0
        self.key = self.overload_name = self.input_shapes = self.stack = self.scope = self.cpu_parent = self.cpu_children = None
        self.__dict__.update(dict.fromkeys(self._SUMS, 0), is_async=False)
        if row is not None:
            self._fill(row)

    def _fill(self, row):
        self.node_id, self.overload_name, self.input_shapes, self.stack = -1, "", "", []
        self.__dict__.update(row)
        if self.input_shapes:
            self.input_shapes = json.loads(self.input_shapes)
        self.flops = int(self.flops)

    def add(self, other):
        """Adds a row or a call of the same key. Attributes that are not sums come from the first one."""
        if self.key is None:
            self.__dict__.update({name: getattr(other, name) for name in self._OF_THE_FIRST})
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + (getattr(other, name) or 0))
        return self

    __iadd__ = add

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
                f"self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
                f"cuda_memory_usage={self.device_memory_usage}>")


class Interval:
    """A time range, in microseconds since the first event."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class FunctionEvent(_Named):
    """One call."""

    count, overload_name, is_python_function, _metadata_json = 1, "", False, ""
    device_time_total = self_device_time_total = 0
    linked_correlation_id = flow_id = flow_type = 0
    flow_start, event_metadata = False, None
    python_id = python_parent_id = python_module_id = -1

    def __init__(self, event, others):
        self.stack, self.kernels, self.cpu_children, self.kwinputs = [], [], [], {}
        self.__dict__.update(event)
        self.time_range = Interval(self.__dict__.pop("start"), self.__dict__.pop("end"))
        self.trace_name = f"ProfilerStep#{event['step']}" if "step" in event else self.name
        self.flops = int(self.flops)
        self.cpu_parent = others[self.__dict__.pop("parent")] if "parent" in event else None
        self.id += 1
        self.external_id, self.device_index, self.device_resource_id = self.id, *map(self.__dict__.pop, ("pid", "tid"))
        self._take_inputs()
        if self.name == "[memory]":
            self._be_memory()
        if self.cpu_parent is not None:
            self.cpu_parent.cpu_children.append(self)

    def _take_inputs(self):
        """Converts the recorded texts of the inputs to lists."""
        mine = self.__dict__
        self.input_shapes = json.loads(self.input_shapes)
        self.structured_input_shapes = [json.loads(text) for text in mine.pop("sizes", ())]
        self.structured_input_strides = [json.loads(text) for text in mine.pop("strides", ())]
        self.input_dtypes = mine.pop("types", [])
        self.concrete_inputs = [_value(text) for text in mine.pop("values", ())]

    def _be_memory(self):
        """Sets the attributes of a memory event, which torch lists among the calls."""
        self.__dict__.update(dict.fromkeys(("trace_name", "concrete_inputs", "kwinputs", "input_dtypes", "structured_input_shapes",
                                            "structured_input_strides", "flops", "flow_id", "flow_type", "flow_start", "_metadata_json")))
        self.fwd_thread = self.device_resource_id = self.thread
        self.device_index = self.external_id = 0

    key, metadata_json = _alias("name"), _alias("_metadata_json")
    activity_type = property(lambda self: None if self.trace_name is None else "user_annotation" if self.is_user_annotation else "cpu_op")
    cpu_time_total = property(lambda self: self.time_range.elapsed_us())

    def _without_children(self, name):
        return 0 if self.is_async else getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    self_cpu_time_total = property(lambda self: self._without_children("cpu_time_total"))
    self_cpu_memory_usage = property(lambda self: self._without_children("cpu_memory_usage"))
    self_device_memory_usage = property(lambda self: self._without_children("device_memory_usage"))

    def append_kernel(self, name, device, duration):
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        self.cpu_parent = parent

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
                f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
                f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time={self.device_time_str} "
                f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
                f"{self.use_device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
                f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>")


def _value(text):
    """Returns the value of "3", "0.5", "2.", "True" or "[1, 1]".

    Returns None for a tensor (""), and for a list with an omitted element ("[, 1]").
    """
    if text.startswith("["):
        values = [_value(part) for part in text[1:-1].split(", ")] if text != "[]" else []
        return None if None in values else values
    if not text or text in ("True", "False"):
        return text == "True" if text else None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


# ---- lists of them ----

_CHANGES = ("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort")
_READS = ("__iter__", "__len__", "__getitem__", "__contains__", "__reversed__", "__add__", "__mul__", "__rmul__", "__eq__", "__ne__",
          "__lt__", "__le__", "__gt__", "__ge__", "copy", "count", "index")


def _loading(name, is_change):
    method = getattr(list, name)

    def call(self, *args, **kwargs):
        self._load()
        self._is_changed |= is_change
        args = [EventList._loaded(value) for value in args]  # list's methods do not load the items of another list
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


class EventList(list):
    """A list of rows or calls that is loaded at its first use.

    The program prints a table without loading the list, unless a script has changed it.
    """

    STACK_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
    _window, _options, _make, _columns, _is_changed = None, (), None, [], True  # a copy has no window to ask

    def __init__(self, window, options, make):
        super().__init__()
        self._window, self._options, self._make, self._columns = window, options, make, window.columns
        self._is_changed = False

    def _load(self):
        if self._make is not None:
            make, self._make = self._make, None
            list.extend(self, make(json.loads(self._window.ask("report", "--json", *self._words(), *self._options))))

    def _words(self):
        """Returns options that limit the columns to those the profiler requested; more may be recorded."""
        return ["--columns", ",".join(self._columns) or "none"]

    @staticmethod
    def _loaded(value):
        if isinstance(value, EventList):
            value._load()
        return value

    for _name in _READS + _CHANGES:
        locals()[_name] = _loading(_name, _name in _CHANGES)
    del _name
    __hash__ = None

    def __bool__(self):
        return len(self) > 0

    def __str__(self):
        return self.table()

    def __repr__(self):
        return f"[{', '.join(map(repr, self))}]"

    def __reduce_ex__(self, protocol):
        """Makes a copy, or a list read from a pickle, independent of the window."""
        return copyreg.__newobj__, (type(self),), {"_columns": self._columns}, iter(self)

    def __radd__(self, other):
        return [*other, *self]

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False, time_unit=None):
        """Returns the table as text, as torch.profiler does."""
        if self._is_changed or sort_by is not None and self._wants_their_order(sort_by):
            return self._as_theirs().table(sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
                                           max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
                                           header=header, top_level_events_only=top_level_events_only,
                                           **({"time_unit": time_unit} if time_unit else {}))
        options = [*self._words(), "--limit", str(_whole(row_limit)),
                   "--name-width", str(-1 if max_name_column_width is None else max_name_column_width),
                   "--source-width", str(-1 if max_src_column_width is None else max_src_column_width),
                   "--shapes-width", str(-1 if max_shapes_column_width is None else max_shapes_column_width)]
        if sort_by is not None:
            options += ["--sort", sort_by]
        if header is not None:
            options += ["--header", header]
        if top_level_events_only:
            options += ["--top-level"]
        if time_unit in ("s", "ms", "us"):
            options += ["--time-unit", time_unit]
        return self._window.ask("report", *self._options, *options)

    def _as_theirs(self):
        """Returns the items as torch's EventList, whose functions then print them.

        The program `stepscope` does not know the items of a list that a script has changed.
        """
        from torch.autograd.profiler_util import EventList as Theirs

        device = {"use_cuda": False} if _is_1 else {"use_device": None}
        return Theirs(self, profile_memory="memory" in self._columns, with_flops="flops" in self._columns, **device)

    def _wants_their_order(self, name):
        """Returns true if rows have the attribute `name` and the program cannot sort by it."""
        generic = name.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        if generic in _SORTABLE:
            return False
        if not len(self) or not hasattr(self[0], generic):
            raise AttributeError(f"'FunctionEventAvg' object has no attribute '{generic}'")
        return True

    def _asked(self, what):
        if self._window is None:
            raise RuntimeError(f"stepscope: {what} needs the list that the profiler returned, not a copy of it")
        return self._window

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._asked("key_averages()").key_averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        """Writes torch's plain list of calls, without the other events of the profiler's trace."""
        self._as_theirs().export_chrome_trace(path)

    def supported_export_stacks_metrics(self):
        return list(self.STACK_METRICS)

    def export_stacks(self, path, metric):
        self._asked("export_stacks()").export_stacks(path, metric)

    def total_average(self):
        """Returns the sum of all rows as one row."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total += event
        total.key = "Total"
        return total


_SORTABLE = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total",
             "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count", "flops", "key",
             "node_id")


def nothing():
    """Returns an empty list without a window; its table is empty, too."""
    return EventList.__new__(EventList)


def _whole(limit):
    """Returns the row limit, or -1 (no limit) if it is not a whole number >= 0, as torch treats it."""
    try:
        return int(limit) if limit >= 0 and int(limit) == limit else -1
    except (TypeError, ValueError, OverflowError):
        return -1


def rows_of(answer):
    return [FunctionEventAvg(row) for row in answer["rows"]]


def events_of(answer):
    events = []
    for event in answer["events"]:
        events.append(FunctionEvent(event, events))
    return events
