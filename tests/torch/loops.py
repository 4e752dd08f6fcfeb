# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them, unmarked: `loops.py NAME [MODE]` trains, in a mode of PyTorch's dispatcher, and prints the steps
it made, with the times the script itself took of them, as one line of JSON. The other loops*.py import its parts; test_steps.py runs them."""
import contextlib
import json
import sys
import time

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

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


def accumulation():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(12)):
        (model(batch).pow(2).mean() / 3).backward()
        if i % 3 == 2:
            with Step():
                optimizer.step()
            optimizer.zero_grad()


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
    """20 ms for a batch of one, or what the machine makes of it."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        time.sleep(0.02)
        facts.setdefault("data_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
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


def pauses():
    """Four losses: behind each forward, and before each backward, the program is at something else for 10 ms."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader():
        with Step():
            losses = []
            for part in batch.split(2):
                losses.append(model(part).pow(2).mean())
                time.sleep(0.01)
            optimizer.zero_grad()
            for loss in losses:
                time.sleep(0.01)
                loss.backward()
            optimizer.step()


def adversarial():
    """What is learnt from is found by backwards, which leave gradients in the weights, too. So is what an evaluation is made of."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def attack(batch):
        noise = torch.zeros_like(batch, requires_grad=True)
        model(batch + noise).pow(2).mean().backward()
        return batch + noise.grad.sign()

    for _ in range(2):
        for (batch,) in loader(batches=3):
            with Step():
                train(model, optimizer, attack(batch))
        attack(torch.randn(8, 16))
        time.sleep(0.3)


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


def two_backwards():
    model, head = net(), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for (batch,) in loader():
        with Step():
            optimizer.zero_grad()
            features = model(batch)
            features.pow(2).mean().backward(retain_graph=True)
            head(features).mean().backward()
            optimizer.step()


def partial_accumulation():
    """Three batches per step; the rest at the end of an epoch makes one, too."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(2):
        for i, (batch,) in enumerate(loader(7)):
            model(batch).pow(2).mean().backward()
            if i % 3 == 2 or i == 6:
                with Step():
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()


def inner_updates():
    """MAML: gradients of a few inner updates, that train nothing, within each step."""
    weights = torch.randn(16, 4, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    for (batch,) in loader():
        with Step():
            optimizer.zero_grad()
            fast = weights
            for _ in range(2):
                (grad,) = torch.autograd.grad((batch @ fast).pow(2).mean(), fast, create_graph=True)
                fast = fast - 0.1 * grad
            (batch @ fast).pow(2).mean().backward()
            optimizer.step()


def scripted():
    """TorchScript makes one node of the graph for all of the model, before it calls an operator, once it has optimized its code."""
    model = torch.jit.script(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        with Step():
            train(model, optimizer, torch.randn(8, 16))


class Passing(TorchDispatchMode):
    """As those that count: every call goes through it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def counting():
    from torch.utils.flop_counter import FlopCounterMode
    return FlopCounterMode(display=False)


MODES = {"none": contextlib.nullcontext, "passing": Passing, "counting": counting}


def killed():
    """Dies in the middle of the fourth step, without a word."""
    import os
    import signal
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader()):
        loss = model(batch).pow(2).mean()
        if i == 3:
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loops):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with MODES[sys.argv[2]]() if len(sys.argv) > 2 else contextlib.nullcontext():
        loops[sys.argv[1]]()
    print(json.dumps({"steps": stamps, **facts}))


if __name__ == "__main__":
    main(globals())
