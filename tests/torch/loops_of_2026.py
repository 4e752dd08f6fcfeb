# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them by now, whose parts take at least as long as they sleep: as loops.py, and `parts` has the script's own
times of each step's parts."""
import collections
import contextlib
import copy
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from loops import Sleep, Step, facts, main, net

NAP = 0.004
now = collections.Counter()


@contextlib.contextmanager
def part(name):
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    yield
    now[name] += time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin


@contextlib.contextmanager
def step():
    """Ends one; what comes before it since the last one is of it."""
    with Step():
        yield
    facts.setdefault("parts", []).append(dict(now))
    now.clear()


class Slow(nn.Module):
    """Naps in its forward; 20 ms in its backward."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x):
        time.sleep(NAP)
        return Sleep.apply(self.net(x))


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(NAP)
        return torch.full((16,), index / 100)


def batches(count, **options):
    """One sample each; the waits are stamped."""
    loop = iter(torch.utils.data.DataLoader(Samples(count), batch_size=1, **options))
    while True:
        with part("data"):
            batch = next(loop, None)
        if batch is None:
            return
        yield batch


class Muon:
    """No class of PyTorch's above it."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.momentum = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.parameters, self.momentum):
            m.lerp_(p.grad, 0.05)
            x = m / (m.norm() + 1e-7)
            for _ in range(3):
                a = x @ x.T
                x = 1.5 * x - 0.5 * a @ x
            p.add_(x, alpha=-0.02)
        time.sleep(NAP)
        self.parameters[0].mul_(0.999)  # weight decay

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


def muon():
    """With accumulation, matrices only."""
    model = Slow()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("weight"))
    optimizer = Muon(p for p in model.parameters() if p.requires_grad)
    for i, batch in enumerate(batches(6)):
        with part("forward"):
            loss = model(batch).pow(2).mean() / 2
        with part("backward"):
            loss.backward()
        if i % 2:
            with step(), part("optimizer"):
                optimizer.step()
            optimizer.zero_grad()


def muon_and_adam():
    """The one for matrices, PyTorch's for the rest: a step ends with the latter."""
    model = Slow()
    muon = Muon(p for p in model.parameters() if p.ndim == 2)
    adam = torch.optim.AdamW([p for p in model.parameters() if p.ndim < 2])
    for batch in batches(4):
        with part("forward"):
            loss = model(batch).pow(2).mean()
        with part("backward"):
            loss.backward()
        muon.step()
        with step(), part("optimizer"):
            adam.step()
        adam.zero_grad()
        muon.zero_grad()


class ScheduleFree(torch.optim.Optimizer):
    """Weights for training and for evaluation, between which train() and eval() change."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    def swap(self, weight):
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                if p in self.state:
                    p.lerp_(self.state[p]["z"], weight)

    def eval(self):
        self.swap(-0.1)

    def train(self):
        self.swap(0.1)

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["z"] = p.clone()
            state["z"].sub_(p.grad, alpha=0.1)
            p.lerp_(state["z"], 0.1)
        time.sleep(NAP)


def update(model, optimizer, batch):
    with part("forward"):
        loss = model(batch).pow(2).mean()
    with part("backward"):
        loss.backward()
    with step(), part("optimizer"):
        optimizer.step()
    optimizer.zero_grad()


def schedule_free():
    model = Slow()
    optimizer = ScheduleFree(model.parameters())
    for _ in range(2):
        optimizer.train()
        for batch in batches(3):
            update(model, optimizer, batch)
        model.eval()
        optimizer.eval()
        with torch.no_grad():
            for batch in torch.utils.data.DataLoader(Samples(2)):
                model(batch).mean().item()
        model.train()


class Accelerated:
    """What accelerate does: the next batch is fetched before one is given, and the optimizer steps when gradients are synchronised."""

    def __init__(self, optimizer, every):
        self.optimizer, self.every, self.count, self.synchronises = optimizer, every, 0, False

    @contextlib.contextmanager
    def accumulate(self):
        self.count += 1
        self.synchronises = self.count % self.every == 0
        yield

    def loader(self, loop):
        current = next(loop)
        for following in loop:
            yield current
            current = following
        yield current

    def step(self):
        if self.synchronises:
            with step(), part("optimizer"):
                self.optimizer.step()

    def zero_grad(self):
        if self.synchronises:
            self.optimizer.zero_grad()


def accelerated():
    model = Slow()
    accelerator = Accelerated(torch.optim.AdamW(model.parameters()), 2)
    for batch in accelerator.loader(batches(6)):
        with accelerator.accumulate():
            with part("forward"):
                loss = model(batch).pow(2).mean() / 2
            with part("backward"):
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            accelerator.step()
            accelerator.zero_grad()


def accelerated_by_hand():
    """The same around a class of the program's own."""
    model = Slow()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("weight"))
    accelerator = Accelerated(Muon(p for p in model.parameters() if p.requires_grad), 2)
    for batch in accelerator.loader(batches(6)):
        with accelerator.accumulate():
            with part("forward"):
                loss = model(batch).pow(2).mean() / 2
            with part("backward"):
                loss.backward()
            accelerator.step()
            accelerator.zero_grad()


