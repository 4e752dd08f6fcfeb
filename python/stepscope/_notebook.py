# SPDX-License-Identifier: Apache-2.0
"""The magics %stepscope and %%stepscope. IPython calls load()."""
import os
import subprocess
import time

import stepscope
from stepscope import _auto, _hook, _program


class Report:
    """The directory of a recorded cell, and the text of `stepscope report`."""

    def __init__(self, directory, text):
        self.directory, self.text = directory, text

    def __repr__(self):
        return self.text


def _options(line):
    """Converts the line of the magic to the option list of stepscope.auto()."""
    return ",".join(line.replace("--", " ").split())


def _report(directory):
    program = _program.find()
    if not program:
        return Report(directory, f"recorded into {directory}; the program `stepscope`, which prints the report, was not found")
    done = subprocess.run([program, "report", directory], capture_output=True, text=True, check=False)
    return Report(directory, done.stdout or done.stderr)


def _new_directory():
    """Returns a new directory for a cell."""
    base = os.environ.get("STEPSCOPE_DIR") or "stepscope-runs"
    when = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
    taken = [n for n in range(1, 1000) if not os.path.exists(f"{base}/{when}_cell_{os.getpid()}_{n}")]
    return f"{base}/{when}_cell_{os.getpid()}_{taken[0]}"


def load(shell):
    """Registers the magic."""

    def magic(line, cell=None):
        """%stepscope [options]: starts recording. %%stepscope [options]: records the cell and reports on it.

        The options are those of stepscope.auto(): with=shapes:memory out=runs/a
        """
        if cell is None:
            if stepscope.is_recording():
                _auto.say(f"this session is already recorded, into {stepscope.run_directory()}")
                return None
            directory = _hook.record(_options(line))
            return None if directory else "nothing is recorded"
        if os.environ.get("STEPSCOPE_RUN_DIR") or stepscope.is_recording():
            _auto.say("the whole session is already recorded: the cell runs as part of it")
            shell.run_cell(cell)
            return None
        options = _options(line)
        if "budget=" not in options and "cost_every=" not in options:
            options += ",budget=none" if options else "budget=none"  # a cell is recorded completely
        directory = next((option[len("out="):] for option in options.split(",") if option.startswith("out=")), None)
        if directory is None:
            directory = _new_directory()
            options += f",out={directory}"
        try:
            _auto.begin(options, "%%stepscope")
            _hook.watch()
        except Exception as problem:
            _auto.say(f"the cell is not recorded: {problem}")
        result = shell.run_cell(cell)
        is_recorded = bool(stepscope.active())
        stepscope.shutdown()
        return _report(directory) if is_recorded and result.success else None

    shell.register_magic_function(magic, "line_cell", "stepscope")
