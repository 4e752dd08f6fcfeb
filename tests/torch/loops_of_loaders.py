# SPDX-License-Identifier: Apache-2.0
"""Training loops with several loaders, workers, streams, and batches that are fetched ahead: as loops.py. `starts_ns` has
the script's own times of iter()."""
import time

import torch

from loops import SlowData, Step, facts, loader, main, net, stamps, train


def two_workers():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in loader(workers=2):
        with Step():
            train(model, optimizer, batch)


def zipped():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loaders = [torch.utils.data.DataLoader(SlowData(), batch_size=1) for _ in range(2)]
    for one, two in zip(*loaders):
        with Step():
            train(model, optimizer, torch.cat([one, two]))


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


if __name__ == "__main__":
    main(globals())
