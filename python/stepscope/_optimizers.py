# SPDX-License-Identifier: Apache-2.0
"""Which optimizers there are, and which one steps: what steps are counted by, in the program and in the report."""
import sys

from stepscope._unseen import hook


def watch(native):
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        register(hook(native, native.torch_optimizer_hook))
        module.register_optimizer_step_post_hook(hook(native, native.torch_optimizer_done))
    kind = getattr(module, "Optimizer", None)
    for name in ("_patch_step_function", "_hook_for_profile"):  # by the constructor: of 2.x, of 1.13
        if kind is not None and name in vars(kind):
            setattr(kind, name, native.around(getattr(kind, name), before=_making(native, is_hooked=register is not None)))


def _making(native, is_hooked):
    def make(optimizer):
        native.torch_optimizer_made(optimizer)
        kind = type(optimizer)
        # PyTorch wraps the class's step with its record; within that, ours tells which object it is of
        if not is_hooked and not getattr(kind.step, "hooked", None):
            kind.step = native.around(kind.step, is_optimizer=True)

    return make
