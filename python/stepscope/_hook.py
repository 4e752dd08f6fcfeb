# SPDX-License-Identifier: Apache-2.0
"""Waits for `import torch`, then attaches the agent to it.

This module runs at the start of every recorded Python program: from the launcher's sitecustomize.py, from stepscope.pth
of an installed package, and from stepscope.auto(). So it imports only modules that Python has already loaded. If it
fails, it prints one line and the program continues.
"""
import os
import sys
import time
from _thread import get_ident


class TorchFinder:
    """A finder that is first in sys.meta_path until torch has been imported.

    Libraries may call find_spec("torch") earlier, without importing it.
    """

    is_stepscopes = True
    folders = ()  # where the package is if it is not installed
    environment = {}  # the variables STEPSCOPE* at the call of watch()
    spent_ns = 0  # CPU time of the thread before PyTorch was imported
    asking = set()  # threads that are asking the other finders

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        thread = get_ident()
        if name not in ("torch", "stepscope") or thread in cls.asking:
            return None
        cls.asking.add(thread)
        try:
            spec = _ask_others(name, path, target)
        except Exception:  # the import then asks that finder itself, and its traceback has no stepscope frame
            return None
        finally:
            cls.asking.discard(thread)
        if name == "stepscope":
            return _own_package(spec)
        if spec is not None and getattr(spec.loader, "exec_module", None) is not None:
            _await_import(spec)
        return spec


def _own_package(spec):
    """Returns the spec of this package if the program imports it before PyTorch and it is not installed.

    As in _load_package(), this package takes precedence over a folder without code.
    """
    if spec is not None and spec.has_location:
        return spec
    ours = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("stepscope", list(TorchFinder.folders))
    if ours is not None and spec is not None:
        ours.submodule_search_locations.extend(spec.submodule_search_locations)
    return ours or spec


def _ask_others(name, path, target):
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if find else None
        if spec is not None:
            return spec
    return None


def _forget_finder():
    try:
        sys.meta_path.remove(TorchFinder)
    except ValueError:
        pass


def _await_import(spec):
    """Attaches after the module's code has run.

    An import sets an attribute of the spec before and after the code. Using it keeps our functions out of the traceback
    of a failing import. Other callers, such as importlib.util.LazyLoader, only call the loader's exec_module().
    """
    kind, loader, execute = type(spec), spec.loader, spec.loader.exec_module
    signs = []

    def as_before():
        vars(loader).pop("exec_module", None)
        spec.__class__ = kind

    def exec_module(module):
        as_before()
        execute(module)
        _attach_now()

    def set_attribute(spec, name, value):
        if name == "_initializing" and value:
            vars(loader).pop("exec_module", None)
            _show_import(signs)
        elif name == "_initializing":
            _hide_import(signs)
            as_before()
            if spec.name in sys.modules:  # otherwise the import failed, and may be tried again
                _attach_now()
        kind.__setattr__(spec, name, value)

    try:
        if not isinstance(loader, type):
            loader.exec_module = exec_module
            spec.__class__ = type(kind.__name__, (kind,), {"__setattr__": set_attribute, "__module__": kind.__module__})
    except (AttributeError, TypeError):  # this spec or loader cannot be changed: the program continues unobserved
        pass


def _show_import(signs):
    """Opens this file: `stepscope run` sees that and knows that the import is still running."""
    try:
        if is_wanted():
            signs.append(os.open(__file__, os.O_RDONLY))
    except OSError:
        pass


def _hide_import(signs):
    try:
        os.close(signs.pop())
    except (IndexError, OSError):
        pass


def _attach_now():
    _forget_finder()
    attach()


def attach():
    """Attaches the agent to PyTorch, which has been imported. Prints one line if that fails."""
    try:
        start_ns = time.thread_time_ns()
        for name, value in TorchFinder.environment.items():  # the program may have cleared os.environ
            os.environ.setdefault(name, value)
        _load_package()
        if is_wanted() and not os.environ.get("STEPSCOPE_RUN_DIR"):
            from stepscope import _auto

            _auto.begin_here()
        from stepscope import _torch

        _torch.attach()
        _torch.tell_cost(TorchFinder.spent_ns + time.thread_time_ns() - start_ns)
    except Exception as problem:  # any failure: the program continues
        print(f"stepscope: cannot observe PyTorch: {type(problem).__name__}: {problem}", file=sys.stderr)


def _load_package():
    """Loads the installed package, or the one beside the launcher.

    A folder named stepscope without code, such as a clone of the sources, yields to it as to any package. The modules
    in that folder remain importable.
    """
    from importlib.util import find_spec

    theirs = sys.modules.get("stepscope")
    spec = getattr(theirs, "__spec__", None) if theirs is not None else find_spec("stepscope")
    if hasattr(theirs, "unavailable") or spec is not None and _is_ours(spec):
        import stepscope  # noqa: F401
    elif theirs is not None and spec is None or spec is not None and spec.has_location:  # do not import it: it may be the running script
        raise ImportError(f"the program has another module called stepscope: {spec and spec.origin}")
    else:
        _load_from_folders(theirs, spec.submodule_search_locations if spec is not None else ())


def _is_ours(spec):
    return any(name.startswith("_native.") and name.endswith(".so")
               for folder in spec.submodule_search_locations or () for name in os.listdir(folder))


def _load_from_folders(theirs, their_folders):
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("stepscope", list(TorchFinder.folders))
    if spec is None:
        raise ImportError("cannot find the package stepscope")
    ours = sys.modules["stepscope"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(ours)
    except BaseException:
        del sys.modules["stepscope"]
        if theirs is not None:
            sys.modules["stepscope"] = theirs
        raise
    ours.__path__.extend(their_folders)
    for name in set(vars(theirs) if theirs is not None else ()) - set(vars(ours)):
        setattr(ours, name, getattr(theirs, name))


def is_wanted():
    """Returns true if the environment asks for a recording."""
    wish = os.environ.get("STEPSCOPE", "")
    return wish not in ("0", "off") and bool(wish or os.environ.get("STEPSCOPE_RUN_DIR"))


def watch(*folders):
    """Attaches to PyTorch now, or when it is imported."""
    TorchFinder.folders = folders
    TorchFinder.environment = {name: os.environ[name] for name in os.environ if name.startswith("STEPSCOPE")}
    torch = sys.modules.get("torch")
    if torch is not None and not getattr(getattr(torch, "__spec__", None), "_initializing", False):
        attach()
    elif not any(getattr(finder, "is_stepscopes", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder)


def record(options=None):
    """Implements stepscope.auto()."""
    from stepscope import _auto

    directory = _auto.begin_here(options)
    if directory:
        watch()
    return directory


def observe():
    """Attaches to PyTorch, or starts it again, after the program has started a recording."""
    torch = sys.modules.get("stepscope._torch")
    if torch is not None:
        torch.tell()
    else:
        watch()


def start():
    """Called by stepscope.pth, which some Python versions run twice."""
    if sys.version_info >= (3, 8) and is_wanted():
        watch()
