# SPDX-License-Identifier: Apache-2.0
"""Tells the recorder who holds which memory: parameters, buffers, gradients, the states of optimizers. Only addresses go there; no
tensor is kept, and a module's end is not delayed.

It looks behind the call of an optimizer: on the first steps, or the first of a later window, at everything, then at gradients, which are
often made anew, and at the rest when its number changed or from time to time. After the first steps all looking together takes at most
SHARE of the time. What was not looked at is inferred when the recording is read.
"""
import atexit
import contextlib
import sys
import time
import weakref
from array import array

from stepscope._modules import _roots

PARAMETER, GRADIENT, STATE, BUFFER = 1, 2, 3, 8  # enum stepscope_memory
FIRST_LOOKS = 3       # at each optimizer
FIRST_NS = 50_000_000  # that all of those may take together
FULL_EVERY = 16
SHARE = 1 / 4000

_modules = weakref.WeakValueDictionary()  # by id
_is_watching = False


class Owners:
    """What is told at one moment: words of three, memory id, address, bytes."""

    def __init__(self, torch):
        self.words = array("Q")
        self.seen = set()  # ids of tensors of modules
        self.storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
        self.tensor_type = torch.Tensor

    def add(self, tensor, category):
        try:
            storage = self.storage_of(tensor)
            address = storage.data_ptr()
        except (RuntimeError, NotImplementedError):  # without memory of its own
            address = 0
        if address:
            self.words.extend((category | tensor.get_device() + 1 << 8, address, storage.nbytes()))
            return
        inner = getattr(tensor, "_local_tensor", None)  # of a DTensor
        parts = (inner,) if inner is not None else (tensor._indices(), tensor._values()) if tensor.is_sparse else ()
        for part in parts:
            self.add(part, category)

    def add_all(self, value, category, depth=3):
        """The tensors in an optimizer's state of one parameter, whatever it looks like."""
        if isinstance(value, self.tensor_type):
            self.add(value, category)
        elif isinstance(value, dict) and depth:
            for part in value.values():
                self.add_all(part, category, depth - 1)
        elif isinstance(value, (list, tuple)) and depth:
            for part in value:
                self.add_all(part, category, depth - 1)

    def add_modules(self):
        """Those that were seen when they got what they have, and all of each model that was called."""
        models = [root() for _, root, _ in _roots]
        for module in (*_modules.values(), *(part for model in models if model is not None for part in model.modules())):
            for kept, category in ((module._parameters, PARAMETER), (module._buffers, BUFFER)):
                for tensor in kept.values():
                    if tensor is not None and id(tensor) not in self.seen:
                        self.seen.add(id(tensor))
                        self.add(tensor, category)


class Watch:
    """When to look, and what at."""

    def __init__(self, torch, native):
        self.torch = torch
        self.native = native
        # 1.13's DisableTorchFunction leaves the program's modes on
        self.without_modes = getattr(torch.overrides, "_no_torch_function_mode", contextlib.nullcontext)
        self.looks = {}  # by id of the optimizer: how many, and what there was to see
        self.window = 0  # of the recording, that those were in
        self.look_count = 0
        self.spent_ns, self.spent_before_ns, self.next_ns = 0, 0, 0
        self.is_on = True

    def tell(self, collect):
        """Calls collect(owners) when memory is recorded and hands over what it found. Nothing gets out of here."""
        if not self.is_on or not self.native.torch_wants_owners():
            return
        start = time.perf_counter_ns()
        try:
            owners = Owners(self.torch)
            with self.torch._C.DisableTorchFunction(), self.without_modes():
                collect(owners)
            self.native.torch_owners(owners.words.tobytes())
        except Exception as problem:  # of a kind of tensor or module we do not know
            self.is_on = False
            self.native.metadata("torch.owners", f"not any more: {type(problem).__name__}: {problem}"[:500])
        self.spent_ns += time.perf_counter_ns() - start

    def after_step(self, optimizer):
        try:
            self.look_behind_step(optimizer)
        except Exception as problem:  # an optimizer of a kind we do not know
            self.is_on = False
            self.native.metadata("torch.owners", f"not any more: {type(problem).__name__}: {problem}"[:500])

    def look_behind_step(self, optimizer):
        window = self.native.torch_wants_owners()
        if not window:
            return
        if window != self.window:  # each begins with one look at everything
            self.window, self.spent_before_ns, self.next_ns = window, self.spent_ns, 0
            self.looks = dict.fromkeys(self.looks, (FIRST_LOOKS - 1, None))
        start = time.perf_counter_ns()
        looks, before = self.looks.get(id(optimizer), (0, None))
        if start < self.next_ns and (looks >= FIRST_LOOKS or self.spent_ns - self.spent_before_ns > FIRST_NS):
            return
        count = sum(len(group["params"]) for group in optimizer.param_groups), len(optimizer.state), len(_modules), len(_roots)
        is_full = looks % FULL_EVERY < FIRST_LOOKS or before != count
        self.looks[id(optimizer)] = looks + 1, count
        self.look_count += 1
        self.tell(lambda owners: self.look(owners, optimizer, is_full))
        end = time.perf_counter_ns()
        self.next_ns = end + int((end - start) / SHARE)

    def finish(self):
        """A last time, for models that no optimizer has; and what it all took."""
        self.tell(Owners.add_modules)
        if self.is_on:
            self.native.metadata("torch.owners", f"yes: {self.look_count} looks at optimizers, {self.spent_ns / 1e6:.1f} ms in all")

    @staticmethod
    def look(owners, optimizer, is_full):
        if is_full:
            owners.add_modules()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if is_full and id(parameter) not in owners.seen:
                    owners.add(parameter, PARAMETER)
                gradient = parameter.grad if parameter.is_leaf else None
                if gradient is not None:
                    owners.add(gradient, GRADIENT)
        if is_full:
            for state in list(optimizer.state.values()):
                owners.add_all(state, STATE)


def watch(torch, native):
    """Once somebody wants the memory of this program."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    watching = Watch(torch, native)
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
    module = sys.modules["torch.nn.modules.module"]
    for kind, category in (("parameter", PARAMETER), ("buffer", BUFFER)):
        register = getattr(module, f"register_module_{kind}_registration_hook", None)  # 2.0
        if register is not None:
            register(_registration(watching, category, is_compiling))
    after_each_step(torch, watching.after_step, is_compiling)
    atexit.register(watching.finish)


def _registration(watching, category, is_compiling):
    """A model that is never trained has parameters, too."""

    def note(module, name, tensor):
        if is_compiling():
            return
        _modules[id(module)] = module
        if tensor is not None and watching.is_on:
            watching.tell(lambda owners: owners.add(tensor, category))

    return note


def after_each_step(torch, call, is_compiling):
    """Calls call(optimizer) behind each call of an optimizer, within the record of it."""
    register = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", None)  # 2.0
    if register is not None:
        register(lambda optimizer, args, kwargs: None if is_compiling() else call(optimizer))
        return

    def _optimizer_step_code(self):
        """1.13 calls it behind each step and does nothing there; torch.profiler looks for the name `self` in it."""
        call(self)

    if hasattr(torch.optim.Optimizer, "_optimizer_step_code"):
        torch.optim.Optimizer._optimizer_step_code = _optimizer_step_code
