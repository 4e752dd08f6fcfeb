# SPDX-License-Identifier: Apache-2.0
"""Converts a Kineto trace to the input of bench/c/replay.c: per thread, nested starts and ends with their gaps."""
import decimal
import gzip
import json
import os
import struct

import common

TRACE = os.path.join(common.ROOT, "tests/data/hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
CATEGORIES = {"cpu_op": "op", "cuda_runtime": "range", "user_annotation": "range"}
MAX_GAP_NS = 200_000


def nested(spans):
    """Yields (time, name) of starts and (time, None) of ends. A span that outlasts its parent ends with it."""
    stack = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1] <= start:
            yield stack.pop(), None
        end = min(end, stack[-1]) if stack else end
        yield start, name
        stack.append(end)
    while stack:
        yield stack.pop(), None


def write(path):
    """Writes the replay file. Returns its number of threads, events and names, and the number of events of the trace."""
    with gzip.open(TRACE, "rt", encoding="utf-8") as file:
        events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
    threads, names = {}, {}
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in CATEGORIES:
            start, length = int(event["ts"] * 1000), int(event["dur"] * 1000)
            name = names.setdefault((CATEGORIES[event["cat"]], event["name"]), len(names) + 1)
            threads.setdefault((event["pid"], event["tid"]), []).append((start, start + length, name))
    count = 0
    with open(path, "wb") as out:
        out.write(struct.pack("<II", len(names), len(threads)))
        for kind, name in names:
            text = name.encode()
            out.write(struct.pack("<II", kind == "op", len(text)) + text)
        for spans in threads.values():
            stream = list(nested(spans))
            gaps = [0] + [min(b[0] - a[0], MAX_GAP_NS) for a, b in zip(stream, stream[1:])]
            out.write(struct.pack("<I", len(stream)))
            out.write(b"".join(struct.pack("<II", gap, name or 0) for gap, (_, name) in zip(gaps, stream)))
            count += len(stream)
    return len(threads), count, len(names), len(events)
