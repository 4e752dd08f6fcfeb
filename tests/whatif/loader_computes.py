# SPDX-License-Identifier: Apache-2.0
"""Two workers on two processors, and a dataset that computes 24 ms per batch. without: six workers. free: data in memory."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pair import VARIANT, Clock, burn, network, one_thread, update

X = torch.randn(480, 256)


class Busy(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        if VARIANT != "free":
            burn(6)
        return X[i], i % 10


if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    one_thread()
    model = network(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    workers = {"w1": 1, "fault": 2, "without": 6}.get(VARIANT, 0)
    clock = Clock()
    for x, y in DataLoader(Busy(), batch_size=4, num_workers=workers):
        update(model, optimizer, x, y)
        time.sleep(0.004)
        clock.tick()
    clock.finish(skip=40)
