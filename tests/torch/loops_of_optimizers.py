# SPDX-License-Identifier: Apache-2.0
"""Training loops with several optimizers, made once or anew, with closures, in hooks, or written by the program itself: as loops.py."""
import time

import torch
from torch import nn

from loops import Step, facts, loader, main, net, train


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


def critic_loss(critic, generator, batch):
    return critic(generator(torch.randn(8, 4)).detach()).mean() - critic(batch).mean()


def train_gan(generator, critic, g, d):
    d.zero_grad()
    critic_loss(critic, generator, torch.randn(8, 16)).backward()
    d.step()
    g.zero_grad()
    (-critic(generator(torch.randn(8, 4))).mean()).backward()
    g.step()


def n_critic():
    """Wasserstein GAN: the generator learns at every third batch only."""
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    g = torch.optim.RMSprop(generator.parameters())
    d = torch.optim.RMSprop(critic.parameters())
    for i, (batch,) in enumerate(loader(9)):
        with Step():
            d.zero_grad()
            critic_loss(critic, generator, batch).backward()
            d.step()
            with torch.no_grad():
                for parameter in critic.parameters():
                    parameter.clamp_(-0.1, 0.1)
            if i % 3 == 2:
                g.zero_grad()
                (-critic(generator(torch.randn(8, 4))).mean()).backward()
                g.step()


class Sharp(torch.optim.Optimizer):
    """SAM around SGD: to the worst point near by, back, and a step with the gradient from there."""

    def __init__(self, parameters):
        parameters = list(parameters)
        self.base = torch.optim.SGD(parameters, lr=0.1)
        super().__init__(parameters, {})

    @torch.no_grad()
    def climb(self):
        self.moved = [parameter.grad * 0.05 for parameter in self.param_groups[0]["params"]]
        for parameter, move in zip(self.param_groups[0]["params"], self.moved):
            parameter.add_(move)
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        if closure:
            with torch.enable_grad():
                closure()
            self.climb()
            with torch.enable_grad():
                closure()
        for parameter, move in zip(self.param_groups[0]["params"], self.moved):
            parameter.sub_(move)
        self.base.step()
        self.zero_grad()


def sam():
    model = net()
    optimizer = Sharp(model.parameters())
    for (batch,) in loader():
        with Step():
            model(batch).pow(2).mean().backward()
            optimizer.climb()
            model(batch).pow(2).mean().backward()
            optimizer.step()


def sam_closure_without_loader():
    model = net()
    optimizer = Sharp(model.parameters())
    for _ in range(5):
        batch = torch.randn(8, 16)

        def closure():
            model(batch).pow(2).mean().backward()

        with Step():
            optimizer.step(closure)


def optimizer_in_hook():
    """One optimizer per parameter, which steps as soon as its gradient is there."""
    model = net()
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for (batch,) in loader():
        with Step():
            model(batch).pow(2).mean().backward()


def optimizer_in_slow_hook():
    """The same, and each update and node of the backward takes its time."""
    model = net()
    facts["updates_ns"] = []

    class Update(torch.optim.SGD):
        def step(self, closure=None):
            time.sleep(0.01)
            return super().step(closure)

    optimizers = {parameter: Update([parameter], lr=0.1) for parameter in model.parameters()}

    def update(parameter):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        optimizers[parameter].step()
        facts["updates_ns"][-1] += time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin
        time.sleep(0.005)

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(4):
        facts["updates_ns"].append(0)
        with Step():
            model(torch.randn(8, 16)).pow(2).mean().backward()


def many_optimizers():
    """One per parameter, more than a few."""
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(40)])
    optimizers = [torch.optim.SGD([parameter], lr=0.01) for parameter in model.parameters()]
    for _ in range(4):
        with Step():
            model(torch.randn(2, 4)).pow(2).mean().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


def two_phases():
    """The head first, then everything with another optimizer."""
    model, head = net(), nn.Linear(4, 2)
    for parameters in (list(head.parameters()), [*model.parameters(), *head.parameters()]):
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for (batch,) in loader(3):
            with Step():
                optimizer.zero_grad()
                head(model(batch)).pow(2).mean().backward()
                optimizer.step()


def optimizer_per_epoch():
    """Made anew for each epoch, while the one before is still there: the third lies where the first was."""
    model = net()
    for _ in range(5):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        facts.setdefault("addresses", []).append(id(optimizer))
        for (batch,) in loader(3):
            with Step():
                train(model, optimizer, batch)


def optimizer_per_step():
    """Without a loader, and of each the first call is the only one."""
    model = net()
    for _ in range(6):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        facts.setdefault("addresses", []).append(id(optimizer))
        with Step():
            train(model, optimizer, torch.randn(8, 16))


