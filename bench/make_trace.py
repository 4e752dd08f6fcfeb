# SPDX-License-Identifier: Apache-2.0
"""bench/make_trace.py OUT MB [TRACE...]: makes a trace of about MB megabytes from real traces, in the layout of Kineto.
The trace is compressed if OUT ends in .gz. It repeats the events of the real traces; each round has later times and new
ids."""
import gzip
import json
import os
import sys
from decimal import Decimal

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "data")
TRACES = ["hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
          "traces/tracelens/tests/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
          "traces/kineto/tb_plugin/samples/resnet50_num_workers_4/worker0.pt.trace.json.gz"]
NUMBERED = ("correlation", "External id", "external id", "Ev Idx", "Python id", "Python parent id")
BASE = 1_600_000_000_000_000_000


class Replay:
    """A trace as pieces of text, with places for times and numbers between them."""

    def __init__(self, path):
        with gzip.open(path, "rb") as file:
            document = json.loads(file.read(), parse_float=Decimal)
        events = [event for event in document["traceEvents"] if isinstance(event.get("ts"), (int, Decimal)) and event["ph"] != "M"]
        first = min(event["ts"] for event in events)
        self.names = [event for event in document["traceEvents"] if event["ph"] == "M"]
        self.length = int(max(event["ts"] + event.get("dur", 0) for event in events) - first) + 1000
        self.numbers = 1 + max(int(event.get("args", {}).get(key) or 0) for event in events for key in NUMBERED)
        self.events = [self.split(event, first) for event in events]

    @staticmethod
    def split(event, first):
        """Returns the offset of an event in ns, and its text before and after the time, split at the numbers to change."""
        for key in NUMBERED:
            if isinstance(event.get("args", {}).get(key), int):
                event["args"][key] = f"\x01{event['args'][key]}\x02"
        if isinstance(event.get("id"), int):
            event["id"] = f"\x01{event['id']}\x02"
        args, ts, dur = event.pop("args", None), event.pop("ts"), event.pop("dur", None)
        head = json.dumps(event, ensure_ascii=False)[1:-1]
        text = "  {\n    " + head + ', "ts": \x03'
        text += f', "dur": {dur:.3f}' if dur is not None else ""
        text += ",\n    \"args\": {\n      " + json.dumps(args, ensure_ascii=False, default=float)[1:-1] + "\n    }" if args else ""
        pieces = text.replace('"\\u0001', "\x01").replace('\\u0002"', "\x02").replace("\x01", "\x02").split("\x02")
        before, after = pieces[0].split("\x03") if "\x03" in pieces[0] else (None, None)
        if before is None:  # an id precedes the time
            joined = "\x02".join(pieces).split("\x03")
            return int((ts - first) * 1000), joined[0].split("\x02"), joined[1].split("\x02") + [" \n  }"]
        return int((ts - first) * 1000), [before], [after, *pieces[1:]] + ["\n  }"]

    def write(self, out, start_ns, number):
        for offset, before, after in self.events:
            time = start_ns + offset
            out(numbered(before, number) + f"{time // 1000}.{time % 1000:03d}" + numbered(after[:-1], number) + after[-1] + ",\n")


def numbered(pieces, number):
    if len(pieces) == 1:
        return pieces[0]
    return "".join(piece if i % 2 == 0 else str(int(piece) + number) for i, piece in enumerate(pieces))


def main():
    path, size = sys.argv[1], int(float(sys.argv[2]) * 1e6)
    replays = [Replay(os.path.join(DATA, name)) for name in sys.argv[3:] or TRACES]
    written, time_ns, number = 0, BASE, 0
    with (gzip.open(path, "wt", 6, encoding="utf-8") if path.endswith(".gz") else open(path, "w", encoding="utf-8")) as file:
        def out(text):
            nonlocal written
            written += len(text)
            file.write(text)

        out('{\n  "schemaVersion": 1,\n  "traceEvents": [\n')
        for replay in replays:
            for event in replay.names:
                out(json.dumps(event, default=float) + ",\n")
        while written < size:
            for replay in replays:
                replay.write(out, time_ns, number)
                time_ns, number = time_ns + replay.length * 1000, number + replay.numbers
        out('  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 0}\n  ],\n  "traceName": "replay"\n}\n')


if __name__ == "__main__":
    main()
