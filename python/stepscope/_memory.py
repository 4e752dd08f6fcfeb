# SPDX-License-Identifier: Apache-2.0
"""Tells the recorder who holds which memory: parameters, buffers, gradients, the states of optimizers. Only addresses go there; no
tensor is kept, and a module's end is not delayed.

It looks behind the call of an optimizer: on the first steps, the first of a later window, or when it has another state, other groups of
parameters or other parameters in them, at everything, then at gradients, which are often made anew, and at the rest when its number changed or from time to time. Where
those looks have taken FIRST_NS together, all looking takes at most SHARE of the time. What was not looked at is inferred when the recording is read. So it does at what the program calls its models with, and at the
data sets of its loaders.

No code of the program runs because of that: what may be of a class of its own is read by way of PyTorch's and Python's classes, no attribute
is asked for that a class may compute, and no operator is seen by a mode or a profiler.
"""
import atexit
import contextlib
import sys
import time
import weakref
from array import array
from itertools import islice
from importlib import import_module
from types import MemberDescriptorType

from stepscope import _loader, _modules
from stepscope._unseen import hook
from stepscope._weights import Weights

PARAMETER, GRADIENT, STATE, INPUT, BUFFER = 1, 2, 3, 5, 8  # enum stepscope_memory
FIRST_LOOKS = 3       # at each optimizer
FIRST_NS = 50_000_000  # that all of those may take together
FULL_EVERY = 16
FIRST_CALLS = 8      # of models, in all
MOST_GROUPS = 16     # of an optimizer, whose first and last parameters are known again at each step
MOST_INPUTS = 256    # in each list: those that are like them are inferred
SHARE = 1 / 4000

_seen = weakref.WeakValueDictionary()  # modules, by id: when they got what they have, or as copies
_is_watching = False


class Tensors:
    """PyTorch's own ways to look at a tensor."""

    def __init__(self, torch, native):
        self.kind = kind = torch.Tensor
        self.storage = getattr(kind, "untyped_storage", None) or kind._storage
        self.address = getattr(torch._C, "_data_address", None) or (lambda tensor: self.storage(tensor).data_ptr())
        self.is_sparse, self.is_leaf, self.gradient = kind.is_sparse.__get__, kind.is_leaf.__get__, kind.grad.__get__
        self.is_trained, self.dataset = kind.requires_grad.__get__, torch.utils.data.Dataset
        self.read_version, self.read_shape = kind._version.__get__, kind.shape.__get__
        self.make_records = native.torch_make_records
        self.outside_modes = import_module("torch.utils._mode_utils").no_dispatch

    def place(self, tensor):
        """Device, address and bytes of its memory; address 0: it has none of its own. Asking the storage for its address would give one that
        is shared until somebody writes to it memory of its own."""
        try:
            storage = self.storage(tensor)
            device = storage.device.index
            return -1 if device is None else device, self.address(tensor), storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return -1, 0, 0

    def within(self, value, most=None, depth=3):
        """All in a value, whatever it looks like; at most so many parts of each list."""
        kind = type(value)
        if issubclass(kind, self.kind):
            yield value
        elif depth and issubclass(kind, (dict, list, tuple, self.dataset)):
            for part in list(islice(_values(kind, value), most)):
                yield from self.within(part, most, depth - 1)

    def has_own_memory(self, tensor):
        """From PyTorch's allocator, not NumPy's or another process's: the end of that is not seen."""
        storage = self.storage(tensor)
        return getattr(storage, "resizable", bool)() and not storage.is_shared()  # 1.13 does not tell

    def gradient_of(self, tensor):
        return self.gradient(tensor) if self.is_leaf(tensor) else None

    def is_plain(self, tensor):
        """Has it nothing to do with gradients?"""
        return self.is_leaf(tensor) and not self.is_trained(tensor)

    def version(self, tensor):
        """How often it was written to; None: PyTorch does not count that (inference mode)."""
        try:
            return self.read_version(tensor)
        except RuntimeError:
            return None

    def shape(self, tensor):
        try:
            return tuple(self.read_shape(tensor))
        except RuntimeError:  # of a nested one
            return None

    def parts(self, tensor):
        """What one without memory of its own consists of."""
        if self.is_sparse(tensor):
            return self.parts_of_sparse(tensor)
        kinds = type(tensor).__mro__[:type(tensor).__mro__.index(self.kind)]
        if not any("__torch_dispatch__" in vars(kind) for kind in kinds):
            return ()
        slots = [slot for kind in kinds for slot in vars(kind).values() if type(slot) is MemberDescriptorType]
        held = *object.__getattribute__(tensor, "__dict__").values(), *(_in_slot(slot, tensor) for slot in slots)
        return [part for part in held if issubclass(type(part), self.kind)]

    def parts_of_sparse(self, tensor):
        """By two operators: there is no other way."""
        was_on = self.make_records(False)
        if was_on is None:
            return ()
        try:
            with self.outside_modes():
                return self.kind._indices(tensor), self.kind._values(tensor)
        finally:
            self.make_records(was_on)


