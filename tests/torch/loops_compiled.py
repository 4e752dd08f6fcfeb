# SPDX-License-Identifier: Apache-2.0
"""Training loops in which torch.compile makes the optimizer's step, from the start or from some step on: as loops.py. No loader, and gradients
that are thrown away without a record: nothing but backwards and the compiled calls tells where a step ends."""
import time

import torch

from loops import Step, facts, main, net
from loops_of_optimizers import Halving

BACKEND = "eager"


class Update(Step):
    """The script's clock of the optimizer alone."""

    def __exit__(self, *_):
        facts.setdefault("updates_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - self.begin)


def compiled(function, **options):
    return torch.compile(function, backend=BACKEND, **options)


def train(model, update, batch=None, micro_batches=1):
    for _ in range(micro_batches):
        (model(torch.randn(8, 16) if batch is None else batch).pow(2).mean() / micro_batches).backward()
    with Update():
        update()
    model.zero_grad()


def step_from_start(since=0, steps=6, make=None):
    model = net()
    optimizer = (make or (lambda parameters: torch.optim.SGD(parameters, lr=0.1)))(model.parameters())
    for i in range(steps):
        if i == since:
            optimizer.step = compiled(optimizer.step)
        with Step():
            train(model, lambda: optimizer.step())


def step_partway():
    step_from_start(since=3, steps=8)


def step_of_adam():
    """With a state that is made in the first call: compiled again for the second."""
    step_from_start(make=torch.optim.Adam)


def function_from_start(since=0, steps=6):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def update():
        optimizer.step()

    for i in range(steps):
        if i == since:
            update = compiled(update)
        with Step():
            train(model, update)


def function_partway():
    function_from_start(since=3, steps=8)


def whole_graph():
    """An optimizer of one's own, that is compiled in one piece."""
    model = net()
    optimizer = Halving(model.parameters())
    update = compiled(lambda: optimizer.step(), fullgraph=True)
    for _ in range(6):
        with Step():
            train(model, update)


def accumulation():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step = compiled(optimizer.step)
    for _ in range(5):
        with Step():
            train(model, lambda: optimizer.step(), micro_batches=3)


def accumulation_partway():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(7):
        if i == 3:
            optimizer.step = compiled(optimizer.step)
        with Step():
            train(model, lambda: optimizer.step(), micro_batches=3)


def two_networks():
    """Each with gradients and an optimizer of its own; the steps of both are one code."""
    networks = [net(), net()]
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in networks]
    for optimizer in optimizers:
        optimizer.step = compiled(optimizer.step)
    for _ in range(6):
        with Step():
            for network, optimizer in zip(networks, optimizers):
                train(network, lambda: optimizer.step())


def one_of_two():
    """One of two optimizers is compiled; both step in one function."""
    networks = [net(), net()]
    first, second = (torch.optim.SGD(network.parameters(), lr=0.1) for network in networks)
    second.step = compiled(second.step)
    for _ in range(6):
        with Step():
            (networks[0](torch.randn(8, 16)) + networks[1](torch.randn(8, 16))).pow(2).mean().backward()
            first.step()
            second.step()


def two_in_one_function():
    networks = [net(), net()]
    first, second = (torch.optim.SGD(network.parameters(), lr=0.1) for network in networks)

    @compiled
    def update():
        first.step()
        second.step()

    for _ in range(6):
        with Step():
            (networks[0](torch.randn(8, 16)) + networks[1](torch.randn(8, 16))).pow(2).mean().backward()
            update()


def learning_rate():
    """Changes from step to step: compiled again where it is a number, which it is here."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = compiled(optimizer.step)
    for _ in range(7):
        with Step():
            train(model, lambda: optimizer.step())
            schedule.step()


def model_and_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    forward, optimizer.step = compiled(model), compiled(optimizer.step)
    for _ in range(6):
        with Step():
            forward(torch.randn(8, 16)).pow(2).mean().backward()
            optimizer.step()
            model.zero_grad()


def whole_step(since=0, steps=6):
    """Forward, backward and optimizer in one compiled function."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(batch):
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for i in range(steps):
        if i == since:
            step = compiled(step)
        with Step():
            step(torch.randn(8, 16))


def whole_step_partway():
    whole_step(since=3, steps=8)


def gradients_in_function():
    """Forward and backward in a compiled function, with several micro-batches; the optimizer outside of it."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @compiled
    def gradients(batch):
        for part in batch.split(4):
            model(part).pow(2).mean().backward()

    for _ in range(5):
        with Step():
            gradients(torch.randn(8, 16))
            optimizer.step()
            optimizer.zero_grad()


def ranges_and_backward():
    """All of a step, with ranges in it, and code of AOTAutograd."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(batch):
        with torch.autograd.profiler.record_function("forward"):
            loss = model(batch).pow(2).mean()
        with torch.autograd.profiler.record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    compiled_step = torch.compile(step, backend="aot_eager")
    for i in range(6):
        with Step():
            (compiled_step if i > 1 else step)(torch.randn(8, 16))


class Slow(Halving):
    """20 ms in each call."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step()
        time.sleep(0.02)


def slow():
    step_from_start(make=Slow)


def slow_partway():
    step_from_start(since=3, steps=8, make=Slow)


if __name__ == "__main__":
    main(globals())
