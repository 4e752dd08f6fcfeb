# SPDX-License-Identifier: Apache-2.0
"""`memory.py NAME OUT [--cpu]`: runs a small training with PyTorch's memory history. Writes its snapshot, and prints one
line of JSON with the program's own numbers of bytes by owner. Programs that run out of memory use only a part of the
device."""
import argparse
import json

import torch

from programs import Program, settings_of
from shared import compress

LIMIT_GB = 4
HISTORY = 30000  # maximum number of kept allocations and releases


def nbytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


def holders(program):
    """Returns bytes by category, as the program knows them."""
    weights = list(program.plain.parameters())
    states = [value for state in program.optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    return {"weights": nbytes(weights), "gradients": nbytes([weight.grad for weight in weights]),
            "optimizer": nbytes([state for state in states if state.device.type != "cpu"]), "buffers": nbytes(program.plain.buffers())}


def limit(gigabytes):
    torch.cuda.set_per_process_memory_fraction(gigabytes * 2**30 / torch.cuda.get_device_properties(0).total_memory)


def tight(gigabytes, device, notes, **changes):
    """Creates `base` with these changes, limited to a part of the device.

    `notes` keeps the program, since main() asks it for holders after an error.
    """
    limit(gigabytes)
    settings = settings_of("base")
    for name, value in changes.items():
        setattr(settings, name, value)
    notes["programs"] = program = Program(settings, device)
    return program


def steps(program, count):
    for _ in range(count):
        program.step()


# ---- programs: each returns the program and adds facts to `notes` ------------------------------------------------------

def plain(device, notes):
    program = Program(settings_of("base", device == "cpu"), device)
    steps(program, 3)
    return program


def with_checkpoint(device, notes):
    program = Program(settings_of("checkpoint", device == "cpu"), device)
    steps(program, 3)
    return program


def growing(device, notes):
    """Keeps each loss with its graph."""
    settings = settings_of("base", device == "cpu")
    settings.keep_graphs = True
    program = Program(settings, device)
    for _ in range(4):
        program.step()
        notes.setdefault("allocated_behind_steps", []).append(torch.cuda.memory_allocated() if device != "cpu" else 0)
    return program


def oom_batch(device, notes):
    """Runs a batch whose activations exceed the memory."""
    program = tight(LIMIT_GB, device, notes, batch=64)
    steps(program, 2)
    return program


def oom_growth(device, notes):
    """Keeps graphs until the memory is exhausted."""
    program = tight(LIMIT_GB, device, notes, keep_graphs=True)
    for i in range(40):
        notes["steps_done"] = i
        program.step()
    return program


def oom_optimizer(device, notes):
    """Exhausts the memory in the first update, which creates the optimizer's state."""
    program = tight(2.6, device, notes, batch=1, width=1536, layers=5)
    steps(program, 2)
    return program


def oom_fragments(device, notes):
    """Leaves free memory in pieces: releases one of two 9 MiB blocks per 20 MiB segment, then allocates 256 MiB."""
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
    """Catches the error and continues the training with a smaller batch."""
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
    """Keeps copies of the weights in float64."""
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
