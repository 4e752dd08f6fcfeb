# SPDX-License-Identifier: Apache-2.0
"""`memory.py NAME OUT [--cpu]`: a small training with PyTorch's history of memory, its snapshot, and what the program itself knows of who holds
what. Those that run out of memory are given a part of the device. Prints one line of JSON."""
import argparse
import json

import torch

from programs import Program, settings_of
from shared import compress

LIMIT_GB = 4
HISTORY = 30000  # allocations and releases that are kept


def nbytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


def holders(program):
    """Bytes by what they are, as the program knows them."""
    weights = list(program.plain.parameters())
    states = [value for state in program.optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    return {"weights": nbytes(weights), "gradients": nbytes([weight.grad for weight in weights]),
            "optimizer": nbytes([state for state in states if state.device.type != "cpu"]), "buffers": nbytes(program.plain.buffers())}


def limit(gigabytes):
    torch.cuda.set_per_process_memory_fraction(gigabytes * 2**30 / torch.cuda.get_device_properties(0).total_memory)


def tight(gigabytes, device, notes, **changes):
    """base with these changes, on a part of the device; kept for what is asked behind an error."""
    limit(gigabytes)
    settings = settings_of("base")
    for name, value in changes.items():
        setattr(settings, name, value)
    notes["programs"] = program = Program(settings, device)
    return program


def steps(program, count):
    for _ in range(count):
        program.step()


# ---- programs: each returns the program, and says in `notes` what it did ------------------------------------------------------

def plain(device, notes):
    program = Program(settings_of("base", device == "cpu"), device)
    steps(program, 3)
    return program


def with_checkpoint(device, notes):
    program = Program(settings_of("checkpoint", device == "cpu"), device)
    steps(program, 3)
    return program


def growing(device, notes):
    """Each loss is kept with its graph."""
    settings = settings_of("base", device == "cpu")
    settings.keep_graphs = True
    program = Program(settings, device)
    for _ in range(4):
        program.step()
        notes.setdefault("allocated_behind_steps", []).append(torch.cuda.memory_allocated() if device != "cpu" else 0)
    return program


def oom_batch(device, notes):
    """The activations of a batch are more than there is."""
    program = tight(LIMIT_GB, device, notes, batch=64)
    steps(program, 2)
    return program


def oom_growth(device, notes):
    """Kept graphs, until there is no more."""
    program = tight(LIMIT_GB, device, notes, keep_graphs=True)
    for i in range(40):
        notes["steps_done"] = i
        program.step()
    return program


def oom_optimizer(device, notes):
    """The first update makes the optimizer's state."""
    program = tight(2.6, device, notes, batch=1, width=1536, layers=5)
    steps(program, 2)
    return program


def oom_fragments(device, notes):
    """Much is free, in pieces: of each two blocks of 9 MiB in a segment of 20 one is released, then 256 MiB are asked for."""
    program = tight(LIMIT_GB, device, notes)
    steps(program, 1)
    torch.cuda.empty_cache()
    pieces = []
    try:
        while True:
            pieces.append(torch.empty(9 << 20, dtype=torch.uint8, device=device))
    except torch.cuda.OutOfMemoryError:
        pass
    del pieces[::2]
    notes["pieces_held"] = nbytes(pieces)
    notes["pieces"] = pieces
    torch.empty(256 << 20, dtype=torch.uint8, device=device)
    return program


def oom_caught(device, notes):
    """Caught, and the training goes on with a smaller batch."""
    limit(LIMIT_GB)
    settings = settings_of("base")
    settings.batch = 64
    program = Program(settings, device)
    try:
        steps(program, 2)
    except torch.cuda.OutOfMemoryError as error:
        notes["caught"] = str(error)
        notes["stats_at_catch"] = stats()
    del program
    torch.cuda.empty_cache()
    settings.batch = 4
    program = Program(settings, device)
    steps(program, 3)
    return program


def oom_copy(device, notes):
    """The weights are cast to float64 beside themselves."""
    program = tight(LIMIT_GB, device, notes)
    steps(program, 1)
    notes["copies"] = [[weight.detach().double() for weight in program.plain.parameters()] for _ in range(8)]
    return program


PROGRAMS = {"plain": plain, "with_checkpoint": with_checkpoint, "growing": growing, "oom_batch": oom_batch, "oom_growth": oom_growth,
            "oom_optimizer": oom_optimizer, "oom_fragments": oom_fragments, "oom_caught": oom_caught, "oom_copy": oom_copy}


def stats():
    found = torch.cuda.memory_stats()
    keep = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current", "reserved_bytes.all.peak",
            "active_bytes.all.current", "inactive_split_bytes.all.current", "num_alloc_retries", "num_ooms", "segment.all.current",
            "requested_bytes.all.current")
    return {key: found.get(key) for key in keep}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("out")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--bare", action="store_true", help="no history and no snapshot: for `stepscope run`")
    chosen = parser.parse_args()
    device, notes = "cpu" if chosen.cpu else "cuda", {}
    has_history = not chosen.cpu and not chosen.bare
    if has_history:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=HISTORY)
    found = {"what": PROGRAMS[chosen.name].__doc__ or "three steps"}
    error, program = None, None
    try:
        program = PROGRAMS[chosen.name](device, notes)
    except torch.cuda.OutOfMemoryError as caught:
        error = caught
        found["error"] = str(caught)
    program = program or notes.pop("programs", None)
    if program:
        found["holders"] = holders(program)
    if not chosen.cpu:
        found["stats"] = stats()
    found["notes"] = {key: value for key, value in notes.items() if not torch.is_tensor(value) and key not in ("pieces", "copies", "programs")}
    if has_history:
        path = f"{chosen.out}/{chosen.name}.pickle"
        torch.cuda.memory._dump_snapshot(path)
        compress(path)
    print(json.dumps(found), flush=True)
    if error and chosen.bare:
        raise error


if __name__ == "__main__":
    main()
