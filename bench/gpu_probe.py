# SPDX-License-Identifier: Apache-2.0
"""Measures undocumented behaviour of CUPTI on one GPU: raw buffers of graphs and streams, the cost of each set of
record kinds, the records left when programs end, other users of CUPTI, and graphs created before CUPTI is enabled.

Run `python3 bench/gpu_probe.py --out DIR` on a machine with a GPU, PyTorch and a C compiler. It takes less than
4 minutes. Each case of gpu_probe_run.py is a separate process. results.jsonl gets a line when a case ends.
graphs.tar.gz and others.tar.gz contain the files of the probe (c/cupti_probe.c). --fake runs everything without a GPU.
"""
import argparse
import concurrent.futures
import glob
import gzip
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TAR_BYTES = 12 << 20  # limit of each tar file
BASIC = "10,1,2,38,17,36"  # kernels, memcpy, memset, synchronization, overhead, cuda_event
# callback ids: launches, graph launches and instantiations, copies, sets, events, waits, synchronisation, allocations
RUNTIME = ("211,214,269,284,430,431,311,312,310,335,418,436,443,315,319,31,32,41,44,49,51,160,161,225,233,235,"
           "131,135,137,138,147,165,370,20,22,25,26,27,152,206,373,374,375,376,377,391,392")
DRIVER = ("307,442,477,527,652,653,514,515,513,561,578,643,656,696,276,277,278,279,280,281,305,306,216,220,"
          "17,119,121,126,295,587,800,243,245,271,294,549,550,551,552,598,599,600,601,611,612")
SELECTED = {"CUPTI_PROBE_KINDS": BASIC, "CUPTI_PROBE_RUNTIME": RUNTIME, "CUPTI_PROBE_DRIVER": DRIVER}
GRAPHS = {"CUPTI_PROBE_GRAPHS": "1", "CUPTI_PROBE_BYTES": str(8 << 20)}
# record sizes of CUPTI 13.0, to test whether raw buffers can be walked without CUPTI
RECORD_BYTES = {10: 216, 1: 96, 2: 88, 4: 40, 5: 40, 38: 56, 36: 56, 17: 56, 49: 128, 50: 72, 12: 56, 39: 24}


LONG = ("released", "calls", "exec_spawn", "fork_loader", "ours_first_ncu")  # these start first
TARS = {"graphs": ("graph_buffers", "graph_late"), "others": ("eager_buffers", "kinds_cost", "ends", "others", "oom")}


