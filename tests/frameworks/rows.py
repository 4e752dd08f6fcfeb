# SPDX-License-Identifier: Apache-2.0
"""Small trainings with one fault each: `rows.py NAME [OPTION]`. Prints one line of JSON per process with its own clock, in ns.

hf ACCUMULATION       transformers.Trainer; a sample takes 10 ms
callback              Lightning; a callback takes 1.3 s after each validation
loader WORKERS        Lightning; a sample takes 10 ms; the loaders of validation and training have the same seed
optimizer MS          Lightning; the optimizer takes so long
straggler MS          two ranks on gloo; rank 1 sleeps so long in each step
communication         two ranks on gloo that mostly exchange
"""
import json
import os
import sys
import time

import torch
from torch import nn

STEPS = 12


def now():
    return time.perf_counter_ns()


def tell(**facts):
    os.write(1, (json.dumps({"rank": int(os.environ.get("RANK", 0)), **facts}) + "\n").encode())  # at once: ranks share a pipe


class Slow(torch.utils.data.Dataset):
    """Counts the time that its samples take."""

    spent_ns = 0

    def __init__(self, count, seconds, width):
        self.count, self.seconds, self.width = count, seconds, width

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError
        start = now()
        time.sleep(self.seconds)
        Slow.spent_ns += now() - start
        return torch.randn(self.width)


def net(width=512, layers=6):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))


def hf(accumulation):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            return {"loss": self.net(x).pow(2).mean()}

    stamps = []

    class Stamps(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            stamps.append((now(), Slow.spent_ns))

    arguments = TrainingArguments(output_dir="out", max_steps=STEPS, per_device_train_batch_size=4, gradient_accumulation_steps=int(accumulation),
                                  report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
    Trainer(Model(), arguments, train_dataset=Slow(400, 0.01, 512), data_collator=lambda batch: {"x": torch.stack(batch)}, callbacks=[Stamps()]).train()
    (first, slept), (last, spent) = stamps[0], stamps[-1]
    tell(step_ns=(last - first) / (STEPS - 1), data_ns=(spent - slept) / (STEPS - 1))


def lightning(**options):
    import lightning.pytorch as pl

    class Model(pl.LightningModule):
        def __init__(self, optimizer):
            super().__init__()
            self.net, self.kind = net(), optimizer

        def training_step(self, batch, index):
            return self.net(batch).pow(2).mean()

        def validation_step(self, batch, index):
            self.net(batch)

        def configure_optimizers(self):
            return self.kind(self.parameters(), 0.01)

    pl.seed_everything(0)
    trainer = pl.Trainer(logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu", devices=1, **options)
    return trainer, Model, pl


def callback():
    import lightning.pytorch as pl

    slept = []

    class Plot(pl.Callback):
        __qualname__ = "Plot"  # Lightning names its actions by it

        def on_validation_epoch_end(self, trainer, module):
            start = now()
            time.sleep(1.3)
            slept.append(now() - start)

    trainer, Model, _ = lightning(max_epochs=3, callbacks=[Plot()])
    loader = lambda count: torch.utils.data.DataLoader(torch.randn(count, 512), 64)
    trainer.fit(Model(torch.optim.SGD), loader(1280), loader(128))
    tell(slept_ns=slept)


def loader(workers):
    stamps = []
    trainer, Model, pl = lightning(max_epochs=3, enable_checkpointing=False)

    class Stamps(pl.Callback):
        def on_train_batch_end(self, *arguments):
            time.sleep(0.005)
            stamps.append(now())

    trainer.callbacks.append(Stamps())
    make = lambda count: torch.utils.data.DataLoader(Slow(count, 0.01, 512), 8, num_workers=int(workers), persistent_workers=int(workers) > 0)
    trainer.fit(Model(torch.optim.SGD), make(160), make(16))
    steps = sorted(end - start for start, end in zip(stamps, stamps[1:]))
    tell(step_ns=steps[len(steps) // 2])


def optimizer(milliseconds):
    class Heavy(torch.optim.SGD):
        def step(self, closure=None):
            loss = super().step(closure)
            time.sleep(float(milliseconds) / 1e3)
            return loss

    trainer, Model, _ = lightning(max_epochs=2, enable_checkpointing=False)
    loader = lambda count: torch.utils.data.DataLoader(torch.randn(count, 512), 64)
    trainer.fit(Model(Heavy), loader(1280), loader(128))
    tell()


def ranks():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    return dist, nn.parallel.DistributedDataParallel(net(512, 6), bucket_cap_mb=1)


def straggler(milliseconds):
    dist, model = ranks()
    opt, times = torch.optim.SGD(model.parameters(), 0.001), []
    for _ in range(25):
        start = now()
        if dist.get_rank():
            time.sleep(float(milliseconds) / 1e3)
        model(torch.randn(64, 512)).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
        times.append(now() - start)
    tell(step_ns=sorted(times)[12])
    dist.destroy_process_group()


def communication():
    dist, model = ranks()
    opt = torch.optim.SGD(model.parameters(), 0.001)
    for _ in range(30):
        model(torch.randn(4, 512)).pow(2).mean().backward()
        for _ in range(3):
            dist.all_reduce(torch.ones(4_000_000))
        opt.step()
        opt.zero_grad()
    tell()
    dist.destroy_process_group()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
