# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them, unmarked: `loops.py NAME [MODE]` trains, in a mode of PyTorch's dispatcher, and prints the steps
it made, with the times the script itself took of them, as one line of JSON. Used by test_steps.py."""
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


def zipped():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loaders = [torch.utils.data.DataLoader(SlowData(), batch_size=1) for _ in range(2)]
    for one, two in zip(*loaders):
        with Step():
            train(model, optimizer, torch.cat([one, two]))


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


def ppo():
    """Four updates from each batch."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    for (batch,) in loader(3):
        with torch.no_grad():
            old = model(batch)
        for _ in range(4):
            with Step():
                loss = (model(batch) - old * 0.9).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def ppo_without_loader():
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        with torch.no_grad():
            states = torch.stack([model(torch.randn(16)) for _ in range(12)]) @ torch.randn(4, 16)
        for _ in range(3):
            for batch in states[torch.randperm(12)].split(4):
                with Step():
                    optimizer.zero_grad()
                    model(batch).pow(2).mean().backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()


def moving_average():
    """The average of the weights is updated after the step, and evaluated at the end."""
    model, average = net(), net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for (batch,) in loader(workers=1):
        with Step():
            train(model, optimizer, batch)
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters()):
                mean.lerp_(parameter, 0.1)
    with torch.no_grad():
        for (batch,) in loader(2):
            average(batch)


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


class SlowStart(torch.utils.data.SequentialSampler):
    """Asked for the first batches while iter() starts workers, which takes long then."""

    def __iter__(self):
        time.sleep(0.05)
        return super().__iter__()


def slow_iter(persistent=False):
    """Three loops that each start workers."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(24, 16))
    batches = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, sampler=SlowStart(data),
                                          multiprocessing_context="fork", persistent_workers=persistent)
    facts.update(starts_ns=[], first=[])
    for _ in range(3):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        loop = iter(batches)
        facts["starts_ns"].append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
        facts["first"].append(len(stamps))
        for (batch,) in loop:
            with Step():
                train(model, optimizer, batch)


def slow_iter_again():
    """The second and third have the workers of the first."""
    slow_iter(persistent=True)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        for i in range(20):
            yield torch.full((16,), float(i))


def iterable_dataset():
    """Batches of 3 from a stream whose length nobody knows, twice; the loop ends in the middle of the second."""
    model = net()
    optimizer = torch.optim.Adagrad(model.parameters())
    for epoch in range(2):
        for i, batch in enumerate(torch.utils.data.DataLoader(Stream(), batch_size=3)):
            if epoch == 1 and i == 3:
                break
            with Step():
                train(model, optimizer, batch)


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


def validation_in_the_middle():
    """Every third step, without a loader of its own for the second half; with accumulation across it."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(12)):
        (model(batch).pow(2).mean() / 2).backward()
        if i % 2 == 1:
            with Step():
                optimizer.step()
                optimizer.zero_grad()
        if i % 3 == 2:
            model.eval()
            with torch.no_grad():
                for (check,) in loader(2):
                    model(check).pow(2).mean().item()
            model.train()


def warm_up():
    """No loader; some passes without gradients before, and a backward that trains nothing."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(8, 16))
    probe = torch.randn(8, 16, requires_grad=True)
    torch.autograd.grad(model(probe).sum(), probe)
    for _ in range(5):
        with Step():
            train(model, optimizer, torch.randn(8, 16))


def backward_in_thread():
    """As with a GPU, where another thread works on the gradients."""
    import threading
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (batch,) in enumerate(loader(8)):
        loss = Sleep.apply(model(batch)).pow(2).mean()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
        if i % 2 == 1:
            with Step():
                optimizer.step()
                optimizer.zero_grad()


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


def prefetch():
    """The next batch is fetched before the step, as some trainers do, and moved at once."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        batches = iter(loader(5))
        (batch,) = next(batches)
        while batch is not None:
            batch = batch.to(torch.float64).to(torch.float32)
            following = next(batches, None)
            with Step():
                train(model, optimizer, batch)
            batch = following[0] if following else None


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


