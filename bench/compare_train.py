# SPDX-License-Identifier: Apache-2.0
"""For bench/compare: trains a small PyTorch network on one thread. PERCENT lengthens each step in CPU time."""
import sys
import time

import torch

import stepscope

STEPS, ROWS, WIDTH = int(sys.argv[1]), 64, 256
percent = float(sys.argv[2])

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch = torch.randn(ROWS, WIDTH)
for _ in range(STEPS):
    with stepscope.step(samples=ROWS):
        begin = time.thread_time()
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), batch).backward()
        optimizer.step()
        end = time.thread_time() * (1 + percent / 100) - begin * percent / 100
        while time.thread_time() < end:
            pass
