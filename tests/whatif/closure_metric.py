# SPDX-License-Identifier: Apache-2.0
"""LBFGS with a closure that computes a metric in Python. without: no metric."""
import torch
from torch import nn

from pair import VARIANT, Clock, batch, burn, network, one_thread

if __name__ == "__main__":
    one_thread()
    model = network(256, 3)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-3, max_iter=4, history_size=4, tolerance_grad=0, tolerance_change=0)
    x, y = batch(64, 256)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if VARIANT == "fault":
            burn(3)
        loss.backward()
        return loss

    clock = Clock()
    for n in range(80):
        optimizer.step(closure)
        clock.tick()
    clock.finish()
