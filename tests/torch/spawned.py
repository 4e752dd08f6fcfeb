# SPDX-License-Identifier: Apache-2.0
"""Programs whose main process starts those that train: `spawned.py HOW RANKS [TIMES]`, each rank with a process group of its own making and
nothing in its environment, so many times one after the other; RANKS 0: one child without a group. Each trains five steps."""
import multiprocessing
import os
import sys

import torch

STEPS = 5


def train(model, steps=STEPS):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = model(torch.ones(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def rank_of(rank, ranks, store):
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    train(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4)))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def child():
    train(torch.nn.Linear(16, 4))


def start(how, ranks, store):
    if how == "torch.spawn":
        torch.multiprocessing.spawn(rank_of, (ranks, store), ranks)
        return
    context = multiprocessing.get_context(how)
    children = [context.Process(target=rank_of, args=(rank, ranks, store)) for rank in range(ranks)] or [context.Process(target=child)]
    for process in children:
        process.start()
    for process in children:
        process.join()
    assert all(process.exitcode == 0 for process in children)


if __name__ == "__main__":
    for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        start(sys.argv[1], int(sys.argv[2]), os.path.abspath(f"store{number}"))
