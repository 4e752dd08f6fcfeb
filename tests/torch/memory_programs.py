# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them, which say what each storage is for: `memory_programs.py NAME` prints what memory_truth.py does.
Used by test_memory.py."""
import copy
import json
import os
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from memory_truth import moment, moments, place, saving

STEPS = 8


def layers(*more):
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), *more)


def tensors_in(state):
    """Of an optimizer, whatever it keeps."""
    if isinstance(state, torch.Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]


class Program:
    """One that is like most; the others say what they do otherwise."""

    def __init__(self):
        self.model = layers()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.data = []  # that is there all the time

    def batches(self):
        self.data = [torch.randn(64) for _ in range(16 * STEPS)]
        return torch.utils.data.DataLoader(self.data, batch_size=16)

    def kept(self):
        return {"parameter": list(self.model.parameters()), **({"buffer": found} if (found := list(self.model.buffers())) else {})}

    def gradients(self):
        return [tensor.grad for tensor in self.kept()["parameter"] if tensor.grad is not None]

    def states(self):
        return tensors_in(dict(self.optimizer.state))

    def loss(self, batch):
        return self.model(batch[0]).pow(2).mean()

    def inputs(self, batch):
        return [batch]

    def before_step(self):
        pass

    def after_step(self):
        pass

    def zero(self):
        for tensor in self.kept()["parameter"]:
            tensor.grad = None

    def run(self):
        for batch in self.batches():
            batch = self.inputs(batch)
            with saving() as saved:
                loss = self.loss(batch)
            data = [*self.data, *batch]
            kept = {tensor if isinstance(tensor, tuple) else place(tensor) for tensors in (*self.kept().values(), data) for tensor in tensors}
            moment(**self.kept(), input=data, activation=saved - kept)
            loss.backward()
            self.before_step()
            moment(**self.kept(), input=data, gradient=self.gradients())
            self.optimizer.step()
            moment(**self.kept(), input=data, gradient=self.gradients(), optimizer_state=self.states())
            self.after_step()
            self.zero()


class Slices(Program):
    """Of data that is made up front; what the loss compares with is no argument of the model."""

    def batches(self):
        self.data = [torch.randn(16 * STEPS, 64), torch.randn(16 * STEPS)]
        return zip(*(tensor.split(16) for tensor in self.data))

    def loss(self, batch):
        return nn.MSELoss()(self.model(batch[0]).sum(1), batch[1])

    def inputs(self, batch):
        return batch


class InMemory(Slices):
    """A data set of a loader."""

    def batches(self):
        super().batches()
        return torch.utils.data.DataLoader(torch.utils.data.Subset(torch.utils.data.TensorDataset(*self.data), range(16 * STEPS)), batch_size=16)


class Prepared(Slices):
    """Batches in a list, more than are looked at. What the program keeps beside them is as large, and made otherwise."""

    def batches(self):
        self.noted = [torch.zeros(16, 64) for _ in range(STEPS)]
        batches = [(torch.randn(16, 64), torch.randn(16)) for _ in range(STEPS)]
        self.data = [tensor for batch in batches for tensor in batch]
        return batches

    def kept(self):
        return {**super().kept(), "other": self.noted}


class Average(Program):
    """Of weights, in a copy of the model that is never called."""

    def __init__(self):
        super().__init__()
        self.model = layers(nn.BatchNorm1d(64))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.average = copy.deepcopy(self.model).requires_grad_(False)

    def kept(self):
        models = self.model, self.average
        return {"parameter": [tensor for model in models for tensor in model.parameters()],
                "buffer": [tensor for model in models for tensor in model.buffers()]}

    @torch.no_grad()
    def after_step(self):
        for mean, tensor in zip(self.average.parameters(), self.model.parameters()):
            mean.lerp_(tensor, 0.01)


class Masters(Program):
    """A model in bfloat16, whose optimizer has copies of the weights in float32. The parts of a batch are as large as some gradients, and
    made by the same operator."""

    def __init__(self):
        super().__init__()
        self.model.bfloat16()
        self.masters = [nn.Parameter(tensor.detach().float()) for tensor in self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.masters, lr=0.1, momentum=0.9)

    def kept(self):
        return {"parameter": [*self.model.parameters(), *self.masters]}

    def batches(self):
        for _ in range(STEPS):
            yield torch.randn(10, 64).chunk(5)

    def inputs(self, batch):
        return [part.bfloat16() for part in batch]

    def loss(self, batch):
        return sum(self.model(part).float().pow(2).mean() for part in batch)

    def before_step(self):
        for master, tensor in zip(self.masters, self.model.parameters()):
            master.grad = tensor.grad.float()

    @torch.no_grad()
    def after_step(self):
        for master, tensor in zip(self.masters, self.model.parameters()):
            tensor.copy_(master)


class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(4, base.in_features) / 100), nn.Parameter(torch.zeros(base.out_features, 4))

    def forward(self, x):
        return self.base(x) + nn.functional.dropout(x, 0.1) @ self.a.t() @ self.b.t()


class Adapters(Program):
    """Beside layers that are not trained."""

    def __init__(self):
        super().__init__()
        self.model[0], self.model[2] = Adapted(self.model[0]), Adapted(self.model[2])
        self.optimizer = torch.optim.AdamW([tensor for tensor in self.model.parameters() if tensor.requires_grad])

    def before_step(self):
        nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], 1.0)


def pack(tensor):
    scale = tensor.abs().max()
    return (tensor / (scale + 1e-12) * 127).to(torch.int8), scale


class Packed(torch.optim.Optimizer):
    """Momentum in 8 bits, made anew in each step."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for tensor in self.param_groups[0]["params"]:
            values, scale = self.state[tensor].get("momentum", (torch.zeros_like(tensor, dtype=torch.int8), 0))
            momentum = values.float() / 127 * scale * 0.9 + tensor.grad
            tensor.sub_(momentum, alpha=0.01)
            self.state[tensor]["momentum"] = pack(momentum)


