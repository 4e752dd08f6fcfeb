# SPDX-License-Identifier: Apache-2.0
"""Names of modules: the path from the outermost module, `layers.3.attn.q_proj`; that one has the name of its class. It is the one that the
program calls, or where PyTorch tells who gets which module (2.0) the one that this one is a part of.

Called by the extension once per module that it does not know. Keeps no module alive.
"""
import sys
import weakref

from stepscope._unseen import hook

# What these hold is the program's model under another roof. The first need their holder, for a model may have a part called so itself.
_HOLDERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine", "PipelineParallel"}
_TRANSPARENT = {"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_module"}
_WALKS = 16  # through a root again, for modules that it has got since

_LEAVES = 256  # modules without parts that the program called alone: more are not remembered

_LEAST_OWNED = 4096  # modules before it is looked for those that are gone

roots = []    # of living ones, and those that have just gone
_leaves = {}  # id -> weak reference


class _Root:
    """A module that is no part of another one, as far as is known."""

    __slots__ = ("name", "prefix", "reference", "is_part", "walks")

    def __init__(self, name, prefix, module):
        self.name, self.prefix, self.reference = name, prefix, weakref.ref(module)
        self.is_part = False  # it turned out to be one
        self.walks = 0


def _is_through(holder, name):
    """Does this part have its holder's path?"""
    return name in _TRANSPARENT or (name == "module" and type(holder).__name__ in _HOLDERS)


class _Owners:
    """Whose part a module is: what PyTorch tells when one gets another, and what was seen of models that were called. That a module has
    got parts is noted at once; which they are is looked up when it is asked for."""

    def __init__(self):
        self.fresh = {}  # id of a module -> weak reference to it: it has got parts since it was last asked for
        self.found = {}  # id of a part -> weak reference to the first that had it
        self.limits = {"fresh": _LEAST_OWNED, "found": _LEAST_OWNED}

    def note(self, owner):
        self.fresh[id(owner)] = weakref.ref(owner)
        if len(self.fresh) > self.limits["fresh"]:
            self.forget("fresh", lambda key, reference: reference() is not None)

    def forget(self, name, is_kept):
        kept = {key: reference for key, reference in getattr(self, name).items() if is_kept(key, reference)}
        setattr(self, name, kept)
        self.limits[name] = max(_LEAST_OWNED, 2 * len(kept))

    def look(self):
        fresh, self.fresh = self.fresh, {}
        for reference in fresh.values():
            owner = reference()
            for part in () if owner is None else owner._modules.values():
                if part is not None and self.known(part) is None:
                    self.found[id(part)] = reference
        if len(self.found) > self.limits["found"]:
            self.forget("found", self.has())

    @staticmethod
    def has():
        """Is the part still there? Looks at each owner once."""
        parts = {}

        def is_kept(key, reference):
            if id(reference) not in parts:
                owner = reference()
                parts[id(reference)] = set() if owner is None else {id(part) for part in owner._modules.values()}
            return key in parts[id(reference)]

        return is_kept

    def known(self, part):
        reference = self.found.get(id(part))
        owner = reference() if reference is not None else None
        return owner if owner is not None and any(each is part for each in owner._modules.values()) else None

    def place(self, module):
        """The outermost one that it is a part of, and its path in that; itself where that is not known. Of those that are parts of each other
        it is itself, too."""
        self.look()
        whole, path, seen = module, [], set()
        while True:
            owner = self.known(whole)
            if owner is None:
                return whole, ".".join(reversed(path))
            name = next((name for name, part in owner._modules.items() if part is whole), "")
            seen.add(id(whole))
            if id(owner) in seen:
                return module, ""
            if not _is_through(owner, name):
                path.append(name)
            whole = owner


_owners = _Owners()
on_copy = [_owners.note]  # called with each module that is a copy


class _Walk:
    """Names what has no name yet, in the order of named_modules(): a shared one has its first path."""

    def __init__(self, native, root, anew):
        self.native, self.root_name, self.prefix = native, root.name, root.prefix
        self.anew, self.seen = anew, set()  # ids: of what gets another name, of what was met

    def name(self, module, path):
        if id(module) in self.anew or not self.native.is_named_module(module):
            self.native.name_module(module, self.prefix + path if path else self.root_name)

    def visit(self, module, path=""):
        if id(module) in self.seen:
            return
        self.seen.add(id(module))
        self.name(module, path)
        if module._modules:
            _owners.note(module)
        for name, child in module._modules.items():
            if child is None:
                continue
            if _is_through(module, name):
                self.visit_through(module, child, path)
            else:
                self.visit(child, f"{path}.{name}" if path else name)

    def visit_through(self, holder, child, path):
        """The holder gets its class behind the path, the held one the path alone."""
        place = self.prefix + path if path else self.root_name if self.prefix else ""
        name = f"{place} ({type(holder).__name__})" if place else type(holder).__name__
        self.native.name_module(holder, name, *(() if path else (_held(holder),)))
        self.visit(child, path)


