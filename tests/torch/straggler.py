# SPDX-License-Identifier: Apache-2.0
"""Two ranks on gloo, without a launcher: `straggler.py FILE [kill]`: rank 1 begins each backward 200 ms after rank 0 has begun to wait in the
exchange of its gradients, however busy the machine is (the exchange itself, in another thread, may begin a little later than the wait for it); with `kill` it dies in its fourth step. Used by test_collectives.py."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])


class Input(torch.autograd.Function):
    """Its backward comes behind all parameters', so behind the exchange's begin."""

    there = None

    @staticmethod
    def forward(context, x):
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        if RANK == 0:
            with open(Input.there + ".new", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            os.rename(Input.there + ".new", Input.there)
        return gradient


def sleeps(pid):
    """How often the main thread of the process has gone to sleep, while it does; None: it runs, or waits for a processor."""
    with open(f"/proc/{pid}/task/{pid}/status", encoding="utf-8") as file:
        facts = dict(line.split(":", 1) for line in file)
    return int(facts["voluntary_ctxt_switches"]) if facts["State"].strip().startswith("S") else None


def wait_for_the_other():
    while not os.path.exists(Input.there):
        time.sleep(0.002)
    with open(Input.there, encoding="ascii") as file:
        pid, before = int(file.read()), None
    while before is None or before != sleeps(pid):
        before = sleeps(pid)
        time.sleep(0.2)


def main():
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=RANK, world_size=2)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        Input.there = f"{sys.argv[1]}.{step}"
        loss = model(Input.apply(torch.randn(8, 64, requires_grad=True))).pow(2).mean()
        optimizer.zero_grad()
        if RANK == 1:
            wait_for_the_other()
            if step == 3 and "kill" in sys.argv:
                os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
    dist.all_reduce(torch.ones(1000, dtype=torch.float64))
    dist.barrier()


if __name__ == "__main__":
    main()