class OwnOptimizer(Program):
    def __init__(self):
        super().__init__()
        self.optimizer = Packed(self.model.parameters())


class PlainOptimizer(Program):
    """No torch.optim.Optimizer: nobody is told when it steps."""

    def __init__(self):
        super().__init__()
        self.optimizer = self

    @torch.no_grad()
    def step(self):
        for tensor in self.model.parameters():
            tensor.sub_(tensor.grad, alpha=0.1)

    def states(self):
        return []

    def zero(self):
        if len(moments) < 3 * STEPS:
            super().zero()


class Adam:
    """As people write it, without a base class. It has one more list, which nobody writes to."""

    def __init__(self, weights):
        self.weights = weights
        self.first, self.second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
        self.anchors = [weight.detach().clone() for weight in weights]

    @torch.no_grad()
    def step(self):
        for weight, first, second in zip(self.weights, self.first, self.second):
            first.mul_(0.9).add_(weight.grad, alpha=0.1)
            second.mul_(0.999).addcmul_(weight.grad, weight.grad, value=0.001)
            weight.addcdiv_(first, second.sqrt().add_(1e-8), value=-0.001)


class PlainAdam(Program):
    """Gradients are gone when the program ends."""

    def __init__(self):
        self.data = []
        self.model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 96))
        self.optimizer = Adam(list(self.model.parameters()))

    def states(self):
        return [*self.optimizer.first, *self.optimizer.second]

    def kept(self):
        return {**super().kept(), "other": self.optimizer.anchors}


class Functional(Program):
    """Weights in a dictionary, momentum that is made by the first update. Points at which a derivative is taken have gradients, too."""

    def __init__(self):
        self.weights = {name: tensor.detach().clone().requires_grad_() for name, tensor in layers().state_dict().items()}
        self.optimizer, self.momentum, self.data = self, {}, []
        self.points = torch.randn(16, 64, requires_grad=True)

    def kept(self):
        return {"parameter": list(self.weights.values()), "other": [self.points]}

    def batches(self):
        for _ in range(STEPS):
            yield torch.randn(16, 64)

    def loss(self, batch):
        weights = self.weights
        hidden = nn.functional.gelu(nn.functional.linear(batch[0] + self.points, weights["0.weight"], weights["0.bias"]))
        return nn.functional.linear(hidden, weights["2.weight"], weights["2.bias"]).pow(2).mean()

    @torch.no_grad()
    def step(self):
        if not self.momentum:
            self.momentum = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        for name, weight in self.weights.items():
            self.momentum[name].mul_(0.9).add_(weight.grad)
            weight -= 0.1 * self.momentum[name]

    def states(self):
        return list(self.momentum.values())


