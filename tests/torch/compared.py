# SPDX-License-Identifier: Apache-2.0
"""Twelve steps of a small network with batches of argv[1] rows; with argv[2] an activation is another one; argv[3]: batches per step."""
import sys

import torch

import stepscope

rows, activation = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "ReLU"
batches = int(sys.argv[3]) if len(sys.argv) > 3 else 1
model = torch.nn.Sequential(torch.nn.Linear(16, 32), getattr(torch.nn, activation)(), torch.nn.Linear(32, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    with stepscope.step():
        optimizer.zero_grad()
        for _ in range(batches):
            model(torch.ones(rows, 16)).sum().backward()
        optimizer.step()
