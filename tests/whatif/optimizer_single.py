# SPDX-License-Identifier: Apache-2.0
"""AdamW that works tensor by tensor, on 240 small tensors. without: fused=True."""
import torch
from torch import nn

from pair import VARIANT, Clock, batch, network, one_thread

if __name__ == "__main__":
    one_thread()
    model = nn.ModuleList([network(48, 4) for _ in range(24)])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=False if VARIANT == "fault" else None, fused=VARIANT == "without" or None)
    x, y = batch(32, 48)
    clock = Clock()
    for n in range(120):
        optimizer.zero_grad()
        nn.functional.cross_entropy(sum(part(x) for part in model), y).backward()
        optimizer.step()
        clock.tick()
    clock.finish()
