# SPDX-License-Identifier: Apache-2.0
"""Which optimizers there are, and which one steps: what steps are counted by, in the program and in the report."""
import functools
import sys


def watch(native):
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        register(_unless_compiling(native.torch_optimizer_hook))
        module.register_optimizer_step_post_hook(_unless_compiling(native.torch_optimizer_done))
    kind = getattr(module, "Optimizer", None)
    for name in ("_patch_step_function", "_hook_for_profile"):  # by the constructor: of 2.x, of 1.13
        if kind is not None and name in vars(kind):
            setattr(kind, name, _making(getattr(kind, name), native, is_hooked=register is not None))


def _unless_compiling(hook):
    """torch.compile cannot look into the hook and would break a compiled step in two."""
    is_compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None)
    if is_compiling is None:
        return hook
    return lambda *arguments: None if is_compiling() else hook(*arguments)


def _making(original, native, is_hooked):
    @functools.wraps(original)
    def patched(self):
        native.torch_optimizer_made(self)
        kind = type(self)
        # PyTorch wraps the class's step with its record; within that, ours tells which object it is of
        if not is_hooked and not getattr(kind.step, "hooked", None):
            kind.step = native.around(kind.step, is_optimizer=True)
        return original(self)

    return patched
