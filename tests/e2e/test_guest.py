# SPDX-License-Identifier: Apache-2.0
"""P05: the recorder uses no signal and no timer in the program, so none can interrupt its system calls or its forks."""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
TRAINER = os.path.join(os.environ["BUILD"], "examples", "c", "gpt")
LIMIT_S = 60


def signals_and_timers(tmp_path, is_recorded):
    """What the kernel knows of a trainer in the middle of its work."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE")}
    if is_recorded:
        environment.update(STEPSCOPE="1", STEPSCOPE_RUN_DIR=str(tmp_path / "run"))
    trainer = subprocess.Popen([TRAINER, "--steps", "100000", "--layers", "1", "--dim", "32", "--heads", "2",
                                "--out", tmp_path / "checkpoints"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        assert trainer.stdout.readline() and trainer.stdout.readline()  # it has made its first steps
        if is_recorded:
            deadline = time.monotonic() + LIMIT_S
            while not list((tmp_path / "run").glob("*.ssr")):
                assert time.monotonic() < deadline, "it does not record"
                time.sleep(0.01)
        status = Path(f"/proc/{trainer.pid}/status").read_text()
        timers = Path(f"/proc/{trainer.pid}/timers").read_text()
        return re.findall(r"^(Sig(?:Ign|Cgt)):\s*(\w+)", status, re.M), timers
    finally:
        trainer.kill()
        trainer.communicate()


def test_p05_no_signal_and_no_timer_in_the_program(tmp_path):
    if not Path("/proc/self/timers").exists():
        pytest.skip("this kernel has no /proc/PID/timers")
    plain = signals_and_timers(tmp_path, False)
    assert signals_and_timers(tmp_path, True) == plain
    assert plain[1] == ""