def cases():
    """Returns [(row, case, environment, seconds, options)].

    The options are bare (without the probe), together (at the same time as others) and wrap (a command before it).
    """
    memory = {**SELECTED, "CUPTI_PROBE_KINDS": BASIC + ",49,50"}
    found = [("graph_buffers", "whole", {**SELECTED, **GRAPHS}, 60, {}),
             ("graph_buffers", "compile", {**SELECTED, **GRAPHS}, 80, {}),
             ("eager_buffers", "streams", SELECTED, 40, {}),
             ("eager_buffers", "async", {**memory, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, 40, {}),
             ("eager_buffers", "expandable", {**memory, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, 40, {"together": True}),
             ("eager_buffers", "nvtx", {**SELECTED, "CUPTI_PROBE_KINDS": BASIC + ",12", "NVTX": "1"}, 40, {"together": True}),
             ("eager_buffers", "waits", {**SELECTED, "CUPTI_PROBE_SYNC_ALL": "1", "CUPTI_PROBE_EVENT_TIMES": "1"}, 40, {"together": True}),
             ("eager_buffers", "all", {"CUPTI_PROBE_KINDS": BASIC + ",4,5", "CUPTI_PROBE_LAUNCHES": "2"}, 40, {"together": True}),
             ("kinds_cost", "turns", {"CUPTI_PROBE_RUNTIME": RUNTIME, "CUPTI_PROBE_DRIVER": DRIVER, "NO_FILES": "1"}, 75, {})]
    some = {"CUPTI_PROBE_KINDS": "10,1,2,38"}
    for case in ("exit0", "exit3", "os_exit3", "kill9", "sigterm", "sigterm_handled", "exception", "abort", "running", "running_os_exit3",
                 "fork_loader", "fork_exit", "fork_os_exit", "fork_raise", "exec", "exec_spawn"):
        found.append(("ends", case, some, 45, {"together": True}))
        if not case.startswith("fork_") or case == "fork_exit":
            found.append(("ends", case, {}, 45, {"together": True, "bare": True}))
    found += [("ends", "kill9_full", some, 45, {"together": True}),
              ("ends", "kill9_period", {**some, "CUPTI_PROBE_PERIOD": "100"}, 45, {"together": True}),
              ("ends", "running_force", {**some, "CUPTI_PROBE_END": "force"}, 45, {"together": True}),
              ("others", "profiler_first", {**some, "CUPTI_PROBE_SUBSCRIBE": "no"}, 45, {"together": True}),
              ("others", "profiler_first_unset", {**some, "CUPTI_PROBE_SUBSCRIBE": "no"}, 45, {"together": True}),
              ("others", "ours_first", some, 45, {"together": True}),
              ("others", "ours_first", {}, 45, {"together": True, "bare": True}),
              ("others", "released", some, 60, {"together": True}),
              ("others", "released_unset", some, 60, {"together": True}),
              ("others", "released_late", some, 60, {"together": True}),
              ("others", "released_teardown", {**some, "TEARDOWN_CUPTI": "1"}, 60, {"together": True}),
              ("others", "subscribe_v2", {**some, "CUPTI_PROBE_SUBSCRIBE": "2"}, 45, {"together": True}),
              ("others", "by_hand", {**some, "NO_INJECTION": "1"}, 45, {"together": True})]
    late = {"CUPTI_PROBE_GRAPHS": "1"}
    found += [("graph_late", "kinds", late, 45, {"together": True}),
              ("graph_late", "calls", {**late, "CUPTI_PROBE_RUNTIME": "211,311", "CUPTI_PROBE_DRIVER": "307,514"}, 45, {"together": True}),
              ("graph_late", "subscription", {**late, "CUPTI_PROBE_SUBSCRIBE": "no"}, 45, {"together": True}),
              ("graph_late", "exec_update", {**late, **some}, 45, {"together": True}),
              ("graph_late", "exec_update_safe", {**late, **some, "CUPTI_PROBE_IDS": "safe"}, 45, {"together": True})]
    ncu = ["ncu", "--target-processes", "all", "--launch-count", "3", "--metrics", "gpu__time_duration.sum"]
    if shutil.which("ncu"):
        found.append(("others", "ours_first_ncu", some, 45, {"together": True, "wrap": ncu}))
    found.append(("oom", "caught", {**memory}, 45, {}))
    return found


def find_cupti():
    for folder in sys.path:
        for path in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcupti.so.1?")), reverse=True):
            return path
    return None


def compiler():
    for name in ("gcc", "cc", "clang"):
        if shutil.which(name):
            return [name, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden"]
    return ["nvcc", "-O2", "-shared", "-Xcompiler", "-std=gnu11,-fPIC,-fvisibility=hidden"]


def build(target, sources, *more):
    command = compiler() + [os.path.join(HERE, "c", source) for source in sources] + ["-o", target, *more, "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        sys.exit(f"gpu_probe: cannot build {target}:\n{done.stderr}")


def walk(path):
    """Returns the content of a raw file: rows by kind, for kinds in RECORD_BYTES, and the bytes of a torn end."""
    buffers, rows, torn, lost = 0, {}, 0, None
    with open(path, "rb") as file:
        while True:
            head = file.read(16)
            if len(head) < 16:
                torn += len(head)
                break
            valid = struct.unpack("<QQ", head)[0]
            data = file.read(valid)
            if len(data) < valid:
                torn += len(data)
                break
            buffers += 1
            at = 0
            while at < valid:
                kind = struct.unpack_from("<I", data, at)[0]
                if kind not in RECORD_BYTES:
                    lost = lost or [kind, at]
                    break
                rows[kind] = rows.get(kind, 0) + 1
                at += RECORD_BYTES[kind]
    return {"buffers": buffers, "rows": rows, "torn": torn, "lost": lost, "bytes": os.path.getsize(path)}


def look_at(folder):
    """Returns the probe's output in the folder of a case: per process lines of texts, raw rows, and the final report."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "out-*"))):
        name = os.path.basename(path)
        process, _, ending = name[4:].partition(".")
        place = found.setdefault(process, {})
        if ending == "bin":
            place["raw"] = walk(path)
        elif ending.endswith("txt"):
            with open(path, "rb") as file:
                place[ending] = sum(1 for _ in file)
        elif ending == "json" and process.isdigit():
            with open(path, encoding="utf-8", errors="replace") as file:
                place["report"] = json.load(file)
    return found


class Run:
    def __init__(self, options):
        self.options, self.lock, self.packed_files = options, threading.Lock(), {}
        self.until = time.monotonic() + options.seconds
        self.work = tempfile.mkdtemp(prefix="gpu_probe.")
        os.makedirs(options.out, exist_ok=True)
        self.results = open(os.path.join(options.out, "results.jsonl"), "a", encoding="utf-8")
        self.probe = os.path.join(self.work, "libcupti_probe.so")
        build(self.probe, ["cupti_probe.c", "cupti_library.c", "cupti_text.c"])
        self.cupti = find_cupti()
        if options.fake:
            self.cupti = os.path.join(self.work, "libcupti_stand_in.so")
            build(self.cupti, ["cupti_stand_in.c"], "-Wl,-soname,libcupti.so.13")

    def write(self, line):
        with self.lock:
            self.results.write(json.dumps(line) + "\n")
            self.results.flush()

    def environment(self, folder, settings, is_bare):
        found = {name: value for name, value in os.environ.items()
                 if not name.startswith("CUPTI_PROBE_") and name not in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")}
        settings = dict(settings)
        has_files, by_hand, nvtx = (settings.pop(name, None) for name in ("NO_FILES", "NO_INJECTION", "NVTX"))
        found |= settings
        found["GPU_PROBE_OUT"] = os.path.join(folder, "out")
        found["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(self.work, "inductor")
        found["TRITON_CACHE_DIR"] = os.path.join(self.work, "triton")
        if self.options.fake:
            found |= {"GPU_PROBE_FAKE": "1", "CUPTI_PROBE_ANYWAY": "1", "OMP_NUM_THREADS": "1"}
        if is_bare:
            return found
        found["GPU_PROBE_LIBRARY"] = self.probe
        if not has_files:
            found["CUPTI_PROBE_OUT"] = os.path.join(folder, "out")
        if not by_hand and not self.options.fake:
            found["CUDA_INJECTION64_PATH"] = self.probe
        if self.cupti:
            found["CUPTI_PROBE_LIBRARY"] = self.cupti
            if nvtx and not self.options.fake:
                found["NVTX_INJECTION64_PATH"] = self.cupti
        return found

    def case(self, row, case, settings, seconds, options):
        """Runs one case and writes its line, also if the case fails."""
        is_bare = options.get("bare", False)
        label = case + ("-bare" if is_bare else "-again" if options.get("again") else "")
        line = {"row": row, "case": label, "settings": settings}
        left = self.until - time.monotonic()
        if left < 8:
            self.write(line | {"skipped": "no time left"})
            return line
        folder = os.path.join(self.work, row, label)
        os.makedirs(folder, exist_ok=True)
        started = time.monotonic()
        try:
            self.run_case(line, folder, [*options.get("wrap", []), sys.executable, os.path.join(HERE, "gpu_probe_run.py"), row, case],
                          self.environment(folder, settings, is_bare), min(seconds, left))
            line["files"] = look_at(folder)
        except Exception as error:  # pylint: disable=broad-except
            line["failed"] = repr(error)
        line["wall_s"] = round(time.monotonic() - started, 2)
        self.write(line)
        print(f"{row} {label}: status {line.get('status')}, {line['wall_s']} s{', TIMED OUT' if line.get('timed_out') else ''}", flush=True)
        return line

    @staticmethod
    def run_case(line, folder, command, environment, seconds):
        """Runs a case in a new process group, and kills processes of the group that remain after it."""
        with open(os.path.join(folder, "stdout"), "w+b") as out, open(os.path.join(folder, "stderr"), "w+b") as err:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=folder,
                                       start_new_session=True)
            try:
                line["status"] = process.wait(seconds)
            except subprocess.TimeoutExpired:
                line["timed_out"] = True
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            line.setdefault("status", process.wait())
            for file in (out, err):
                file.seek(0)
            said, complained = out.read().decode(errors="replace"), err.read().decode(errors="replace")
        lines = [text for text in said.splitlines() if text.startswith("{")]
        line["result"] = json.loads(lines[-1]) if lines else None
        if not lines:
            line["stdout"] = said[-1500:]
        line["stderr"] = complained[-2500:]

    def alone(self, one):
        line = self.case(*one)
        if one[0] == "graph_buffers" and line.get("status", 0) < 0 and not line.get("timed_out"):
            self.case(one[0], one[1], one[2] | {"CUPTI_PROBE_IDS": "safe"}, one[3], {"again": True})

    def together(self, chosen):
        print(f"== {len(chosen)} cases, {self.options.jobs} at a time, {self.until - time.monotonic():.0f} s left", flush=True)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(lambda one: self.case(*one), chosen))

    def packed(self, file):
        key = (file, os.path.getsize(file))
        if key not in self.packed_files:
            with open(file, "rb") as source:
                self.packed_files[key] = gzip.compress(source.read(), 6)
        return self.packed_files[key]

    def pack(self, name, rows):
        """Packs the files of these rows into name.tar.gz, each compressed. Returns the files that do not fit."""
        total, left_out = 0, []
        path = os.path.join(self.options.out, name + ".tar.gz")
        with tarfile.open(path + ".new", "w:gz", compresslevel=1) as tar:
            files = [os.path.join(folder, file) for row in rows for folder, _, names in os.walk(os.path.join(self.work, row)) for file in names]
            for file in sorted(files, key=os.path.getsize):
                data = self.packed(file)
                if total + len(data) + 1024 > TAR_BYTES - (1 << 20):
                    left_out.append(os.path.relpath(file, self.work))
                    continue
                if os.path.getsize(file):
                    member = tarfile.TarInfo(os.path.relpath(file, self.work) + ".gz")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
                    total += len(data) + 1024
        os.replace(path + ".new", path)
        return left_out

    def pack_all(self, left_out):
        for name, rows in TARS.items():
            try:
                left_out[name] = self.pack(name, rows)
            except OSError as error:
                left_out[name] = repr(error)


def machine():
    def ask(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            return repr(error)
    return {"row": "machine", "gpu": ask("nvidia-smi", "--query-gpu=name,driver_version,memory.total,mig.mode.current,compute_mode",
                                         "--format=csv,noheader"),
            "python": sys.version, "kernel": ask("uname", "-sr"), "compiler": ask("gcc", "--version").split("\n")[0],
            "ncu": shutil.which("ncu"), "cpus": os.cpu_count()}


def main():
    names = list(dict.fromkeys(one[0] for one in cases()))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="gpu_probe_out")
    parser.add_argument("--only", default=",".join(names), help="rows: " + ",".join(names) + "; ROW/CASE for one case")
    parser.add_argument("--seconds", type=float, default=230, help="for all rows together")
    parser.add_argument("--jobs", type=int, default=10, help="cases at a time, of those that measure no time")
    parser.add_argument("--fake", action="store_true", help="without a GPU: work by the processor, made up records")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    run = Run(options)
    run.write(machine() | {"cupti": run.cupti, "fake": options.fake})
    wanted, started = options.only.split(","), time.monotonic()
    chosen = [one for one in cases() if one[0] in wanted or f"{one[0]}/{one[1]}" in wanted]
    left_out = {}
    for one in [one for one in chosen if not one[4].get("together") and one[0] != "oom"]:
        run.alone(one)
        run.pack_all(left_out)
    together = [one for one in chosen if one[4].get("together")]
    run.together(sorted(together, key=lambda one: not one[1].startswith(LONG)))
    run.pack_all(left_out)
    for one in [one for one in chosen if one[0] == "oom"]:
        run.alone(one)
    run.pack_all(left_out)
    run.write({"row": "end", "left_out": left_out, "took_s": round(time.monotonic() - started, 1)})
    shutil.rmtree(run.work, ignore_errors=True)
    print(f"gpu_probe: {time.monotonic() - started:.0f} s; results in {options.out}")


if __name__ == "__main__":
    main()