def _values(kind, value):
    if issubclass(kind, dict):
        return dict.values(value)
    if issubclass(kind, (list, tuple)):
        return list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
    return object.__getattribute__(value, "__dict__").values()


def _in_slot(slot, value):
    try:
        return slot.__get__(value)
    except AttributeError:
        return None


class Owners:
    """What is told at one moment: words of three, memory id, address, bytes."""

    def __init__(self, tensors):
        self.words = array("Q")
        self.seen = set()  # ids of parameters and buffers
        self.tensors = tensors

    def add(self, tensor, category, depth=3):
        device, address, size = self.tensors.place(tensor)
        if address:
            self.words.extend((category | device + 1 << 8, address, size))
            return
        for part in self.tensors.parts(tensor) if depth else ():
            self.add(part, category, depth - 1)

    def add_all(self, value, category):
        """The tensors in an optimizer's state of one parameter, whatever it looks like."""
        for tensor in self.tensors.within(value):
            self.add(tensor, category)

    def add_inputs(self, value):
        """What is known of only because of this must be PyTorch's own: it gets no size otherwise."""
        for tensor in self.tensors.within(value, MOST_INPUTS):
            if self.tensors.is_plain(tensor):
                device, address, size = self.tensors.place(tensor)
                if address:
                    self.words.extend((INPUT | device + 1 << 8, address, size if self.tensors.has_own_memory(tensor) else 0))

    def add_datasets(self):
        for loop in _loader.loops():
            self.add_inputs(loop._dataset)

    def add_modules(self):
        """Those that were seen when they got what they have, and all of each model that was called."""
        found = {}
        for module in (*_seen.values(), *_modules.called()):
            _modules.gather(module, found)
        for module in found.values():
            self.add_module(module)
        return found.values()

    def add_module(self, module):
        """What it has itself."""
        for tensor in module._parameters.values():
            if tensor is not None:
                self.add_parameter(tensor)
        for tensor in module._buffers.values():
            if tensor is not None and self.is_first(tensor):
                self.add(tensor, BUFFER)

    def add_parameter(self, parameter):
        """And its gradient, which need not be an optimizer's: of weights of which it has a copy in another precision."""
        if self.is_first(parameter):
            self.add(parameter, PARAMETER)
            self.add_gradient(parameter)

    def add_gradient(self, parameter):
        gradient = self.tensors.gradient_of(parameter)
        if gradient is not None:
            self.add(gradient, GRADIENT)

    def is_first(self, tensor):
        is_first = id(tensor) not in self.seen
        self.seen.add(id(tensor))
        return is_first


