# SPDX-License-Identifier: Apache-2.0
"""Recording without the launcher: starts it, and lets the children of this process join."""
import os
import sys

import stepscope

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def say(text):
    """One line on stderr."""
    print(f"stepscope: {text}", file=sys.stderr)


def begin_here(options=None):
    """Starts recording, if that has not been done; the directory, "" when there is none."""
    wish = os.environ.get("STEPSCOPE", "")
    if wish in ("0", "off"):
        return ""
    if stepscope.unavailable:
        say(f"nothing is recorded: {stepscope.unavailable}")
        return ""
    if os.environ.get("STEPSCOPE_STARTED_BY") == str(os.getpid()) and not stepscope.active():
        del os.environ["STEPSCOPE_STARTED_BY"]  # an earlier recording of ours, which has ended
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
    """RuntimeError says why not, and whose options are wrong. Also after a stop: then PyTorch is told again."""
    try:
        stepscope._init(options)
    except RuntimeError as problem:
        raise RuntimeError(str(problem).replace("stepscope_init()", whose)) from None
    torch = sys.modules.get("stepscope._torch")
    if torch is not None:
        torch.tell()


def _directory_of_ranks():
    """The ranks that torchrun starts on a machine record into one directory: named after torchrun, which all of them know."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("STEPSCOPE_OPTIONS"):
        return ""
    base = os.environ.get("STEPSCOPE_DIR") or "stepscope-runs"
    with open(f"/proc/{os.getppid()}/stat", encoding="utf-8", errors="replace") as stat:
        ticks = stat.read().rpartition(")")[2].split()[19]
    return f"out={base}/torchrun_{os.getppid()}_{ticks}"


def _invite_children(directory):
    """What is started from here on records into the same directory; it says nothing at its end, we do."""
    os.environ["STEPSCOPE_RUN_DIR"] = directory
    os.environ["STEPSCOPE_STARTED_BY"] = str(os.getpid())
    os.environ["STEPSCOPE_LIBRARY"] = stepscope._native.library_path()
    os.environ.setdefault("STEPSCOPE", "1")
    for name in ("startup", "stepscope_startup"):  # in the second an installed package has it
        startup = os.path.join(os.path.dirname(_PACKAGE), name)
        if os.path.exists(os.path.join(startup, "sitecustomize.py")):
            old = os.environ.get("PYTHONPATH")
            if not old or old.split(os.pathsep)[0] != startup:
                os.environ["PYTHONPATH"] = startup + (os.pathsep + old if old else "")
            break
