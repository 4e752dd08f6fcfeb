# SPDX-License-Identifier: Apache-2.0
"""Two ranks on gloo, without a launcher: `straggler.py FILE [kill]`: rank 1 is 30 ms late with each backward; with `kill` it dies in its fourth
step. Used by test_collectives.py."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])


def main():
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=RANK, world_size=2)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        loss = model(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        if RANK == 1:
            time.sleep(0.03)
            if step == 3 and "kill" in sys.argv:
                os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
    dist.all_reduce(torch.ones(1000, dtype=torch.float64))
    dist.barrier()


if __name__ == "__main__":
    main()
