# SPDX-License-Identifier: Apache-2.0
"""For bench/torch: trains a small GPT and prints one line of JSON.

    torch_step.py cost EMPTY CYCLES    under `stepscope run`: the cost of observers, in one process and random order
    torch_step.py large EMPTY CYCLES   the same on large steps
    torch_step.py stop CYCLES          without `stepscope run`: the cost of stopping stepscope.profile
    torch_step.py size STEPS           only trains
"""
import collections
import ctypes
import json
import os
import random
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

SHORT, LONG = 3, 20  # steps per cycle of observers that are slow to stop; LONG in each LONG_EVERY-th cycle
LONG_EVERY = 3
ROUNDS = 15         # rounds per cycle, of one step with each other observer
LARGE_BATCH, LARGE_ROUNDS = 48, 3
VOCABULARY, CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 256, 64, 8, 128, 4, 4
HOT_LOOPS, HOT_CALLS = 15, 400
FRESH_LOOPS, FRESH_CALLS = 3, 200
SHAPES, MEMORY = 4, 8  # STEPSCOPE_ACTIVE_SHAPES, STEPSCOPE_ACTIVE_MEMORY
# observers compared to 0.01 us run after each other: neighbours see the same state of the machine
CHAINS = (("empty callback", "ours", "ours, lines"),
          ("empty callback, inputs requested", "empty callback and memory reporter, inputs requested", "ours, shapes", "ours, shapes, memory"),
          ("nothing",), ("nothing, again",))
LISTENER_NONE, LISTENER_EMPTY, LISTENER_OURS = range(3)  # enum in bench/c/torch_empty.c
INSIDE = {"PyTorch's own": (LISTENER_NONE, "ours, shapes"), "empty memory reporter": (LISTENER_EMPTY, "ours, shapes"),
          "ours, shapes": (LISTENER_OURS, "ours, shapes"), "ours, shapes, memory": (LISTENER_OURS, "ours, shapes, memory")}
INSIDE_STEPS = 3
# options of stepscope.profile for each of our observers
CONTENTS = {"ours": {}, "ours, shapes": {"record_shapes": True}, "ours, shapes, memory": {"record_shapes": True, "profile_memory": True},
            "ours, lines": {"with_stack": True}}
PEERS = [name.replace("ours", "torch.profiler") for name in CONTENTS]
LARGE = ("nothing", "nothing, again", "empty callback", "empty callback, inputs requested", "ours", "ours, shapes, memory",
         "torch.profiler", "torch.profiler, shapes, memory")
FRESH = ("nothing", "empty callback, inputs requested", "ours, shapes", "torch.profiler, shapes")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).split(WIDTH, 2)
        heads = [part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts]
        scores = heads[0] @ heads[1].transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ heads[2]).transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """A GPT with 53 parameters in 4 layers."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("mask", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(CONTEXT))
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


def make_step(batch=BATCH):
    """Returns a function that trains one step."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data = torch.randint(0, VOCABULARY, (batch, CONTEXT + 1))

    def step():
        optimizer.zero_grad()
        logits = model(data[:, :-1])
        functional.cross_entropy(logits.reshape(-1, VOCABULARY), data[:, 1:].reshape(-1)).backward()
        optimizer.step()
    return step


# ---- observers: each a pair of functions that switch it on and off ---------------------------------------------------------

