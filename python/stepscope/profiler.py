# SPDX-License-Identifier: Apache-2.0
"""The interface of torch.profiler, recorded by stepscope. A script changes only its import: `from stepscope import
profile, schedule` instead of `from torch.profiler import profile, schedule`. docs/python-profiler.md lists the
differences and their reasons.

This file holds the state machine of torch.profiler.profile. _windows.py controls the recorder; _results.py asks the
program `stepscope` for the results.
"""
import json
import os
import socket
import time
import uuid
import warnings

import torch
import torch.profiler as theirs
from torch.autograd import DeviceType, kineto_available
from torch.profiler import ProfilerAction, ProfilerActivity, record_function, supported_activities

import stepscope
from stepscope import _results, _windows

__all__ = ["DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function",
           "schedule", "supported_activities", "tensorboard_trace_handler"]

NONE, WARMUP, RECORD, SAVE = (ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_is_1 = torch.__version__.startswith("1.")

if hasattr(theirs, "ExecutionTraceObserver"):
    from torch.profiler import ExecutionTraceObserver  # works independently of the profiler
else:

    class ExecutionTraceObserver:
        """A substitute that writes nothing, for a PyTorch without this class."""

        def __init__(self):
            _windows.warn_once("this PyTorch has no ExecutionTraceObserver: no execution trace is written")

        def register_callback(self, output_file_path):
            return self

        def unregister_callback(self):
            return None

        start = stop = cleanup = unregister_callback


# ---- schedule and handler ----


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Returns a function that maps a step number to a ProfilerAction.

    The first `skip_first` steps are not recorded. Then cycles follow: `wait` steps without recording, `warmup` steps of
    warm-up, `active` recorded steps. `repeat` is the number of cycles (0 repeats until the end). If skip_first_wait is
    true, the first cycle starts with its warm-up.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return NONE
        cycle, within = divmod(step - skip_first + (wait if skip_first_wait else 0), length)
        if repeat and cycle >= repeat or within < wait:
            return NONE
        if within < wait + warmup:
            return WARMUP
        return SAVE if within == length - 1 else RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """Returns an on_trace_ready handler that writes each cycle to a new file in the directory.

    The file has torch.profiler's name, [host]_[pid].[ns].pt.trace.json. A child process of low priority writes it while
    the training continues. All files are complete when the profiler has stopped.
    """

    def handler(prof):
        nonlocal worker_name
        if not os.path.isdir(dir_name):
            try:
                os.makedirs(dir_name, exist_ok=True)
            except Exception as problem:
                raise RuntimeError("Can't create directory: " + dir_name) from problem
        if not worker_name:
            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker_name}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        export = getattr(prof, "_export_later", prof.export_chrome_trace)  # `prof` may be torch's profiler
        export(os.path.join(dir_name, name))

    return handler


def _observer_from_environment():
    """Returns the observer that ENABLE_PYTORCH_EXECUTION_TRACE requests, or None."""
    build = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", None)
    return build() if build else None


def _asks_for(config, name):
    """Returns true if the ExperimentalConfig was created with this option.

    The class has no attribute for it. The state of a config with the option tells which field to look at.
    """
    if config is None:
        return False
    try:
        states = [list(each.__getstate__()) for each in (type(config)(), type(config)(**{name: True}), config)]
        return any(plain != asked and asked == own for plain, asked, own in zip(*states))
    except (AttributeError, TypeError):  # this PyTorch has no such option
        return False


def always(step):
    """A schedule that records all steps."""
    return RECORD


# ---- activities ----

_DEVICES = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")
_BY_NAME = {name.lower(): getattr(ProfilerActivity, name) for name in ("CPU", *_DEVICES) if hasattr(ProfilerActivity, name)}


