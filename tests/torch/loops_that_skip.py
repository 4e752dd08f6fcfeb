# SPDX-License-Identifier: Apache-2.0
"""Training loops that leave out updates: gradients are thrown away, or the call raises. As loops.py."""
import torch
from torch import nn

from loops import Step, facts, loader, main, net, train


def skipped_without_loader():
    """An update is left out."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(6):
        with Step():
            model(torch.randn(8, 16)).pow(2).mean().backward()
            if i != 3:
                optimizer.step()
            optimizer.zero_grad()


def skipped_by_hand():
    """Two batches have no finite loss: their gradients are thrown away. Not the last one: after that nothing tells it from the
    beginning of an accumulation."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader()):
        with Step():
            loss = (model(batch) * (float("inf") if i in (1, 4) else 1)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if torch.isfinite(norm):
                optimizer.step()


def scaler():
    """A real GradScaler, which skips the third update, and no loader."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scale = torch.amp.GradScaler("cpu", init_scale=4.0)
    for i in range(6):
        with Step():
            loss = (model(torch.randn(8, 16)) * (float("inf") if i == 2 else 1)).pow(2).mean()
            optimizer.zero_grad()
            scale.scale(loss).backward()
            scale.step(optimizer)
            scale.update()


def set_to_none():
    """Gradients that are thrown away by hand, without a loader."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(8):
        with Step():
            model(torch.randn(8, 16)).pow(2).mean().backward()
            if i not in (3, 5):
                optimizer.step()
            for parameter in model.parameters():
                parameter.grad = None


def set_to_none_with_loader():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(8)):
        with Step():
            model(batch).pow(2).mean().backward()
            if i not in (3, 5):
                optimizer.step()
            for parameter in model.parameters():
                parameter.grad = None


def raising():
    """The optimizer's third call raises, before it has updated anything, and so does the last, behind which the program gives up."""
    class Raising(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            self.calls += 1
            if self.calls in (3, 6):
                raise FloatingPointError("by the test")
            return super().step(closure)

    model = net()
    optimizer = Raising(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader()):
        try:
            with Step():
                train(model, optimizer, batch)
        except FloatingPointError:
            facts.setdefault("raised", []).append(i)


if __name__ == "__main__":
    main(globals())
