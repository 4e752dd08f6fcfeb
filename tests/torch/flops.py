# SPDX-License-Identifier: Apache-2.0
"""`flops.py MODEL [counted|profiled|modules]` trains three steps of a model of models.py, under nothing, PyTorch's FlopCounterMode (modules: in the
forward only) or its profiler, and prints what that counted. Used by test_flops.py."""
import contextlib
import json
import sys

import torch
from torch import nn

import models


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 10, 3, 4, 4).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Sum(nn.Module):
    """Convolutions of every kind, and products that go by other names."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 3, groups=4, dilation=2, padding=2),
                                          nn.ConvTranspose2d(8, 6, 3, stride=2))
        self.lines = nn.Sequential(nn.Conv1d(6, 5, 4), nn.ConvTranspose1d(5, 5, 2))
        self.room = nn.Conv3d(1, 2, 3)
        self.weight = nn.Parameter(torch.randn(5, 7))

    def forward(self, x):
        maps = self.convolutions(x)
        lines = self.lines(maps.flatten(2))
        mixed = torch.einsum("bcl,cd->bdl", lines, self.weight)
        batch = torch.baddbmm(mixed[:, :2, :2], mixed[:, :2, :3], mixed[:, :3, :2])
        return batch.sum() + self.room(maps[:, None, :, :5, :5]).sum() * torch.ones(3)


def attention():
    return Attention(), lambda: torch.randn(2, 10, 16)


def many():
    return Sum(), lambda: torch.randn(3, 4, 9, 9)


def train(name, around=contextlib.nullcontext):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make = globals().get(name) or getattr(models, name)
    model, data = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    for _ in range(3):
        optimizer.zero_grad()
        with around():
            result = model(data())
        result.pow(2).mean().backward()
        optimizer.step()


def transforms():
    """Functions of functorch, one in another, and all by hand: each product is computed where PyTorch records more than its own inputs."""
    try:
        from torch.func import grad, hessian, jacrev, jvp, vmap
    except ImportError:
        from functorch import grad, hessian, jacrev, jvp, vmap
    x, w, image, kernel = torch.ones(6, 8), torch.ones(8, 5), torch.ones(2, 3, 9, 9), torch.ones(4, 3, 3, 3)
    product, convolved = lambda w: (x @ w).pow(2).sum(), lambda k: nn.functional.conv2d(image, k, padding=1).pow(2).sum()
    grad(product)(w), grad(convolved)(kernel), grad(lambda a: (a @ a).sum())(torch.ones(8, 8))
    grad(lambda w, b: nn.functional.linear(x, w.t(), b).pow(2).sum())(w, torch.ones(5))
    grad(lambda w: grad(product)(w).pow(2).sum())(w), jvp(product, (w,), (w,)), vmap(lambda a: a @ w)(torch.ones(3, 6, 8))
    vmap(grad(lambda w, x: (x @ w).pow(2).sum()), (None, 0))(w, torch.ones(3, 6, 8)), vmap(grad(convolved))(torch.ones(3, 4, 3, 3, 3))
    jacrev(lambda w: (x @ w).sum(0))(w), hessian(lambda w: (x[:2] @ w).pow(2).sum())(w)


def work(name):
    transforms() if name == "transforms" else train(name)


def count_forward(name):
    """By path of the module, as ours: below the outermost one."""
    from torch.utils.flop_counter import FlopCounterMode
    sums = {}

    @contextlib.contextmanager
    def around():
        with FlopCounterMode(display=False) as counter:
            yield
        for module, counts in counter.get_flop_counts().items():
            path = module.partition(".")[2] or module
            sums[path] = sums.get(path, 0) + sum(counts.values())
    train(name, around)
    return sums


def main():
    name, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if mode == "counted":
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            work(name)
        print(json.dumps(counter.get_total_flops()))
    elif mode == "modules":
        print(json.dumps(count_forward(name)))
    elif mode == "profiled":
        with torch.profiler.profile(record_shapes=True, with_flops=True) as profiler:
            work(name)
        found = {}
        for event in profiler.profiler.kineto_results.events():  # events() leaves out what lies alone in its like
            if event.flops():
                found[event.name()] = found.get(event.name(), 0) + event.flops()
        print(json.dumps(found))
    else:
        work(name)


if __name__ == "__main__":
    main()
