# SPDX-License-Identifier: Apache-2.0
"""A module that builds a mask in a loop of Python in each forward pass. without: it builds the mask once."""
import torch
from torch import nn

from pair import VARIANT, Clock, batch, network, one_thread, update


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = network(256, 4)
        self.mask = None

    def build(self, rows):
        return [[1.0 if (i * 31 + j) % 7 else 0.0 for j in range(256)] for i in range(rows)]

    def forward(self, x):
        if VARIANT == "fault" or self.mask is None:
            self.mask = torch.tensor(self.build(len(x)))
        return self.body(x * self.mask)


if __name__ == "__main__":
    one_thread()
    model = Masked()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = batch(128, 256)
    clock = Clock()
    for n in range(120):
        update(model, optimizer, x, y)
        clock.tick()
    clock.finish()
