# SPDX-License-Identifier: Apache-2.0
"""`telemetry.py OUT SECONDS`: observes a training GPU with nvidia-smi, in its fields and formats, and with raw NVML
calls, ten times a second. Writes texts and nvml.jsonl to OUT."""
import json
import os
import subprocess
import sys
import threading
import time

FIELDS = ("timestamp,name,uuid,pci.bus_id,driver_version,pstate,pcie.link.gen.current,pcie.link.width.current,temperature.gpu,temperature.memory,"
          "utilization.gpu,utilization.memory,memory.total,memory.free,memory.used,memory.reserved,power.draw,power.draw.instant,power.limit,"
          "clocks.current.sm,clocks.current.memory,clocks.max.sm,clocks.current.graphics,clocks.current.video,fan.speed,compute_mode,index,count,"
          "display_active,persistence_mode,mig.mode.current,ecc.mode.current,ecc.errors.corrected.volatile.total,"
          "ecc.errors.uncorrected.volatile.total,clocks_event_reasons.active,clocks_event_reasons.gpu_idle,clocks_event_reasons.sw_power_cap,"
          "clocks_event_reasons.hw_slowdown,clocks_event_reasons.sw_thermal_slowdown,encoder.stats.sessionCount,enforced.power.limit")
SHORT = "timestamp,name,utilization.gpu,utilization.memory,memory.used,memory.total,temperature.gpu,power.draw"
TEXTS = {
    "help_query_gpu.txt": ["--help-query-gpu"], "help_query_compute.txt": ["--help-query-compute-apps"], "plain.txt": [], "list.txt": ["-L"],
    "all.txt": ["-q"], "all.xml": ["-q", "-x"], "fields.csv": [f"--query-gpu={FIELDS}", "--format=csv"],
    "fields_noheader.csv": [f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"], "fields_nounits.csv": [f"--query-gpu={FIELDS}", "--format=csv,nounits"],
    "apps.csv": ["--query-compute-apps=timestamp,gpu_name,gpu_uuid,pid,process_name,used_memory", "--format=csv"],
    "bad_field.txt": ["--query-gpu=nonsense", "--format=csv"], "bad_format.txt": ["--query-gpu=name", "--format=xyz"], "no_format.txt": ["--query-gpu=name"],
    "dmon.txt": ["dmon", "-s", "pucvmet", "-c", "3"], "pmon.txt": ["pmon", "-c", "3"], "topology.txt": ["topo", "-m"],
}
FIELD_IDS = (83, 142, 143, 149, 150, 151, 152, 153, 185, 186, 190, 191)  # energy, replays, power and temperatures, where supported
GPM = {1: "graphics", 2: "sm", 3: "sm_occupancy", 4: "integer", 5: "any_tensor", 6: "dfma_tensor", 7: "hmma_tensor", 9: "imma_tensor",
       10: "dram", 11: "fp64", 12: "fp32", 13: "fp16", 20: "pcie_tx", 21: "pcie_rx", 60: "nvlink_rx", 61: "nvlink_tx"}


def smi(out, name, words):
    done = subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, timeout=30, check=False)
    with open(f"{out}/{name}", "w", encoding="utf-8") as file:
        file.write(f"# nvidia-smi {' '.join(words)} (exit {done.returncode})\n{done.stdout}{done.stderr}")


