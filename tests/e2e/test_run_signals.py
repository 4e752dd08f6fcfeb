# SPDX-License-Identifier: Apache-2.0
"""Signals: what is sent to `stepscope run` reaches the program; terminals work as without it."""
import os
import pty
import select
import signal
import time
from pathlib import Path

import pytest

from run_tools import ACTOR, child_of, finish, start, STEPSCOPE, environment, wait_for

ECHO = """
import os, signal, time
def handler(number, frame):
    os.write(1, (signal.Signals(number).name + "\\n").encode())
    if number in (signal.SIGTERM, signal.SIGINT):
        os._exit(9)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGCONT, signal.SIGALRM, signal.SIGWINCH,
               signal.SIGPWR, signal.SIGRTMIN):
    signal.signal(number, handler)
os.write(1, b"ready\\n")
while True:
    time.sleep(0.1)
"""


def start_echo(tmp_path, **how):
    process = start(tmp_path, "python3", "-c", ECHO, start_new_session=True, **how)
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGALRM, signal.SIGWINCH,
                                    signal.SIGPWR, signal.SIGRTMIN])
def test_signals_are_passed_on(tmp_path, number):
    process = start_echo(tmp_path)
    process.send_signal(number)
    assert process.stdout.readline().decode().strip() == number.name
    process.send_signal(signal.SIGTERM)
    assert finish(process).returncode == 9


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_that_ends_the_program_ends_the_run_in_order(tmp_path, number):
    process = start_echo(tmp_path)
    process.send_signal(number)
    done = finish(process)
    assert done.returncode == 9
    assert number.name.encode() in done.stdout
    assert "stepscope: report: " in done.stderr


def test_killed_by_the_signal_we_passed_on(tmp_path):
    process = start(tmp_path, ACTOR, "steps", "5", "0", "open", "conv", "write", "1", "r", "sleep", "60000",
                    start_new_session=True)
    assert process.stdout.read(1) == b"r"
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert done.returncode == 143
    assert "the program was killed by SIGTERM, last step 4, last op 'conv'" in done.stderr


def test_ignored_signals_stay_ignored(tmp_path):
    process = start(tmp_path, "sleep", "1", start_new_session=True,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child_of(process)
    process.send_signal(signal.SIGHUP)
    assert finish(process).returncode == 0


def test_ignored_signals_reach_a_program_that_wants_them(tmp_path):
    """Under nohup a program that installs a handler of its own gets what is sent to it."""
    process = start_echo(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    assert process.stdout.readline() == b"SIGHUP\n"
    process.send_signal(signal.SIGTERM)
    assert finish(process).returncode == 9


def test_status_is_known_where_child_signals_are_ignored(tmp_path):
    process = start(tmp_path, "sh", "-c", "exit 3", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert finish(process).returncode == 3


class Terminal:
    """`stepscope run` as the foreground job of an interactive shell."""

    def __init__(self, cwd, *program):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve("/bin/sh", ["sh", "-i"], {**environment(cwd), "PS1": "$ ", "ENV": ""})
        self.text = ""
        self.write(" ".join([STEPSCOPE, "run", "--", *map(str, program)]) + "; echo status=$?\n")

    def write(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, wanted, timeout=20):
        end = time.monotonic() + timeout
        while wanted not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.2)[0]:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
        before, self.text = self.text.split(wanted, 1)
        return before

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def test_control_c_reaches_the_program_once(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO.replace("os._exit(9)", "time.sleep(0.5); os._exit(9)"))
    terminal = Terminal(tmp_path, "python3", "echo.py")
    terminal.read_until("ready")
    terminal.write("\x03")
    text = terminal.read_until("status=9")
    terminal.close()
    assert text.count("SIGINT") == 1
    assert "stepscope: report: " in text


def test_control_z_stops_and_fg_continues(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO)
    terminal = Terminal(tmp_path, "python3", "echo.py")
    terminal.read_until("ready")
    terminal.write("\x1a")
    terminal.read_until("$ ")
    wait_for(lambda: [state(pid) for pid in descendants(terminal.pid)] == ["T", "T"], what="both stopped")
    terminal.write("fg\n")
    terminal.read_until("SIGCONT")
    terminal.write("\x03")
    terminal.read_until("stepscope: report: ")
    terminal.write("echo again=$?\n")
    terminal.read_until("again=9")
    terminal.close()


def test_stop_and_continue_sent_to_us_alone(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO)
    terminal = Terminal(tmp_path, "python3", "echo.py")
    terminal.read_until("ready")
    ours, program = descendants(terminal.pid)
    os.kill(ours, signal.SIGTSTP)
    wait_for(lambda: state(ours) == "T" and state(program) == "T", what="both stopped")
    os.kill(ours, signal.SIGCONT)
    terminal.read_until("SIGCONT")
    assert state(ours) != "T" and state(program) != "T"
    os.kill(ours, signal.SIGTERM)
    terminal.read_until("stepscope: report: ")
    terminal.close()


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def descendants(pid):
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child)] + descendants(int(child))
    return found