class Accumulated(Functional):
    """Two backwards for each update."""

    def inputs(self, batch):
        self.loss([batch]).backward()
        return [batch]


class Tied(PlainAdam):
    """A weight that two modules have."""

    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
        self.model[2].weight = self.model[0].weight
        self.optimizer = Adam(list(self.model.parameters()))


class Checkpointed(Program):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(*(layers(nn.LayerNorm(64)) for _ in range(3)))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def loss(self, batch):
        x = self.model[0](batch[0])
        for part in self.model[1:]:
            x = checkpoint(part, x, use_reentrant=self.is_reentrant)
        return x.pow(2).mean()

    is_reentrant = False


class CheckpointedInside(Checkpointed):
    is_reentrant = True


class Autocast(Program):
    """Two calls share the cast weights, and two backwards add up."""

    def inputs(self, batch):
        half = batch.chunk(2)
        with torch.autocast("cpu", torch.bfloat16):
            self.mean(half[0]).backward()
        return [batch]

    def mean(self, half):
        return (self.model(half) + self.model(half * 2)).float().pow(2).mean()

    def loss(self, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return self.mean(batch[0].chunk(2)[1])


class Resumed(Program):
    """The optimizer gets a state of its own back, in the middle."""

    def after_step(self):
        if len(moments) == 3 * 4:
            self.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))


class Joined(Program):
    """By a weight that is in no module, in the middle."""

    def __init__(self):
        super().__init__()
        self.joined = []

    def kept(self):
        return {"parameter": [*self.model.parameters(), *self.joined]}

    def loss(self, batch):
        return sum(((batch[0] @ weight).mean() for weight in self.joined), super().loss(batch))

    def after_step(self):
        if len(moments) == 3 * 4:
            self.joined.append(nn.Parameter(torch.randn(64, 96)))
            self.optimizer.add_param_group({"params": self.joined})


class Replaced(Program):
    """Points of a scene: in the middle there are more, and then again fewer, in other tensors, which have the place and the state of the old ones."""

    def __init__(self):
        super().__init__()
        self.points = [nn.Parameter(torch.randn(count, 64)) for count in (96, 160)]
        self.optimizer = torch.optim.Adam([{"params": [points]} for points in self.points])

    def kept(self):
        return {"parameter": self.points}

    def batches(self):
        return Functional.batches(self)

    def loss(self, batch):
        return sum((batch[0] @ points.t()).pow(2).mean() for points in self.points)

    def replace(self, make):
        for number, group in enumerate(self.optimizer.param_groups):
            old, = group["params"]
            state = self.optimizer.state.pop(old)
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = make(state[name])
            group["params"] = [nn.Parameter(make(old.detach()))]
            self.points[number], = group["params"]
            self.optimizer.state[self.points[number]] = state

    def after_step(self):
        if len(moments) == 3 * 4:
            self.replace(lambda tensor: torch.cat([tensor, tensor]))
            self.replace(lambda tensor: tensor[:-32].clone())


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class Sharded(Program):
    """With parts of the weights in other ranks, which are gathered for the forward and stay until the backward."""

    def __init__(self):
        super().__init__()
        self.gathered = set()
        self.model[0].register_forward_pre_hook(self.note)
        self.model = self.shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    @staticmethod
    def shard(model):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        return fully_shard(model, mesh=init_device_mesh("cpu", (2,)))

    def note(self, layer, arguments):
        self.gathered = {place(tensor) for tensor in layer.parameters()}

    def kept(self):
        return {"parameter": [*self.gathered, *(local(tensor) for tensor in self.model.parameters())]}

    def gradients(self):
        return [local(tensor.grad) for tensor in self.model.parameters() if tensor.grad is not None]

    def states(self):
        return [local(tensor) for tensor in super().states()]

    def before_step(self):
        self.gathered = set()

    def zero(self):
        self.optimizer.zero_grad()


class FullySharded(Sharded):
    @staticmethod
    def shard(model):
        from torch.distributed.fsdp import FullyShardedDataParallel
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)


def main():
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]().run()
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(moments))
    if "RANK" in os.environ:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
