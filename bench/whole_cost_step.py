# SPDX-License-Identifier: Apache-2.0
"""Trains for bench/whole_cost: `whole_cost_step.py MODE SETTINGS`. Settings and output are JSON. Modes are functions at
the end.

"Nothing" removes all of stepscope: callbacks, redirected calls of PyTorch's libraries, wrappers of Python and C
functions, hooks of optimizers and of the garbage collector. Nothing is recorded."""
import ctypes
import gc
import json
import random
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

SIZES = {"tiny": (16, 16, (2, 4)), "medium": (128, 8, (4, 64)), "large": (256, 4, (8, 128))}  # width, blocks, batch
STEPS, DETAIL, SHAPES, MEMORY, CALLS = 1, 2, 4, 8, 16  # STEPSCOPE_ACTIVE_...
PEERS = ("torch.profiler", "torch.profiler, shapes", "torch.profiler, memory", "torch.profiler, shapes, memory")
WARM_UP = 20
WINDOW = 3  # steps of a window of stepscope.profile()
POINTER = 8
CODE_IN_FUNCTION = range(16, 160, POINTER)  # possible offsets of the vectorcall pointer in a Python function
DEFINITION = {"method_descriptor": 40, "builtin_function_or_method": 16}  # offset of the definition in a C function
CODE_IN_DEFINITION = 8


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
        return x + self.down(functional.gelu(self.up(x)))


def make_step(size):
    """Returns a function that trains one step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width, count, shape = SIZES[size]
    model = nn.Sequential(*[Block(width) for _ in range(count)])
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)  # updates each tensor separately
    data = torch.randn(*shape, width)

    def step():
        optimizer.zero_grad()
        model(data).pow(2).mean().backward()
        optimizer.step()
    return step


# ---- the parts of stepscope in this process --------------------------------------------------------------------------------

class Word:
    """A word of memory that stepscope may have changed; `original` is its value before that."""

    def __init__(self, address, original):
        self.word, self.original = ctypes.c_uint64.from_address(address), original
        self.ours = self.word.value

    def is_changed(self):
        return self.ours != self.original

    def put(self, is_ours):
        self.word.value = self.ours if is_ours else self.original


def word_at(address):
    return ctypes.c_uint64.from_address(address).value


def base_of(name):
    """Returns (path, lowest address) of a loaded library."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        line = next(line for line in maps if f"/{name}" in line)
    return line.split()[-1], int(line.split("-")[0], 16)


def word_of_function(function):
    """Returns the vectorcall pointer of a Python function, or None if it is unchanged.

    It is the only word that is equal in two plain functions and different in this one.
    """
    def words(each):
        return [word_at(id(each) + at) for at in CODE_IN_FUNCTION]
    plain, other, found = words(make_step), words(statistics.median), words(function)
    at = [i for i, word in enumerate(plain) if word == other[i] != found[i] and word > 1 << 16]
    return Word(id(function) + CODE_IN_FUNCTION[at[0]], plain[at[0]]) if len(at) == 1 else None


def functions_in_c():
    """Returns, by name, the address of the code pointer in the definition of a C function."""
    engine = type(torch.autograd.Variable._execution_engine)
    run = next(vars(kind)["run_backward"] for kind in engine.__mro__ if "run_backward" in vars(kind))
    found = {"run_backward": run, "_amp_update_scale_": torch._amp_update_scale_}
    return {name: word_at(id(function) + DEFINITION[type(function).__name__]) + CODE_IN_DEFINITION for name, function in found.items()}


def places():
    """Returns the offsets of the code of C functions in their library. Only a process without stepscope knows them."""
    _, base = base_of("libtorch_python")
    return {name: word_at(address) - base for name, address in functions_in_c().items()}


