# SPDX-License-Identifier: Apache-2.0
"""Two ranks over gloo; rank 1 sleeps 40 ms in each forward pass. without: it does not sleep."""
import launch

launch.ranks()
import time  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from pair import RANK, VARIANT, Clock, batch, network, one_thread  # noqa: E402

if __name__ == "__main__":
    launch.meet()
    one_thread()
    model = DistributedDataParallel(network(256, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = batch(64, 256)
    clock = Clock()
    for n in range(60):
        optimizer.zero_grad()
        output = model(x)
        if VARIANT == "fault" and RANK == 1:
            time.sleep(0.040)
        nn.functional.cross_entropy(output, y).backward()
        optimizer.step()
        clock.tick()
    clock.finish()
    launch.part()
