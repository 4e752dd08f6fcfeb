# SPDX-License-Identifier: Apache-2.0
"""Which optimizers there are, and which one steps: what steps are counted by, in the program and in the report. Or torch.profiler's step(),
where a program calls it."""
import sys
import weakref

from stepscope._unseen import hook

are_made = False  # was there ever one

CALLS = 16  # bit of active(): PyTorch's records are not looked at
FOLLOWED = (2, 13)  # the first PyTorch whose constant functions may have an object for an argument


_profiler_steps = weakref.WeakKeyDictionary()  # profiler -> what its newest step() began


def watch(native):
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        version = tuple(int(part) for part in sys.modules["torch"].__version__.split(".")[:2])
        register(hook(native, native.torch_optimizer_hook, _noting(native) if version >= FOLLOWED else None))
        module.register_optimizer_step_post_hook(hook(native, native.torch_optimizer_done))
    kind = getattr(module, "Optimizer", None)
    for name in ("_patch_step_function", "_hook_for_profile"):  # by the constructor: of 2.x, of 1.13
        if kind is not None and name in vars(kind):
            setattr(kind, name, native.around(getattr(kind, name), before=_making(native, is_hooked=register is not None)))
    _watch_profilers(native)


def _watch_profilers(native):
    """PyTorch makes a record of each step only where the profiler has a schedule, and we may not look at records. One that we made would be in the program's own tables, too:
    it is a range of ours."""

    def begin(profiler, raised):
        if raised is None and (not profiler.record_steps or native.active() & CALLS):
            step = _profiler_steps[profiler] = native.profiler_step(profiler.step_num, profiler.record_steps)
            step.__enter__()

    def end(profiler):
        step = _profiler_steps.pop(profiler, None)
        if step is not None:
            step.__exit__()

    kind = getattr(sys.modules.get("torch.profiler"), "profile", None)
    if all(callable(getattr(kind, name, None)) for name in ("start", "step", "stop")):
        kind.start = native.around(kind.start, after=begin)
        kind.step = native.around(kind.step, before=end, after=begin)
        kind.stop = native.around(kind.stop, before=end)


def _noting(native):
    """Which code of torch.compile begins an optimizer's call. It calls this while it follows a function into one, and takes it for a constant:
    graph and guards are as without it. What it tries first may be thrown away, so only when it has made the code it is known which one that is."""
    tried, hooks = {}, []  # number of an optimizer, by which try it was

    def trace():
        return sys.modules["torch._guards"].CompileContext.current_trace_id()

    def made(*_):
        try:
            number = tried.get(str(trace()))
            tried.clear()
            if number is not None:
                native.torch_optimizer_compiled(str(trace().compile_id), number)
        except Exception:  # a PyTorch that is different: those steps are not found
            tried.clear()

    def note(optimizer):
        try:
            if not hooks:
                hooks.append(sys.modules["torch._dynamo.convert_frame"].register_bytecode_hook(made))
            tried.setdefault(str(trace()), native.torch_optimizer_number(optimizer))
        except Exception:
            tried.clear()

    note._dynamo_marked_constant = True  # torch.compiler.assume_constant_result() would import all of Dynamo
    return note


def _making(native, is_hooked):
    def make(optimizer):
        global are_made
        are_made = True
        native.torch_optimizer_made(optimizer)
        kind = type(optimizer)
        # PyTorch wraps the class's step with its record; within that, ours tells which object it is of
        if not is_hooked and not getattr(kind.step, "hooked", None):
            kind.step = native.around(kind.step, is_optimizer=True)

    return make
