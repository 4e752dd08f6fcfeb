# SPDX-License-Identifier: Apache-2.0
"""Reads the loss and each gradient's sum with item() in each step, which is free on a processor. without: keeps the tensors."""
import torch

from pair import VARIANT, Clock, batch, network, one_thread, update

if __name__ == "__main__":
    one_thread()
    model = network(512, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = batch(64, 512)
    clock = Clock()
    kept = []
    for n in range(200):
        loss = update(model, optimizer, x, y)
        values = [loss.detach()] + [parameter.grad.sum() for parameter in model.parameters()]
        kept = [value.item() for value in values] if VARIANT == "fault" else values
        clock.tick()
    clock.finish()
