# SPDX-License-Identifier: Apache-2.0
import argparse
import os
from typing import Any, Callable, Dict, Iterable, Optional, TypeVar, Union

from stepscope.profiler import ProfilerAction, profile as _Profile

_Parser = TypeVar("_Parser", bound=argparse.ArgumentParser)

class Nothing(_Profile):  # has the same methods
    def __init__(self) -> None: ...

class Settings:
    enabled: bool
    output_dir: str
    wait: int
    warmup: int
    active: int
    repeat: int
    skip_first: int
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    memory_log_steps: int
    max_steps: int
    timeline: bool
    has_trace: bool
    is_board: bool
    type: str
    ranks: str
    is_whole: bool
    filename: str
    prefix: str
    def __init__(self, enabled: bool = False, output_dir: str = "./profiler_traces", wait: int = 0, warmup: int = 0, active: int = 1,
                 repeat: int = 0, skip_first: int = 0, record_shapes: bool = True, profile_memory: bool = True, with_stack: bool = True,
                 with_flops: bool = True, memory_log_steps: int = 0, is_board: bool = True, frequency: Optional[int] = None,
                 max_steps: int = -1, timeline: bool = False, has_trace: bool = True, type: str = "pytorch",
                 ranks: str = "local0", is_whole: bool = False, filename: str = "profile", prefix: str = "") -> None: ...
    def is_recorded_here(self) -> bool: ...
    def schedule(self) -> Callable[[int], ProfilerAction]: ...
    def describe(self) -> str: ...
    def profile(self, on_trace_ready: Optional[Callable[..., Any]] = None, **more: Any) -> _Profile: ...
    def log_memory(self, step: int) -> None: ...

class Handler:
    def __init__(self, settings: Settings) -> None: ...
    def path(self, prof: _Profile, name: str) -> str: ...
    def __call__(self, prof: _Profile) -> None: ...

def add_arguments(parser: _Parser, style: str = "hf", **defaults: Any) -> _Parser: ...
def from_args(arguments: argparse.Namespace, model_name: Optional[str] = None, train_type: Optional[str] = None) -> Settings: ...
def from_yaml(source: Union[Dict[str, Any], str, os.PathLike[str]], overrides: Union[str, Iterable[str]] = ()) -> Settings: ...
def profiler_init(settings: Settings) -> _Profile: ...
def profiler_end(prof: _Profile, settings: Settings) -> str: ...
