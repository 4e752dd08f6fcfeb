# SPDX-License-Identifier: Apache-2.0
"""What a trace says of devices survives our own Chrome export: the tables of the copy are those of the original."""
import json
import os
import subprocess
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data" / "traces"
STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
TRACES = [
    "hta/tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "param/et_replay/tests/inputs/dlrm_kineto/worker1_step_12.1694128201556.pt.trace.json.gz",
    "tracelens/tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
]
# Viewers need a rank and no stream 0; spans that cross go on different threads, so that a step may lie on another one than its operators.
NUMBERED_ANEW = ("process", "stream", "step_self_ns", "step_self_ratio")
TABLES = ["ops", "kernels", "copies", "launches", "runtime_calls", "communication", "device_busy", "device_steps", "step_parts"]


def rows(path, table):
    command = [STEPSCOPE, "report", str(path), "--table", table, "--limit", "1000000", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)["rows"]
    # means are sums in the order of the streams, whose last digit is another in another order
    return sorted(json.dumps({key: round(value, 9) if isinstance(value, float) else value for key, value in row.items()
                              if key not in NUMBERED_ANEW}) for row in found)


@pytest.mark.parametrize("trace", TRACES)
def test_tables_survive(trace, tmp_path):
    copy = tmp_path / "copy.json"
    subprocess.run([STEPSCOPE, "export", str(DATA / trace), "--format", "chrome", "--output", str(copy)], check=True,
                   capture_output=True, timeout=120)
    for table in TABLES:
        assert rows(copy, table) == rows(DATA / trace, table), table
