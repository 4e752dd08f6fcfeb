# SPDX-License-Identifier: Apache-2.0
"""A dataset that waits 48 ms per batch, as for a disk, without workers. without: data in memory. w1, w2, w4: N workers."""
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pair import VARIANT, Clock, network, one_thread, update

X = torch.randn(240, 256)


class Slow(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        if VARIANT != "without":
            time.sleep(0.012)
        return X[i], i % 10


if __name__ == "__main__":
    one_thread()
    model = network(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    workers = {"w1": 1, "w2": 2, "w4": 4}.get(VARIANT, 0)
    clock = Clock()
    for x, y in DataLoader(Slow(), batch_size=4, num_workers=workers):
        update(model, optimizer, x, y)
        time.sleep(0.016)
        clock.tick()
    clock.finish(skip=10)
