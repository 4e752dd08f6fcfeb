# SPDX-License-Identifier: Apache-2.0
"""A loop over a data loader with one slow part: `loaders.py PART WORKERS [METHOD]` sleeps in it, and prints as one line of JSON what it
saw itself: shares of its time, and of each worker's, and what came out. Used by test_loader.py."""
import json
import os
import sys
import time
import types

import torch

PART = sys.argv[1]
BATCHES, SIZE = 24, 4
SLEEPS = {"dataset": (0.01, 0, 0), "collate": (0, 0.04, 0), "loop": (0, 0, 0.04), "balance": (0.01, 0, 0.045), "both": (0.005, 0.02, 0),
          "handing": (0, 0, 0), "accident": (0, 0, 0.04), "sampler": (0, 0, 0), "pinning": (0, 0, 0)}
sampled, pinned = [], []  # stamps, of the process of the loop


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return BATCHES * SIZE

    def __getitem__(self, index):
        begin = now()
        if SLEEPS[PART][0]:
            time.sleep(SLEEPS[PART][0])
        return torch.full((16,), index / 100), (begin, now())


class Batches:
    """Which samples are next."""

    def __len__(self):
        return BATCHES

    def __iter__(self):
        for first in range(0, BATCHES * SIZE, SIZE):
            begin = now()
            if PART == "sampler":
                time.sleep(0.04)
            sampled.append((begin, now()))
            yield list(range(first, first + SIZE))


class Pinned:
    def __init__(self, parts):
        self.parts = parts

    def pin_memory(self, *device):
        begin = now()
        time.sleep(0.04)
        pinned.append((begin, now()))
        return self


def pretend_to_have_a_device():
    """Else nothing is pinned."""
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available, torch.accelerator.current_device_index = (lambda: True), (lambda: 0)
        torch.accelerator.current_accelerator, torch.accelerator.set_device_index = (lambda: types.SimpleNamespace(type="cpu")), (lambda index: None)
        return {"pin_memory": True}
    torch.cuda.current_device, torch.cuda.set_device = (lambda: 0), (lambda index: None)
    return {"pin_memory": True, "pin_memory_device": "cpu"}


def unpickled(seconds):
    time.sleep(seconds)


class Late:
    """Takes long where it is unpickled, which is where the loop waits."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __reduce__(self):
        return unpickled, (self.seconds,)


def late(first):
    """Each batch, or the one in the middle."""
    if PART == "handing":
        return Late(0.04)
    return Late(0.12) if PART == "accident" and first == BATCHES // 2 * SIZE else None


def collate(samples):
    begin = now()
    batch = torch.stack([sample for sample, _ in samples])
    if SLEEPS[PART][1]:
        time.sleep(SLEEPS[PART][1])
    parts = batch, os.getpid(), samples[0][1][0], samples[-1][1][1], begin, now(), late(round(batch[0, 0].item() * 100))
    return [Pinned(parts)] if PART == "pinning" else parts


def shares(stamps, whole=None):
    """Of samples and of collating, by process."""
    result = {}
    for pid in {stamp[0] for stamp in stamps}:
        own = [stamp[1:] for stamp in stamps if stamp[0] == pid]
        time_ns = whole or own[-1][3] - own[0][0]
        result[pid] = [sum(s[1] - s[0] for s in own) / time_ns, sum(s[3] - s[2] for s in own) / time_ns]
    return result


def main(workers, method):
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pinning = pretend_to_have_a_device() if PART == "pinning" else {}
    batches = iter(torch.utils.data.DataLoader(Data(), batch_sampler=Batches(), num_workers=workers, collate_fn=collate,
                                               multiprocessing_context=method, **pinning))
    with torch.profiler.record_function("warm up"):  # its first use takes long, before the record of the first wait begins
        pass
    begin = before = now()
    waits, stamps = [], []
    for made in batches:
        batch, *stamp = made[0].parts if PART == "pinning" else made
        waits.append(now() - before)
        stamps.append(stamp)
        if SLEEPS[PART][2]:
            time.sleep(SLEEPS[PART][2])
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        before = now()
    whole = now() - begin
    in_thread = pinned[-1][1] - pinned[0][0] if pinned and workers else whole
    print(json.dumps({"waits": [wait / whole for wait in waits], "parts": shares(stamps, None if workers else whole), "loss": loss.item().hex(),
                      "sampler": sum(end - start for start, end in sampled if start >= begin) / whole,
                      "pinning": sum(end - start for start, end in pinned) / in_thread if pinned else None}))


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    main(int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "fork" if sys.argv[2] != "0" else None)
