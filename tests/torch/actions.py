# SPDX-License-Identifier: Apache-2.0
"""Epochs that tell a profiler their actions as Lightning does, with a profiler of the same name that does nothing. Prints how often each action
was told, and the frames of an exception in it. Used by test_actions.py."""
import json
import sys
import time
import traceback
import types

import torch


class PassThroughProfiler:
    def start(self, action_name):
        if action_name == "wrong":
            raise ValueError(action_name)

    def stop(self, action_name):
        pass


package = types.ModuleType("lightning.pytorch.profilers")
package.PassThroughProfiler = PassThroughProfiler
sys.modules[package.__name__] = package

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loaders = [torch.utils.data.DataLoader(torch.randn(count, 256), 8) for count in (80, 16)]
profiler, told = PassThroughProfiler(), {}


class action:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        told[self.name] = told.get(self.name, 0) + 1
        profiler.start(self.name)

    def __exit__(self, *exception):
        profiler.stop(self.name)


def batches(loop, loader):
    iterator = iter(loader)
    for _ in range(len(loader)):
        profiler.start(loop)
        batch = next(iterator)
        profiler.stop(loop)
        yield batch


for _ in range(4):
    for batch in batches("[_TrainingEpochLoop].train_dataloader_next", loaders[0]):
        with action("run_training_batch"), action("[Strategy]SingleDeviceStrategy.optimizer_step"):
            with action("[Strategy]SingleDeviceStrategy.training_step"):
                loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        for batch in batches("[_EvaluationLoop].val_next", loaders[1]):
            with action("[Strategy]SingleDeviceStrategy.validation_step"):
                model(batch).mean()
    with action("[Callback]Plot.on_validation_epoch_end"):
        time.sleep(0.1)
    with action("[Callback]StepscopeCallback.on_train_epoch_end"):
        pass
try:
    profiler.start("wrong")
except ValueError as problem:
    profiler.stop("wrong")
    frames = [frame.name for frame in traceback.extract_tb(problem.__traceback__)]
print(json.dumps({"told": told, "frames": frames, "name": PassThroughProfiler.start.__name__}))
