# SPDX-License-Identifier: Apache-2.0
"""Attaches the agent in C to PyTorch: runs the operators that the agent learns from, then starts it."""
import _thread
import contextlib
import os
import sys
import warnings

import stepscope
from stepscope import _facts

_LAUNCHERS = ("torchrun", "accelerate", "accelerate-launch", "deepspeed")
_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
                     "accelerate.commands.accelerate_cli", "deepspeed.launcher.runner", "deepspeed.launcher.launch")
# The parts of PyTorch's own work per record that the agent shortens, by PyTorch version: only versions that
# tests/torch/test_lean.py runs with (tools/torch-versions.txt lists the wheels). The agent still proves each part.
_LEAN_PARTS = "tls,engine,object"
_LEAN_DEFAULTS = {"2.3": "tls", "2.6": "tls", **dict.fromkeys(("2.9", "2.11", "2.13", "2.14"), _LEAN_PARTS)}
_is_attached = False
native = None  # the extension, after attach()


def attach():
    """Attaches the agent, once per process, after `import torch`."""
    global _is_attached, native
    if _is_attached or _is_launcher():
        return
    _is_attached = True
    if stepscope.unavailable:
        raise RuntimeError(stepscope.unavailable)
    from stepscope import _native as native

    torch = sys.modules["torch"]
    set_compiler = getattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "set_eval_frame", None)
    if set_compiler is not None:  # 2.0
        native.leave_uncompiled(set_compiler)
    native.unseen(_attach)(torch)
    from stepscope import _end

    _end.watch(native)


def _attach(torch):
    if not native.torch_find():
        raise RuntimeError(native.torch_problem())
    native.torch_want_lean(_lean_parts(torch).encode())
    _calibrate(torch)
    if native.torch_lines_find():
        from stepscope import _lines

        _lines.check(native)
    from stepscope import _calls, _modules

    _facts.keep("torch.modules", _modules.watch(torch, native))
    _facts.keep("torch.calls", _calls.watch(torch, native))
    tell()
    from stepscope import _loader, _optimizers, _ranks, _waits

    _optimizers.watch(native)
    _watch(_loader, torch)
    _watch(_ranks, torch)
    _watch(_waits, torch)
    if native.torch_may_want_owners():  # otherwise _memory is not even imported
        want_memory()


def _is_first():
    """Returns true in the first of the processes that one launch starts.

    Other ranks and spawned workers would repeat its message.
    """
    parent = getattr(sys.modules.get("multiprocessing"), "parent_process", lambda: None)
    return os.environ.get("LOCAL_RANK", "0") == "0" and parent() is None


def _lean_parts(torch):
    """Returns the parts of PyTorch's work to shorten, or the reason why there are none."""
    wanted = os.environ.get("STEPSCOPE_LEAN")
    unknown = set((wanted or "none").split(",")) - {*_LEAN_PARTS.split(","), "get", "none"}  # `get` is accepted and has no effect
    if unknown and _is_first():
        print(f"stepscope: STEPSCOPE_LEAN must be of {_LEAN_PARTS} or none, got '{sorted(unknown)[0]}'; the value is ignored", file=sys.stderr)
    if wanted and not unknown:
        return wanted
    version = ".".join(str(torch.__version__).split(".")[:2])
    machine = os.uname().machine
    parts = _LEAN_DEFAULTS.get(version) if machine == "x86_64" else None
    return parts or f"none: PyTorch {version} for {machine} was not tried"


def want_memory():
    """Starts looking for the owners of memory: it is recorded, or will be."""
    if native is not None:
        from stepscope import _memory

        _memory.watch(sys.modules["torch"], native)


def _watch(part, torch):
    """Starts a part of the agent. If this PyTorch differs too much, the recording contains the reason instead."""
    try:
        part.watch(torch, native)
    except (AttributeError, ImportError) as problem:
        native.metadata(f"torch.{part.__name__.rpartition('._')[2]}", f"not in this PyTorch: {problem}")


def tell():
    """Starts the observer and records the facts about it; called for each recording that starts."""
    if native is not None:
        native.metadata("torch.version", str(sys.modules["torch"].__version__))
        _facts.tell_all(native)
        native.torch_start()
        _settle(sys.modules["torch"])


def _settle(torch):
    """Runs one operator, so that the lock it takes is not held during a fork.

    The first operator of a thread after the start of the observer takes a lock of PyTorch.
    """
    try:
        torch.empty(0, device="cpu")
    finally:
        native.torch_settled()


def _is_launcher():
    """Returns true if this program only starts the ranks: a recording would show it as one of them."""
    arguments = getattr(sys, "orig_argv", None)  # Python 3.10; during `-m MODULE`, sys.argv does not name the module yet
    if arguments is None:
        with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as line:
            arguments = line.read().split("\0")
    module = arguments[arguments.index("-m") + 1 :][:1] if "-m" in arguments else []
    return os.path.basename(sys.argv[0]) in _LAUNCHERS or bool(module) and module[0] in _LAUNCHER_MODULES