def libtorch():
    """Returns the path of the loaded libtorch_cpu."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "/libtorch_cpu" in line)


def empty_library(path):
    """Loads the library of empty observers and disconnects PyTorch's memory reports.

    The agent gets memory reports in each process it observes, also while another observer is measured.
    """
    library = ctypes.CDLL(path)
    library.torch_empty_memory_ticks.restype = ctypes.c_double
    library.torch_empty_ticks.restype = ctypes.c_uint64
    if library.torch_empty_memory_find() != 0:
        raise RuntimeError("PyTorch's reports of memory cannot be redirected")
    library.torch_empty_memory(LISTENER_NONE)
    return library


def empties(library):
    torch_path = libtorch().encode()

    def pair(needs_inputs, listener=LISTENER_NONE):
        def start():
            library.torch_empty_memory(listener)
            if library.torch_empty_start(torch_path, needs_inputs) != 0:
                raise RuntimeError("no callback can be registered")

        def stop():
            library.torch_empty_stop()
            library.torch_empty_memory(LISTENER_NONE)
        return start, stop
    return {"empty callback": pair(0), "empty callback, inputs requested": pair(1),
            "empty callback and memory reporter, inputs requested": pair(1, LISTENER_EMPTY)}


def ours(empty):
    """Returns observers for the agent that `stepscope run` has loaded. stepscope_active controls what it records."""
    library = ctypes.CDLL(os.environ["STEPSCOPE_LIBRARY"])  # the package has loaded it already
    library.stepscope_torch_problem.restype = ctypes.c_char_p
    active = ctypes.c_uint.in_dll(library, "stepscope_active")
    everything = active.value
    if not everything & SHAPES or not everything & MEMORY:
        raise RuntimeError("not under `stepscope run --with shapes,memory,lines`")

    def pair(without, lines=False):
        def start():
            empty.torch_empty_memory(LISTENER_OURS)
            active.value = everything & ~without
            library.stepscope_torch_want_lines(lines)
            library.stepscope_torch_want_inputs(0 if without & SHAPES else 1)
            if library.stepscope_torch_start() != 0:
                raise RuntimeError(library.stepscope_torch_problem().decode(errors="replace"))
            active.value = everything & ~without  # the start sets the bits of the run's options

        def stop():
            library.stepscope_torch_stop()
            active.value = everything & ~(SHAPES | MEMORY)
            empty.torch_empty_memory(LISTENER_NONE)
        return start, stop
    pairs = {"ours": pair(SHAPES | MEMORY), "ours, shapes": pair(MEMORY), "ours, shapes, memory": pair(0),
             "ours, lines": pair(SHAPES | MEMORY, lines=True)}
    pairs["ours, shapes"][1]()
    return pairs, library


def torchs():
    def pair(**options):
        running = []

        def start():
            running.append(profile(activities=[ProfilerActivity.CPU], **options))
            running[0].start()

        def stop():
            running.pop().stop()
        return start, stop
    everything = {"record_shapes": True, "profile_memory": True}
    return {"torch.profiler": pair(), "torch.profiler, shapes": pair(record_shapes=True),
            "torch.profiler, memory": pair(profile_memory=True), "torch.profiler, shapes, memory": pair(**everything),
            "torch.profiler, lines": pair(with_stack=True),
            "torch.profiler, all": pair(**everything, with_stack=True, with_flops=True, with_modules=True)}


def nothing():
    return None


# ---- measuring -------------------------------------------------------------------------------------------------------------

def timed(function):
    start = time.thread_time_ns()
    function()
    return time.thread_time_ns() - start


def block(step, observer, steps):
    """Returns CPU ns of this thread: of the start, of each step, of the stop."""
    start, stop = observer
    return {"start": timed(start), "steps": [timed(step) for _ in range(steps)], "stop": timed(stop)}


def shuffled(names):
    """Returns the chains in random order, each with its observers in random order.

    A step after one of another chain takes longer; random order distributes that equally.
    """
    chains = [[name for name in chain if name in names] for chain in CHAINS]
    return [random.sample(chain, len(chain)) for chain in random.sample(chains, len(chains))]


def is_heavy(name):
    return name.startswith("torch.profiler")


def cycle(step, observers, rounds=ROUNDS, has_long=False):
    """Measures rounds of one step with each observer.

    An observer that is slow to stop runs its steps in one block, at a random place among the rounds.
    """
    turns = sum((shuffled(observers) for _ in range(rounds)), [])
    for name in filter(is_heavy, observers):
        turns.insert(random.randint(0, len(turns)), (name,))
    found = {name: {"start": [], "steps": [], "stop": []} for name in observers}
    for name in (name for turn in turns for name in turn):
        for key, value in block(step, observers[name], SHORT if is_heavy(name) else 1).items():
            found[name][key] += value if isinstance(value, list) else [value]
    for name in (peer for peer in PEERS if has_long):
        found[name]["long"] = block(step, observers[name], LONG)
    return found


def hot(observers):
    """Returns the least CPU ns per allocation and release of 64 floats, over many short loops within the cache."""
    found = {name: float("inf") for name in observers}
    empty = torch.empty
    for name in random.sample(list(observers) * HOT_LOOPS, len(observers) * HOT_LOOPS):
        observers[name][0]()
        empty(64)
        start = time.thread_time_ns()
        for _ in range(HOT_CALLS):
            empty(64)
        found[name] = min(found[name], (time.thread_time_ns() - start) / HOT_CALLS)
        observers[name][1]()
    return found


def inside(step, observers, library):
    """Returns the median ns inside the memory reporter's calls, per allocation and release."""
    found = {name: [] for name in INSIDE}
    start_ticks, start_ns = library.torch_empty_ticks(), time.monotonic_ns()
    for name in random.sample(list(INSIDE) * INSIDE_STEPS, len(INSIDE) * INSIDE_STEPS):
        listener, observer = INSIDE[name]
        observers[observer][0]()
        library.torch_empty_memory_watch(listener)
        step()
        observers[observer][1]()
        found[name].append(library.torch_empty_memory_ticks())
    tick_ns = (time.monotonic_ns() - start_ns) / (library.torch_empty_ticks() - start_ticks)
    return {name: statistics.median(ticks) * tick_ns for name, ticks in found.items()}


