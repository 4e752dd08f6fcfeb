# SPDX-License-Identifier: Apache-2.0
"""For bench/import: computes all views of the TensorBoard plugin for a trace."""
import sys
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
profile = RunProfileData.parse("worker0", None, sys.argv[1], None)
RunGenerator("worker0", None, profile).generate_run_profile()
