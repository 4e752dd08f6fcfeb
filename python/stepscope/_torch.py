# SPDX-License-Identifier: Apache-2.0
"""Hands PyTorch over to the agent in C: runs the operators it learns from, then starts it."""
import sys
import threading

from stepscope._library import library

_is_attached = False


def attach():
    """Once per process, after `import torch`."""
    global _is_attached
    if _is_attached:
        return
    _is_attached = True
    import torch

    if library.stepscope_torch_find() != 0:
        raise RuntimeError(library.stepscope_torch_problem().decode(errors="replace"))
    _calibrate(torch)
    library.stepscope_emit_metadata(b"torch.version", str(torch.__version__).encode())
    library.stepscope_torch_start()
    _watch_optimizers()


def _watch_optimizers():
    """Which optimizer steps; PyTorch 1.13 cannot tell, there the names of the records must do."""
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        tell = library.stepscope_torch_optimizer
        register(lambda optimizer, args, kwargs: tell(id(optimizer)) and None)


def _calibrate(torch):
    """A few adds with gradients, here and in another thread, all differentiated here: see src/agents/torch/layout.h.

    Everything is given explicitly, so that no default of the program changes it. The other thread runs nothing but adds:
    we hold the lock of `import torch`, and whatever imports would wait for us.
    """
    if library.stepscope_torch_probe_begin() != 0:
        return
    try:
        with torch.enable_grad():
            x, w = (torch.ones(2, device="cpu", dtype=torch.float32, requires_grad=True) for _ in range(2))
            ones = torch.ones(2, device="cpu", dtype=torch.float32)
            add, sums = torch.add, []
            other = threading.Thread(target=lambda: sums.extend(add(x, w) for _ in range(3)), daemon=True)
            other.start()
            other.join(1)
            for result in sums:
                result.backward(ones)
            for _ in range(3):
                add(x, w).backward(ones)
    finally:
        library.stepscope_torch_probe_end()