class Watch:
    """When to look, and what at."""

    def __init__(self, torch, native):
        self.torch = torch
        self.native = native
        self.tensors = Tensors(torch, native)
        # 1.13's DisableTorchFunction leaves the program's modes on
        self.without_modes = getattr(torch.overrides, "_no_torch_function_mode", contextlib.nullcontext)
        self.looks = {}  # by id of the optimizer: how many, and what there was to see
        self.window, self.rotations = 0, 0  # of the recording, that those were in
        self.look_count, self.call_count = 0, 0
        self.spent_ns, self.spent_before_ns, self.next_ns = 0, 0, 0  # spent: of CPU time
        self.is_on = True

    def tell(self, collect):
        """Calls collect(owners) when memory is recorded and hands over what it found. Nothing gets out of here."""
        if not self.is_on or not self.native.torch_wants_owners():
            return
        start = time.thread_time_ns()
        try:
            owners = Owners(self.tensors)
            with self.torch._C.DisableTorchFunction(), self.without_modes():
                collect(owners)
            self.native.torch_owners(owners.words.tobytes())
        except Exception as problem:  # of a kind of tensor or module we do not know
            self.give_up(problem)
        self.spent_ns += time.thread_time_ns() - start

    def after(self, spent_ns, share):
        """When to look again, if a look that has just ended began with so much spent."""
        return time.perf_counter_ns() + int((self.spent_ns - spent_ns) / share)

    def give_up(self, problem):
        self.is_on = False
        self.native.metadata("torch.owners", f"not any more: {type(problem).__name__}: {problem}"[:500])

    def after_step(self, optimizer):
        try:
            self.look_behind_step(optimizer)
        except Exception as problem:  # an optimizer of a kind we do not know
            self.give_up(problem)

    def look_behind_step(self, optimizer):
        window = self.native.torch_wants_owners()
        if not window:
            return
        rotations = self.native.torch_rotations()
        if (window, rotations) != (self.window, self.rotations):  # the next one is at everything
            if window != self.window:
                self.spent_before_ns, self.next_ns = self.spent_ns, 0
            self.window, self.rotations = window, rotations
            self.looks = dict.fromkeys(self.looks, (FIRST_LOOKS - 1, None, None))
        start = time.perf_counter_ns()
        looks, parts_before, before = self.looks.get(id(optimizer), (0, None, None))
        parts = _parts(optimizer)
        if parts != parts_before:
            looks = min(looks, FIRST_LOOKS - 1)
        if start < self.next_ns and (looks >= FIRST_LOOKS or self.spent_ns - self.spent_before_ns > FIRST_NS):
            return
        count = sum(len(group["params"]) for group in optimizer.param_groups), len(optimizer.state), len(_seen), len(_modules.roots)
        is_full = looks % FULL_EVERY < FIRST_LOOKS or before != count
        self.looks[id(optimizer)] = looks + 1, parts, count
        self.look_count += 1
        spent_ns = self.spent_ns
        self.tell(lambda owners: self.look(owners, optimizer, is_full))
        self.next_ns = self.after(spent_ns, SHARE)

    def at_call(self, arguments):
        """Of a model, by the program."""
        spent_ns = self.spent_ns
        self.call_count += 1
        self.tell(lambda owners: (owners.add_inputs(arguments), owners.add_datasets()))
        is_first = self.call_count < FIRST_CALLS and self.spent_ns < FIRST_NS
        self.native.watch_arguments(self.at_call, time.perf_counter_ns() if is_first else self.after(spent_ns, SHARE))

    def finish(self):
        """A last time, for models that no optimizer has; and what it all took."""
        self.tell(Owners.add_modules)
        if self.is_on:
            self.native.metadata("torch.owners", f"yes: {self.look_count} looks at optimizers, {self.spent_ns / 1e6:.1f} ms in all")

    def look(self, owners, optimizer, is_full):
        if is_full:
            owners.add_modules()
        add = owners.add_parameter if is_full else owners.add_gradient
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                add(parameter)
        if is_full:
            for state in list(optimizer.state.values()):
                owners.add_all(state, STATE)


def _parts(optimizer):
    """Other ones when it was given a state (`load_state_dict`), groups (`add_param_group`), or tensors in the place of others, as where points are
    added to a scene. Asked at each step, so nothing is counted. The next look by time sees the rest: a tensor in the middle of a group, or one
    that lies where the one before it was."""
    own = vars(optimizer)
    state, groups = own.get("state", ()), own.get("param_groups", ())
    ends = [id(tensor) for group in groups[:MOST_GROUPS] for tensor in (*group["params"][:1], *group["params"][-1:])]
    return id(state), len(state), id(groups), len(groups), ends


def watch(torch, native):
    """Once somebody wants the memory of this program."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    watching = Watch(torch, native)
    module = sys.modules["torch.nn.modules.module"]
    for kind, category in (("parameter", PARAMETER), ("buffer", BUFFER)):
        register = getattr(module, f"register_module_{kind}_registration_hook", None)  # 2.0
        if register is not None:
            register(hook(native, _registration(watching, category)))
    _modules.on_copy.append(_copy(watching))
    after_each_step(torch, native, watching.after_step)
    native.watch_arguments(watching.at_call, 0)
    Weights(native, watching)
    atexit.register(watching.finish)


def _registration(watching, category):
    """A model that is never trained has parameters, too."""

    def note(module, name, tensor):
        _seen[id(module)] = module
        if tensor is not None and watching.is_on:
            watching.tell(lambda owners: owners.add(tensor, category))

    return note


def _copy(watching):
    """Of a model: an average of weights, a teacher, one that was loaded."""

    def note(module):
        if "_parameters" in vars(module) and "_buffers" in vars(module):  # else it is of another kind, or not whole
            _seen[id(module)] = module
            if watching.is_on:
                watching.tell(lambda owners: owners.add_module(module))

    return note


def after_each_step(torch, native, call):
    """Calls call(optimizer) behind each call of an optimizer, within the record of it."""
    register = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", None)  # 2.0
    code = getattr(torch.optim.Optimizer, "_optimizer_step_code", None)
    if register is not None:
        register(hook(native, lambda optimizer, args, kwargs: call(optimizer)))
    elif code is not None:  # 1.13 calls it behind each step, and it does nothing
        torch.optim.Optimizer._optimizer_step_code = native.around(code, before=call)
