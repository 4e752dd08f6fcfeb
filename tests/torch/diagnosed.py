# SPDX-License-Identifier: Apache-2.0
"""A small training loop with a fault that a rule of the diagnosis knows: diagnosed.py FAULT. For test_diagnosis.py."""
import gc
import sys
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 10

    def __getitem__(self, number):
        time.sleep(self.seconds)
        return torch.ones(64)


class Knot:
    def __init__(self):
        self.knot = self


def values(loss):
    for _ in range(20000):
        loss.item()


def garbage(kept):
    kept.append([Knot() for _ in range(150000)])
    gc.collect()


def train(fault):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Slow(0.03 if fault == "data" else 0), batch_size=1)
    kept = []
    for batch in loader:
        for _ in range(20):
            loss = model(batch.expand(256, 64)).square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if fault == "values":
            values(loss)
        elif fault == "garbage":
            garbage(kept)
        elif fault == "leak":
            kept.append(torch.ones(1 << 20))
        elif fault == "save":
            for _ in range(30):
                torch.save(model.state_dict(), "model.pt")


train(sys.argv[1])