class Parts:
    """The parts of stepscope that are active in this process; put() selects them."""

    NAMES = ("modules", "ranges", "engine", "optimizers", "memory", "lean", "garbage", "operators")

    def __init__(self, settings):
        from stepscope import _native
        self.library = ctypes.CDLL(_native.library_path())
        self.active = ctypes.c_uint.in_dll(self.library, "stepscope_active")
        self.everything, self.is_observing = self.active.value, True  # as set by the run
        self.slots = ctypes.CDLL(settings["slots"])
        if self.slots.whole_cost_find(_native.library_path().encode()) != 0:
            sys.exit("libstepscope is not where it says")
        self.words = self.find_words(settings["places"])
        module = sys.modules["torch.optim.optimizer"]
        self.hooks = [(where, dict(where)) for where in (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks)]
        self.callbacks = list(gc.callbacks)
        self.has_callbacks = ctypes.CDLL(base_of("libtorch_cpu")[0])._ZN2at18hasGlobalCallbacksEv
        self.has_callbacks.restype = ctypes.c_bool

    @staticmethod
    def find_words(known):
        record = torch.autograd.profiler.record_function
        base = base_of("libtorch_python")[1]
        engine = [Word(address, base + known[name]) for name, address in functions_in_c().items()]
        found = {"modules": [word_of_function(nn.Module.__call__)],
                 "ranges": [word_of_function(record.__enter__), word_of_function(record.__exit__)], "engine": engine}
        return {name: [word for word in words if word and word.is_changed()] for name, words in found.items()}

    def counts(self):
        """Returns the size of each part; 0 if it is not in this build or was not found."""
        lists = {name: len(words) for name, words in self.words.items()}
        return {**lists, "optimizers": sum(len(ours) for _, ours in self.hooks), "garbage": len(self.callbacks),
                "memory": self.slots.whole_cost_count(1), "lean": self.slots.whole_cost_count(0)}

    def put_around(self, names):
        """Selects the parts, except for the observer of operators."""
        for name, words in self.words.items():
            for word in words:
                word.put(name in names)
        for where, ours in self.hooks:
            where.clear()
            where.update(ours if "optimizers" in names else {})
        gc.callbacks[:] = self.callbacks if "garbage" in names else []
        for is_memory, name in enumerate(("lean", "memory")):
            self.slots.whole_cost_lead(is_memory, name not in names)

    def put(self, names=(), bits=0, inputs=0):
        self.library.stepscope_torch_stop()
        self.put_around(names)
        self.active.value = bits
        if "operators" in names:
            self.library.stepscope_torch_want_inputs(inputs)
            self.start()
        self.active.value = bits  # the start sets the bits of the run's options
        torch.empty(0)  # this operator pays for the change

    def start(self):
        if self.library.stepscope_torch_start() != 0:
            sys.exit("the observer does not start")

    def take_out(self):
        """Removes all parts until put_back(), which restores the state set by the run."""
        self.everything = self.active.value
        self.is_observing = bool(self.everything & (DETAIL | CALLS)) or self.has_callbacks()
        if self.is_observing:
            self.library.stepscope_torch_stop()
        self.put_around(())
        self.active.value = 0
        torch.empty(0)
        if self.has_callbacks():
            sys.exit("something still observes operators")

    def put_back(self):
        self.put_around(self.NAMES)
        self.active.value = self.everything & ~CALLS
        if self.is_observing:
            self.start()
        if self.active.value != self.everything:
            sys.exit(f"the run records {self.active.value} now, and did {self.everything}")
        torch.empty(0)


def empty_pair(settings, inputs=0):
    """Returns functions that switch empty callbacks on and off."""
    library, path = ctypes.CDLL(settings["empty"]), base_of("libtorch_cpu")[0].encode()

    def start():
        if library.torch_empty_start(path, inputs) != 0:
            sys.exit("no callback can be registered")
        torch.empty(0)

    def stop():
        library.torch_empty_stop()
        torch.empty(0)
    return start, stop


# ---- measuring -----------------------------------------------------------------------------------------------------------------

def timed(step):
    start = time.thread_time_ns()
    step()
    return time.thread_time_ns() - start


def block(step, length):
    """Returns ns per step: median and mean CPU time of this thread; mean CPU time of the process; mean wall time."""
    process, wall = time.process_time_ns(), time.perf_counter_ns()
    spent = [timed(step) for _ in range(length)]
    process, wall = time.process_time_ns() - process, time.perf_counter_ns() - wall
    return {"median": statistics.median(spent), "mean": statistics.fmean(spent), "process": process / length, "wall": wall / length}


def ways_of(parts, settings):
    """Returns, by name, functions that switch a way on and off. None as the second means parts.put()."""
    times, with_shapes = parts.everything & ~(SHAPES | MEMORY), parts.everything & ~MEMORY
    others = [name for name in Parts.NAMES if name != "operators"]

    def way(*names, bits=times, inputs=0):
        return (lambda: parts.put(names, bits, inputs)), None

    def empty(inputs):
        return empty_pair(settings, inputs)
    return {
        "nothing": way(bits=0), "nothing, again": way(bits=0),
        "empty callback": empty(0), "empty callback, inputs requested": empty(1),
        "operators": way("operators", "lean"), "operators, shapes": way("operators", "lean", bits=with_shapes, inputs=1),
        "calls of modules": way("modules"), "ranges and backward, not noted": way("ranges", "engine"),
        "hooks of optimizers": way("optimizers"), "memory, not recorded": way("memory"),
        "memory": way("memory", bits=parts.everything & ~SHAPES), "lean slots, nobody observing": way("lean", bits=0),
        "all but operators": way(*others),
        "all": way(*Parts.NAMES), "all, shapes": way(*Parts.NAMES, bits=with_shapes, inputs=1),
        "all, memory": way(*Parts.NAMES, bits=parts.everything & ~SHAPES),
        "all, shapes, memory": way(*Parts.NAMES, bits=parts.everything, inputs=1),
    }


