# SPDX-License-Identifier: Apache-2.0
from typing import Optional

from stepscope._native import (
    active as active, counter as counter, flush as flush, is_recording as is_recording, mark as mark, memory_alloc as memory_alloc,
    memory_free as memory_free, metadata as metadata, metric as metric, micro_batch as micro_batch, phase as phase, pop as pop,
    push as push, range as range, run_directory as run_directory, shutdown as shutdown, step_begin as step_begin,
    step_count as step_count, step_end as step_end, thread_name as thread_name)
from stepscope.arguments import (
    add_arguments as add_arguments, from_args as from_args, from_yaml as from_yaml, profiler_end as profiler_end,
    profiler_init as profiler_init)
from stepscope.profiler import (
    DeviceType as DeviceType, ExecutionTraceObserver as ExecutionTraceObserver, ProfilerAction as ProfilerAction,
    ProfilerActivity as ProfilerActivity, kineto_available as kineto_available, profile as profile, record_function as record_function,
    _KinetoProfile as _KinetoProfile, schedule as schedule, supported_activities as supported_activities,
    tensorboard_trace_handler as tensorboard_trace_handler)

__version__: str
unavailable: str

class step:
    def __init__(self, number: Optional[int] = None, tokens: Optional[int] = None, samples: Optional[int] = None) -> None: ...
    def __enter__(self) -> step: ...
    def __exit__(self, *exception: object) -> None: ...

def init(options: Optional[str] = None) -> None: ...
def auto(options: Optional[str] = None) -> str: ...
def load_ipython_extension(shell: object) -> None: ...
