# SPDX-License-Identifier: Apache-2.0
"""Training loops with ranges of torch.profiler, and in modes of PyTorch's dispatcher: as loops.py."""
import contextlib

import torch
from torch import nn

from loops import Passing, Step, loader, main, net, slow_parts, train


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


def nested_ranges():
    """Ranges that hold the update and what follows it, and several levels of them."""
    record = torch.profiler.record_function
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record("run"):
        for (batch,) in loader():
            with Step():
                with record("compute"), record("gradients"):
                    with record("forward"):
                        loss = model(batch).pow(2).mean()
                    loss.backward()
                with record("update"):
                    with record("clip"):
                        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    with record("metrics"):
                        model(batch).mean().item()
                    optimizer.zero_grad()


def range_around_updates():
    """Several updates within one range, the batch outside of it."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(4)):
        with torch.profiler.record_function(f"batch {i}"):
            for part in batch.split(4):
                with Step():
                    train(model, optimizer, part)


def some_steps_in_a_mode():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(8)):
        with Step(), Passing() if i in (2, 3, 6) else contextlib.nullcontext():
            train(model, optimizer, batch)


def optimizer_in_a_mode():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader():
        with Step():
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            with Passing():
                optimizer.step()


def two_modes():
    with Passing():
        slow_parts()


if __name__ == "__main__":
    main(globals())