def distillation():
    """A teacher without gradients on the same batch, with workers, and a copy of the weights after each epoch."""
    model, teacher = net(), net()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for (batch,) in loader(4, workers=1):
            with Step():
                with torch.no_grad():
                    wanted = teacher(batch)
                loss = nn.functional.mse_loss(model(batch), wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        teacher.load_state_dict(model.state_dict())


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


def in_a_thread():
    """The main thread only evaluates."""
    import threading
    thread = threading.Thread(target=plain)
    thread.start()
    model = net()
    with torch.no_grad():
        for (batch,) in loader(10):
            model(batch)
    thread.join()


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


def evaluation_without_loader(wrapper=None, last=None):
    """Tensors in a list, evaluated by the model's mode after each third step; a teacher that is never trained, and a checkpoint."""
    import io
    model, teacher = net(), net()
    if last:
        model.append(last)
    whole = wrapper(model) if wrapper else model
    teacher.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches, checks = [torch.randn(8, 16) for _ in range(6)], [torch.randn(8, 16) for _ in range(3)]
    for i, batch in enumerate(batches):
        with torch.no_grad():
            wanted = teacher(batch)
        with Step():
            loss = nn.functional.mse_loss(whole(batch), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if i % 3 == 2:
            model.eval()
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            with torch.no_grad():
                for check in checks:
                    whole(check).pow(2).mean().item()
                    time.sleep(0.01)
                whole(checks[0])
            facts.setdefault("evaluation_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
            model.train()
        if i == 3:
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            torch.save({"weights": model.state_dict(), "more": Slow()}, io.BytesIO())
            facts["checkpoint_ns"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin


def evaluation_in_a_wrapper():
    """Of the model itself the mode is set, the wrapper stays as it is made."""
    evaluation_without_loader(DeepSpeedEngine)


def evaluation_of_own_function():
    """The model calls a function of the program's own, which takes a number of a node also where no graph is made."""
    evaluation_without_loader(last=OwnFunction())


def evaluation_in_lower_precision():
    """Casts of the weights make nodes of a graph that nothing uses, also without gradients; those of each call are made anew."""
    class Lower(DeepSpeedEngine):
        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                found = self.module(x)
            return found.float()
    Lower.__name__ = DeepSpeedEngine.__name__
    evaluation_without_loader(Lower)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(16, 4), nn.Linear(4, 16)

    def forward(self, batch):
        return self.decoder(self.encoder(batch))


def scripted():
    """TorchScript makes one node of the graph for all of the model, before it calls an operator, once it has optimized its code."""
    model = torch.jit.script(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        with Step():
            train(model, optimizer, torch.randn(8, 16))


def cross_validation():
    """Behind each fold's evaluation the next one's data are read, and another model is made, which takes operators without a graph."""
    facts["evaluation_ns"] = []
    for _ in range(3):
        time.sleep(1)  # longer than an evaluation takes, however busy the machine is
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (batch,) in loader(3):
            with Step():
                train(model, optimizer, batch)
        model.eval()
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with torch.no_grad():
            for (batch,) in loader(3):
                time.sleep(0.01)
                model(batch).pow(2).mean().item()
        facts["evaluation_ns"].append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)


def evaluation_of_texts():
    """Batches that are made without any operator of PyTorch, but for the first one, for which the order is drawn."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    texts = [str(n) for n in range(24)]
    learn = torch.utils.data.DataLoader(texts, 8, shuffle=True, collate_fn=list)
    check = torch.utils.data.DataLoader(texts, 8, collate_fn=list)
    for _ in range(2):
        for batch in learn:
            with Step():
                train(model, optimizer, torch.tensor([[float(text)] * 16 for text in batch]))
        model.eval()
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with torch.no_grad():
            for batch in check:
                time.sleep(0.02)
                model(torch.tensor([[float(text)] * 16 for text in batch])).pow(2).mean().item()
        facts.setdefault("evaluation_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
        model.train()


def evaluation_with_metrics():
    """What is made of an evaluation: a loss, metrics, and samples from a part of the model. A batch takes time, too."""
    model, criterion = Autoencoder(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    check = torch.randn(8, 16)
    for i in range(9):
        with Step():
            time.sleep(0.03)
            batch = torch.tensor([[float(n) for n in range(16)]])
            optimizer.zero_grad()
            criterion(model(batch), batch).backward()
            optimizer.step()
        if i % 3 == 1:
            model.eval()
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            with torch.no_grad():
                found = model(check)
                criterion(found, check)
                for _ in range(5):
                    time.sleep(0.02)
                    torch.cdist(found, found).topk(3)
                for _ in range(5):
                    time.sleep(0.02)
                    model.decoder(check[:, :4]).relu()
            facts.setdefault("evaluation_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
            model.train()


def samples_behind_a_validation():
    """Of a part of the model, behind a loop over a loader; the next batch is another loader's."""
    model = Autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for (batch,) in loader(3):
            with Step():
                train(model, optimizer, batch)
        model.eval()
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with torch.no_grad():
            for (batch,) in loader(2):
                model(batch)
            for _ in range(10):
                time.sleep(0.02)
                model.decoder(torch.randn(8, 4)).relu()
        facts.setdefault("evaluation_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
        model.train()


def samples_without_a_validation():
    """Of a part of the model alone, which is never called alone to train."""
    model = Autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for _ in range(3):
            with Step():
                train(model, optimizer, torch.randn(8, 16))
        model.eval()
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with torch.no_grad():
            model.decoder(torch.randn(8, 4))
            for _ in range(10):
                time.sleep(0.02)
                model.decoder(torch.randn(8, 4)).relu()
        facts.setdefault("evaluation_ns", []).append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin)
        model.train()


class OwnFunction(nn.Module):
    def forward(self, x):
        return Sleep.apply(x)


class DeepSpeedEngine(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class Slow:
    """20 ms for its pickle."""

    def __reduce__(self):
        time.sleep(0.02)
        return Slow, ()


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


def two_loaders():
    """A batch of each in every step, of which one has workers and is begun anew when it ends."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    labelled, plain = loader(), loader(batches=4, workers=1)
    others = iter(plain)
    for (batch,) in labelled:
        with Step():
            try:
                (other,) = next(others)
            except StopIteration:
                others = iter(plain)
                (other,) = next(others)
            train(model, optimizer, torch.cat([batch, other]))


def reinforcement():
    """An episode is played without gradients, then learnt from."""
    policy = net()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(5):
        with Step():
            with torch.no_grad():
                states = [torch.randn(16) for _ in range(10)]
                actions = torch.stack([torch.distributions.Categorical(logits=policy(state)).sample() for state in states])
            loss = nn.functional.cross_entropy(policy(torch.stack(states)), actions)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)

    def forward(self, states):
        hidden = self.layer(states)
        time.sleep(0.005)
        return hidden


def acting():
    """A policy that acts with a graph, which nothing is learnt from."""
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(5):
        with Step():
            actions = [int((policy(torch.randn(16)) * 2).exp().argmax()) for _ in range(4)]
            loss = nn.functional.cross_entropy(policy(torch.randn(4, 16)), torch.tensor(actions))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


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


class Passing(TorchDispatchMode):
    """As those that count: every call goes through it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def counting():
    from torch.utils.flop_counter import FlopCounterMode
    return FlopCounterMode(display=False)


MODES = {"none": contextlib.nullcontext, "passing": Passing, "counting": counting}


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
