# SPDX-License-Identifier: Apache-2.0
"""Small trainings on one GPU, or on the CPU with --cpu. Each has one known cause of slowness, or is the same without
it."""
import contextlib
import dataclasses
import gc
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Settings:
    """The settings of a program. The defaults are `base`."""
    model: str = "gpt"           # gpt, conv
    layers: int = 8
    width: int = 768
    heads: int = 12
    batch: int = 8
    context: int = 512
    vocabulary: int = 16384
    amp: bool = True             # bf16 autocast
    optimizer: str = "fused"     # fused, foreach, single
    attention: str = "flash"     # flash, math
    checkpoint: bool = False     # recompute the activations of each block
    compile: str = ""            # a mode of torch.compile
    graph: bool = False          # the whole step is one CUDA graph
    sample_ms: float = 0         # sleep of each sample
    sample_busy_ms: float = 0    # computation of each sample
    workers: int = 0
    pinned: bool = True
    extra_mb: int = 0            # size of an extra part of each batch
    item: str = ""               # .item() after each block ("blocks"), on the loss ("loss")
    gap_ms: float = 0            # sleep after each step
    collect: bool = False        # gc.collect() in each step
    empty_cache: bool = False    # torch.cuda.empty_cache() in each step
    clip: str = ""               # clips the norm of gradients; "check" also tests that it is finite
    accumulate: int = 1          # batches per step
    lengths: tuple = ()          # alternating lengths of sequences; () means `context`
    channels_last: bool = False
    keep_graphs: bool = False    # a list keeps each loss with its graph
    straggler_ms: float = 0      # sleep of rank 1 in its forward
    reduce: bool = True          # average the gradients of several ranks
    extra_streams: int = 0       # number of streams with copies of weights and events
    seed: int = 0