PLAIN, META, FOREIGN, WRAPPER, SUBCLASS = range(5)
INT, DOUBLE, BOOL = range(3)
_NUMBERS = {"uint8": 0, "int64": 4, "float32": 6, "float64": 7, "complex64": 9, "quint8": 13, "bfloat16": 15}  # of element types, the same in all versions
_NAMES = {"int64": "long int", "float32": "float", "complex64": "c10::complex<float>", "quint8": "c10::quint8", "bfloat16": "c10::BFloat16"}


def _type(tensor):
    return str(tensor.dtype)[len("torch."):]


def _strides(tensor):
    return list(tensor.stride()) if str(tensor.layout) == "torch.strided" else []


def _show_tensor(tensor, kind):
    native.torch_probe_tensor(tensor._cdata, kind, _NUMBERS[_type(tensor)], (*tensor.shape, *(_strides(tensor) or [0] * tensor.dim())))


def _text(inputs):
    """Returns the text of inputs, as in docs/file-format.md. An input is a tensor or a pair of type and value."""
    tensors = [isinstance(value, tuple) and (None, *value) or (value, _NAMES[_type(value)], "") for value in inputs]
    sizes = " ".join(str(list(tensor.shape) if tensor is not None else []) for tensor, _, _ in tensors)
    strides = " ".join(str(_strides(tensor) if tensor is not None else []) for tensor, _, _ in tensors)
    types, values = (";".join(each[at] for each in tensors) for at in (1, 2))
    return f"{sizes}\nt {types}\ns {strides}\nv {values}"


@contextlib.contextmanager
def _without_warnings(torch):
    """Suppresses PyTorch's warnings here, and leaves them to the program.

    PyTorch warns once about some kinds of tensors, where the program creates the first one. This does not use
    warnings.catch_warnings(), which makes Python forget the warnings it has shown.
    """
    was_always, ignored = torch.is_warn_always_enabled(), ("ignore", None, UserWarning, None, 0)
    warnings.filters.insert(0, ignored)
    torch._C._set_warnAlways(True)
    try:
        yield
    finally:
        torch._C._set_warnAlways(was_always)
        warnings.filters.remove(ignored)


def _others(torch):
    """Yields one tensor of each kind that is not plain and has sizes, if this PyTorch has the kind.

    They have no values: to convert a dense tensor, or to compute with values, takes half a millisecond the first time.
    """
    with _without_warnings(torch):
        for make in (lambda: torch.empty((4, 6), dtype=torch.float32, layout=torch.sparse_coo, device="cpu"),
                     lambda: torch.empty((6, 4), dtype=torch.float32, layout=torch.sparse_csr, device="cpu"),
                     lambda: torch.empty((5, 2, 3), dtype=torch.float32, layout=torch._mkldnn, device="cpu"),
                     lambda: torch._empty_affine_quantized((2, 7, 3), scale=1.0, zero_point=0, dtype=torch.quint8, device="cpu")):
            try:
                yield make()
            except (AttributeError, RuntimeError):
                pass


def _calibrate_inputs(torch):
    """Shows the agent tensors of known sizes, types and kinds, and operators with two of them, then scalars.

    Other operators then check the result.
    """

    def make(sizes, dtype=torch.float32):
        return torch.ones(sizes, dtype=dtype, device="cpu")

    x, y, z = make((3, 5, 7)), make((3, 5, 7)), make((3, 5, 7))
    others = [make((11,)), make((2, 3, 4, 6), torch.int64), make((13, 9), torch.bfloat16).t(), make((2, 2, 3, 5, 7)),
              make((4, 3), torch.uint8), make((3, 4), torch.float64)]
    for tensor in (x, y, *others):
        _show_tensor(tensor, PLAIN)
    foreign = (torch.conj(make((4, 6), torch.complex64)), *_others(torch))
    # empty(): PyTorch 2.5 fills such a tensor in Python and imports sympy for that, which takes 0.3 s
    _show_tensor(torch.empty((3, 5, 7), dtype=torch.float32, device="meta"), META)
    for tensor in foreign:
        _show_tensor(tensor, FOREIGN)
    _show_wrapped(torch, make)
    _show_subclasses(torch)
    for first, second in ((x, y), (y, z), (z, x)):
        native.torch_probe_inputs(first._cdata, second._cdata)
        torch.mul(first, second)
        torch.cat([first, second])
    if not native.torch_probe_solve():
        return
    for kind, bits, operate in ((INT, 3, lambda: torch.sub(x, y, alpha=3)), (INT, 77, lambda: torch.sub(x, y, alpha=77)),
                                (DOUBLE, 0x4004000000000000, lambda: torch.sub(x, y, alpha=2.5)),
                                (DOUBLE, 0x3FB999999999999A, lambda: torch.sub(x, y, alpha=0.1)),
                                (BOOL, 1, lambda: torch.sum(x, [1], True)), (BOOL, 0, lambda: torch.sum(x, [1], False))):
        native.torch_probe_value(kind, bits)
        operate()
    native.torch_probe_solve()
    _check_inputs(torch, others[0], make((1, 2, 1, 3, 1, 2, 1)), foreign)


