# SPDX-License-Identifier: Apache-2.0
"""Training loops that also evaluate, sample, or act by a policy: as loops.py. `evaluation_ns` has the script's own times of evaluations."""
import time

import torch
from torch import nn

from loops import Sleep, Step, facts, loader, main, net, train


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


def inference():
    model = net()
    with torch.no_grad():
        for (batch,) in loader():
            model(batch)


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


if __name__ == "__main__":
    main(globals())
