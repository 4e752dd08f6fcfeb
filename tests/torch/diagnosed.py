# SPDX-License-Identifier: Apache-2.0
"""A small training loop with a fault that a rule of the diagnosis knows: diagnosed.py FAULT. For test_diagnosis.py."""
import gc
import itertools
import sys
import time
from contextlib import nullcontext

import torch
from stepscope import metric, phase


class Slow(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 12

    def __getitem__(self, number):
        time.sleep(self.seconds)
        return torch.ones(64)


class Knot:
    def __init__(self):
        self.knot = self


def values(loss, kept):
    for _ in range(20000):
        loss.item()


def garbage(loss, kept):
    for _ in range(3):
        kept.append([Knot() for _ in range(100000)])
        gc.collect()


def leak(loss, kept):
    kept.append(torch.ones(1 << 20))


def save(loss, kept):
    for _ in range(20):
        torch.save({"weights": torch.ones(1 << 20)}, "model.pt")


def copies(loss, kept):
    for _ in range(20):
        torch.ones(1000, 1000).t().clone(memory_format=torch.contiguous_format)


def first(loss, kept):
    if not kept:
        metric("loss", float("nan"))
        time.sleep(2)
    kept.append(1)


def recompile(loss, kept):
    kept.append(1)
    torch.compile(lambda x: x + len(kept), backend="eager")(torch.ones(len(kept)))


def habits(loss, kept):
    rows = torch.ones(16, 1000)
    for i in range(16):
        rows[i].sum()
    kept[:] = kept or [torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))]
    kept[0](torch.ones(2, 3, 8, 8))


def histograms(loss, kept):
    for _ in range(20):
        torch.histc(torch.ones(300000), 64)


def nothing(loss, kept):
    pass


def own_input(is_marked):
    """Batches of a generator, as programs have that use no DataLoader."""
    while True:
        with phase("data") if is_marked else nullcontext():
            time.sleep(0.1)
            data = torch.ones(1, 64)
        yield data


def train(fault):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    gc.collect()
    gc.disable()
    width, batch = (2000, 1) if fault == "optimizer" else (512, 256)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.Linear(width, 1))
    optimizer = (torch.optim.Adam if fault == "optimizer" else torch.optim.SGD)(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Slow(0.1 if fault == "data" else 0), batch_size=1)
    if fault in ("own_input", "marked_input"):
        loader = itertools.islice(own_input(fault == "marked_input"), 12)
    cause = globals().get(fault, nothing) if not fault.endswith("_input") else nothing
    kept = []
    for data in loader:
        loss = model(data.expand(batch, 64)).square().mean()
        loss.backward()
        cause(loss, kept)
        optimizer.step()
        optimizer.zero_grad(set_to_none=fault != "habits")


train(sys.argv[1])
