# SPDX-License-Identifier: Apache-2.0
"""A trace of PyTorch's profiler made by hand, in whole microseconds, for what no published trace shows."""
import json


class Trace:
    """Operators and calls on thread 1 of process 100, work on device 0."""

    def __init__(self, **facts):
        self.events, self.facts, self.number = [], facts, 0

    def span(self, category, name, start, dur, pid=100, tid=1, **args):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args})

    def step(self, number, start, dur):
        self.span("user_annotation", f"ProfilerStep#{number}", start, dur)

    def op(self, name, start, dur, **args):
        self.span("cpu_op", name, start, dur, **args)

    def call(self, name, start, dur, **args):
        self.span("cuda_runtime", name, start, dur, **args)

    def launch(self, call, start, dur, name, begin, length, category="kernel", device=0, stream=7, **args):
        """A call and the work that it launches."""
        self.number += 1
        self.call(call, start, dur, correlation=self.number)
        self.span(category, name, begin, length, pid=device, tid=stream, correlation=self.number, stream=stream, device=device, **args)

    def memory(self, start, total, size, address):
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 1, "ts": start, "s": "t",
                            "args": {"Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": address, "Total Allocated": total,
                                     "Total Reserved": total}})

    def write(self, path):
        path.write_text(json.dumps({"schemaVersion": 1, **self.facts, "traceEvents": self.events}))
        return path


H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
NCCL = {"backend": "nccl", "rank": 0, "world_size": 8}
GLOO = {"backend": "gloo", "rank": 0, "world_size": 8}


def busy(**facts):
    """Two steps of 1000 us whose device computes for 900, launched well ahead."""
    trace = Trace(deviceProperties=[H100], **facts)
    for number in range(2):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.op("aten::mm", start + 10, 20)
        trace.launch("cudaLaunchKernel", start + 15, 5, "nvjet_tst_128x128", start + 30, 900, **{"blocks per SM": 4})
    return trace