def new_sizes():
    """Yields lists of tensors with new sizes. No operator reads their values."""
    one = torch.empty(1)
    for rows in range(2, 1 << 16):
        yield [one.expand(rows, columns) for columns in range(2, FRESH_CALLS + 2)]


def fresh(observers, tensors):
    """Returns the least CPU ns per operator of one tensor, over some loops.

    Each observer has two values: for new sizes, and for the same sizes again.
    """
    found, operator = {name: [float("inf")] * 2 for name in observers}, torch.resolve_conj
    for name in random.sample(list(observers) * FRESH_LOOPS, len(observers) * FRESH_LOOPS):
        inputs = next(tensors)
        observers[name][0]()
        torch.empty(64)
        for i in range(2):
            start = time.thread_time_ns()
            for tensor in inputs:
                operator(tensor)
            found[name][i] = min(found[name][i], (time.thread_time_ns() - start) / FRESH_CALLS)
        observers[name][1]()
    return found


def counts(step):
    """Returns the numbers of records and allocations of a step, as torch.profiler sees them."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        step()
    events = prof.events() if not hasattr(prof.profiler, "kineto_results") else None
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"torch_step-{os.getpid()}.json")
    prof.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    os.unlink(path)
    if isinstance(trace, list):
        return {"records": len(events or trace), "pairs": 0}
    kinds = collections.Counter(event.get("cat") for event in trace["traceEvents"])
    allocated = sum(event["name"] == "[memory]" and event["args"]["Bytes"] > 0 for event in trace["traceEvents"])
    return {"records": kinds["cpu_op"] + kinds["user_annotation"], "pairs": allocated}


def prepare(path, names=None):
    """Returns all observers, or some, switched off, and the library of empty ones."""
    empty = empty_library(path)
    mine, library = ours(empty)
    library.stepscope_torch_stop()
    found = {"nothing": (nothing, nothing), "nothing, again": (nothing, nothing), **empties(empty), **mine, **torchs()}
    return {name: found[name] for name in names or found}, empty


def warm_up(step, observers):
    """Runs each observer once, since the first run includes one-time work."""
    for _ in range(3):
        step()
    for pair in observers.values():
        block(step, pair, 1)


def cost(path, cycles):
    step, (observers, empty) = make_step(), prepare(path)
    warm_up(step, observers)
    found = {"torch": torch.__version__, **counts(step), "cycles": [], "hot": [], "fresh": [], "inside": []}
    light = {name: pair for name, pair in observers.items() if not is_heavy(name)}
    tensors = new_sizes()
    for number in range(cycles):
        found["cycles"].append(cycle(step, observers, has_long=number % LONG_EVERY == 0))
        found["hot"].append(hot(light))
        found["fresh"].append(fresh({name: observers[name] for name in FRESH}, tensors))
        found["inside"].append(inside(step, observers, empty))
    return found


def large(path, cycles):
    step, (observers, _) = make_step(LARGE_BATCH), prepare(path, LARGE)
    warm_up(step, observers)
    return {"cycles": [cycle(step, observers, LARGE_ROUNDS) for _ in range(cycles)]}


def stop(cycles):
    """Returns the CPU ns of stopping stepscope.profile, by its options and the number of steps before."""
    import stepscope
    step, found = make_step(), []
    for _ in range(cycles):
        found.append({name: {} for name in CONTENTS})
        for name, steps in random.sample([(name, steps) for name in CONTENTS for steps in (SHORT, LONG)], 2 * len(CONTENTS)):
            running = stepscope.profile(activities=[ProfilerActivity.CPU], **CONTENTS[name])
            found[-1][name][steps] = block(step, (running.start, running.stop), steps)["stop"]
    return {"stops": found}


def size(steps):
    step = make_step()
    for _ in range(steps):
        step()
    return {"torch": torch.__version__}


def main():
    what, *arguments = sys.argv[1:]
    path = [] if what in ("stop", "size") else [arguments.pop(0)]
    print(json.dumps({"cost": cost, "large": large, "stop": stop, "size": size}[what](*path, int(arguments[0]))))


if __name__ == "__main__":
    main()
