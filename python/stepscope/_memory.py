# SPDX-License-Identifier: Apache-2.0
"""Tells the recorder which memory holds parameters, buffers, gradients and optimizer states. It passes only addresses.
It keeps no tensor alive and does not delay the end of a module.

It looks after each call of an optimizer. A full look covers everything. It comes on the first steps, on the first step
of a later window, and if the optimizer has another state, other groups or other parameters in them. It also comes if
the number of parameters, states or modules changes, and from time to time. The other looks cover only gradients, which
programs often create again.

After FIRST_LOOKS looks, or FIRST_NS for all of them, looking takes at most SHARE of the time. The reader infers the
remaining owners from the recording. The arguments of model calls and the data sets of loaders are treated the same way.

No code of the program runs because of this. Objects that may have a class of the program are read through the classes
of PyTorch and Python. No attribute is read that a class may compute, and no mode or profiler sees an operator.
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
FIRST_LOOKS = 3       # full looks at each optimizer
FIRST_NS = 50_000_000  # limit for all first looks together
FULL_EVERY = 16
FIRST_CALLS = 8      # of models, in total
MOST_GROUPS = 16     # of an optimizer: each step compares their first and last parameters
MOST_INPUTS = 256    # in each list; the reader infers similar ones
SHARE = 1 / 4000

_seen = weakref.WeakValueDictionary()  # id -> module that registered a parameter or buffer, or was copied
_is_watching = False


class Tensors:
    """Reads tensors with PyTorch's own functions."""

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
        """Returns device (-1 for the CPU), address and bytes of the memory of a tensor.

        The address is 0 if it has no memory. Asking a copy-on-write storage for its address would make the copy.
        """
        try:
            storage = self.storage(tensor)
            device = storage.device.index
            return -1 if device is None else device, self.address(tensor), storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return -1, 0, 0

    def within(self, value, most=None, depth=3):
        """Yields the tensors nested in any value, looking at no more than `most` items of each collection."""
        kind = type(value)
        if issubclass(kind, self.kind):
            yield value
        elif depth and issubclass(kind, (dict, list, tuple, self.dataset)):
            for part in list(islice(_values(kind, value), most)):
                yield from self.within(part, most, depth - 1)

    def has_own_memory(self, tensor):
        """Returns true if the memory comes from PyTorch's allocator.

        The recorder does not see the release of memory from NumPy or another process.
        """
        storage = self.storage(tensor)
        return getattr(storage, "resizable", bool)() and not storage.is_shared()  # 1.13 has no resizable(): false

    def gradient_of(self, tensor):
        return self.gradient(tensor) if self.is_leaf(tensor) else None

    def is_plain(self, tensor):
        """Returns true if the tensor takes no part in computing gradients."""
        return self.is_leaf(tensor) and not self.is_trained(tensor)

    def version(self, tensor):
        """Returns the number of writes to the tensor, or None if PyTorch does not count them (inference mode)."""
        try:
            return self.read_version(tensor)
        except RuntimeError:
            return None

    def shape(self, tensor):
        try:
            return tuple(self.read_shape(tensor))
        except RuntimeError:  # a nested tensor
            return None

    def parts(self, tensor):
        """Returns the tensors that a tensor without own memory consists of."""
        if self.is_sparse(tensor):
            return self.parts_of_sparse(tensor)
        kinds = type(tensor).__mro__[:type(tensor).__mro__.index(self.kind)]
        if not any("__torch_dispatch__" in vars(kind) for kind in kinds):
            return ()
        slots = [slot for kind in kinds for slot in vars(kind).values() if type(slot) is MemberDescriptorType]
        held = *object.__getattribute__(tensor, "__dict__").values(), *(_in_slot(slot, tensor) for slot in slots)
        return [part for part in held if issubclass(type(part), self.kind)]

    def parts_of_sparse(self, tensor):
        """Returns indices and values. Only two operators can read them; they are not recorded."""
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
    """The owners found in one look: triples of memory id, address and bytes."""

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
        """Adds all tensors in an optimizer's state of one parameter, which may be any value."""
        for tensor in self.tensors.within(value):
            self.add(tensor, category)

    def add_inputs(self, value):
        """Adds the tensors in model arguments or a data set.

        Only memory from PyTorch's allocator gets its size. Readers count sized memory even if it was allocated before
        the recording, so its release must be visible, too.
        """
        for tensor in self.tensors.within(value, MOST_INPUTS):
            if self.tensors.is_plain(tensor):
                device, address, size = self.tensors.place(tensor)
                if address:
                    self.words.extend((INPUT | device + 1 << 8, address, size if self.tensors.has_own_memory(tensor) else 0))

    def add_datasets(self):
        for loop in _loader.loops():
            self.add_inputs(loop._dataset)

    def add_modules(self):
        """Adds the modules in _seen and all modules of each called model. Returns these modules."""
        found = {}
        for module in (*_seen.values(), *_modules.called()):
            _modules.gather(module, found)
        for module in found.values():
            self.add_module(module)
        return found.values()

    def add_module(self, module):
        """Adds the parameters and buffers of the module, without its children."""
        for tensor in module._parameters.values():
            if tensor is not None:
                self.add_parameter(tensor)
        for tensor in module._buffers.values():
            if tensor is not None and self.is_first(tensor):
                self.add(tensor, BUFFER)

    def add_parameter(self, parameter):
        """Adds the parameter and its gradient.

        The parameter may be no optimizer's: an optimizer may hold a copy of the weights in another precision.
        """
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
    """Decides when to look, and at which tensors."""

    def __init__(self, torch, native):
        self.torch = torch
        self.native = native
        self.tensors = Tensors(torch, native)
        # 1.13's DisableTorchFunction leaves the program's modes on
        self.without_modes = getattr(torch.overrides, "_no_torch_function_mode", contextlib.nullcontext)
        self.looks = {}  # id of the optimizer -> number of looks, _parts(), and the counts at the last look
        self.window, self.rotations = 0, 0  # of the recording, at the last look
        self.look_count, self.call_count = 0, 0
        self.spent_ns, self.spent_before_ns, self.next_ns = 0, 0, 0  # spent: CPU time
        self.is_on = True

    def tell(self, collect):
        """If memory is recorded, calls collect(owners) and passes the owners to the recorder. Raises nothing."""
        if not self.is_on or not self.native.torch_wants_owners():
            return
        start = time.thread_time_ns()
        try:
            owners = Owners(self.tensors)
            with self.torch._C.DisableTorchFunction(), self.without_modes():
                collect(owners)
            self.native.torch_owners(owners.words.tobytes())
        except Exception as problem:  # an unknown kind of tensor or module
            self.give_up(problem)
        self.spent_ns += time.thread_time_ns() - start

    def after(self, spent_ns, share):
        """Returns when to look again. `spent_ns` is self.spent_ns before the look that has just ended."""
        return time.perf_counter_ns() + int((self.spent_ns - spent_ns) / share)

    def give_up(self, problem):
        self.is_on = False
        self.native.metadata("torch.owners", f"not any more: {type(problem).__name__}: {problem}"[:500])

    def after_step(self, optimizer):
        try:
            self.look_behind_step(optimizer)
        except Exception as problem:  # an unknown kind of optimizer
            self.give_up(problem)

    def look_behind_step(self, optimizer):
        window = self.native.torch_wants_owners()
        if not window:
            return
        rotations = self.native.torch_rotations()
        if (window, rotations) != (self.window, self.rotations):  # makes the next look a full one
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
        """Called when the program calls a model."""
        spent_ns = self.spent_ns
        self.call_count += 1
        self.tell(lambda owners: (owners.add_inputs(arguments), owners.add_datasets()))
        is_first = self.call_count < FIRST_CALLS and self.spent_ns < FIRST_NS
        self.native.watch_arguments(self.at_call, time.perf_counter_ns() if is_first else self.after(spent_ns, SHARE))

    def finish(self):
        """Looks once more, for models without an optimizer, and records the cost of all looks."""
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
    """Returns a value that differs after `load_state_dict`, `add_param_group`, or the replacement of parameters.

    Programs replace parameters when, for example, they add points to a scene. This runs at each step, so it counts
    nothing. It misses a new tensor in the middle of a group, or with the id of the old one; the next full look finds
    those.
    """
    own = vars(optimizer)
    state, groups = own.get("state", ()), own.get("param_groups", ())
    ends = [id(tensor) for group in groups[:MOST_GROUPS] for tensor in (*group["params"][:1], *group["params"][-1:])]
    return id(state), len(state), id(groups), len(groups), ends


def watch(torch, native):
    """Starts watching, once per process, when a recording includes memory."""
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
    """Returns a hook for registrations in modules, which also covers models that are never trained."""

    def note(module, name, tensor):
        _seen[id(module)] = module
        if tensor is not None and watching.is_on:
            watching.tell(lambda owners: owners.add(tensor, category))

    return note


def _copy(watching):
    """Returns a hook for copied models: an average of weights, a teacher, a loaded model."""

    def note(module):
        if "_parameters" in vars(module) and "_buffers" in vars(module):  # otherwise the copy is of another kind or incomplete
            _seen[id(module)] = module
            if watching.is_on:
                watching.tell(lambda owners: owners.add_module(module))

    return note


def after_each_step(torch, native, call):
    """Calls call(optimizer) after each call of an optimizer, within PyTorch's record of that call."""
    register = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", None)  # 2.0
    code = getattr(torch.optim.Optimizer, "_optimizer_step_code", None)
    if register is not None:
        register(hook(native, lambda optimizer, args, kwargs: call(optimizer)))
    elif code is not None:  # 1.13 calls this function after each step; it is empty
        torch.optim.Optimizer._optimizer_step_code = native.around(code, before=call)
