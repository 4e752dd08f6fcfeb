# SPDX-License-Identifier: Apache-2.0
"""Trainings that run out of memory: out_of_memory.py leak|at_once|python|caught|forever [SECONDS between steps]. From step 10 on, `leak` and
`forever` keep 16 MiB a step; `forever` sets no limit."""
import resource
import sys
import time

import torch

KIND, PAUSE_S = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0
kept = []
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def limit(more):
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, -1))


def step():
    optimizer.zero_grad()
    model(torch.randn(16, 256)).sum().backward()
    optimizer.step()


for number in range(1000 if KIND in ("leak", "forever") else 20):
    if number == 3 and KIND != "forever":
        limit(400 << 20)
    step()
    if number >= 10 and KIND in ("leak", "forever"):
        kept.append(torch.ones(4 << 20))
    time.sleep(PAUSE_S)
try:
    if KIND == "python":
        kept.append(bytearray(1 << 30))
    elif KIND != "forever":
        kept.append(torch.ones(1 << 28))
except RuntimeError:
    if KIND != "caught":
        raise
step()