def _held(module):
    """The program's own model, out of its wrappers."""
    for _ in range(16):
        inner = next((child for name, child in module._modules.items() if child is not None and _is_through(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def gather(module, found):
    """Itself and all modules in it, by id, added to `found`."""
    if id(module) not in found:
        found[id(module)] = module
        for child in module._modules.values():
            if child is not None:
                gather(child, found)
    return found


def called():
    """Those that live of the models that the program called, and of the modules that it called alone."""
    found = (reference() for reference in (*(root.reference for root in roots), *_leaves.values()))
    return [module for module in found if module is not None]


def _absorb(native, module):
    """Ids of what was called alone before this model was (to see how large its results are, in a constructor), and gets its path in it
    now. Not once there was training: its rows in the report would be two."""
    anew = {}
    if native.torch_has_trained():
        return anew
    parts = gather(module, {})
    for root in roots:
        other = root.reference()
        if other is not module and parts.get(id(other)) is not None:
            root.is_part = True
            gather(other, anew)
    anew.update((key, None) for key, reference in _leaves.items() if key in parts and reference() is parts[key])
    return anew


def _known_root(module):
    return next((root for root in roots if not root.is_part and root.reference() is module), None)


def _new_root(module):
    """The prefix of its parts is empty for the first model of the program, or one that comes after it is gone; others have their name in
    front, so that discriminators and generators are told apart. Of several of a class each has its number."""
    kind = type(module).__name__
    if vars(module).get("_is_replica"):
        return _Root(kind, "", module)
    roots[:] = [root for root in roots if root.reference() is not None]
    living = [root for root in roots if not root.is_part]
    names = {root.name for root in living}
    for name in [kind] + [f"{kind}#{n}" for n in range(2, 100)]:
        if name not in names:
            break
    roots.append(_Root(name, f"{name}." if any(not root.prefix for root in living) else "", module))
    return roots[-1]


def _leaf_of(module):
    kind = type(module).__name__
    if len(_leaves) >= _LEAVES:
        for key in [key for key, reference in _leaves.items() if reference() is None]:
            del _leaves[key]
    if len(_leaves) < _LEAVES:
        _leaves[id(module)] = weakref.ref(module)
    return _Root(kind, f"{kind}.", module)


def make_namer(native):
    """What the extension calls with a module that it does not know, and the outermost one of the thread that runs, or None."""

    def name_of(module, around):
        start = module if around is None else around
        whole, path = _owners.place(start)
        held = _held(whole)
        root, anew = _known_root(held), ()
        may_walk = root is None or root.walks < _WALKS
        if may_walk and held._modules:
            anew = _absorb(native, held)
        root = root or (_new_root(held) if held._modules else _leaf_of(held))
        root.walks += 1
        if may_walk or start is module:
            _Walk(native, root, anew).visit(*((whole,) if anew else (start, path)))
        if not native.is_named_module(module):  # made on the way, or kept in a list: no part of the model
            native.name_module(module, type(module).__name__)

    return name_of


def _watch_parts(native):
    register = getattr(sys.modules.get("torch.nn.modules.module"), "register_module_module_registration_hook", None)  # 2.0
    if register is not None:
        register(hook(native, lambda module, name, part: _owners.note(module)))


def _watch_copies(torch, native):
    """One that is copied, or loaded as a whole, has all that it has at once, and no hook of PyTorch's tells of it."""

    def tell(module, raised):
        for call in on_copy if raised is None else ():
            call(module)

    set_state = getattr(torch.nn.Module, "__setstate__", None)
    if set_state is not None:
        torch.nn.Module.__setstate__ = native.around(set_state, after=tell)


def watch(torch, native):
    """Sees the calls of modules from here on; why not, when that cannot be."""
    call = torch.nn.Module.__call__
    if getattr(call, "__code__", None) is None or not native.watch_modules(call, make_namer(native), torch.nn.Module.train):
        return "this Python calls functions in a way of its own"
    _watch_parts(native)
    _watch_copies(torch, native)
    return "yes"
