# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a program. Import this before torch: the first process only starts the others."""
import os
import shutil
import subprocess
import sys
import tempfile


def ranks(count=2):
    """Returns in each rank. In the first process, it waits for the ranks and exits."""
    if "RANK" in os.environ:
        return
    folder = tempfile.mkdtemp()
    try:
        children = []
        for rank in range(count):
            child = start({"WORLD_SIZE": str(count), "WHATIF_MEET": folder + "/meet", "RANK": str(rank), "LOCAL_RANK": str(rank)})
            if child is None:
                return  # a forked rank
            children.append(child)
        sys.exit(max(child() for child in children))
    finally:
        if "RANK" not in os.environ:
            shutil.rmtree(folder)


def start(environment):
    """Starts a rank. Returns a function that waits for it, or None in a forked rank."""
    if "WHATIF_FORK" not in os.environ:
        return subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **environment}).wait
    pid = os.fork()
    if pid == 0:
        os.environ.update(environment)
        return None
    return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def meet():
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + os.environ["WHATIF_MEET"], rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))


def part():
    import torch.distributed as dist
    dist.barrier()
    dist.destroy_process_group()
