# SPDX-License-Identifier: Apache-2.0
"""Facts about the processors and threads of a process, at the first step of an optimizer or the first batch of a worker.

The recorder writes the number of processors at its start. A program may change its affinity and the number of its
threads later, so both are written again.
"""
import os
import sys


def tell_threads(native):
    torch = sys.modules["torch"]
    native.metadata("torch.threads", str(torch.get_num_threads()))
    if hasattr(os, "sched_getaffinity"):
        native.metadata("processors", str(len(os.sched_getaffinity(0))))
