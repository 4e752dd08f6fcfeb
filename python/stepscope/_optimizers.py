# SPDX-License-Identifier: Apache-2.0
"""Watches which optimizers exist and which one steps. The recorder and the report count steps by them, or by
torch.profiler's step() if the program calls it."""
import contextlib
import sys
import weakref

from stepscope import _actions, _processors
from stepscope._unseen import hook

are_made = False  # true once the program has created an optimizer

MOST_DESCRIBED = 100  # optimizers with facts: each adds names to the recording

CALLS = 16  # bit of active(): PyTorch's records are not observed; calls are recorded instead (_calls.py)
FOLLOWED = (2, 13)  # first PyTorch that allows an object as argument of a constant function


_profiler_steps = weakref.WeakKeyDictionary()  # profiler -> the range that its newest step() started


def watch(native):
    module = sys.modules.get("torch.optim.optimizer")  # torch.optim hides the name
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None:
        version = tuple(int(part) for part in sys.modules["torch"].__version__.split(".")[:2])
        register(hook(native, native.torch_optimizer_hook, _noting(native) if version >= FOLLOWED else None))
        module.register_optimizer_step_post_hook(hook(native, native.torch_optimizer_done))
    kind = getattr(module, "Optimizer", None)
    for name in ("_patch_step_function", "_hook_for_profile"):  # called by the constructor in 2.x and in 1.13
        if kind is not None and name in vars(kind):
            setattr(kind, name, native.around(getattr(kind, name), before=_making(native, is_hooked=register is not None)))
    _watch_profilers(native)
    native.torch_optimizer_describer(_describing(native))


def _describing(native):
    """Returns the function that C calls at an optimizer's first step in a recording.

    How long a step of an optimizer takes at least depends on its tensors, and on the kernels that its options choose.
    """
    described = weakref.WeakKeyDictionary()  # optimizer -> its number

    def describe(optimizer):
        number = described.setdefault(optimizer, len(described))
        if number >= MOST_DESCRIBED:
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        tensor = sys.modules["torch"].Tensor
        with _plain_tensors():
            facts = {"parameter_tensors": len(parameters),
                     "parameter_bytes": sum(tensor.numel(parameter) * tensor.element_size(parameter) for parameter in parameters),
                     "parameter_dtypes": _words(str(parameter.dtype).rpartition(".")[2] for parameter in parameters),
                     "parameter_devices": _words(parameter.device.type for parameter in parameters)}
        for option in ("foreach", "fused", "capturable"):
            facts[option] = _words("default" if group[option] is None else str(group[option]).lower() for group in optimizer.param_groups if option in group)
        native.metadata(f"optimizer.{number}", type(optimizer).__name__)
        for key, value in facts.items():
            native.metadata(f"optimizer.{number}.{key}", str(value or "not an option of this optimizer"))
        _processors.tell_threads(native)

    return describe


@contextlib.contextmanager
def _plain_tensors():
    """Returns a context in which neither a subclass of tensors nor a mode of the program sees our questions."""
    torch = sys.modules["torch"]
    # 1.13's DisableTorchFunction leaves the program's modes on
    without_modes = getattr(torch.overrides, "_no_torch_function_mode", contextlib.nullcontext)
    with torch._C.DisableTorchFunction(), without_modes():
        yield


def _words(values):
    return ", ".join(dict.fromkeys(values))


def _watch_profilers(native):
    """Marks the steps of torch.profiler by ranges of the recording.

    PyTorch makes a record of a step only if the profiler has a schedule, and the recorder may not observe records. A
    record that stepscope makes would also appear in the program's own tables, so a range marks the step.
    """

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
    """Returns the function that finds which compiled code starts an optimizer's call.

    torch.compile calls it when it traces a function into an optimizer. It treats the function as a constant, so graph
    and guards do not change. A trace may be discarded, so the code's number is known only after the code is made.
    """
    tried, hooks = {}, []  # id of a trace -> number of the optimizer

    def trace():
        return sys.modules["torch._guards"].CompileContext.current_trace_id()

    def made(*_):
        try:
            number = tried.get(str(trace()))
            tried.clear()
            if number is not None:
                native.torch_optimizer_compiled(str(trace().compile_id), number)
        except Exception:  # this PyTorch differs: the steps in compiled code are not found
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
        _actions.watch(native)
        native.torch_optimizer_made(optimizer)
        kind = type(optimizer)
        # PyTorch wraps the step of the class in its record; inside of it, our wrapper reports which object steps
        if not is_hooked and not getattr(kind.step, "hooked", None):
            kind.step = native.around(kind.step, is_optimizer=True)

    return make
