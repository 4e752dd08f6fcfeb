# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Python program that `stepscope run` starts, because it puts this folder first on PYTHONPATH.

Runs the user's own sitecustomize, if there is one, and waits for `import torch`. Imports nothing new, so that a program without
PyTorch pays next to nothing. Also run by Pythons that are too old for us: keep to what all of them understand.
"""
import os
import sys
import time

HERE = __file__.rpartition("/")[0]


def _watch():
    """stepscope/_hook.py as a module of its own: importing the package would load the recorder."""
    start_ns = time.thread_time_ns()
    path = HERE + "/../stepscope/_hook.py"
    hook = type(sys)("stepscope_hook")
    hook.__file__ = path
    sys.modules["_frozen_importlib_external"].SourceFileLoader("stepscope_hook", path).exec_module(hook)
    hook.watch(HERE + "/..")
    hook.TorchFinder.spent_ns = time.thread_time_ns() - start_ns


def _run_next_sitecustomize():
    """The one that this file hides."""
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    rest = [entry for entry in sys.path if entry.rstrip("/") != HERE]
    sys.path[:] = rest
    spec = finder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


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
    _run_next_sitecustomize()
