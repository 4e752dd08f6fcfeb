# SPDX-License-Identifier: Apache-2.0
"""Starts a recording without the launcher, and lets the children of this process join it."""
import os
import sys

import stepscope

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def say(text):
    """Prints one line on stderr."""
    print(f"stepscope: {text}", file=sys.stderr)


def begin_here(options=None):
    """Starts recording, unless it has started. Returns the directory, or "" if nothing is recorded."""
    wish = os.environ.get("STEPSCOPE", "")
    if wish in ("0", "off"):
        return ""
    if stepscope.unavailable:
        say(f"nothing is recorded: {stepscope.unavailable}")
        return ""
    if os.environ.get("STEPSCOPE_STARTED_BY") == str(os.getpid()) and not stepscope.active():
        del os.environ["STEPSCOPE_STARTED_BY"]  # this process started a recording, which has ended
        os.environ.pop("STEPSCOPE_RUN_DIR", None)
    inherited = os.environ.get("STEPSCOPE_RUN_DIR")
    if inherited:
        return stepscope.run_directory() or inherited
    try:
        begin(options or (wish if "=" in wish else "") or _directory_of_ranks(), "stepscope.auto()" if options else "the variable STEPSCOPE")
        directory = stepscope.run_directory()
        say(f"recording into {directory}")
        _invite_children(directory)
        return directory
    except Exception as problem:
        say(f"nothing is recorded: {problem}")
        return ""


def begin(options, whose):
    """Starts recording. `whose` names the source of the options in the message of a RuntimeError.

    After a recording has stopped, this also starts the observer of PyTorch again.
    """
    try:
        stepscope._init(options)
    except RuntimeError as problem:
        raise RuntimeError(str(problem).replace("stepscope_init()", whose)) from None
    torch = sys.modules.get("stepscope._torch")
    if torch is not None:
        torch.tell()


def _directory_of_ranks():
    """Returns the option for the directory that the ranks of torchrun share, or "" without torchrun.

    It is named after the torchrun process on this machine, since all its ranks know that process.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("STEPSCOPE_OPTIONS"):
        return ""
    base = os.environ.get("STEPSCOPE_DIR") or "stepscope-runs"
    with open(f"/proc/{os.getppid()}/stat", encoding="utf-8", errors="replace") as stat:
        ticks = stat.read().rpartition(")")[2].split()[19]
    return f"out={base}/torchrun_{os.getppid()}_{ticks}"


def _invite_children(directory):
    """Makes child processes started later record into the same directory.

    They print no message at their end; this process does.
    """
    os.environ["STEPSCOPE_RUN_DIR"] = directory
    os.environ["STEPSCOPE_STARTED_BY"] = str(os.getpid())
    os.environ["STEPSCOPE_LIBRARY"] = stepscope._native.library_path()
    os.environ.setdefault("STEPSCOPE", "1")
    for name in ("startup", "stepscope_startup"):  # the second is the folder of an installed package
        startup = os.path.join(os.path.dirname(_PACKAGE), name)
        if os.path.exists(os.path.join(startup, "sitecustomize.py")):
            old = os.environ.get("PYTHONPATH")
            if not old or old.split(os.pathsep)[0] != startup:
                os.environ["PYTHONPATH"] = startup + (os.pathsep + old if old else "")
            break
