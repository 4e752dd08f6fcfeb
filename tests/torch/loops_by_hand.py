# SPDX-License-Identifier: Apache-2.0
"""Training loops without an optimizer of PyTorch's: updates by hand, classes of the program's own. As loops.py; `update_ns` is what the
script saw of each update."""
import time

import torch
from torch import nn

from loops import Step, facts, loader, main, net


class Own:
    """Adam as people write it, without a base class."""

    def __init__(self, parameters, zero=False):
        self.parameters = list(parameters)
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.zero, self.calls = zero, 0

    @torch.no_grad()
    def step(self):
        self.calls += 1
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for p, m, v in zip(self.parameters, self.first, self.second):
            m.mul_(0.9).add_(p.grad, alpha=0.1)
            v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.001)
        facts.setdefault("update_ns", []).append([begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC)])

    def zero_grad(self):
        for p in self.parameters:
            if self.zero and p.grad is not None:
                p.grad.zero_()
            else:
                p.grad = None


def accumulate(optimizer, model, batches, every=3):
    for i, (batch,) in enumerate(batches):
        (model(batch).pow(2).mean() / every).backward()
        if i % every == every - 1:
            with Step():
                optimizer.step()
            optimizer.zero_grad()


def own_class():
    model = net()
    accumulate(Own(model.parameters()), model, loader(12))


def own_class_that_zeroes():
    model = net()
    accumulate(Own(model.parameters(), zero=True), model, loader(12))


def what_is_left():
    """The last two batches lead to no update."""
    model = net()
    accumulate(Own(model.parameters()), model, loader(11))


def running_loss():
    """The loss is added up in place, in each micro-batch, and accuracy with it."""
    model, total, count, squares = net(), torch.zeros(()), torch.zeros(()), torch.zeros(4)
    parameters = list(model.parameters())
    for i, (batch,) in enumerate(loader(12)):
        out = model(batch)
        loss = out.pow(2).mean() / 4
        loss.backward()
        total += loss.detach()
        count += len(batch)
        squares += out.detach().pow(2).sum(0)
        squares.mul_(0.9)
        if i % 4 == 3:
            with Step(), torch.no_grad():
                for p in parameters:
                    p -= 0.1 * p.grad
            for p in parameters:
                p.grad = None


def written_to_data():
    """In grad mode, through .data, as before PyTorch 0.4, with the module's zero_grad()."""
    model = net()
    for i, (batch,) in enumerate(loader(8)):
        model(batch).pow(2).mean().backward()
        if i % 2:
            with Step():
                for p in model.parameters():
                    p.data -= 0.1 * p.grad.data
            for p in model.parameters():
                p.grad.data.zero_()


def no_modules():
    """Tensors and formulas only, and no loader."""
    w, b, x = torch.randn(16, 4, requires_grad=True), torch.zeros(4, requires_grad=True), torch.randn(64, 16)
    for step in range(5):
        for part in x.split(16):
            ((part @ w + b).relu().pow(2).mean() / 4).backward()
        with Step(), torch.no_grad():
            w -= 0.1 * w.grad
            b -= 0.1 * b.grad
        w.grad, b.grad = None, None


def all_at_once():
    """torch._foreach, gradients are zeroed before the first micro-batch."""
    model = net()
    parameters = list(model.parameters())
    for i, (batch,) in enumerate(loader(9)):
        if i % 3 == 0 and i:
            torch._foreach_zero_([p.grad for p in parameters])
        model(batch).pow(2).mean().backward()
        if i % 3 == 2:
            with Step(), torch.no_grad():
                torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-0.1)


def filled():
    """Gradients are never made anew, but multiplied by 0."""
    model = net()
    for i, (batch,) in enumerate(loader(9)):
        model(batch).pow(2).mean().backward()
        if i % 3 == 2:
            with Step(), torch.no_grad():
                for p in model.parameters():
                    p.add_(p.grad, alpha=-0.1)
                    p.grad.mul_(0)


def of_numpy():
    """PyTorch does not see the update."""
    model = net()
    parameters = list(model.parameters())
    for i, (batch,) in enumerate(loader(6)):
        model(batch).pow(2).mean().backward()
        if i % 2:
            with Step():
                for p in parameters:
                    p.detach().numpy()[...] -= 0.1 * p.grad.numpy()
            for p in parameters:
                p.grad = None


def two_losses():
    """Two backwards each, the second of a part that the first has not reached."""
    model, head = net(), nn.Linear(4, 1)
    optimizer = Own([*model.parameters(), *head.parameters()])
    for (batch,) in loader():
        optimizer.zero_grad()
        features = model(batch)
        features.pow(2).mean().backward(retain_graph=True)
        head(features).mean().backward()
        with Step():
            optimizer.step()


def gan_by_hand():
    """The generator's backward adds to the critic's gradients, which nobody uses."""
    generator, critic = nn.Linear(4, 16), nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))

    def update(network):
        with torch.no_grad():
            for p in network.parameters():
                p -= 0.1 * p.grad

    for (batch,) in loader():
        with Step():
            critic.zero_grad()
            (critic(generator(torch.randn(8, 4)).detach()).mean() - critic(batch).mean()).backward()
            update(critic)
            generator.zero_grad()
            (-critic(generator(torch.randn(8, 4)))).mean().backward()
            update(generator)


def image():
    """What is learnt is the input; the gradients of the model, which is not frozen, add up."""
    model, picture = net(), torch.rand(1, 16, requires_grad=True)
    for _ in range(8):
        with Step():
            model(picture).norm().backward()
            picture.data += 0.1 * picture.grad / picture.grad.norm()
            picture.grad = None


def image_that_zeroes():
    """Likewise, in place."""
    model, picture = net(), torch.rand(1, 16, requires_grad=True)
    for _ in range(8):
        with Step():
            model(picture).norm().backward()
            with torch.no_grad():
                picture += 0.1 * picture.grad
                picture.clamp_(0, 1)
                picture.grad.zero_()


def functional():
    """No gradient is kept."""
    model = net()
    parameters = list(model.parameters())
    for (batch,) in loader():
        gradients = torch.autograd.grad(model(batch).pow(2).mean(), parameters)
        with Step(), torch.no_grad():
            for p, g in zip(parameters, gradients):
                p -= 0.1 * g


def rebuilt():
    """Nor is anything written to: the parameters are made anew."""
    w = torch.ones(16, 1, requires_grad=True)
    for (batch,) in loader():
        (g,) = torch.autograd.grad((batch @ w - 1).pow(2).mean(), [w])
        with Step():
            w = (w - 0.1 * g).detach().requires_grad_()


def several_updates():
    """Three of each batch."""
    model = net()
    for (batch,) in loader(3):
        for _ in range(3):
            with Step():
                model(batch).pow(2).mean().backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
                for p in model.parameters():
                    p.grad = None


def never_zeroed():
    """A benchmark: forward and backward only."""
    model = net()
    for _ in range(6):
        with Step():
            model(torch.randn(8, 16)).pow(2).mean().backward()


def slow_updates():
    """Each takes 20 ms, in the middle."""
    model = net()
    parameters = list(model.parameters())
    for i, (batch,) in enumerate(loader(8)):
        model(batch).pow(2).mean().backward()
        if i % 2:
            with Step(), torch.no_grad():
                for p in parameters[:2]:
                    p -= 0.1 * p.grad
                time.sleep(0.02)
                for p in parameters[2:]:
                    p -= 0.1 * p.grad
            for p in parameters:
                p.grad = None


if __name__ == "__main__":
    main(globals())
