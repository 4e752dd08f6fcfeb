# SPDX-License-Identifier: Apache-2.0
"""Data parallel training on gloo: five steps in each rank."""
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        loss = model(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    print("finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
