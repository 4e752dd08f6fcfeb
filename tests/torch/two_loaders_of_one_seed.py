# SPDX-License-Identifier: Apache-2.0
"""two_loaders_of_one_seed.py: validation and training with loaders of two workers each, whose seeds are equal, as Lightning makes them."""
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(64)


valid, train = (torch.utils.data.DataLoader(Slow(count), 8, num_workers=2, persistent_workers=True) for count in (32, 160))
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for loader in (valid, train):
    torch.manual_seed(0)
    for batch in loader:
        if loader is train:
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