class Attention(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.heads, self.attention = settings.heads, settings.attention
        self.qkv, self.out = nn.Linear(settings.width, 3 * settings.width), nn.Linear(settings.width, settings.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        with sdpa_kernel(SDPBackend.MATH) if self.attention == "math" else contextlib.nullcontext():
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width = settings.width
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(settings), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.tokens, self.places = nn.Embedding(settings.vocabulary, settings.width), nn.Embedding(settings.context, settings.width)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.layers))
        self.norm, self.head = nn.LayerNorm(settings.width), nn.Linear(settings.width, settings.vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.settings.checkpoint else block(x)
            if self.settings.item == "blocks":
                x.flatten()[0].item()
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Conv(nn.Module):
    """A model for images instead of tokens; batch and width are those of Settings."""

    def __init__(self, settings):
        super().__init__()
        width, layers = settings.width, []
        for i in range(settings.layers):
            layers += [nn.Conv2d(3 if i == 0 else width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, 1000)

    def forward(self, images, targets):
        return functional.cross_entropy(self.head(self.body(images).mean((2, 3))).float(), targets)


class Samples(Dataset):
    def __init__(self, settings):
        self.settings = settings
        generator = torch.Generator().manual_seed(settings.seed)
        self.rows = torch.randint(settings.vocabulary, (256, settings.context + 1), generator=generator)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        settings = self.settings
        if settings.sample_ms:
            time.sleep(settings.sample_ms / 1e3)
        end = time.perf_counter() + settings.sample_busy_ms / 1e3
        while time.perf_counter() < end:
            pass
        if settings.model == "conv":
            return torch.full((3, settings.context, settings.context), float(at % 7)), at % 1000
        row = self.rows[at % 256]
        more = torch.zeros(settings.extra_mb << 18, dtype=torch.int32) if settings.extra_mb and at % settings.batch == 0 else torch.zeros(1, dtype=torch.int32)
        return row[:-1], row[1:], more


def gather(rows):
    """Collates a batch. The extra part is the largest of the batch, once, without padding of the others."""
    if len(rows[0]) == 2:
        return torch.stack([row[0] for row in rows]), torch.tensor([row[1] for row in rows])
    return torch.stack([row[0] for row in rows]), torch.stack([row[1] for row in rows]), max((row[2] for row in rows), key=len)


class Program:
    """A training that runs one step per call."""

    def __init__(self, settings, device, rank=0, ranks=1):
        self.settings, self.device, self.rank, self.count = settings, device, rank, 0
        torch.manual_seed(settings.seed)
        torch.backends.cuda.matmul.allow_tf32 = settings.amp
        torch.backends.cudnn.allow_tf32 = settings.amp
        self.plain = (Conv if settings.model == "conv" else GPT)(settings).to(device)
        if settings.channels_last:
            self.plain = self.plain.to(memory_format=torch.channels_last)
        self.model = self.plain
        if ranks > 1 and settings.reduce:
            self.model = nn.parallel.DistributedDataParallel(self.plain)
        if settings.compile:
            self.model = torch.compile(self.model, mode=None if settings.compile == "default" else settings.compile)
        how = {"fused": {"fused": device != "cpu"}, "foreach": {"foreach": True}, "single": {"foreach": False, "fused": False}}[settings.optimizer]
        self.optimizer = torch.optim.AdamW(self.plain.parameters(), lr=1e-4, capturable=settings.graph, **how)
        self.batches = iter(DataLoader(Samples(settings), settings.batch, num_workers=settings.workers, collate_fn=gather,
                                       pin_memory=settings.pinned and device != "cpu", persistent_workers=settings.workers > 0))
        self.kept, self.graph, self.loss = [], None, None
        self.streams = [torch.cuda.Stream() for _ in range(settings.extra_streams)]

    def fetch(self):
        parts = [part.to(self.device, non_blocking=self.settings.pinned) for part in next(self.batches)]
        if self.settings.channels_last:
            parts[0] = parts[0].to(memory_format=torch.channels_last)
        if self.settings.lengths:
            length = self.settings.lengths[self.count % len(self.settings.lengths)]
            parts = [part[:, :length] if part.dim() == 2 else part for part in parts]
        return parts[:2]

    def forward_backward(self, parts):
        with torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=self.settings.amp):
            if self.settings.straggler_ms and self.rank == 1:
                time.sleep(self.settings.straggler_ms / 1e3)
            loss = self.model(*parts)
        if self.settings.keep_graphs:
            self.kept.append(loss)
        loss.backward(retain_graph=self.settings.keep_graphs)
        return loss.detach()

    def update(self):
        if self.settings.clip:
            nn.utils.clip_grad_norm_(self.plain.parameters(), 1.0, error_if_nonfinite=self.settings.clip == "check")
        self.optimizer.step()

    def side_streams(self):
        """Copies a weight on the extra streams, after the work of the step. Later work waits for the copies."""
        weight = self.plain.head.weight.detach()
        for stream in self.streams:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                copy = weight.clone()
                copy.mul_(0.5)
                done = torch.cuda.Event()
                done.record()
            torch.cuda.current_stream().wait_event(done)

    def capture(self, parts):
        self.inputs = parts
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.optimizer.zero_grad()
                self.forward_backward(self.inputs)
                self.update()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with torch.cuda.graph(self.graph):
            self.loss = self.forward_backward(self.inputs)
            self.update()

    def step(self):
        settings = self.settings
        if settings.graph:
            parts = self.fetch()
            if self.graph is None:
                self.capture(parts)
            for mine, new in zip(self.inputs, parts):
                mine.copy_(new)
            self.graph.replay()
        else:
            self.optimizer.zero_grad()
            for _ in range(settings.accumulate):
                self.loss = self.forward_backward(self.fetch())
            self.update()
        self.finish()
        self.count += 1

    def finish(self):
        settings = self.settings
        if self.streams:
            self.side_streams()
        if settings.item == "loss":
            self.loss.item()
        if settings.collect:
            gc.collect()
        if settings.empty_cache:
            torch.cuda.empty_cache()
        if settings.gap_ms:
            time.sleep(settings.gap_ms / 1e3)


TINY = {"layers": 16, "width": 64, "heads": 4, "batch": 2, "context": 32, "vocabulary": 512}
CONV = {"model": "conv", "layers": 12, "width": 256, "batch": 32, "context": 64}

# name: (description, name of the same program without the cause, settings)
PROGRAMS = {
    "base": ("GPT, 8 layers, 768 wide, batch 8 x 512 tokens, bf16 autocast, fused AdamW, loader in the main process", None, {}),
    "large": ("base with batch 32 x 1024: the device is busy all the time", None, {"batch": 32, "context": 1024}),
    "checkpoint": ("base with the activations of each block computed again", "base", {"checkpoint": True}),
    "large_checkpoint": ("large with the activations of each block computed again", "large", {"batch": 32, "context": 1024, "checkpoint": True}),
    "reduce_overhead": ("base with torch.compile(mode=\"reduce-overhead\")", "base", {"compile": "reduce-overhead"}),
    "compile": ("base with torch.compile()", "base", {"compile": "default"}),
    "item_loss": ("base with .item() on the loss in each step", "base", {"item": "loss"}),
    "large_item": ("large with .item() after each of the 8 blocks", "large", {"batch": 32, "context": 1024, "item": "blocks"}),
    "busy_samples": ("base; each sample computes for 3 ms in the main process", "base", {"sample_busy_ms": 3}),
    "busy_samples_workers": ("the same in 4 workers", "base", {"sample_busy_ms": 3, "workers": 4}),
    "slow_workers": ("base; each sample sleeps 12 ms in 2 workers", "base", {"sample_ms": 12, "workers": 2}),
    "middle": ("base with batch 16 x 1024", None, {"batch": 16, "context": 1024}),
    "math": ("middle with attention by PyTorch's mathematical way", "middle", {"batch": 16, "context": 1024, "attention": "math"}),
    "middle_fp32": ("middle without autocast, TF32 off", "middle", {"batch": 16, "context": 1024, "amp": False}),
    "single": ("base with AdamW, foreach=False, fused=False", "base", {"optimizer": "single"}),
    "clip_check": ("base with gradients clipped and checked to be finite", "base", {"clip": "check"}),
    "collect": ("base with gc.collect() in each step", "base", {"collect": True}),
    "lengths": ("base; sequences of 512, 384, 256, 128 in turns, with torch.compile()", "compile", {"lengths": (512, 384, 256, 128), "compile": "default"}),
    "accumulate": ("base with 4 batches a step", None, {"accumulate": 4}),
    "gap_loader": ("base with time.sleep(0.02) behind each step, and 2 ms for each sample", "base", {"gap_ms": 20, "sample_ms": 2}),
    "large_gap": ("large with time.sleep(0.03) behind each step", "large", {"batch": 32, "context": 1024, "gap_ms": 30}),
    "large_loader": ("large; each sample sleeps 4 ms in the main process", "large", {"batch": 32, "context": 1024, "sample_ms": 4}),
    "large_pageable": ("large; each batch carries 256 MiB that are copied from pageable memory", "large",
                       {"batch": 32, "context": 1024, "extra_mb": 256, "pinned": False}),
    "conv": ("12 convolutions of 256 channels, batch 32 x 64 x 64, bf16 autocast, not channels_last", "conv_last", CONV),
    "conv_last": ("conv in channels_last", None, {**CONV, "channels_last": True}),
    "tiny": ("16 layers, 64 wide, batch 2 x 32, AdamW with foreach=False, fused=False", "tiny_fused", {**TINY, "optimizer": "single"}),
    "tiny_fused": ("tiny with fused AdamW", None, TINY),
    "graph": ("base with the whole step in one CUDA graph", None, {"graph": True}),
    "streams": ("base with copies of a weight on three streams, with events", None, {"extra_streams": 3}),
}
RANKS = {
    "ddp": ("two ranks of base on one device, DistributedDataParallel over gloo", "ddp_apart", {}),
    "ddp_apart": ("two ranks of base on one device, gradients not averaged", None, {"reduce": False}),
    "ddp_straggler": ("ddp; rank 1 sleeps 40 ms in each forward", "ddp", {"straggler_ms": 40}),
    "ddp_small": ("two ranks of tiny_fused, DistributedDataParallel over gloo", "ddp_small_apart", TINY),
    "ddp_small_apart": ("two ranks of tiny_fused, gradients not averaged", None, {**TINY, "reduce": False}),
}
SMALL = {"layers": 2, "width": 64, "heads": 4, "batch": 2, "context": 32, "vocabulary": 128}


def settings_of(name, is_small=False):
    what = {**PROGRAMS, **RANKS}[name][2]
    found = Settings(**what)
    if is_small:  # for a test of the scripts without a GPU
        small = {**SMALL, **({"width": 8} if found.model == "conv" else {})}
        found = dataclasses.replace(found, **small, graph=False, extra_streams=0, empty_cache=False, extra_mb=min(found.extra_mb, 1),
                                    lengths=(32, 16) if found.lengths else (), compile="default" if found.compile else "")
    return found
