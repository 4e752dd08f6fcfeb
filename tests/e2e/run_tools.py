# SPDX-License-Identifier: Apache-2.0
"""What the tests of `stepscope run` share: starting it, and looking into run directories without our own reader."""
import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

STEPSCOPE = os.environ.get("STEPSCOPE", "stepscope")
ACTOR = os.environ.get("ACTOR") or os.path.join(os.environ.get("BUILD", "build"), "tests", "e2e", "actor")
KEPT = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "TMPDIR")
BLOCK_SYMBOLS, BLOCK_END = 2, 10
KIND_COUNTER, KIND_META = 4, 20


AS_USERS_HAVE_IT = {"STEPSCOPE_BUDGET": ""}  # operators in some steps only


def environment(cwd, **more):
    """A clean one: nothing of a launcher or of ours, but that all steps have operators."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    if "ASAN_OPTIONS" in clean:  # programs that are to die of a signal shall do so
        clean["ASAN_OPTIONS"] += ":handle_segv=0"
    return {**clean, "HOME": str(cwd), "STEPSCOPE_BUDGET": "none", **{name: str(value) for name, value in more.items()}}


def start(cwd, *program, options=(), env=None, **how):
    """`stepscope run options -- program`, running."""
    command = [STEPSCOPE, "run", *map(str, options), "--", *map(str, program)]
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(command, cwd=cwd, env=environment(cwd, **(env or {})), **how)


def finish(process, timeout=60):
    """The same as run() gives, of a started one."""
    out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err.decode() if err is not None else "")


def run(cwd, *program, options=(), env=None, timeout=60, data=None):
    """Runs to the end; stdout stays bytes, stderr is text."""
    process = start(cwd, *program, options=options, env=env, stdin=subprocess.PIPE if data else subprocess.DEVNULL)
    out, err = process.communicate(data, timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err.decode())


def run_directory(cwd):
    """The directory of the only run in cwd."""
    names = [path for path in (Path(cwd) / "stepscope-runs").iterdir()
             if path.name.lstrip(".").split(".")[0] != "latest"]  # ".latest.PID" becomes it
    assert len(names) == 1, names
    return names[0]


def await_directory(cwd):
    """The same of a run that is just starting."""
    wait_for(lambda: list(Path(cwd).glob("stepscope-runs/*/run.json")), what="run directory")
    return run_directory(cwd)


def manifest(cwd):
    return json.loads((run_directory(cwd) / "run.json").read_text())


def wait_for(condition, timeout=20, what="condition"):
    """The first true value of condition()."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {timeout} s")


class Segment:
    """One .ssr file: its header, names, facts (META) and whether it was closed."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        assert data[:8] == b"SSEG0001"
        self.path = Path(path)
        self.pid, self.number = struct.unpack_from("<II", data, 16)
        self.role, self.rank = struct.unpack_from("<Ii", data, 68)
        self.counters, self.facts, self.is_closed = set(), {}, False
        offset = 128
        while offset + 64 <= len(data):
            magic, size, _, kind = struct.unpack_from("<IIIB", data, offset)
            if magic != 0x4B4C4253 or offset + 64 + size > len(data):
                break
            self.is_closed = kind == BLOCK_END
            if kind == BLOCK_SYMBOLS:
                self._read_symbols(data[offset + 64 : offset + 64 + size])
            offset += 64 + size

    def _read_symbols(self, data):
        at = 0
        while at + 8 <= len(data):
            _, length, kind, _ = struct.unpack_from("<IHBB", data, at)
            text = data[at + 8 : at + 8 + length].decode()
            if kind == KIND_COUNTER:
                self.counters.add(text)
            elif kind == KIND_META:
                key, value = text.split("\0")[:2]
                self.facts[key] = value
            at += 8 + (length + 7) // 8 * 8


def segments(directory, role=None):
    # one that has just been made may have no header yet
    found = [Segment(path) for path in sorted(Path(directory).glob("*.ssr")) if path.stat().st_size >= 128]
    return [segment for segment in found if role is None or segment.role == role]


TRAINER, WORKER, HOST = 0, 1, 3


def host_facts(directory):
    """The facts that `stepscope run` itself wrote down."""
    facts = {}
    for segment in segments(directory, HOST):
        facts.update(segment.facts)
    return facts


def has_report(directory):
    done = subprocess.run([STEPSCOPE, "report", str(directory)], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0 and bool(re.search(r"\S", done.stdout))


def pools(directory):
    """Pools in /dev/shm that processes of this run have left behind."""
    stems = {".".join(path.name.rsplit(".", 4)[1:3]) for path in Path(directory).glob("*.ssr")}
    return {name for name in (f"/dev/shm/stepscope.{os.getuid()}.{stem}" for stem in stems) if os.path.exists(name)}


def child_of(process):
    """The program that a running `stepscope run` has started."""
    def find():
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return int(text[0]) if text else 0
    return wait_for(find, what="a child")


def is_watched(process, pid):
    """Has a running `stepscope run` seen this process, so that it will know how it ended?"""
    files = Path(f"/proc/{process.pid}/fdinfo").iterdir()
    return any(re.search(rf"^Pid:\s+{pid}$", read_or_nothing(path), re.M) for path in files)


def read_or_nothing(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def await_watched(process, cwd, count, role=None):
    """The pids of so many processes of a run, all of which it has seen."""
    def find():
        pids = {segment.pid for segment in segments(await_directory(cwd), role)}
        return len(pids) == count and all(is_watched(process, pid) for pid in pids) and pids
    return wait_for(find, what=f"{count} processes that are watched")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def make_memory_group(name, limit):
    for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(root, name)
        try:
            os.mkdir(path)
            with open(os.path.join(path, file), "w", encoding="ascii") as setting:
                setting.write(str(limit))
            return path
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
    return None


@contextlib.contextmanager
def memory_group(name, limit):
    """A memory control group with that limit for a time; None where we may not make one."""
    path = make_memory_group(f"{name}-{os.getpid()}", limit)
    try:
        yield path
    finally:
        if path:
            wait_for(lambda: not os.system(f"rmdir {path} 2>/dev/null"), what="group removed")
