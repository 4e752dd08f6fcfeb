# SPDX-License-Identifier: Apache-2.0
"""torch.profiler's interface on stepscope's recorder: `from stepscope import profile, schedule` instead of `from torch.profiler import
profile, schedule` is the only change a script needs. docs/python-profiler.md says what differs, and why.

This file keeps the state machine of torch.profiler.profile; the recorder records (_windows.py), the program `stepscope` computes
(_results.py).
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
    from torch.profiler import ExecutionTraceObserver  # theirs: it observes by itself, whoever profiles
else:

    class ExecutionTraceObserver:
        """This PyTorch has none: it can be made and registered, and writes nothing."""

        def __init__(self):
            _windows.warn_once("this PyTorch has no ExecutionTraceObserver: no execution trace is written")

        def register_callback(self, output_file_path):
            return self

        def unregister_callback(self):
            return None

        start = stop = cleanup = unregister_callback


# ---- schedule and handler ----


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """After `skip_first` steps cycles of `wait` steps without, `warmup` steps before and `active` steps with recording; `repeat` of
    them, 0: as long as it goes. With skip_first_wait the first cycle does not wait."""
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
    """Writes each cycle to a file of its own in the directory, named as torch.profiler names it: [host]_[pid].[ns].pt.trace.json. It
    is written by a child of low priority while the training goes on, and is there when the profiler has stopped."""

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
        export = getattr(prof, "_export_later", prof.export_chrome_trace)  # a profiler of torch's will do, too
        export(os.path.join(dir_name, name))

    return handler


def _observer_from_environment():
    """ENABLE_PYTORCH_EXECUTION_TRACE asks for one."""
    build = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", None)
    return build() if build else None


def _asks_for(config, name):
    """Of an ExperimentalConfig, which does not tell by itself: what differs in one that was made with it?"""
    if config is None:
        return False
    try:
        states = [list(each.__getstate__()) for each in (type(config)(), type(config)(**{name: True}), config)]
        return any(plain != asked and asked == own for plain, asked, own in zip(*states))
    except (AttributeError, TypeError):  # this PyTorch has no such thing
        return False


def always(step):
    """The schedule of all steps."""
    return RECORD


# ---- activities ----

_DEVICES = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")
_BY_NAME = {name.lower(): getattr(ProfilerActivity, name) for name in ("CPU", *_DEVICES) if hasattr(ProfilerActivity, name)}


def _activity_called(name):
    """What accelerate calls them: "cpu", "cuda", "xpu", ..."""
    if name.lower() in _BY_NAME:
        return _BY_NAME[name.lower()]
    import difflib

    near = ["cuda"] if name.lower() in ("gpu", "hip", "rocm") else difflib.get_close_matches(name.lower(), _BY_NAME, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(f"stepscope: there is no activity {name!r}{meant}: {', '.join(_BY_NAME)}")


def _activities_of(given):
    """A set; members may also be named ("cpu"), and carry a filter as of PyTorch 2.13."""
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


# Of PyTorch 2.13, which has no list of them in Python.
_TYPES_OF_CPU = {"CPU_OP", "USER_ANNOTATION", "EXTERNAL_CORRELATION", "CUDA_RUNTIME", "CUDA_DRIVER", "CPU_INSTANT_EVENT", "PYTHON_FUNCTION",
                 "XPU_RUNTIME", "XPU_DRIVER", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"}


def _filters_of(given):
    """Types that are asked for alone, by activity."""
    chosen = [pair for item in given if isinstance(item, dict) for pair in item.items()]
    return {_activity_called(key) if isinstance(key, str) else key: set(types) for key, types in chosen}


def _device_of(activities):
    """Which device was asked for, as its name, and whether it can be recorded; None: none."""
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
    """torch.profiler.profile, recorded by stepscope. New and optional: `out`, a directory that keeps the recording (without it, and
    without `stepscope run`, the recording is a temporary one), and `backend`: "stepscope", "torch", or "auto", which leaves devices
    that stepscope does not record yet to torch.profiler and says so."""

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
        self.preset_metadata, self._metadata = {}, {}  # of the windows to come; of the next one
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
            _windows.warn_once(f"{self.use_device.upper()} is not recorded by stepscope yet: torch.profiler records, and the results "
                               "are its own (backend='stepscope' records the CPU)", stacklevel=5)
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
        """Begins with the schedule's first action."""
        self._go(NONE, self.current_action)
        self._begin_step()

    def stop(self):
        """Ends what is being recorded; a trace that was begun is ready. The step that the last call of step() announced is none."""
        if self._marks_steps():
            _windows.abandon_step()
        self._go(self.current_action, None)
        _windows.observe(self, False)
        _results.wait_for_all()

    def step(self):
        """The next step of the training begins."""
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
        """No longer, once the program is seen to do it itself (stepscope.step())."""
        self.record_steps = self.record_steps and _windows.is_step_announced()
        return self.record_steps

    def _go(self, before, now):
        """Between two actions of the schedule; `now` is None at the end."""
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
            _windows.warn_once("with_modules: not in these tables; `stepscope report` has the modules of a run")
        if self.activity_filters:
            _windows.warn_once("activities: the types of events are not chosen, a trace has all of them")
        if _asks_for(self.experimental_config, "capture_overload_names"):
            _windows.warn_once("experimental_config: overload names are not recorded")

    def _check(self):
        """What torch.profiler finds wrong when it begins."""
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        types = self.activity_filters.get(ProfilerActivity.CPU)
        unknown = sorted(types - _TYPES_OF_CPU) if types else []
        if unknown:
            raise RuntimeError(f"Unknown or non-member activity type name: {unknown[0]!r}")

    def prepare_trace(self):
        """What takes time before recording begins."""
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
        """From here on operators are recorded."""
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
        """To here."""
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
        """Switches the recording of operators (CPU) off and on again inside of a trace."""
        if self._theirs is not None:
            self._theirs.toggle_collection_dynamic(enable, activities)
        elif self.profiler is not None and self._is_ready and ProfilerActivity.CPU in _activities_of(activities):
            if enable and self._is_toggled_off:
                self._begin_window()
            elif not enable and self._number:  # others go on
                _windows.end(self._number)
                self._number, self._is_toggled_off = 0, True

    # ---- results ----

    def _finished(self, what):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Rows by name, and by shapes when asked."""
        window = self._finished("getting key averages")
        more = () if self._theirs is not None and _is_1 else (group_by_overload_name,)
        return window.key_averages(group_by_input_shape, group_by_stack_n, *more)

    def events(self):
        """Every call, in order."""
        window = self._finished("accessing events")
        if getattr(self.experimental_config, "trace_only", False):
            raise RuntimeError("events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead.")
        return window.function_events

    def export_chrome_trace(self, path, use_python_export=False):
        """The newest cycle as a file for chrome://tracing, Perfetto or TensorBoard; compressed when the path ends in .gz."""
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
        except RuntimeError as problem:  # nothing was recorded, or there is no program: the training goes on
            _windows.warn_once(f"no trace is written: {problem}")

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Lines for flamegraph.pl: the stack with the operator innermost, a blank, its own microseconds."""
        window = self._finished("exporting stacks")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return window.export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path, device=None):
        """Memory by category over time."""
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
        """A text for the trace."""
        value.replace  # AttributeError for what is no text, as in PyTorch
        self.add_metadata_json(key, json.dumps(value))  # torch.profiler's own is no JSON when there is a quote in it

    def add_metadata_json(self, key, value):
        """A JSON value for the trace that is being made: as in torch.profiler it is lost before the warm-up and behind the end."""
        if self._theirs is not None:
            self._theirs.add_metadata_json(key, value)
        elif self._number:
            stepscope.metadata(f"torch.profiler:{self._number}.{key}", value)
        elif self.profiler is not None and not self.profiler.is_finished:
            self._metadata[key] = value

    def preset_metadata_json(self, key, value):
        """A JSON value that is added when recording begins."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback):
        """Makes the names of the cycles to come."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """Of the newest cycle."""
        return None if self.profiler is None else getattr(self.profiler, "trace_id", None)


_KinetoProfile = profile  # torch's has no schedule, and so no step()
