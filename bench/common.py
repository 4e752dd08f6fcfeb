# SPDX-License-Identifier: Apache-2.0
"""Common code of the benchmarks: builds, results with facts about the machine, verdicts, blocks of a recording."""
import argparse
import datetime
import glob
import math
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build-bench"))
LIBRARY = os.path.join(BUILD, "src", "recorder")
SHARED = "src/recorder/libstepscope.so.0.1.0"
GCC = ["gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-D_GNU_SOURCE",
       *(f"-I{ROOT}/{folder}" for folder in ("include", "src", "bench/c"))]

AUTOGROUP = "/proc/self/autogroup"

EVENTS, DROPS, COARSE = 1, 6, 1  # enum stepscope_block_kind, enum stepscope_segment_flag


def text_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def load():
    return " ".join(read_text("/proc/loadavg").split()[:3])


class Bench:
    """A benchmark. Its output goes to stdout and, with --save, to bench/results/NAME.txt."""

    def __init__(self, name, about, **options):
        parser = argparse.ArgumentParser(prog=f"bench/{name}", description=about)
        parser.add_argument("--save", action="store_true", help=f"also write bench/results/{name}.txt")
        for option, (default, text) in options.items():
            parser.add_argument(f"--{option}", type=type(default), default=default, help=f"{text} (%(default)s)")
        self.arguments = parser.parse_args()
        self.name, self.lines, self.verdicts = name, [], []
        self.directory = tempfile.mkdtemp(prefix=f"stepscope-bench-{name}-")
        self.load_before = load()
        self.say(f"{name}: {about}")
        for line in self.machine():
            self.say(f"# {line}")

    @staticmethod
    def machine():
        info = read_text("/proc/cpuinfo")
        field = lambda key: next((l.split(":", 1)[1].strip() for l in info.splitlines() if l.startswith(key)), "?")
        memory = int(read_text("/proc/meminfo").split()[1]) / 2**20
        path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        clock = read_text(path).strip() if os.path.exists(path) else "?"
        is_dirty = text_of(["git", "status", "--porcelain", "-uno", "src", "include", "bench", "examples"])
        now = datetime.datetime.now(datetime.timezone.utc)
        yield (f"{os.cpu_count()} x {field('model name')}, family {field('cpu family')} model {field('model')}, "
               f"{memory:.0f} GiB")
        virtual = "a virtual machine" if " hypervisor" in info else "no virtual machine"
        yield f"{text_of(['uname', '-srm'])}, {virtual}, clocksource {clock}"
        yield f"{text_of(['gcc', '--version']).splitlines()[0]}; release build"
        yield f"{now:%Y-%m-%d %H:%M} UTC, commit {text_of(['git', 'rev-parse', '--short', 'HEAD']) or '?'}" + (
            " with local changes" if is_dirty else "")

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def table(self, head, rows):
        rows = [head] + [[str(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        for row in rows:
            cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            self.say("  " + "  ".join(cells).rstrip())
        self.say()

    def claim(self, text, measured, limit, unit, is_known=True, why=""):
        """Prints the verdict on `measured` <= `limit`. is_known is false if the measurements do not allow a verdict."""
        verdict = "PASS" if measured <= limit else "MISS"
        if not is_known:
            verdict = "CANNOT TELL"
        self.verdicts.append(verdict)
        self.say(f"{verdict}: {text}: {measured:.4g} {unit}, limit {limit:g} {unit}{' (' + why + ')' if why else ''}")

    def finish(self):
        """Ends the benchmark. The exit status is 1 if a claim is missed."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.say(f"# load average before: {self.load_before}; after: {load()}")
        if self.arguments.save:
            path = os.path.join(ROOT, "bench", "results", f"{self.name}.txt")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines) + "\n")
        sys.exit(1 if "MISS" in self.verdicts else 0)


# ---- building ------------------------------------------------------------------------------------------------------

def run(command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def build(*targets, folder=BUILD, options=()):
    """Makes a release build of the targets, by default only libstepscope. Returns the folder of the library."""
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run(["meson", "setup", folder, ROOT, "--buildtype=release", "-Dtests=false", "-Dtool=false", *options],
            stdout=subprocess.DEVNULL)
    elif options:  # another benchmark may have configured the folder without them
        run(["meson", "configure", folder, *options], stdout=subprocess.DEVNULL)
    run(["ninja", "-C", folder, "--quiet", *(targets or [SHARED])], stdout=subprocess.DEVNULL)
    return os.path.join(folder, "src", "recorder")


def build_torch():
    """Makes the release build that PyTorch's benchmarks measure. Returns the path of the program."""
    build("all", folder=f"{BUILD}/torch", options=["-Dtool=true", "-Dexamples=false"])
    return f"{BUILD}/torch/src/stepscope"


def compile_shared(name, *sources):
    """Compiles bench/c/NAME.c with these files of src/ into a shared object and returns its path."""
    path = os.path.join(BUILD, "bench", f"{name}.so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files = (f"{ROOT}/{source}" for source in (f"bench/c/{name}.c", *sources))
    run([*GCC, "-shared", "-fPIC", *files, "-o", path, "-ldl"])
    return path


def compile_torch_empty():
    return compile_shared("torch_empty", "src/agents/torch/slots.c", "src/agents/torch/process.c")


def compile_c(name, *arguments, output=None, library=LIBRARY):
    """Compiles bench/c/NAME.c against the shared library and returns the program's path."""
    program = os.path.join(BUILD, "bench", output or name)
    os.makedirs(os.path.dirname(program), exist_ok=True)
    run([*GCC, f"{ROOT}/bench/c/{name}.c", "-o", program, *arguments, f"-L{library}", f"-Wl,-rpath,{library}",
         "-lstepscope", "-lpthread", "-lm"])
    return program


def first():
    """Returns the words that give a command priority over other work of the machine, if that is allowed.

    If the kernel gives each session a separate share (autogroups), nice values count only within a session. In that
    case this also raises the priority of our session.
    """
    if os.geteuid() != 0:
        return []
    if os.path.exists(AUTOGROUP):
        with open(AUTOGROUP, "w", encoding="ascii") as file:
            file.write("-20")
    return ["nice", "-n", "-20"]


def environment(**more):
    """Returns the environment without variables of stepscope, with `more` added."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STEPSCOPE")}
    return {**clean, "LC_ALL": "C", **{key: str(value) for key, value in more.items()}}


def output(*command, **settings):
    """Returns the output of a command. Its environment has only these variables of stepscope."""
    return run([str(word) for word in command], capture_output=True, env=environment(**settings)).stdout


# ---- recordings ----------------------------------------------------------------------------------------------------

def blocks(path):
    """Yields (kind, stream, events, words, data) of each block of a segment file. Only DROPS blocks have data."""
    with open(path, "rb") as file:
        content = file.read()
    at = struct.unpack_from("<I", content, 8)[0]
    while at + 64 <= len(content):
        magic, size, _, kind, _, _, _, stream, _, _, words, events = struct.unpack_from("<IIIBBBBIIQII", content, at)
        if magic != 0x4B4C4253:
            raise ValueError(f"{path}: no block at offset {at}")
        yield kind, stream, events, words, content[at + 64:at + 64 + size] if kind == DROPS else b""
        at += 64 + size


def is_coarse(path):
    with open(path, "rb") as file:
        header = file.read(128)
    return bool(struct.unpack_from("<I", header, 104)[0] & COARSE)


def recording(directory):
    """Returns sums over the segments with detail of a recording: bytes, events, dropped."""
    total = {"bytes": 0, "events": 0, "dropped": 0}
    for path in sorted(glob.glob(os.path.join(directory, "**", "*.ssr"), recursive=True)):
        if is_coarse(path):
            continue
        drops = {}
        for kind, stream, events, _, data in blocks(path):
            total["events"] += events if kind == EVENTS else 0
            if kind == DROPS:
                drops[stream] = sum(struct.unpack("<16Q", data))
        total["bytes"] += os.path.getsize(path)
        total["dropped"] += sum(drops.values())
    return total


def median(values):
    return statistics.median(values)


def interval(values):
    """Returns (median, low, high): the 95 % interval of the median by order statistics; of few values, their range."""
    values, below, k = sorted(values), 0.0, 0
    while below + math.comb(len(values), k) / 2 ** len(values) <= 0.025:
        below += math.comb(len(values), k) / 2 ** len(values)
        k += 1
    k = max(k - 1, 0)
    return median(values), values[k], values[-1 - k]
