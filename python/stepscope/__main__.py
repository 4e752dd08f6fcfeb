# SPDX-License-Identifier: Apache-2.0
"""`python -m stepscope [options] train.py ...` is `stepscope run [options] -- python train.py ...`.

If the program `stepscope` is missing, the script runs in this process, recorded without samples of the machine."""
import os
import runpy
import subprocess
import sys

from stepscope import _hook, _program

USAGE = "usage: python -m stepscope [options of `stepscope run`] train.py [arguments]   (or -m module, or -c command)"
# Options without a value; all others take one.
FLAGS = {"--no-host", "--enabled", "--record-shapes", "--profile-memory", "--with-stack", "--export-memory-timeline",
         "--sample-process", "-q", "--quiet", "-v", "--verbose", "-h", "--help", "--short-help", "--version"}


def split(arguments):
    """Returns the options of stepscope, and the program with its arguments."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in ("-m", "-c", "-"):
        word = arguments[at]
        at += 1
        if word == "--":
            return arguments[:at - 1], arguments[at:]
        if not (word in FLAGS or word.startswith("--no-") or "=" in word):
            at += 1
    return arguments[:at], arguments[at:]


def run_here(options, program):
    """Runs the script in this process. The options become a list for the recorder: --with memory -> with=memory."""
    words = iter(options)
    settings = []
    for word in words:
        name, _, value = word.lstrip("-").replace("-", "_").partition("=")
        if not value and word.startswith("--no-"):
            name, value = name[len("no_"):], "false"
        settings.append(f"{'out' if name == 'o' else name}={value or ('true' if word in FLAGS else next(words, ''))}")
    _hook.record(",".join(settings).replace("shapes,memory", "shapes:memory"))
    kind, sys.argv = program[0], program[1:] if program[0] in ("-m", "-c") else program
    if kind == "-m":
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")


def main():
    """Replaces this process by `stepscope run`, or runs the script here."""
    options, program = split(sys.argv[1:])
    stepscope = _program.find()
    if not program or any(word in ("-h", "--help") for word in options):
        print(USAGE, file=sys.stdout if options else sys.stderr)
        sys.exit(0 if options else 2)
    if stepscope and os.environ.get("STEPSCOPE") not in ("0", "off"):
        flags = subprocess._args_from_interpreter_flags()
        os.execv(stepscope, [stepscope, "run", *options, "--", sys.executable, *flags, *program])
    run_here(options, program)


if __name__ == "__main__":
    main()
