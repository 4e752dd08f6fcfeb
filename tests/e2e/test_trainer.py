#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example trainer as a command: its options, faults, stamps and ranks, without any recording.

Usage: test_trainer.py PATH-OF-GPT
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

from run_tools import is_running

GPT = sys.argv.pop(1) if len(sys.argv) > 1 else "build/examples/c/gpt"
SMALL = ["--layers", "2", "--dim", "32", "--heads", "2", "--context", "32", "--batch", "2", "--steps", "8"]


def gpt(*options):
    return subprocess.run([GPT, *SMALL, *options], capture_output=True, text=True, timeout=60)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


class Trainer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def stamps(self, *options, rank=0):
        result = gpt("--quiet", "--stamps", self.path("s.json"), *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("s.json") + (f".{rank}" if rank else ""), encoding="utf-8") as file:
            return json.load(file)

    def test_help_goes_to_stdout(self):
        result = gpt("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for word in ("--ranks", "slow-loader-every=K,MS", "straggler=RANK,MS"):
            self.assertIn(word, result.stdout)

    def test_quiet_prints_nothing(self):
        result = gpt("--quiet")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_wrong_options_exit_2_and_say_what_was_expected(self):
        for options, expected in (
            (["--stepz", "3"], "unknown option '--stepz'"),
            (["--steps"], "--steps needs a value"),
            (["--steps", "0"], "whole number from 1"),
            (["--steps=3x"], "whole number"),
            (["--lr", "nan"], "expected a number above 0"),
            (["--heads", "5"], "does not divide"),
            (["--fault", "slow"], "unknown fault 'slow'"),
            (["--fault", "leak"], "needs a value: leak=KB"),
            (["--fault", "straggler=1"], "straggler=RANK,MS"),
            (["--fault", "straggler=1,20"], "no such rank"),
            (["--fault", "slow-thread=5"], "--workers"),
            (["--fault", "sync-checkpoint=2"], "--out"),
            (["--quiet=yes"], "takes no value"),
        ):
            with self.subTest(options=options):
                result = gpt(*options)
                self.assertEqual(result.returncode, 2)
                self.assertIn(expected, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_failures_exit_1_with_one_line(self):
        with open(self.path("file"), "w", encoding="ascii") as file:
            file.write("short")
        for options, expected in (
            (["--data", "/nonexistent"], "cannot read '/nonexistent'"),
            (["--data", self.path("file")], "too short"),
            (["--data", self.folder.name], "no *.txt files"),
            (["--out", self.path("file") + "/x"], "cannot make folder"),
            (["--resume", self.path("none")], "cannot read checkpoint"),
            (["--stamps", "/nonexistent/s.json"], "cannot create"),
        ):
            with self.subTest(options=options):
                result = gpt("--quiet", *options)
                self.assertEqual(result.returncode, 1)
                self.assertIn(expected, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_stamps_are_whole_and_consistent(self):
        document = self.stamps("--fault", "nan=7", "--evaluate-every", "4")
        steps = document["steps"]
        self.assertEqual([step["step"] for step in steps], list(range(8)))
        for step in steps:
            self.assertLess(step["data_wait_ns"] + step["evaluation_ns"], step["end_ns"] - step["begin_ns"])
            self.assertEqual(step["tokens"], 2 * 2 * 32)
        self.assertIsNone(steps[7]["loss"])
        self.assertEqual([step["step"] for step in steps if step["evaluation_ns"]], [3, 7])
        total = document["totals"]
        self.assertEqual(total["data_wait_ns"], sum(step["data_wait_ns"] for step in steps))
        self.assertEqual(total["step_ns"], sum(step["end_ns"] - step["begin_ns"] for step in steps))

    def test_a_synchronous_checkpoint_falls_into_its_steps(self):
        steps = self.stamps("--out", self.path("out"), "--fault", "sync-checkpoint=3")["steps"]
        self.assertEqual([step["step"] for step in steps if step["checkpoint_ns"]], [2, 5])
        self.assertEqual(os.listdir(self.path("out")), ["checkpoint.bin"])

    def test_a_slow_thread_delays_every_step_by_its_time(self):
        steps = self.stamps("--workers", "2", "--fault", "slow-thread=40")["steps"]
        for step in steps:
            self.assertGreaterEqual(step["end_ns"] - step["begin_ns"], 40e6)

    def test_ranks_compute_the_same_loss(self):
        first = self.stamps("--ranks", "2")
        with open(self.path("s.json.1"), encoding="utf-8") as file:
            second = json.load(file)
        self.assertEqual((first["rank"], second["rank"]), (0, 1))
        for key in ("loss", "gradient_norm"):
            self.assertEqual([step[key] for step in first["steps"]], [step[key] for step in second["steps"]])
        self.assertEqual(first["steps"][0]["loss"], self.stamps("--ranks", "2")["steps"][0]["loss"])
        self.assertTrue(all(step["communication_ns"] > 0 for step in first["steps"]))

    def test_the_others_wait_for_a_straggler(self):
        first = self.stamps("--ranks", "2", "--fault", "straggler=1,40")
        # in most steps: a busy machine may keep the other away from its wait
        self.assertGreater(statistics.median(step["communication_ns"] for step in first["steps"][1:]), 20e6)

    def start_ranks(self):
        process = subprocess.Popen([GPT, *SMALL, "--quiet", "--steps", "1000000", "--ranks", "3"],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and sum(ticks(rank) > 10 for rank in children(process.pid)) < 3:
            time.sleep(0.02)
        return process, children(process.pid)

    def test_a_killed_rank_ends_the_others(self):
        process, ranks = self.start_ranks()
        self.assertEqual(len(ranks), 3)
        os.kill(ranks[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=15)
        self.assertEqual(process.returncode, 1)
        self.assertIn("rank 1 was killed by signal 9", errors)
        self.assertIn("rank 0: rank 1 is gone", errors)

    def test_ranks_end_with_their_launcher(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                process, ranks = self.start_ranks()
                process.send_signal(number)
                process.wait(timeout=15)
                self.assertNotEqual(process.returncode, 0)
                deadline = time.monotonic() + 10
                while time.monotonic() < deadline and any(is_running(rank) for rank in ranks):
                    time.sleep(0.02)
                self.assertFalse(any(is_running(rank) for rank in ranks))


def ticks(pid):
    """CPU time of the process in hundredths of a second: with ten of them it is past its start and trains."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    unittest.main()
