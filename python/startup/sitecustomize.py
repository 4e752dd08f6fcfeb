# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Python program that `stepscope run` starts, because it puts this folder first on PYTHONPATH.

Runs the user's own sitecustomize, if there is one, and waits for `import torch`. Imports nothing new, so that a program without
PyTorch pays next to nothing; a failure of ours is said in one line and never reaches the program.
"""
import os
import sys

HERE = __file__.rpartition("/")[0]


class _TorchFinder:
    """First in sys.meta_path until torch has been found; then gone."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        _forget_finder()
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if getattr(spec.loader, "exec_module", None) is not None:
                    _after_exec(spec.loader)
                return spec
        return None


def _forget_finder():
    try:
        sys.meta_path.remove(_TorchFinder)
    except ValueError:
        pass


def _after_exec(loader):
    """Calls us after the module's code has run; the loader is as it was from then on."""
    execute = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        execute(module)
        _attach()

    loader.exec_module = exec_module


def _attach():
    try:
        if "stepscope" not in sys.modules:
            _load_package()
        from stepscope import _torch

        _torch.attach()
    except Exception as problem:  # whatever it is: the program goes on
        print(f"stepscope: cannot observe PyTorch: {type(problem).__name__}: {problem}", file=sys.stderr)


def _load_package():
    """The installed package, or the one beside this folder."""
    try:
        import stepscope  # noqa: F401
    except ImportError:
        sys.path.append(HERE + "/..")
        try:
            import stepscope  # noqa: F401
        finally:
            sys.path.remove(HERE + "/..")


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


if "STEPSCOPE_RUN_DIR" in os.environ and "torch" not in sys.modules:
    sys.meta_path.insert(0, _TorchFinder)
_run_next_sitecustomize()
