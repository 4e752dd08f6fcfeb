# SPDX-License-Identifier: Apache-2.0
"""Prints what PyTorch's own classes make of a trace with a device, as torch.profiler does it when it records: TRACE [SORT].

What torch.profiler.profile has in memory is made again from the trace (torch.autograd.profiler, _parse_kineto_results); the tree, the sums and
the table are PyTorch's.
"""
import gzip
import json
import sys
from decimal import Decimal

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, _filter_name, _rewrite_name

HOST = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


def ns(us):
    return int(Decimal(us) * 1000)


def main():
    events = read(sys.argv[1])
    first = min(ns(event["ts"]) for event in events)
    made, operators = [], {}
    for number, event in enumerate(events):
        if event["cat"] not in HOST + DEVICE or _filter_name(event["name"]):
            continue
        start = ns(event["ts"]) - first
        is_device = event["cat"] in DEVICE
        made.append((event, FunctionEvent(
            id=number, name=_rewrite_name(name=event["name"], with_wildcard=True), thread=event["tid"], start_us=start / 1000,
            end_us=(start + ns(event["dur"])) / 1000, use_device="cuda", stack=[], input_shapes=[],
            device_type=DeviceType.CUDA if is_device else DeviceType.CPU,
            is_user_annotation=event["cat"] in ("user_annotation", "gpu_user_annotation"))))
        if event["cat"] == "cpu_op":
            operators[event["args"]["External id"]] = made[-1][1]
    for event, function in made:
        operator = operators.get(event.get("args", {}).get("External id"))
        if event["cat"] in DEVICE and event["cat"] != "gpu_user_annotation" and operator:
            operator.append_kernel(function.name, 0, function.time_range.end - function.time_range.start)
    functions = EventList(sorted((function for _, function in made), key=lambda e: [e.time_range.start, -e.time_range.end]),
                          use_device="cuda")
    functions._build_tree()  # pylint: disable=protected-access
    sys.stdout.write(functions.key_averages().table(sort_by=sys.argv[2] if len(sys.argv) > 2 else None, row_limit=-1))


if __name__ == "__main__":
    main()
