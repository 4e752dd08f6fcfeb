# SPDX-License-Identifier: Apache-2.0
"""Five small models, each recorded by us and by torch.profiler at once: `models.py NAME` trains three steps inside a range
"window" under torch.profiler and writes its trace to theirs.json. Used by test_operators.py."""
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

try:
    from torch.func import grad, jvp, vmap
except ImportError:  # 1.13
    from functorch import grad, jvp, vmap


class Block(nn.Module):
    """Of a transformer, from single operators."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / 3).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))
        return x + self.mlp(self.norm2(x))


def gpt():
    return nn.Sequential(nn.Embedding(50, 32), Block(), Block(), nn.Linear(32, 50)), lambda: torch.randint(0, 50, (2, 16))


def conv():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(8 * 49, 10)), lambda: torch.randn(4, 3, 16, 16)


class Last(nn.Module):
    def forward(self, x):
        return x[0]


def lstm():
    return nn.Sequential(nn.LSTM(8, 16, num_layers=2, batch_first=True), Last()), lambda: torch.randn(4, 6, 8)


def sparse():
    return nn.Sequential(nn.EmbeddingBag(100, 16, sparse=True, mode="sum"), nn.Linear(16, 4)), \
        lambda: torch.randint(0, 100, (4, 5))


class Transformed(nn.Module):
    """By transforms of functorch, one in another: an operator lies in itself once for each."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        slopes = vmap(grad(lambda row: (self.linear(row).sin() * 2).sum()))(x)
        return self.linear(slopes + jvp(torch.tanh, (x,), (torch.ones_like(x),))[1])


def functorch():
    return Transformed(), lambda: torch.randn(4, 8)


def main():
    # 1.13 writes the list it made for people, without an only child that has its parent's name
    torch.autograd.profiler_util.EventList._remove_dup_nodes = lambda events: None
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, data = globals()[sys.argv[1]]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof:
        with record_function("window"):
            for _ in range(3):
                optimizer.zero_grad()
                model(data()).pow(2).mean().backward()
                optimizer.step()
    prof.export_chrome_trace("theirs.json")


if __name__ == "__main__":
    main()
