# SPDX-License-Identifier: Apache-2.0
"""What the tests with PyTorch share: which Pythons have it, and running a program under `stepscope run` with them."""
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest

STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
HERE = Path(__file__).parent
PACKAGE = Path(STEPSCOPE).resolve().parent.parent / "python"
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME")


# Without importing it, which takes seconds.
VERSION = """
import importlib.util, runpy
print(runpy.run_path(importlib.util.find_spec("torch").origin.replace("__init__", "version"))["__version__"])
"""


@lru_cache
def version(python):
    """Of the PyTorch that it imports; None when it has none, or when there is no such Python."""
    if not shutil.which(python):
        return None
    done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def is_before(python, *wanted):
    """Is its PyTorch older than that, 2, 1 say?"""
    return tuple(map(int, version(python).split(".")[:2])) < wanted


def pythons():
    """The virtual environment's has the newest PyTorch that is tested, Debian's the oldest. TORCH_PYTHONS: others, with colons."""
    wanted = os.environ.get("TORCH_PYTHONS", f"{sys.executable}:/usr/bin/python3").split(":")
    found = [pytest.param(python, id=f"torch-{version(python)}") for python in dict.fromkeys(wanted) if version(python)]
    return found or [pytest.param("", marks=pytest.mark.skip(reason="no Python here has PyTorch: see tools/setup"))]


every_python = pytest.mark.parametrize("python", pythons())


def environment(**more):
    """With one thread of OpenMP: where all cores are busy, two wait for each other in a loop, ten times as long as they work."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {"OMP_NUM_THREADS": "1", **kept, **{key: str(value) for key, value in more.items()}}


def run(tmp_path, *program, env=None, options=(), timeout=300, budget="none"):
    """`stepscope run -o run -- program`, with operators in all steps unless `budget` says otherwise."""
    return subprocess.run([STEPSCOPE, "run", "-o", "run", "--budget", budget, *options, "--", *map(str, program)], cwd=tmp_path, timeout=timeout,
                          env=environment(**(env or {})), capture_output=True, text=True, check=False)


def until_ranks_end(start):
    """start(), again where PyTorch crashed while Python ended: one of its threads wanted the interpreter then. One time in eight, also without us."""
    for _ in range(5):
        done = start()
        if "terminate called without an active exception" not in done.stderr:
            break
    return done


def run_ranks(tmp_path, *program, **options):
    """run() of a launcher of ranks."""
    def start():
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        for store in tmp_path.glob("store*"):  # of ranks that crashed: those of the next try would ask for them there
            store.unlink()
        return run(tmp_path, *program, **options)
    return until_ranks_end(start)


@lru_cache
def warm_server(python):
    """Where one that has imported PyTorch is asked to run programs, by warm.py."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen([python, HERE / "warm.py", str(its.fileno())], pass_fds=[its.fileno()], env=environment(),
                                   start_new_session=True)
    atexit.register(os.killpg, process.pid, signal.SIGKILL)
    return ours


def warm(tmp_path, python, *program, env=None, options=(), is_observed=True, timeout=300, budget="none"):
    """As run(), without the launcher and the seconds that `import torch` takes: for tests of what is recorded, and not of how we get in.
    is_observed=False: `python program` alone. budget=None: `options` say it (--cost-every)."""
    server, its = warm_server(python), environment(**(env or {}))
    if is_observed:
        wanted = (f"{name[2:]}={value}".replace(",", ":") for name, value in zip(options[::2], options[1::2]))
        its["STEPSCOPE"] = ",".join(("out=run", *((f"budget={budget}",) if budget else ()), *wanted))
    request = {"program": (str(tmp_path), its, list(map(str, program))), "package": str(PACKAGE) if is_observed else ""}
    server.settimeout(timeout)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        socket.send_fds(server, [json.dumps(request).encode()], [out.fileno(), errors.fileno()])
        status = os.waitstatus_to_exitcode(int(server.recv(16)))
        out.seek(0)
        errors.seek(0)
        done = subprocess.CompletedProcess(program, status, out.read(), errors.read())
    assert not is_observed or "stepscope: nothing is recorded" not in done.stderr, done.stderr
    return done


def table(tmp_path, name, *options, recording="run"):
    done = subprocess.run([STEPSCOPE, "report", recording, "--table", name, "--json", *options], cwd=tmp_path, timeout=180,
                          env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def check_python_ids(events):
    """As readers of Kineto's traces want them: each call of a function or a module tells the one that it lies in. Returns how many of both
    there are."""
    calls = {event["args"]["Python id"]: event for event in events if event.get("cat") == "python_function"}
    modules = [event for event in calls.values() if event["name"].startswith("nn.Module: ")]
    assert len(calls) == sum(event.get("cat") == "python_function" for event in events)
    numbers = [event["args"]["Ev Idx"] for event in events if "Ev Idx" in event.get("args", {})]
    assert len(set(numbers)) == len(numbers) >= len(calls)
    span = {key: (event["tid"], round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)) for key, event in calls.items()}
    for key, (thread, start, end) in span.items():
        above, parent = [], calls[key]["args"].get("Python parent id")
        while parent is not None:
            above.append(parent)
            parent = calls[parent]["args"].get("Python parent id")
        around = [other for other, (tid, first, last) in span.items() if tid == thread and first <= start and end <= last and
                  (first, last) != (start, end)]
        assert set(around) <= set(above), calls[key]
        assert all(span[each][0] == thread and span[each][1] <= start and end <= span[each][2] for each in above), calls[key]
    paths = {event["args"]["Python module id"]: event["name"] for event in modules}
    assert sorted(paths) == list(range(len(paths))) and len(set(paths.values())) == len(paths)
    assert all(paths[event["args"]["Python module id"]] == event["name"] for event in modules)
    return len(calls) - len(modules), len(modules)


def export(tmp_path, *options):
    subprocess.run([STEPSCOPE, "export", "run", "-o", "ours.json", *options], cwd=tmp_path, timeout=180, env=environment(),
                   capture_output=True, check=True)
    return json.loads((tmp_path / "ours.json").read_text())["traceEvents"]
