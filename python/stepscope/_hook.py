# SPDX-License-Identifier: Apache-2.0
"""Waits for `import torch`, then hands it to the agent.

Imports nothing that Python has not loaded, for it runs at the start of every Python program that is recorded: in the launcher's
sitecustomize.py, by stepscope.pth of an installed package, and from stepscope.auto(). A failure of ours is said in one line and
never reaches the program.
"""
import os
import sys
import time
from _thread import get_ident


class TorchFinder:
    """First in sys.meta_path until torch has been imported; then gone. Libraries look for it before, without importing it."""

    is_stepscopes = True
    folders = ()  # where the package is, when it is not installed
    environment = {}  # what was ours of it when we were loaded
    spent_ns = 0  # of the thread's CPU time, before PyTorch was there
    asking = set()  # threads that ask the others

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        thread = get_ident()
        if name not in ("torch", "stepscope") or thread in cls.asking:
            return None
        cls.asking.add(thread)
        try:
            spec = _ask_others(name, path, target)
        except Exception:  # the import asks that finder again, and its traceback has nothing of ours
            return None
        finally:
            cls.asking.discard(thread)
        if name == "stepscope":
            return _own_package(spec)
        if spec is not None and getattr(spec.loader, "exec_module", None) is not None:
            _await_import(spec)
        return spec


def _own_package(spec):
    """A program may import us before PyTorch, where we are not installed. As in _load_package() a folder without code loses against us."""
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
    """Attaches when the module's code has run. An import says that in an attribute of the spec, with no function of ours around the code,
    which the traceback of one that fails would show. Others, such as importlib.util.LazyLoader, only have the loader execute it."""
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
            if spec.name in sys.modules:  # else it failed, and may be tried again
                _attach_now()
        kind.__setattr__(spec, name, value)

    try:
        if not isinstance(loader, type):
            loader.exec_module = exec_module
            spec.__class__ = type(kind.__name__, (kind,), {"__setattr__": set_attribute, "__module__": kind.__module__})
    except (AttributeError, TypeError):  # of a kind that cannot be told: the program goes on, unobserved
        pass


def _show_import(signs):
    """That it lasts: `stepscope run` sees that this file is open."""
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
    """PyTorch is there."""
    try:
        start_ns = time.thread_time_ns()
        for name, value in TorchFinder.environment.items():  # the program may have emptied it
            os.environ.setdefault(name, value)
        _load_package()
        if is_wanted() and not os.environ.get("STEPSCOPE_RUN_DIR"):
            from stepscope import _auto

            _auto.begin_here()
        from stepscope import _torch

        _torch.attach()
        _torch.tell_cost(TorchFinder.spent_ns + time.thread_time_ns() - start_ns)
    except Exception as problem:  # whatever it is: the program goes on
        print(f"stepscope: cannot observe PyTorch: {type(problem).__name__}: {problem}", file=sys.stderr)


def _load_package():
    """The installed package, or the one that the launcher brought. A folder of that name without code of its own, as our sources are where
    they were cloned, loses against it as against any package; but what it holds stays importable."""
    from importlib.util import find_spec

    theirs = sys.modules.get("stepscope")
    spec = getattr(theirs, "__spec__", None) if theirs is not None else find_spec("stepscope")
    if hasattr(theirs, "unavailable") or spec is not None and _is_ours(spec):
        import stepscope  # noqa: F401
    elif theirs is not None and spec is None or spec is not None and spec.has_location:  # not imported: it may be the running script
        raise ImportError(f"the program has a module of its own called stepscope: {spec and spec.origin}")
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
        raise ImportError("the package stepscope is not to be found")
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
    """Does the environment ask for a recording?"""
    wish = os.environ.get("STEPSCOPE", "")
    return wish not in ("0", "off") and bool(wish or os.environ.get("STEPSCOPE_RUN_DIR"))


def watch(*folders):
    """Now, or when torch is imported."""
    TorchFinder.folders = folders
    TorchFinder.environment = {name: os.environ[name] for name in os.environ if name.startswith("STEPSCOPE")}
    torch = sys.modules.get("torch")
    if torch is not None and not getattr(getattr(torch, "__spec__", None), "_initializing", False):
        attach()
    elif not any(getattr(finder, "is_stepscopes", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder)


def record(options=None):
    """See stepscope.auto()."""
    from stepscope import _auto

    directory = _auto.begin_here(options)
    if directory:
        watch()
    return directory


def observe():
    """A recording has begun that the program asked for."""
    torch = sys.modules.get("stepscope._torch")
    if torch is not None:
        torch.tell()
    else:
        watch()


def start():
    """By stepscope.pth, which some Pythons run twice."""
    if sys.version_info >= (3, 8) and is_wanted():
        watch()