def turns(settings):
    """Measures parts in turns of one step, in random order, under `stepscope run --with shapes,memory`."""
    parts = Parts(settings)
    if parts.everything & (DETAIL | SHAPES | MEMORY) != DETAIL | SHAPES | MEMORY:
        sys.exit("not under `stepscope run --with shapes,memory` with operators in all steps")
    ways, step = ways_of(parts, settings), make_step(settings["size"])
    if not parts.counts()["lean"]:
        del ways["lean slots, nobody observing"]
    parts.put()
    for _ in range(WARM_UP):
        step()
    found = {name: [] for name in ways}
    for _ in range(settings["turns"]):
        for name in random.sample(list(ways), len(ways)):
            on, off = ways[name]
            on()
            found[name].append(timed(step))
            (off or parts.put)()
    parts.put(Parts.NAMES, parts.everything, 1)
    return {"torch": torch.__version__, "counts": parts.counts(), "found": found}


def window(step):
    """Runs steps that stepscope.profile records."""
    import stepscope
    with stepscope.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for _ in range(WINDOW):
            step()


def whole_ways(parts, settings, before):
    """Returns, by name, functions that switch a way on and off, starting from the state set by the run.

    `before` runs before a block of "as it is".
    """
    empty_on, empty_off = empty_pair(settings)

    def with_empty():
        parts.take_out()
        empty_on()

    def without_empty():
        empty_off()
        parts.put_back()

    def with_others():
        parts.take_out()
        parts.put([name for name in Parts.NAMES if name != "operators"], parts.everything)
    nothing = parts.take_out, parts.put_back
    return {"nothing": nothing, "nothing, again": nothing, "empty callback": (with_empty, without_empty),
            "all but operators": (with_others, parts.put_back), "as it is": (before, lambda: None)}


def blocks(settings):
    """Measures the whole run in blocks that alternate with nothing."""
    step, names = make_step(settings["size"]), settings["ways"]

    def before():
        for _ in range(settings["windows"]):
            window(step)
    before()
    parts = Parts(settings)
    ways = whole_ways(parts, settings, before)
    for _ in range(WARM_UP):
        step()
    found = {name: [] for name in names}
    for _ in range(settings["blocks"]):
        for name in random.sample(names, len(names)):
            on, off = ways[name]
            on()
            found[name].append(block(step, settings["length"]))
            off()
    return {"torch": torch.__version__, "counts": parts.counts(), "found": found, "bits": parts.active.value}


def budget(settings):
    """Measures the first steps and, from step `from` on, blocks of steps, with blocks of nothing between them."""
    parts = Parts(settings)
    parts.take_out()
    step = make_step("tiny")

    def plain(length):
        parts.take_out()
        found = block(step, length)
        parts.put_back()
        return found
    for _ in range(WARM_UP):
        step()
    parts.put_back()
    begin = [plain(settings["first"]), block(step, settings["first"]), plain(settings["first"])]
    early = block(step, settings["from"] - settings["first"])
    late = [plain(settings["length"] // 2)]
    for _ in range(settings["blocks"]):
        late += [block(step, settings["length"]), plain(settings["length"] // 2)]
    return {"begin": begin, "early": early, "late": late}


def pair(settings):
    """Measures steps without switching parts."""
    step = make_step(settings["size"])
    for _ in range(WARM_UP):
        step()
    return block(step, settings["length"])


def peers(settings):
    """Measures torch.profiler and its stop. Also returns places(), which needs a process without stepscope."""
    known, found = {"torch": torch.__version__, "places": places(), "rounds": []}, []
    if not settings["rounds"]:
        return known
    import torch_step
    observers = {**dict.fromkeys(("nothing", "nothing, again"), (torch_step.nothing,) * 2),
                 **{name: pair for name, pair in torch_step.torchs().items() if name in PEERS}}
    step = make_step("tiny")
    for _ in range(WARM_UP):
        step()
    for _ in range(settings["rounds"]):
        found.append({name: torch_step.block(step, observers[name], settings["length"]) for name in random.sample(list(observers), len(observers))})
    return {**known, "rounds": found, "records": torch_step.counts(step)["records"]}


def main():
    modes = {"turns": turns, "blocks": blocks, "budget": budget, "pair": pair, "peers": peers}
    print(json.dumps(modes[sys.argv[1]](json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
