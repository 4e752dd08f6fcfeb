# SPDX-License-Identifier: Apache-2.0
"""Finds the owners of memory in programs without an optimizer of PyTorch: weights outside of modules, optimizer states
and gradients.

After one of the first backwards, this looks once through all tensors of the program and then watches some of them for a
few more backwards. A tensor is a weight if it has a gradient and is written to between two backwards. Tensors are
optimizer state if they are written to exactly when weights are, and if each weight has the same number of them, of its
size. If one of these conditions fails, the recording gets no owner.
"""
import gc
import sys
import time
import weakref
from collections import Counter

from stepscope import _optimizers

SEARCH_AT = 2  # number of the look with the search: the first update has usually created its state by then
MOST_LOOKS = 32
MOST_TRIES = 256  # calls that come in the middle of a backward, where a look finds little
MOST_WATCHED = 16384
SHARE = 1 / 400  # of the time, for looks because of another recorded file, after FIRST_NS of them
FIRST_NS = 50_000_000
STATE = 3  # enum stepscope_memory


class _Watched:
    """A weak reference to a tensor, and whether the program wrote to the tensor."""

    __slots__ = ("reference", "version", "was_written", "is_written")

    def __init__(self, tensor, version):
        self.reference, self.version = weakref.ref(tensor), version
        self.was_written = self.is_written = False

    def look(self, tensors):
        tensor = self.reference()
        version = self.version if tensor is None else tensors.version(tensor)
        self.is_written = version != self.version
        self.was_written |= self.is_written
        self.version = version
        return tensor is not None


def _calls_engine(frame):
    return frame.f_code.co_name in ("_engine_run_backward", "backward", "grad") and str(frame.f_globals.get("__name__")).startswith("torch.autograd")


def _is_in_backward(frame):
    """Returns true if a backward is running this code in a hook; false if the backward has just returned."""
    inner = frame
    while frame is not None and not _calls_engine(frame):
        frame = frame.f_back
    return frame is not None and frame is not inner


class Weights:
    def __init__(self, native, watching):
        self.native, self.watching, self.tensors = native, watching, watching.tensors
        self.window, self.next_ns, self.spent_ns = 0, 0, 0  # of the recording; when to look again; CPU time after the first looks
        self.tries = self.looks = 0
        self.updates = 0  # since the search
        self.was_early = False  # the search came before the first update, which creates the state
        self.weights, self.beside = [], []
        self.versions, self.written = {}, set()  # of the modules' weights: version by id; ids of the written ones
        native.torch_watch_backward(self.look, False)

    def look(self):
        """Called after a backward, or sometimes in the middle of one."""
        is_behind = not _is_in_backward(sys._getframe(1))
        self.tries += not is_behind
        if _optimizers.are_made or self.tries > MOST_TRIES:
            self.native.torch_watch_backward(None, False)
            return
        is_over = self.updates > 1 or self.looks >= MOST_LOOKS
        window, start = self.native.torch_wants_owners(), time.perf_counter_ns()
        if is_behind and not (is_over and window == self.window and start < self.next_ns and self.spent_ns > FIRST_NS):
            self.looks += 1
            spent_ns = self.watching.spent_ns
            self.watching.tell(self.tell)
            self.window, self.next_ns = window, self.watching.after(spent_ns, SHARE)
            self.spent_ns += is_over and self.watching.spent_ns - spent_ns
            is_over = self.updates > 1 or self.looks >= MOST_LOOKS
        self.native.torch_watch_backward(self.look, is_over)

    def tell(self, owners):
        modules = owners.add_modules()
        of_modules = {id(weight): weight for module in modules for weight in module._parameters.values() if weight is not None}
        if self.updates < 2:
            self.follow(of_modules)
            if self.looks == SEARCH_AT or (self.was_early and self.updates and not self.beside):
                self.search(owners, of_modules.values())
        weights = [weight for key, weight in of_modules.items() if key in self.written]
        for each in self.weights:
            weight = each.reference()
            if weight is not None and each.was_written:
                owners.add_parameter(weight)
                weights.append(weight)
        if self.updates > 1:
            for tensor in self.states(weights):
                owners.add(tensor, STATE)

    def follow(self, of_modules):
        """Notes which tensors the program has written to since the last look."""
        self.weights = [each for each in self.weights if each.look(self.tensors)]
        self.beside = [each for each in self.beside if each.look(self.tensors)]
        versions = {key: self.tensors.version(weight) for key, weight in of_modules.items()}
        written = {key for key, version in versions.items() if self.versions.get(key, version) != version}
        self.versions = versions
        self.written |= written
        is_update = bool(written) or any(each.is_written for each in self.weights)
        self.beside = [each for each in self.beside if each.is_written == is_update]
        self.updates += is_update and self.looks > SEARCH_AT

    def search(self, owners, of_modules):
        self.updates = 0
        tensors, known = self.tensors, {0, *owners.words[1::3]}
        found = [tensor for tensor in gc.get_objects() if issubclass(type(tensor), tensors.kind)][:MOST_WATCHED]
        weights = [tensor for tensor in found if tensors.gradient_of(tensor) is not None and tensors.place(tensor)[1] not in known]
        self.weights = self.weights or [_Watched(tensor, tensors.version(tensor)) for tensor in weights]
        self.was_early = not self.written and not any(each.version for each in self.weights)
        for weight in weights:
            known.update((tensors.place(weight)[1], tensors.place(tensors.gradient_of(weight))[1]))
        shapes = {tensors.shape(weight) for weight in (*of_modules, *weights)}
        self.beside = [_Watched(tensor, tensors.version(tensor)) for tensor in found
                       if type(tensor) is tensors.kind and tensors.is_plain(tensor) and tensors.shape(tensor) in shapes
                       and tensors.place(tensor)[1] not in known]

    def states(self, weights):
        """Returns the tensors that are optimizer state: the same number for each weight.

        If a shape has more candidates than that, the right ones are unknown and all are omitted.
        """
        beside = [tensor for tensor in (each.reference() for each in self.beside) if tensor is not None]
        needed = Counter(map(self.tensors.shape, weights))
        there = Counter(map(self.tensors.shape, beside))
        if len(weights) < 2:
            return []
        each = min(there[shape] // count for shape, count in needed.items())
        return [tensor for tensor in beside if each and there[self.tensors.shape(tensor)] == each * needed[self.tensors.shape(tensor)]]