class Nvml:
    """Reads values of NVML, each with the time of its call in us. A failed call gives its error."""

    def __init__(self):
        import pynvml
        self.nvml = pynvml
        pynvml.nvmlInit()
        self.device = pynvml.nvmlDeviceGetHandleByIndex(0)
        device, n = self.device, pynvml
        self.calls = {
            "utilization": lambda: vars_of(n.nvmlDeviceGetUtilizationRates(device)), "memory": lambda: vars_of(n.nvmlDeviceGetMemoryInfo(device)),
            "memory_v2": lambda: vars_of(n.nvmlDeviceGetMemoryInfo(device, version=n.nvmlMemory_v2)), "power_mw": lambda: n.nvmlDeviceGetPowerUsage(device),
            "power_limit_mw": lambda: n.nvmlDeviceGetEnforcedPowerLimit(device), "energy_mj": lambda: n.nvmlDeviceGetTotalEnergyConsumption(device),
            "temperature": lambda: n.nvmlDeviceGetTemperature(device, 0), "sm_mhz": lambda: n.nvmlDeviceGetClockInfo(device, 1),
            "memory_mhz": lambda: n.nvmlDeviceGetClockInfo(device, 2), "reasons": lambda: n.nvmlDeviceGetCurrentClocksEventReasons(device),
            "pstate": lambda: n.nvmlDeviceGetPerformanceState(device), "pcie_tx_kb": lambda: n.nvmlDeviceGetPcieThroughput(device, 0),
            "pcie_rx_kb": lambda: n.nvmlDeviceGetPcieThroughput(device, 1), "ecc_corrected": lambda: n.nvmlDeviceGetTotalEccErrors(device, 0, 0),
            "ecc_uncorrected": lambda: n.nvmlDeviceGetTotalEccErrors(device, 1, 0), "fan": lambda: n.nvmlDeviceGetFanSpeed(device),
            "processes": lambda: [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(device)],
            "process_utilization": lambda: [[p.pid, p.timeStamp, p.smUtil, p.memUtil] for p in n.nvmlDeviceGetProcessUtilization(device, 0)],
            "mig": lambda: n.nvmlDeviceGetMigMode(device), "nvlink0": lambda: n.nvmlDeviceGetNvLinkState(device, 0),
            "average_power": lambda: [[s.timeStamp, s.sampleValue.uiVal] for s in samples(n, device, n.NVML_TOTAL_POWER_SAMPLES)],
            "sm_samples": lambda: [[s.timeStamp, s.sampleValue.uiVal] for s in samples(n, device, n.NVML_GPU_UTILIZATION_SAMPLES)],
        }
        self.fixed = {
            "name": lambda: n.nvmlDeviceGetName(device), "uuid": lambda: n.nvmlDeviceGetUUID(device), "bus": lambda: vars_of(n.nvmlDeviceGetPciInfo(device)),
            "driver": n.nvmlSystemGetDriverVersion, "nvml": n.nvmlSystemGetNVMLVersion, "cuda": n.nvmlSystemGetCudaDriverVersion,
            "max_sm_mhz": lambda: n.nvmlDeviceGetMaxClockInfo(device, 1), "cores": lambda: n.nvmlDeviceGetNumGpuCores(device),
            "architecture": lambda: n.nvmlDeviceGetArchitecture(device), "compute": lambda: n.nvmlDeviceGetCudaComputeCapability(device),
            "gpm": lambda: vars_of(n.nvmlGpmQueryDeviceSupport(device)), "power_range": lambda: n.nvmlDeviceGetPowerManagementLimitConstraints(device),
            "reasons_supported": lambda: n.nvmlDeviceGetSupportedClocksEventReasons(device), "persistence": lambda: n.nvmlDeviceGetPersistenceMode(device),
            "compute_mode": lambda: n.nvmlDeviceGetComputeMode(device), "virtualization": lambda: n.nvmlDeviceGetVirtualizationMode(device),
        }

    def read(self, calls):
        found = {}
        for name, call in calls.items():
            start = time.perf_counter_ns()
            try:
                value = call()
            except Exception as error:  # pylint: disable=broad-except  # the error is the result
                value = {"error": f"{type(error).__name__} {error}"}
            found[name] = [value, round((time.perf_counter_ns() - start) / 1e3, 1)]
        return found

    def gpm(self, before, behind):
        n = self.nvml
        get = n.c_nvmlGpmMetricsGet_t()
        get.version, get.numMetrics, get.sample1, get.sample2 = n.NVML_GPM_METRICS_GET_VERSION, len(GPM), before, behind
        for i, metric in enumerate(GPM):
            get.metrics[i].metricId = metric
        n.nvmlGpmMetricsGet(get)
        return {GPM[get.metrics[i].metricId]: [get.metrics[i].nvmlReturn, get.metrics[i].value] for i in range(len(GPM))}


def vars_of(structure):
    return {name: value.decode(errors="replace") if isinstance(value, bytes) else value
            for name, value in ((field[0], getattr(structure, field[0])) for field in structure._fields_) if isinstance(value, (int, str, bytes, float))}


def samples(n, device, kind):
    return n.nvmlDeviceGetSamples(device, kind, 0)[1][-20:]


def watch(out, seconds, stop):
    nvml = Nvml()
    with open(f"{out}/nvml.jsonl", "w", encoding="utf-8") as file:
        file.write(json.dumps({"fixed": nvml.read(nvml.fixed)}, default=str) + "\n")
        n, previous = nvml.nvml, None
        end = time.monotonic() + seconds
        while time.monotonic() < end and not stop.is_set():
            row = {"ns": time.monotonic_ns(), "wall": time.time(), **nvml.read(nvml.calls)}
            try:
                sample = n.nvmlGpmSampleAlloc()
                n.nvmlGpmSampleGet(nvml.device, sample)
                if previous is not None:
                    row["gpm"] = nvml.gpm(previous, sample)
                    n.nvmlGpmSampleFree(previous)
                previous = sample
            except Exception as error:  # pylint: disable=broad-except
                row["gpm"] = {"error": f"{type(error).__name__} {error}"}
            file.write(json.dumps(row, default=str) + "\n")
            file.flush()
            time.sleep(0.1)


def load(stop):
    """Trains with pauses: 3 s busy, 2 s idle."""
    import torch
    from programs import Program, settings_of
    is_cpu = not torch.cuda.is_available()
    program = Program(settings_of("base" if is_cpu else "large", is_cpu), "cpu" if is_cpu else "cuda")
    while not stop.is_set():
        end = time.monotonic() + 3
        while time.monotonic() < end and not stop.is_set():
            program.step()
            if not is_cpu:
                torch.cuda.synchronize()
        stop.wait(2)


def main():
    out, seconds = sys.argv[1], float(sys.argv[2])
    os.makedirs(out, exist_ok=True)
    stop = threading.Event()
    training = threading.Thread(target=load, args=(stop,), daemon=True)
    training.start()
    beside = None
    try:
        time.sleep(min(seconds, 6))
        with open(f"{out}/gpu_usage.csv", "w", encoding="utf-8") as csv:
            try:
                beside = subprocess.Popen(["nvidia-smi", f"--query-gpu={SHORT}", "--format=csv", "-lms", "200"], stdout=csv)
            except OSError as error:
                print(f"nvidia-smi: {error}")
        watcher = threading.Thread(target=watch, args=(out, seconds, stop), daemon=True)
        watcher.start()
        for name, words in TEXTS.items():
            try:
                smi(out, name, words)
            except (OSError, subprocess.TimeoutExpired) as error:
                print(f"{name}: {error}")
        watcher.join(seconds)
    finally:
        stop.set()
        if beside:
            beside.terminate()
    training.join(20)
    print(json.dumps({"files": sorted(os.listdir(out))}))


if __name__ == "__main__":
    main()
