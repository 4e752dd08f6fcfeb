# SPDX-License-Identifier: Apache-2.0
"""Hands PyTorch over to the agent in C: runs the operators it learns from, then starts it."""
import os
import sys
import threading

import stepscope

_LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
_is_attached = False
native = None  # the extension, once we are attached


def attach():
    """Once per process, after `import torch`."""
    global _is_attached, native
    if _is_attached or _is_launcher():
        return
    _is_attached = True
    if stepscope.unavailable:
        raise RuntimeError(stepscope.unavailable)
    import torch
    from stepscope import _native as native

    if not native.torch_find():
        raise RuntimeError(native.torch_problem())
    _calibrate(torch)
    native.metadata("torch.version", str(torch.__version__))
    if native.torch_lines_find():
        from stepscope import _lines

        _lines.check(native)
    native.torch_start()
    _watch_optimizers()
    from stepscope import _memory

    _memory.watch(torch, native)


def _watch_optimizers():
    """Which optimizer steps; PyTorch 1.13 cannot tell, there the names of the records must do."""
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        register(native.torch_optimizer_hook)


def _is_launcher():
    """A program that only starts the ranks: it would look like one of them."""
    arguments = getattr(sys, "orig_argv", sys.argv)  # 3.10; while a module is looked for, sys.argv does not name it yet
    module = arguments[arguments.index("-m") + 1 :][:1] if "-m" in arguments else []
    return os.path.basename(sys.argv[0]) in _LAUNCHERS or bool(module) and module[0] in _LAUNCHER_MODULES


PLAIN, META, FOREIGN = range(3)


def _calibrate_inputs(torch):
    """Tensors of known sizes, types and kinds, and operators that take two of them; then others, to see that it is right."""

    def make(sizes, dtype=torch.float32, device="cpu"):
        return torch.ones(sizes, dtype=dtype, device=device)

    def show(tensor, kind):
        native.torch_probe_tensor(tensor._cdata, kind, tuple(tensor.shape))

    x, y, z = make((3, 5, 7)), make((3, 5, 7)), make((3, 5, 7))
    others = [make((11,)), make((2, 3, 4, 6), torch.int64), make((13, 9), torch.bfloat16), make((2, 2, 3, 5, 7))]
    for tensor in (x, y, *others):
        show(tensor, PLAIN)
    meta, sparse = make((3, 5, 7), device="meta"), make((4, 6)).to_sparse()
    show(meta, META)
    show(sparse, FOREIGN)
    for first, second in ((x, y), (y, z), (z, x)):
        native.torch_probe_inputs(first._cdata, second._cdata)
        torch.mul(first, second)
        torch.cat([first, second])
    if not native.torch_probe_solve():
        return
    deep, scalar = make((1, 2, 1, 3, 1, 2, 1)), make(())
    for run, inputs in ((lambda: torch.neg(deep), "[1, 2, 1, 3, 1, 2, 1]"),
                        (lambda: torch.mul(others[0], scalar), "[11] []"),
                        (lambda: torch.sub(deep[0, 1], 1), "[1, 3, 1, 2, 1] [] []"),
                        (lambda: torch.neg(sparse), "[]")):
        run()
        if not native.torch_probe_check(inputs):
            return


def _calibrate(torch):
    """A few adds with gradients, here and in another thread, all differentiated here: see src/agents/torch/layout.h.

    Everything is given explicitly, so that no default of the program changes it. The other thread runs nothing but adds:
    we hold the lock of `import torch`, and whatever imports would wait for us.
    """
    if not native.torch_probe_begin():
        return
    try:
        with torch.enable_grad():
            # without dimensions: a backward that is given a gradient makes PyTorch 2 import sympy, 0.3 s
            x, w = (torch.ones((), device="cpu", dtype=torch.float32, requires_grad=True) for _ in range(2))
            add, sums = torch.add, []
            other = threading.Thread(target=lambda: sums.extend(add(x, w) for _ in range(3)), daemon=True)
            other.start()
            other.join(1)
            for result in sums:
                result.backward()
            for _ in range(3):
                add(x, w).backward()
        with torch.no_grad():
            _calibrate_inputs(torch)
    finally:
        native.torch_probe_end()