def average():
    """torch.optim.swa_utils, evaluated at the end of an epoch."""
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mean = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(2):
        for batch in batches(3):
            update(model, optimizer, batch)
            mean.update_parameters(model)
        mean.eval()
        with torch.no_grad():
            for batch in torch.utils.data.DataLoader(Samples(2)):
                mean(batch)


def rollouts():
    """PPO: episodes without gradients, then several epochs over what was seen."""
    policy, value = Slow(), nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()])
    for _ in range(2):
        seen = torch.zeros(8, 16)
        state = torch.randn(16)
        with torch.no_grad():
            for i in range(8):
                seen[i] = state
                action = torch.distributions.Categorical(logits=policy.net(state)).sample()
                state = torch.roll(state, int(action)) * 0.9
            returns = torch.linspace(1, 0, 8)
        for _ in range(2):
            for chosen in torch.randperm(8).split(4):
                optimizer.zero_grad()
                with part("forward"):
                    loss = policy(seen[chosen]).pow(2).mean() + (value(seen[chosen]).squeeze() - returns[chosen]).pow(2).mean()
                with part("backward"):
                    loss.backward()
                with step(), part("optimizer"):
                    optimizer.step()


def merged_adapters():
    """ReLoRA: every second step the adapter goes into the weight, and begins anew with an optimizer of its own."""
    model = Slow()
    base = model.net[0]
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    a, b = nn.Parameter(torch.randn(4, 16) * 0.1), nn.Parameter(torch.zeros(32, 4))
    base.register_forward_hook(lambda module, inputs, output: output + inputs[0] @ a.T @ b.T)
    optimizer = torch.optim.AdamW([a, b])
    for i, batch in enumerate(batches(6)):
        update(model, optimizer, batch)
        if i % 2:
            with torch.no_grad():
                base.weight += b @ a
                a.normal_(std=0.1)
                b.zero_()
            optimizer = torch.optim.AdamW([a, b])


def own_teacher():
    """Self-distillation: the teacher is an average of the student, and the loop has no loader."""
    model = Slow()
    teacher = copy.deepcopy(model).eval()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        batch = torch.randn(8, 16)
        with part("teacher"), torch.no_grad():
            wanted = teacher(batch)
        with part("forward"):
            loss = nn.functional.mse_loss(model(batch), wanted)
        with part("backward"):
            loss.backward()
        with step(), part("optimizer"):
            optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for mean, parameter in zip(teacher.parameters(), model.parameters()):
                mean.lerp_(parameter, 0.01)


def curriculum():
    """A new loader, with a worker, for each stage."""
    model = Slow()
    optimizer = torch.optim.AdamW(model.parameters())
    for stage in (2, 3, 4):
        for batch in batches(stage, num_workers=1, multiprocessing_context="fork"):
            update(model, optimizer, batch)


def checkpointed_lbfgs():
    """Both kinds of checkpoints within closures."""
    model = Slow()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2, line_search_fn="strong_wolfe")
    for i, batch in enumerate(batches(3)):
        def closure(batch=batch, i=i):
            optimizer.zero_grad()
            with part("forward"):
                loss = checkpoint(model, batch.requires_grad_(), use_reentrant=i == 1).pow(2).mean()
            with part("backward"):
                loss.backward()
            return loss

        with step():
            optimizer.step(closure)


def cached_gradients():
    """A contrastive loss over more than fits: embeddings of all parts without graphs, then each part again, with its gradient."""
    model = Slow()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        chunks = torch.randn(4, 16).split(2)
        with torch.no_grad():
            embedded = torch.cat([model(chunk) for chunk in chunks])
        embedded.requires_grad_()
        with part("forward"):
            loss = (embedded @ embedded.T).logsumexp(1).mean()
        with part("backward"):
            loss.backward()
        for chunk, gradient in zip(chunks, embedded.grad.split(2)):
            with part("forward"):
                surrogate = (model(chunk) * gradient).sum()
            with part("backward"):
                surrogate.backward()
        with step(), part("optimizer"):
            optimizer.step()
        optimizer.zero_grad()


def alternating():
    """Two models that take turns within a step, each on its own batch."""
    first, second = Slow(), Slow()
    optimizers = [torch.optim.AdamW(model.parameters()) for model in (first, second)]
    loop = batches(6)
    for a in loop:
        for model, optimizer, batch in ((first, optimizers[0], a), (second, optimizers[1], None)):
            batch = next(loop) if batch is None else batch
            with part("forward"):
                loss = model(batch).pow(2).mean()
            with part("backward"):
                loss.backward()
            with step() if model is second else contextlib.nullcontext(), part("optimizer"):
                optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main(globals())