def optimizers_per_epoch():
    """Two of them, that step one behind the other."""
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    for _ in range(4):
        d = torch.optim.SGD(critic.parameters(), lr=0.1)
        g = torch.optim.SGD(generator.parameters(), lr=0.1)
        for _ in range(3):
            with Step():
                train_gan(generator, critic, g, d)


def resumed():
    """The state comes from a file, and optimizers are copied before they step."""
    import copy
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    other = copy.deepcopy(optimizer)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.load_state_dict(optimizer.state_dict())
    for (batch,) in loader():
        with Step():
            train(model, optimizer, batch)


def closure_of(model, optimizer, batch):
    def closure():
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        return loss
    return closure


def adam_then_lbfgs(calls=3):
    """Both are made at the start, as where equations are solved: no loader, all data in each step."""
    model, points = net(), torch.randn(8, 16)
    adam, lbfgs = torch.optim.Adam(model.parameters()), torch.optim.LBFGS(model.parameters(), max_iter=3)
    for _ in range(4):
        with Step():
            train(model, adam, points)
    for _ in range(calls):
        with Step():
            lbfgs.step(closure_of(model, lbfgs, points))


def adam_then_lbfgs_once():
    """One call, that does many iterations."""
    adam_then_lbfgs(1)


def adam_then_lbfgs_with_loader():
    model = net()
    adam, lbfgs = torch.optim.Adam(model.parameters()), torch.optim.LBFGS(model.parameters(), max_iter=3)
    for i, (batch,) in enumerate(loader(7)):
        with Step():
            if i < 4:
                train(model, adam, batch)
            else:
                lbfgs.step(closure_of(model, lbfgs, batch))


def adam_then_sgd():
    """Both are made at the start; without a loader."""
    model = net()
    optimizers = [torch.optim.Adam(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.01)]
    for step in range(7):
        with Step():
            train(model, optimizers[step >= 4], torch.randn(8, 16))


def adam_then_sgd_with_loader():
    """Of the second optimizer there is one call only."""
    model = net()
    optimizers = [torch.optim.Adam(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.01)]
    for i, (batch,) in enumerate(loader(5)):
        with Step():
            train(model, optimizers[i == 4], batch)


def actor_critic():
    """No loader, two networks with an optimizer each, a target network that follows."""
    actor, critic, target = nn.Linear(16, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    a, c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(5):
        states = torch.randn(8, 16)
        with torch.no_grad():
            wanted = target(actor(states)) * 0.9
        with Step():
            c.zero_grad()
            (critic(actor(states).detach()) - wanted).pow(2).mean().backward()
            c.step()
            a.zero_grad()
            (-critic(actor(states))).mean().backward()
            a.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), critic.parameters()):
                old.lerp_(new, 0.1)


def two_to_one():
    """A GAN whose critic learns twice for each time its generator does."""
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    g, d = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(4):
        for i in range(2):
            with Step():
                d.zero_grad()
                critic_loss(critic, generator, torch.randn(8, 16)).backward()
                d.step()
                if i == 1:
                    g.zero_grad()
                    (-critic(generator(torch.randn(8, 4))).mean()).backward()
                    g.step()


def policy_twice_at_every_second():
    """A critic that learns in each step; a policy and its temperature that make up for it twice in every second one."""
    critic, policy, temperature = nn.Linear(16, 1), nn.Linear(16, 16), torch.zeros(1, requires_grad=True)
    c, p = torch.optim.Adam(critic.parameters()), torch.optim.Adam(policy.parameters())
    t = torch.optim.Adam([temperature])
    for i in range(7):
        states = torch.randn(8, 16)
        with Step():
            c.zero_grad()
            (critic(states) - 1).pow(2).mean().backward()
            c.step()
            for _ in range(2 if i % 2 == 0 else 0):
                p.zero_grad()
                (-critic(policy(states))).mean().backward()
                p.step()
                with torch.no_grad():
                    wanted = policy(states).mean()
                t.zero_grad()
                (temperature.exp() * wanted).sum().backward()
                t.step()


class Halving(torch.optim.Optimizer):
    """Written by the program itself."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=0.01)


def own_optimizer():
    model = net()
    optimizer = Halving(model.parameters())
    for (batch,) in loader():
        with Step():
            train(model, optimizer, batch)


def gan_without_loader():
    generator, critic = nn.Linear(4, 16), nn.Linear(16, 1)
    g, d = (torch.optim.Adam(network.parameters()) for network in (generator, critic))
    for _ in range(5):
        with Step():
            d.zero_grad()
            critic_loss(critic, generator, torch.randn(8, 16)).backward()
            d.step()
            g.zero_grad()
            (-critic(generator(torch.randn(8, 4))).mean()).backward()
            g.step()


def adam_closure():
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    for (batch,) in loader():
        def closure(batch=batch):
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            return loss
        with Step():
            optimizer.step(closure)


if __name__ == "__main__":
    main(globals())
