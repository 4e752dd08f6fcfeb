# SPDX-License-Identifier: Apache-2.0
"""A loop whose batches take 20 ms in the training process, beside some 10 ms of computing. Used by test_repeats.py."""
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        time.sleep(0.0025)
        return torch.randn(256)


model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for batch in torch.utils.data.DataLoader(Slow(), 8):
    for _ in range(4):
        model(batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