def _show_subclasses(torch):
    """Shows the agent tensors of a Python class that computes nothing, its strides, or its sizes.

    No operator may see them: the first operator with such a class makes PyTorch 2.13 import sympy, which takes 0.3 s.
    """

    class Subclass(torch.Tensor):
        __torch_dispatch__ = None

    sizes, strides = (4, 2, 6), (12, 6, 1)
    for kind, policy in (*enumerate((None, "strides", "sizes"), SUBCLASS),) * 3:  # three each: bytes in and after one tensor may match by chance
        try:
            tensor = torch.Tensor._make_wrapper_subclass(Subclass, sizes, strides=strides, dtype=torch.float32, device="cpu",
                                                         dispatch_sizes_strides_policy=policy)
        except (AttributeError, RuntimeError, TypeError):  # this PyTorch creates them in another way
            return
        native.torch_probe_tensor(tensor._cdata, kind, _NUMBERS["float32"], (*sizes, *strides))


def _show_wrapped(torch, make):
    """Shows the agent the zero tensor that jvp uses for a tangent of 0, and the wrappers of grad and vmap.

    Each wrapper needs an open level; the level surrounds no function.
    """
    plain, batch = make((4, 2)), make((3, 5, 7))
    if hasattr(torch, "_efficientzerotensor"):
        _show_tensor(torch._efficientzerotensor((2, 6), dtype=torch.float32, device="cpu"), FOREIGN)
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is None:  # before 2.0
        return
    level = functorch._grad_increment_nesting()
    try:
        _show_tensor(functorch._wrap_for_grad(plain, level), WRAPPER)
    finally:
        functorch._grad_decrement_nesting()
    level = functorch._vmap_increment_nesting(3, "error")
    try:
        _show_tensor(functorch._add_batch_dim(batch, 0, level), WRAPPER)
    finally:
        functorch._vmap_decrement_nesting()


def _check_inputs(torch, line, deep, foreign):
    scalar, shifted, none = torch.ones((), dtype=torch.int64, device="cpu"), deep.transpose(1, 3), ("", "")
    for operate, text in ((lambda: torch.neg(deep), _text([deep])),
                          (lambda: torch.neg(shifted), _text([shifted])),
                          (lambda: torch.mul(line, scalar), _text([line, scalar])),
                          *((lambda tensor=tensor: torch.is_same_size(tensor, tensor), _text([tensor] * 2)) for tensor in foreign),
                          (lambda: torch.sub(line, line, alpha=-0.3), _text([line, line, ("Scalar", "-0.29999999999999999")])),
                          (lambda: torch.sum(deep, [1, 3], True),
                           _text([deep, ("ScalarList", "[1, 3]"), ("Scalar", "True"), none])),
                          (lambda: torch.narrow(deep, -1, 0, 1), _text([deep, *(("Scalar", value) for value in ("-1", "0", "1"))])),
                          (lambda: torch.stack([line, line], 1),
                           "[[11], [11]] []\nt TensorList;Scalar\ns [[1], [1]] []\nv ;1")):
        operate()
        if not native.torch_probe_check(text):
            return


def _calibrate(torch):
    """Runs a few adds with gradients, in this thread and in another one; see src/agents/torch/layout.h.

    This thread runs all their backwards. All arguments are explicit, so that no default of the program changes them.

    The other thread runs only adds: this thread holds the lock of `import torch`, so an import there would wait for it.
    That thread is not from `threading`. Such a thread would take a number that the program's threads show in
    tracebacks, and would run the functions that the program sets for each of its threads.
    """
    if not native.torch_probe_begin():
        return
    try:
        with torch.inference_mode(False), torch.enable_grad():
            # tensors without dimensions: a backward with a given gradient makes PyTorch 2 import sympy, 0.3 s
            x, w = (torch.ones((), device="cpu", dtype=torch.float32, requires_grad=True) for _ in range(2))
            add, sums = torch.add, []
            running = _thread.allocate_lock()
            running.acquire()

            def run_adds():
                try:
                    sums.extend(add(x, w) for _ in range(3))
                finally:
                    running.release()

            _thread.start_new_thread(native.unseen(run_adds), ())
            running.acquire(timeout=1)
            for result in sums:
                result.backward()
            for _ in range(3):
                add(x, w).backward()
        with torch.inference_mode(False), torch.no_grad():
            try:
                _calibrate_inputs(torch)
            except Exception:  # an operator differs in this PyTorch
                native.torch_probe_check("?")
    finally:
        native.torch_probe_end()


def tell_cost(spent_ns):
    """Records the CPU time that the start took in its thread."""
    if native is not None:
        native.metadata("torch.start_ms", f"{spent_ns / 1e6:.3f}")
