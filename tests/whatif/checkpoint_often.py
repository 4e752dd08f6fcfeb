# SPDX-License-Identifier: Apache-2.0
"""Saves the model and the optimizer's state in each fifth step. without: never."""
import tempfile

import torch

from pair import VARIANT, Clock, batch, network, one_thread, update

if __name__ == "__main__":
    one_thread()
    model = network(512, 6)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x, y = batch(64, 512)
    clock = Clock()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for n in range(100):
            update(model, optimizer, x, y)
            if VARIANT == "fault" and n % 5 == 4:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder + "/c.pt")
            clock.tick()
    clock.finish()
