# SPDX-License-Identifier: Apache-2.0
"""Trains one of the models of models.py and says what each storage is for, as far as a script can know: `memory_truth.py NAME` prints
one line of JSON, a list of moments. Moment k is the k-th range "moment"; it has lists of [address, bytes] by category. Used by
test_memory.py, memory_programs.py and bench/torch_memory."""
import contextlib
import json
import sys

import torch
from torch.autograd.graph import saved_tensors_hooks

import models

STEPS = 6
moments = []


def place(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    return storage.data_ptr(), storage.nbytes()


def moment(**lists):
    """The storages of these tensors, or places that were taken down before."""
    with torch.profiler.record_function("moment"):
        moments.append({name: sorted({item if isinstance(item, tuple) else place(item) for item in items})
                        for name, items in lists.items()})


@contextlib.contextmanager
def saving():
    """The set of storages that graphs which are made meanwhile keep."""
    saved = set()

    def pack(tensor):
        saved.add(place(tensor))
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved


class Loop:
    def __init__(self, name):
        self.model, self.data = getattr(models, name)()
        parameters = self.model.parameters()
        self.optimizer = {"conv": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
                          "gpt": lambda: torch.optim.AdamW(parameters), "lstm": lambda: torch.optim.Adam(parameters)}[name]()

    def batches(self):
        """From a loader, and made in place."""
        first = torch.utils.data.DataLoader([self.data()[0] for _ in range(12)], batch_size=4)
        yield from first
        for _ in range(STEPS - len(first)):
            yield self.data()

    def states(self):
        return [value for state in self.optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]

    def kept(self):
        return {"parameter": list(self.model.parameters()), "buffer": list(self.model.buffers())}

    def gradients(self):
        return [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]

    def step(self, batch):
        with saving() as saved:
            loss = self.model(batch).pow(2).mean()
        known = {place(tensor) for tensors in self.kept().values() for tensor in tensors} | {place(batch)}
        moment(**self.kept(), input=[batch], activation=saved - known)
        self.optimizer.zero_grad()
        loss.backward()
        moment(**self.kept(), input=[batch], gradient=self.gradients())
        self.optimizer.step()
        moment(**self.kept(), input=[batch], gradient=self.gradients(), optimizer_state=self.states())


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loop = Loop(sys.argv[1])
    for batch in loop.batches():
        loop.step(batch)
    print(json.dumps(moments))


if __name__ == "__main__":
    main()
