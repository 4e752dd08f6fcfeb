# SPDX-License-Identifier: Apache-2.0
"""Runs a program under torch.profiler: under_profiler.py TRACE PROGRAM [ARGUMENT ...]. For test_what_if.py."""
import os
import runpy
import sys

import torch

if __name__ == "__main__":
    trace, program = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(program))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        runpy.run_path(program, run_name="__main__")
    profile.export_chrome_trace(trace)
