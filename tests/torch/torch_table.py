# SPDX-License-Identifier: Apache-2.0
"""What torch's own EventList makes of given events: reads {"events": [...], "calls": [...]} and prints the tables as a JSON list. Used by
test_torch_table.py, which gives the same numbers to us."""
import inspect
import json
import sys

from torch.autograd.profiler_util import EventList, FunctionEvent


def make(event):
    wanted = {"id": 0, "name": event["name"], "thread": event["thread"], "start_us": event["start"], "end_us": event["end"],
              "input_shapes": event["shapes"], "stack": event["stack"], "cpu_memory_usage": event["bytes"],
              "is_user_annotation": event["is_annotation"], "flops": event["flops"]}
    known = inspect.signature(FunctionEvent.__init__).parameters
    return FunctionEvent(**{name: value for name, value in wanted.items() if name in known})


def table(events, call):
    options = {name: value for name, value in call["options"].items()
               if name in inspect.signature(EventList.table).parameters}
    made = sorted(map(make, events), key=lambda event: [event.time_range.start, -event.time_range.end])
    events = EventList(made, profile_memory=call["memory"], with_flops=call.get("flops", False))
    events._build_tree()
    if call["by"] != "call":
        events = events.key_averages(group_by_input_shapes=call["by"] == "shape", group_by_stack_n=call.get("frames", 0))
    return events.table(**options)


def main():
    wanted = json.load(sys.stdin)
    json.dump([table(wanted["events"], call) for call in wanted["calls"]], sys.stdout)


if __name__ == "__main__":
    main()
