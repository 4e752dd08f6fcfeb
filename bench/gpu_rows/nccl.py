# SPDX-License-Identifier: Apache-2.0
"""`nccl.py OUT`: trains one rank of NCCL with DistributedDataParallel. Writes PyTorch's flight recorder, as pickle and
JSON, and a trace."""
import json
import os
import sys

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "200")
os.environ.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", "200")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0", WORLD_SIZE="1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from programs import Program, settings_of  # noqa: E402
from shared import activities, compress  # noqa: E402


def main():
    out, is_cpu = sys.argv[1], not torch.cuda.is_available()
    device = "cpu" if is_cpu else "cuda"
    dist.init_process_group("gloo" if is_cpu else "nccl")
    program = Program(settings_of("base", is_cpu), device, ranks=2)  # 2 makes it wrap the model
    other = dist.new_group([0])
    for _ in range(4):
        program.step()
    with torch.profiler.profile(activities=activities(device), record_shapes=True) as profiler:
        for _ in range(3):
            program.step()
            one = torch.ones(1024, device=device)
            dist.all_reduce(one)
            dist.all_reduce(one, op=dist.ReduceOp.MAX, group=other, async_op=True).wait()
            dist.broadcast(one, 0)
            dist.all_gather([torch.empty_like(one)], one)
            dist.barrier()
    profiler.export_chrome_trace(f"{out}/nccl.json")
    compress(f"{out}/nccl.json")
    found = {}
    for name, call in (("pickle", lambda: torch._C._distributed_c10d._dump_nccl_trace(True, True, False)),
                       ("json", lambda: torch._C._distributed_c10d._dump_nccl_trace_json(True, False))):
        try:
            content = call()
            with open(f"{out}/nccl_flight.{name}", "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
            found[name] = len(content)
        except Exception as error:  # pylint: disable=broad-except  # the error is the result
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps({"nccl": None if is_cpu else torch.cuda.nccl.version(), **found}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