def _activity_called(name):
    """Returns the activity with a name as accelerate uses them: "cpu", "cuda", "xpu", ..."""
    if name.lower() in _BY_NAME:
        return _BY_NAME[name.lower()]
    import difflib

    near = ["cuda"] if name.lower() in ("gpu", "hip", "rocm") else difflib.get_close_matches(name.lower(), _BY_NAME, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(f"stepscope: there is no activity {name!r}{meant}: {', '.join(_BY_NAME)}")


def _activities_of(given):
    """Returns the set of activities. Each may be given by name ("cpu") or with a filter, as in PyTorch 2.13."""
    found = []
    for item in [given] if isinstance(given, str) else given:
        found += list(item) if isinstance(item, dict) else [item]
    result = set()
    for item in found:
        item = _activity_called(item) if isinstance(item, str) else item
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        if item in result and not _is_1:
            raise ValueError(f"Activity {item} specified more than once")
        result.add(item)
    return result


# Copied from PyTorch 2.13, which has no such list in Python.
_TYPES_OF_CPU = {"CPU_OP", "USER_ANNOTATION", "EXTERNAL_CORRELATION", "CUDA_RUNTIME", "CUDA_DRIVER", "CPU_INSTANT_EVENT", "PYTHON_FUNCTION",
                 "XPU_RUNTIME", "XPU_DRIVER", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"}


def _filters_of(given):
    """Returns the event types that the caller restricts each activity to."""
    chosen = [pair for item in given if isinstance(item, dict) for pair in item.items()]
    return {_activity_called(key) if isinstance(key, str) else key: set(types) for key, types in chosen}


def _device_of(activities):
    """Returns the name of the requested device (None for the CPU only), and whether it is available."""
    for name in _DEVICES:
        activity = getattr(ProfilerActivity, name, None)
        if activity is None or activity not in activities:
            continue
        if name != "PrivateUse1":
            module = getattr(torch, name.lower(), None)
            return name.lower(), module is not None and module.is_available()
        return name.lower(), True
    return None, False


# ---- the profiler ----


class profile:
    """torch.profiler.profile, recorded by stepscope. It has two more options.

    `out` is the directory of the recording. Without it, and without `stepscope run`, the recording is temporary.

    `backend` is "stepscope", "torch" or "auto". With "auto", torch.profiler records if the activities include a device
    that stepscope does not record yet, and a warning says so.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None,
                 acc_events=False, use_cuda=None, custom_trace_id_callback=None, post_processing_timeout_s=None, out=None,
                 backend="auto"):
        given = supported_activities() if activities is None else activities
        given = given if isinstance(given, str) else list(given)
        self.activities, self.activity_filters = _activities_of(given), _filters_of(given)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            if use_cuda:
                self.activities.add(ProfilerActivity.CUDA)
            else:
                self.activities.discard(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if backend not in ("auto", "stepscope", "torch"):
            raise ValueError(f"backend is 'auto', 'stepscope' or 'torch', got {backend!r}")
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer or _observer_from_environment()
        self.acc_events, self.custom_trace_id_callback = acc_events, custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.preset_metadata, self._metadata = {}, {}  # for all later windows; for the next one
        self.profiler = self._theirs = None
        self._number, self._out = 0, out
        self._is_toggled_off = False
        self._is_ready = None
        device, is_there = _device_of(self.activities)
        self.use_device = device if is_there else None
        self._missing = device.upper() if device and not is_there else None
        self._backend = self._choose(backend)
        self.schedule = schedule or always
        self.record_steps = bool(schedule)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self._action(0)

    def _choose(self, wish):
        if wish == "auto" and self.use_device:
            _windows.warn_once(f"{self.use_device.upper()} is not recorded by stepscope yet: torch.profiler records and returns "
                               "the results (backend='stepscope' records the CPU)", stacklevel=5)
            return "torch"
        return "torch" if wish == "torch" else "stepscope"

    # ---- states ----

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.stop()
        cleanup = getattr(self.execution_trace_observer, "cleanup", None)
        if cleanup:
            cleanup()

    def start(self):
        """Starts the first action of the schedule."""
        self._go(NONE, self.current_action)
        self._begin_step()

    def stop(self):
        """Ends the recording and calls on_trace_ready for an open trace.

        The step that the last call of step() started is not counted.
        """
        if self._marks_steps():
            _windows.abandon_step()
        self._go(self.current_action, None)
        _windows.observe(self, False)
        _results.wait_for_all()

    def step(self):
        """Ends the current training step and starts the next one."""
        self._end_step()
        before = self.current_action
        following = self._action(self.step_num + 1)
        self.step_num += 1
        self.current_action = following
        self._go(before, following)
        self._begin_step()

    def _action(self, step):
        action = self.schedule(step)
        if action is getattr(ProfilerAction, "DEVICE_STOPPED", self):
            raise ValueError("ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned by a user-provided "
                             "schedule")
        return action

    def _begin_step(self):
        if self.record_steps:
            _windows.announce_step(self.step_num)

    def _end_step(self):
        if self._marks_steps():
            stepscope.step_end()

    def _marks_steps(self):
        """Returns true while this profiler marks steps: not after the program has marked its own (stepscope.step())."""
        self.record_steps = self.record_steps and _windows.is_step_announced()
        return self.record_steps

    def _go(self, before, now):
        """Goes from one action of the schedule to the next; `now` is None at the end."""
        is_over = before is SAVE or now is None and before is RECORD
        if before is WARMUP and now is NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if before is RECORD and now in (NONE, WARMUP):
            warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=3)
        if before is WARMUP and now in (NONE, None):
            self.start_trace()
            self.stop_trace()
        elif is_over or before is RECORD and now in (NONE, WARMUP):
            self.stop_trace()
        if is_over and self.on_trace_ready:
            self.on_trace_ready(self)
        if now in (WARMUP, RECORD, SAVE) and (before is NONE or before is SAVE):
            self.prepare_trace()
        if now in (RECORD, SAVE) and before is not RECORD:
            self.start_trace()
        if now is NONE:
            _windows.observe(self, False)

    # ---- recording ----

    def _bits(self):
        return (_windows.SHAPES if self.record_shapes or self.with_flops else 0) | (_windows.MEMORY if self.profile_memory else 0)

    def _words(self):
        wanted = (("shapes", self.record_shapes or self.with_flops), ("memory", self.profile_memory), ("lines", self.with_stack))
        return [word for word, is_wanted in wanted if is_wanted]

    def _columns(self):
        wanted = (("memory", self.profile_memory), ("flops", self.with_flops), ("no-memory", not self.profile_memory),
                  ("no-stacks", not self.with_stack), ("no-shapes", not (self.record_shapes or self.with_flops)))
        return [word for word, is_wanted in wanted if is_wanted]

    def _say_what_is_missing(self):
        if self.with_modules:
            _windows.warn_once("with_modules: these tables have no modules; `stepscope report` has the modules of a run")
        if self.activity_filters:
            _windows.warn_once("activities: types of events cannot be selected; a trace has all of them")
        if _asks_for(self.experimental_config, "capture_overload_names"):
            _windows.warn_once("experimental_config: overload names are not recorded")

    def _check(self):
        """Raises the errors that torch.profiler raises at its start."""
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        types = self.activity_filters.get(ProfilerActivity.CPU)
        unknown = sorted(types - _TYPES_OF_CPU) if types else []
        if unknown:
            raise RuntimeError(f"Unknown or non-member activity type name: {unknown[0]!r}")

    def prepare_trace(self):
        """Does the slow preparations before the recording starts."""
        if self._backend == "torch":
            self._prepare_theirs()
            return
        self._check()
        if self._missing:
            warnings.warn(f"{self._missing} is not available, disabling {self._missing} profiling", stacklevel=4)
            if ProfilerActivity.CPU not in self.activities:
                raise AssertionError("No activities specified for the profiler")
        if self._is_ready is None:
            self._say_what_is_missing()
            self._is_ready = _windows.ready(self._words(), self._out)
        if self.profiler is not None and not self.acc_events and not _is_1:
            _windows.warn_once("Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be reported. "
                               "To keep events across cycles, set acc_events=True.")
        if self.profiler is None or not self.acc_events:
            make = self.custom_trace_id_callback or (lambda: uuid.uuid4().hex.upper())
            self.profiler = _results.Window(self._columns(), "torch-1.13" if _is_1 else "torch", make(), bool(self.with_stack),
                                            _asks_for(self.experimental_config, "profile_all_threads"))
        if self._is_ready:
            _windows.observe(self, True)

    def start_trace(self):
        """Starts recording operators."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if self._backend == "torch":
            self._theirs.start_trace()
            return
        self.profiler.is_finished = False
        if self._is_ready:
            self._begin_window()
        facts = {name: "1" if getattr(self, name) else "0" for name in ("with_stack", "with_modules", "with_flops")}
        facts["trace_id"] = json.dumps(str(self.profiler.trace_id))
        for key, value in {**facts, **self.preset_metadata, **self._metadata}.items():
            self.add_metadata_json(key, value)
        self._metadata = {}

    def _begin_window(self):
        self._is_toggled_off = False
        self._number = _windows.begin(self._bits())
        if self._number:
            self.profiler.add(self._number, _windows.directory())

    def stop_trace(self):
        """Ends recording operators."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self._backend == "torch":
            self._theirs.stop_trace()
            return
        if self._number:
            _windows.end(self._number)
        self._number, self._is_toggled_off = 0, False
        self.profiler.is_finished = True

    def _prepare_theirs(self):
        if self._theirs is None:
            wanted = {"record_shapes": self.record_shapes, "profile_memory": self.profile_memory, "with_stack": self.with_stack,
                      "with_flops": self.with_flops, "with_modules": self.with_modules,
                      "experimental_config": self.experimental_config}
            if not _is_1:
                wanted["acc_events"] = self.acc_events
            filters = self.activity_filters
            activities = [{each: filters[each]} if each in filters else each for each in self.activities]
            self._theirs = theirs.profiler._KinetoProfile(activities=activities, **wanted)
        self._theirs.prepare_trace()
        self.profiler = self._theirs.profiler

    def toggle_collection_dynamic(self, enable, activities):
        """Switches the recording of CPU operators off, and on again, within a trace."""
        if self._theirs is not None:
            self._theirs.toggle_collection_dynamic(enable, activities)
        elif self.profiler is not None and self._is_ready and ProfilerActivity.CPU in _activities_of(activities):
            if enable and self._is_toggled_off:
                self._begin_window()
            elif not enable and self._number:  # the windows of other profilers continue
                _windows.end(self._number)
                self._number, self._is_toggled_off = 0, True

    # ---- results ----

    def _finished(self, what):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Returns one row per operator name, and optionally per input shapes or stack of `group_by_stack_n` frames."""
        window = self._finished("getting key averages")
        more = () if self._theirs is not None and _is_1 else (group_by_overload_name,)
        return window.key_averages(group_by_input_shape, group_by_stack_n, *more)

    def events(self):
        """Returns every call of the window, in order."""
        window = self._finished("accessing events")
        if getattr(self.experimental_config, "trace_only", False):
            raise RuntimeError("events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead.")
        return window.function_events

    def export_chrome_trace(self, path, use_python_export=False):
        """Writes the newest cycle as a file for chrome://tracing, Perfetto or TensorBoard.

        The file is compressed if the path ends in .gz.
        """
        window = self._finished("exporting chrome trace")
        if self._theirs is not None:
            self._theirs.export_chrome_trace(path)
        else:
            window.export_chrome_trace(os.fspath(path))

    def _export_later(self, path):
        if self._theirs is not None:
            self._theirs.export_chrome_trace(path)
            return
        try:
            self._finished("exporting chrome trace").export_chrome_trace(path, is_awaited=False)
        except RuntimeError as problem:  # nothing was recorded, or `stepscope` is missing: the training continues
            _windows.warn_once(f"cannot write the trace: {problem}")

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes lines for flamegraph.pl: the stack, operator innermost, a blank, and the self time in microseconds."""
        window = self._finished("exporting stacks")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return window.export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path, device=None):
        """Writes the memory of each category over time."""
        missing = [f"{name}=True" for name in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        window = self._finished("exporting a memory timeline")
        if self._theirs is not None:
            self._theirs.export_memory_timeline(path, device)
        else:
            window.export_memory_timeline(os.fspath(path), device)

    # ---- facts ----

    def add_metadata(self, key, value):
        """Adds a string to the trace."""
        value.replace  # raises AttributeError if it is not a string, as PyTorch does
        self.add_metadata_json(key, json.dumps(value))  # torch.profiler writes invalid JSON if the value has a quote

    def add_metadata_json(self, key, value):
        """Adds a JSON value to the current trace.

        As in torch.profiler, a value is lost if it comes before the warm-up or after the end.
        """
        if self._theirs is not None:
            self._theirs.add_metadata_json(key, value)
        elif self._number:
            stepscope.metadata(f"torch.profiler:{self._number}.{key}", value)
        elif self.profiler is not None and not self.profiler.is_finished:
            self._metadata[key] = value

    def preset_metadata_json(self, key, value):
        """Stores a JSON value that is added to each later trace at its start."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback):
        """Sets the function that returns the trace ids of later cycles."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """Returns the trace id of the newest cycle."""
        return None if self.profiler is None else getattr(self.profiler, "trace_id", None)


_KinetoProfile = profile  # torch's _KinetoProfile has no schedule, and so no step()
