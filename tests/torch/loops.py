# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them, unmarked: `loops.py NAME` trains and prints the steps it made, with the times the
script itself took of them, as one line of JSON. Used by test_steps.py."""
import json
import sys
import time

import torch
from torch import nn

stamps = []
facts = {}


def net():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def loader(batches=6, workers=0, size=8):
    data = torch.utils.data.TensorDataset(torch.randn(batches * size, 16))
    return torch.utils.data.DataLoader(data, batch_size=size, num_workers=workers)


class Step:
    """The loop's own clock: one stamp per step."""

    def __enter__(self):
        self.begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def __exit__(self, *_):
        stamps.append([self.begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC)])


def train(model, optimizer, batch):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def plain():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader():
        with Step():
            train(model, optimizer, batch)


def adam_without_loader():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        with Step():
            train(model, optimizer, torch.randn(8, 16))


def two_workers():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader(workers=2):
        with Step():
            train(model, optimizer, batch)


def accumulation():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(12)):
        (model(batch).pow(2).mean() / 3).backward()
        if i % 3 == 2:
            with Step():
                optimizer.step()
            optimizer.zero_grad()


def evaluation_per_epoch():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for (batch,) in loader(4):
            with Step():
                train(model, optimizer, batch)
        model.eval()
        with torch.no_grad():
            for (batch,) in loader(2):
                model(batch).pow(2).mean()
        model.train()
    facts["evaluation_batches"] = 6


def evaluation_after_each_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    check = loader(1)
    for (batch,) in loader():
        with Step():
            train(model, optimizer, batch)
        with torch.no_grad():
            for (batch,) in check:
                model(batch).pow(2).mean()
    facts["evaluation_batches"] = 6


def gan():
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    g = torch.optim.Adam(generator.parameters())
    d = torch.optim.Adam(critic.parameters())
    for (batch,) in loader():
        with Step():
            d.zero_grad()
            (critic(generator(torch.randn(8, 4)).detach()).mean() - critic(batch).mean()).backward()
            d.step()
            g.zero_grad()
            (-critic(generator(torch.randn(8, 4))).mean()).backward()
            g.step()


def two_optimizers():
    model = net()
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = torch.optim.Adam(model[2].parameters())
    for (batch,) in loader():
        with Step():
            first.zero_grad()
            second.zero_grad()
            model(batch).pow(2).mean().backward()
            first.step()
            second.step()


def lbfgs():
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for (batch,) in loader(4):
        def closure():
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            return loss

        with Step():
            optimizer.step(closure)


def inference():
    model = net()
    with torch.no_grad():
        for (batch,) in loader():
            model(batch)


def hand_written_sgd():
    model = net()
    for (batch,) in loader():
        with Step():
            loss = model(batch).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None


def ranges_around():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        with torch.profiler.record_function(f"epoch {epoch}"):
            for (batch,) in loader(3):
                with Step(), torch.profiler.record_function("train_step"):
                    with torch.profiler.record_function("forward"):
                        loss = model(batch).pow(2).mean()
                    with torch.profiler.record_function("backward"):
                        loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()


def gradient_penalty():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader():
        with Step():
            batch.requires_grad_()
            out = model(batch).sum()
            (grad,) = torch.autograd.grad(out, batch, create_graph=True)
            optimizer.zero_grad()
            (out + grad.pow(2).sum()).backward()
            optimizer.step()


class Sleep(torch.autograd.Function):
    """20 ms in the backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(0.02)
        return grad


class SlowData(torch.utils.data.Dataset):
    """20 ms for a batch of one."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.randn(16)


def slow_parts():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(SlowData(), batch_size=1):
        with Step():
            loss = Sleep.apply(model(batch)).pow(2).mean()
            time.sleep(0.02)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def checkpointed():
    from torch.utils.checkpoint import checkpoint
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader():
        with Step():
            loss = checkpoint(model, batch.requires_grad_(), use_reentrant=False).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
    print(json.dumps({"steps": stamps, **facts}))
