# SPDX-License-Identifier: Apache-2.0
"""Small real trainings with the frameworks people use, without a mark of ours: `frameworks.py NAME`. Prints one line of JSON per rank with
[begin, end] of each step by the real-time clock, in ns, as the framework's own callbacks saw them. Nothing is downloaded."""
import contextlib
import json
import os
import sys
import time

for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[variable] = "1"

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

WIDTH, STEPS, ACCUMULATION = 64, 6, 2


def now():
    return time.time_ns()


class Truth:
    """Stamps of the script."""

    def __init__(self):
        self.steps, self.begun = [], 0

    def begin(self):
        self.begun = now()

    def end(self):
        self.steps.append([self.begun, now()])

    def tell(self, **more):
        line = json.dumps({"steps": self.steps, "rank": int(os.environ.get("RANK", -1)), **more}) + "\n"
        os.write(1, line.encode())  # at once: two ranks write to one pipe


def make_model():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.LayerNorm(WIDTH))


class Vectors(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(WIDTH, generator=torch.Generator().manual_seed(index))


def hf_trainer():
    """transformers.Trainer: accumulation, an evaluation in the middle, two loader workers."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model()

        def forward(self, x):
            return {"loss": functional.mse_loss(self.inner(x), x)}

    truth = Truth()

    class Stamps(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            truth.begin()

        def on_step_end(self, args, state, control, **kwargs):
            truth.end()

    arguments = TrainingArguments(output_dir="out", max_steps=STEPS, per_device_train_batch_size=4, gradient_accumulation_steps=ACCUMULATION,
                                  per_device_eval_batch_size=8, eval_strategy="steps", eval_steps=3, save_strategy="no", report_to=[],
                                  use_cpu=True, disable_tqdm=True, dataloader_num_workers=2, logging_steps=2)
    collate = lambda batch: {"x": torch.stack(batch)}
    Trainer(Model(), arguments, data_collator=collate, train_dataset=Vectors(), eval_dataset=Vectors(), callbacks=[Stamps()]).train()
    truth.tell()


def byte_tokenizer():
    """No text to learn from: one token per byte."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<bos>", "<eos>", "<unk>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({word: number for number, word in enumerate(special + letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>")


def dpo_lora():
    """trl and peft: each micro-batch is a forward of the policy, one of the reference with the adapter off, and a backward."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, TrainerCallback
    from trl import DPOConfig, DPOTrainer

    truth, parts = Truth(), {"micro_batch": [], "backward": [], "optimizer": []}

    def stamped(part, function):
        def call(*arguments, **keywords):
            begun = now()
            try:
                return function(*arguments, **keywords)
            finally:
                parts[part].append([begun, now()])
        return call

    class Stamps(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            truth.begin()

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            parts["optimizer"].append([now(), 0])

        def on_optimizer_step(self, args, state, control, **kwargs):
            parts["optimizer"][-1][1] = now()

        def on_step_end(self, args, state, control, **kwargs):
            truth.end()

    pairs = Dataset.from_list([{"prompt": f"count {i}:", "chosen": f" {i + 1} {i + 2}", "rejected": f" {i - 1}"} for i in range(64)])
    config = GPTNeoXConfig(vocab_size=300, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                           max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    arguments = DPOConfig(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=ACCUMULATION, max_steps=STEPS,
                          max_length=64, logging_steps=2, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
                          gradient_checkpointing=False, bf16=False)
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=["query_key_value"], task_type="CAUSAL_LM")
    trainer = DPOTrainer(model=GPTNeoXForCausalLM(config), args=arguments, train_dataset=pairs, processing_class=byte_tokenizer(),
                         peft_config=lora, callbacks=[Stamps()])
    trainer.training_step = stamped("micro_batch", trainer.training_step)
    trainer.accelerator.backward = stamped("backward", trainer.accelerator.backward)
    trainer.train()
    truth.tell(parts=parts)


def lightning():
    """Sanity check, a validation after each of two epochs, a checkpoint."""
    import lightning as L

    truth = Truth()

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = make_model()

        def training_step(self, batch, index):
            return functional.mse_loss(self.inner(batch), batch)

        def validation_step(self, batch, index):
            self.log("val_loss", functional.mse_loss(self.inner(batch), batch))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class Stamps(L.Callback):
        def on_train_batch_start(self, trainer, module, batch, index):
            truth.begin()

        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            truth.end()

    loader = lambda: torch.utils.data.DataLoader(Vectors(), batch_size=16)
    trainer = L.Trainer(max_epochs=2, logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu", devices=1,
                        callbacks=[Stamps()], default_root_dir="out")
    trainer.fit(Module(), loader(), loader())
    truth.tell()


def train(model, truth, forward=None, synchronise=None):
    """A plain loop with accumulation."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        truth.begin()
        for part in range(ACCUMULATION):
            is_last = part == ACCUMULATION - 1
            with contextlib.nullcontext() if is_last or not synchronise else synchronise():
                x = torch.randn(8, WIDTH)
                functional.mse_loss((forward or model)(x), x).backward()
        optimizer.step()
        truth.end()
        optimizer.zero_grad()


def ddp():
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(make_model(), bucket_cap_mb=0.05)
    truth = Truth()
    train(model, truth, synchronise=model.no_sync)
    dist.barrier()
    truth.tell()
    dist.destroy_process_group()


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    dist.init_process_group("gloo")
    model = FullyShardedDataParallel(make_model(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=torch.device("cpu"))
    truth = Truth()
    train(model, truth)
    dist.barrier()
    truth.tell()
    dist.destroy_process_group()


def fully_shard():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard as shard

    dist.init_process_group("gloo")
    mesh, model = init_device_mesh("cpu", (2,)), make_model()
    for layer in model:
        if isinstance(layer, nn.Linear):
            shard(layer, mesh=mesh)
    shard(model, mesh=mesh)
    truth = Truth()
    train(model, truth)
    dist.barrier()
    truth.tell()
    dist.destroy_process_group()


def late_recompile():
    """torch.compile: a batch of another length at step 4 compiles again."""
    from torch._dynamo import utils

    model = make_model()
    compiled = torch.compile(model, dynamic=False)
    optimizer, truth = torch.optim.SGD(model.parameters(), lr=0.1), Truth()
    for step in range(STEPS):
        truth.begin()
        x = torch.randn(8 if step < 4 else 6, WIDTH)
        functional.mse_loss(compiled(x), x).backward()
        optimizer.step()
        truth.end()
        optimizer.zero_grad()
    counters = {name: dict(utils.counters[name]) for name in ("stats", "graph_break", "frames")}
    truth.tell(counters=counters)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
