# SPDX-License-Identifier: Apache-2.0
"""Six steps with accelerate: its profile() is ours, its tracker writes into the recording. Used by test_integrations.py."""
import torch
from accelerate import Accelerator
from torch import nn

import stepscope
from stepscope.integrations.accelerate import ProfileKwargs, StepscopeTracker


def main():
    torch.manual_seed(1)
    kwargs = ProfileKwargs(activities=["cpu"], schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, record_shapes=True,
                           output_trace_dir="traces")
    accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs], log_with=[StepscopeTracker()])
    accelerator.init_trackers("test", config={"lr": 0.1})
    model = nn.Linear(8, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with accelerator.profile() as prof:
        for number in range(6):
            loss = model(torch.randn(4, 8)).pow(2).mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            accelerator.log({"loss": loss.item()}, step=number)
            prof.step()
    assert isinstance(prof, stepscope.profile)
    print(prof.key_averages().table(row_limit=3))
    accelerator.end_training()


if __name__ == "__main__":
    main()
