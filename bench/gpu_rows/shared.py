# SPDX-License-Identifier: Apache-2.0
"""Common code of the rows."""
import gzip
import os

import torch


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


def activities(device):
    kinds = torch.profiler.ProfilerActivity
    return [kinds.CPU] + ([kinds.CUDA] if device != "cpu" else [])


def compress(path):
    """Replaces PATH by PATH.gz."""
    with open(path, "rb") as file, gzip.open(f"{path}.gz", "wb") as packed:
        packed.write(file.read())
    os.remove(path)
