# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model on samples of its own: generates.py HOW [TRACE].

HOW: `train`, `eval`: the mode in which the model generates; `graph`: with gradients, which nothing uses; `ranges`: each call in a range of the
program; `micro`: four micro-batches a step; `scores`: no samples, but one call for each of eight micro-batches; `evaluates`: no samples, but an
evaluation after every fourth step. TRACE: where torch.profiler writes. Prints the program's own clock: times of each step, in ns."""
import contextlib
import json
import sys
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
how = sys.argv[1]
TOKENS, STEPS, MICRO_BATCHES = 24, 8, {"micro": 4, "scores": 8}.get(how, 1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(32, 48)
        self.layers = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(48, 48), torch.nn.LayerNorm(48)) for _ in range(4)])
        self.head = torch.nn.Linear(48, 32)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


model, reference = Model(), Model().requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
clock = {"generate_ns": [], "reward_ns": [], "step_ns": []}


@contextlib.contextmanager
def clocked(name):
    start = time.perf_counter_ns()
    yield
    clock[name].append(time.perf_counter_ns() - start)


def generate(prompt):
    model.train(how != "eval")
    with torch.set_grad_enabled(how == "graph"):
        for _ in range(TOKENS):
            with torch.profiler.record_function("token") if how == "ranges" else contextlib.nullcontext():
                logits = model(prompt)[:, -1]
            token = torch.multinomial(logits.detach().softmax(-1), 1)
            prompt = torch.cat([prompt, token], 1)
    model.train()
    return prompt


def step(number):
    tokens = torch.full((4, 2), number)
    if how not in ("scores", "evaluates"):
        with clocked("generate_ns"):
            tokens = generate(tokens)
    with clocked("reward_ns"):
        time.sleep(0.02)
    for _ in range(MICRO_BATCHES):
        with torch.no_grad():
            old = model(tokens) if how == "scores" else reference(tokens)
    for _ in range(MICRO_BATCHES):
        (model(tokens) - old).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if how == "evaluates" and number % 4 == 3:
        model.eval()
        with torch.no_grad():
            for _ in range(TOKENS):
                model(tokens)
        model.train()


profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if sys.argv[2:] else contextlib.nullcontext()
with profiler:
    for number in range(STEPS):
        with clocked("step_ns"):
            step(number)
if sys.argv[2:]:
    profiler.export_chrome_trace(sys.argv[2])
print(json.dumps(clock))
