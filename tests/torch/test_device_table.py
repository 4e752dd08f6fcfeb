# SPDX-License-Identifier: Apache-2.0
"""`report --style torch` of traces with a device is what PyTorch's classes print of their events (device_events.py), byte for byte.

A machine with a device would have torch.profiler's own table; here its events are made again from real traces.
"""
import subprocess
from pathlib import Path

import pytest

from torch_tools import HERE, STEPSCOPE, environment, every_python, version, warm

DATA = Path(__file__).resolve().parent.parent / "data" / "traces"
TRACES = [
    "hta/tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "tracelens/tests/traces/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "tracelens/tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
]


@pytest.mark.parametrize("trace", TRACES)
@every_python
def test_the_same_bytes_as_pytorch(tmp_path, python, trace):
    if version(python).startswith("1."):
        pytest.skip("its classes say cuda_time for device_time")
    for sort in ([], ["self_cuda_time_total"], ["cuda_time"]):
        theirs = warm(tmp_path, python, HERE / "device_events.py", DATA / trace, *sort, is_observed=False).stdout
        ours = subprocess.run([STEPSCOPE, "report", DATA / trace, "--style", "torch", "--limit", "-1", "--columns", "no-stacks",
                               *(["--sort", *sort] if sort else [])], env=environment(), timeout=60, check=True, capture_output=True,
                              text=True).stdout
        assert "Self CUDA time total: " in theirs
        assert ours == theirs
