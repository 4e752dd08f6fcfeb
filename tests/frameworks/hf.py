# SPDX-License-Identifier: Apache-2.0
"""`hf.py [FLAGS]`: six steps of a transformers Trainer with our callback. Used by test_integrations.py."""
import argparse
import sys

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

import stepscope
from stepscope.integrations.transformers import StepscopeCallback


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, labels):
        out = self.net(x)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


def main():
    parser = argparse.ArgumentParser()
    stepscope.add_arguments(parser)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    data = [{"x": torch.randn(8), "labels": torch.randn(1)} for _ in range(64)]
    settings = stepscope.from_args(arguments)
    print(settings.describe())
    wanted = TrainingArguments(output_dir="out", max_steps=6, per_device_train_batch_size=4, gradient_accumulation_steps=2, report_to=[],
                               use_cpu=True, logging_steps=1, save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=Model(), args=wanted, train_dataset=data, callbacks=[StepscopeCallback(settings)])
    trainer.train()
    print("loss", trainer.state.log_history[0]["loss"])


if __name__ == "__main__":
    sys.exit(main())
