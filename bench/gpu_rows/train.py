# SPDX-License-Identifier: Apache-2.0
"""`train.py NAME STEPS [--losses] [--cpu]`: trains as a user would. --losses prints the bits of each loss."""
import sys
import time

import torch

from programs import Program, settings_of


def main():
    name, count = sys.argv[1], int(sys.argv[2])
    is_cpu = "--cpu" in sys.argv
    program = Program(settings_of(name, is_cpu), "cpu" if is_cpu else "cuda")
    torch.use_deterministic_algorithms("--losses" in sys.argv, warn_only=True)
    start = time.perf_counter()
    for i in range(count):
        program.step()
        if "--losses" in sys.argv:
            print(i, program.loss.float().item().hex())
    if not is_cpu:
        torch.cuda.synchronize()
    print(f"{count} steps in {time.perf_counter() - start:.3f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
