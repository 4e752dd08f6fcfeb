# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Python program that `stepscope run` starts, because it puts this folder first on PYTHONPATH.

Runs the user's own sitecustomize, if there is one, and waits for `import torch`. It imports no further modules, so a
program without PyTorch loses almost no time. Python versions that stepscope does not support also run this file, so
its syntax must be valid in all of them.
"""
import os
import sys
import time

HERE = __file__.rpartition("/")[0]


def _watch():
    """Loads stepscope/_hook.py without its package: importing the package would load the recorder."""
    start_ns = time.thread_time_ns()
    path = HERE + "/../stepscope/_hook.py"
    hook = type(sys)("stepscope_hook")
    hook.__file__ = path
    sys.modules["_frozen_importlib_external"].SourceFileLoader("stepscope_hook", path).exec_module(hook)
    hook.watch(HERE + "/..")
    hook.TorchFinder.spent_ns = time.thread_time_ns() - start_ns


def _run_next_sitecustomize():
    """Runs the sitecustomize that this file hides, later on sys.path. Returns false if there is none."""
    places = [entry.rstrip("/") for entry in sys.path]
    behind = places.index(HERE) if HERE in places else 0
    rest = [entry for entry in sys.path[behind:] if entry.rstrip("/") != HERE]
    sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != HERE]
    spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("sitecustomize", rest)
    if spec is not None:
        sys.modules["_frozen_importlib"]._load_unlocked(spec)
    return spec is not None


def _end_import(spec, value):
    spec.__class__ = spec.__class__.__base__
    spec._initializing = value
    if not _run_next_sitecustomize() and sys.version_info >= (3, 8):
        del sys.modules["sitecustomize"]


def _await_end_of_import():
    """Runs the program's sitecustomize when the import of this file sets the last attribute of its spec.

    This keeps our frames out of its tracebacks. Python omits the frames of its import system from a traceback, and the
    functions below look like frames of the import system.
    """
    for function in (_end_import, _run_next_sitecustomize):
        if hasattr(function.__code__, "replace"):  # 3.8
            function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    kind = type(__spec__)
    __spec__.__class__ = type(kind.__name__, (kind,), {"_initializing": property(None, _end_import)})


def _run_next_of_python_2():
    import imp

    sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != HERE]
    try:
        found = imp.find_module("sitecustomize", sys.path)
    except ImportError:
        return
    del sys.modules["sitecustomize"]
    imp.load_module("sitecustomize", *found)


if sys.version_info[0] < 3:
    _run_next_of_python_2()
else:
    if "STEPSCOPE_RUN_DIR" in os.environ and "torch" not in sys.modules and sys.version_info >= (3, 8):
        try:
            _watch()
        except Exception as problem:
            sys.stderr.write("stepscope: cannot wait for PyTorch: %s\n" % problem)
    if getattr(__spec__, "_initializing", False):
        _await_end_of_import()
    else:  # another sitecustomize has executed this file directly
        _run_next_sitecustomize()
