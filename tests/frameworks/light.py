# SPDX-License-Identifier: Apache-2.0
"""`light.py lightning|pytorch_lightning`: six steps of Lightning, two batches each, with our callback and our profiler, and validations
in between, over the loader that is trained with. Prints behind how many steps our callback asked for results. Used by test_integrations.py."""
import importlib
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

root = importlib.import_module("lightning.pytorch" if sys.argv[1] == "lightning" else "pytorch_lightning")

from stepscope.arguments import Settings  # noqa: E402
from stepscope.integrations.lightning import StepscopeCallback, StepscopeProfiler  # noqa: E402


class Trainer(root.Trainer):
    asked = []

    @property
    def callback_metrics(self):
        self.asked.append(self.global_step)
        return super().callback_metrics


class Model(root.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    torch.manual_seed(1)
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=4)
    settings = Settings(enabled=True, output_dir="traces", wait=1, warmup=1, active=2, repeat=1, with_stack=False)
    trainer = Trainer(max_steps=6, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                      val_check_interval=4, limit_val_batches=2, enable_progress_bar=False, log_every_n_steps=6,
                      callbacks=[StepscopeCallback(settings)], profiler=StepscopeProfiler(dirpath=".", filename="p"))
    trainer.fit(Model(), loader, loader)
    print(f"asked behind {trainer.asked} steps")


if __name__ == "__main__":
    main()
