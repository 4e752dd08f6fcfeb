# SPDX-License-Identifier: Apache-2.0
"""For bench/import: runs HTA's breakdowns of time, kernels, overlap and idle time on a trace."""
import os
import sys
import warnings

warnings.simplefilter("ignore")

from hta.trace_analysis import TraceAnalysis  # noqa: E402, after the warnings are off

analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
analysis.get_temporal_breakdown(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
