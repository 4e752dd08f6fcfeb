# SPDX-License-Identifier: Apache-2.0
"""A training whose parts are as long as told: run_times.py compile|evaluate|pause|save|steps. Prints the seconds of the part."""
import sys
import time

import torch

PART, LOOPS = sys.argv[1], 3
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seconds = 0.0


def slow_backend(graph, inputs):
    global seconds
    start = time.monotonic()
    time.sleep(4)
    seconds += time.monotonic() - start
    return graph.forward


def evaluate():
    model.eval()
    with torch.no_grad():
        for _ in range(100):
            time.sleep(0.02)
            model(torch.randn(16, 64))
    model.train()


class Slow:
    def __reduce__(self):
        time.sleep(2)
        return (dict, ())


step = torch.compile(model, backend=slow_backend) if PART == "compile" else model
for _ in range(LOOPS):
    for _ in range(20):
        optimizer.zero_grad()
        step(torch.randn(16, 64)).sum().backward()
        optimizer.step()
    begin = time.monotonic()
    if PART == "evaluate":
        evaluate()
    elif PART == "pause":
        time.sleep(2)
    elif PART == "save":
        torch.save(Slow(), "checkpoint.pt")
    seconds += time.monotonic() - begin if PART != "compile" else 0
for _ in range(20):
    optimizer.zero_grad()
    step(torch.randn(16, 64)).sum().backward()
    optimizer.step()
print(seconds)
