# SPDX-License-Identifier: Apache-2.0
"""What bench/import lets the TensorBoard plugin do with a trace: all that its views show."""
import sys
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
profile = RunProfileData.parse("worker0", None, sys.argv[1], None)
RunGenerator("worker0", None, profile).generate_run_profile()
