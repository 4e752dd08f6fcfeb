# SPDX-License-Identifier: Apache-2.0
"""Names of modules. A name is the path from the outermost module, such as `layers.3.attn.q_proj`; the outermost module
has the name of its class. The outermost module is the one that the program calls. With PyTorch 2.0, which reports
registrations of modules, it is the one that contains the called module.

The extension calls this once per unknown module. No module is kept alive.
"""
import sys
import weakref

from stepscope._unseen import hook

# Wrappers of the program's model: the wrapped model has the path of its wrapper. A part named "module" is a wrapped
# model only in the classes of _HOLDERS, since a model may itself have a part of that name.
_HOLDERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine", "PipelineParallel"}
_TRANSPARENT = {"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_module"}
_WALKS = 16  # maximum walks through a root, which find modules added since

_LEAVES = 256  # maximum number of remembered modules without parts that the program called alone

_LEAST_OWNED = 4096  # entries before the dead ones are removed

roots = []    # of living modules, and of some that have just died
_leaves = {}  # id -> weak reference


class _Root:
    """A module that is not known to be part of another one."""

    __slots__ = ("name", "prefix", "reference", "is_part", "walks")

    def __init__(self, name, prefix, module):
        self.name, self.prefix, self.reference = name, prefix, weakref.ref(module)
        self.is_part = False  # true if it was later found in another module
        self.walks = 0


def _is_through(holder, name):
    """Returns true if this part has the path of its holder."""
    return name in _TRANSPARENT or (name == "module" and type(holder).__name__ in _HOLDERS)


class _Owners:
    """Finds the module that contains a module, from PyTorch's registrations and from walks through called models.

    note() only remembers that a module has new parts. look() finds the parts, when a name is needed.
    """

    def __init__(self):
        self.fresh = {}  # id of a module -> weak reference to it, if it has new parts since the last look()
        self.found = {}  # id of a part -> weak reference to its first owner
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
        """Returns a function that tells if an owner still has a part. It looks at each owner once."""
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
        """Returns the outermost module that contains a module, and the path in it.

        Returns the module itself and "" if no owner is known, or if modules contain each other.
        """
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
on_copy = [_owners.note]  # functions called with each copied module


class _Walk:
    """Names the modules without a name, in the order of named_modules().

    So a shared module has its first path.
    """

    def __init__(self, native, root, anew):
        self.native, self.root_name, self.prefix = native, root.name, root.prefix
        self.anew, self.seen = anew, set()  # ids of modules to rename; ids of visited modules

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
        """Names a wrapper by the path with its class in parentheses, and the wrapped module by the path alone."""
        place = self.prefix + path if path else self.root_name if self.prefix else ""
        name = f"{place} ({type(holder).__name__})" if place else type(holder).__name__
        self.native.name_module(holder, name, *(() if path else (_held(holder),)))
        self.visit(child, path)


def _held(module):
    """Returns the program's own model, without its wrappers."""
    for _ in range(16):
        inner = next((child for name, child in module._modules.items() if child is not None and _is_through(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def gather(module, found):
    """Adds the module and all modules in it to `found`, by id."""
    if id(module) not in found:
        found[id(module)] = module
        for child in module._modules.values():
            if child is not None:
                gather(child, found)
    return found


def called():
    """Returns the living models that the program has called, and the living modules that it has called alone."""
    found = (reference() for reference in (*(root.reference for root in roots), *_leaves.values()))
    return [module for module in found if module is not None]


def _absorb(native, module):
    """Returns the ids of the modules to rename: the program called them alone before it called this model.

    A constructor does that, for example, to find the size of a result. Returns nothing after training has started: a
    renamed module would have two rows in the report.
    """
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
    """Creates a root with the name of its class, and with a number if several living roots have that class.

    The parts of the first model have no prefix, nor do those of a model first called after that one is gone. The parts
    of other models have their model's name as prefix, which separates, for example, discriminator and generator.
    """
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
    """Returns the function that names a module; the extension calls it with each unknown module.

    Its second argument is the outermost module running in the thread, or None.
    """

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
        if not native.is_named_module(module):  # created during the call, or kept in a list: not a part of the model
            native.name_module(module, type(module).__name__)

    return name_of


def _watch_parts(native):
    register = getattr(sys.modules.get("torch.nn.modules.module"), "register_module_module_registration_hook", None)  # 2.0
    if register is not None:
        register(hook(native, lambda module, name, part: _owners.note(module)))


def _watch_copies(torch, native):
    """Watches modules that are copied or loaded as a whole. No hook of PyTorch reports their registrations."""

    def tell(module, raised):
        for call in on_copy if raised is None else ():
            call(module)

    set_state = getattr(torch.nn.Module, "__setstate__", None)
    if set_state is not None:
        torch.nn.Module.__setstate__ = native.around(set_state, after=tell)


def watch(torch, native):
    """Watches the calls of modules. Returns "yes", or the reason why that is impossible."""
    call = torch.nn.Module.__call__
    if getattr(call, "__code__", None) is None or not native.watch_modules(call, make_namer(native), torch.nn.Module.train):
        return "this Python calls functions in a way of its own"
    _watch_parts(native)
    _watch_copies(torch, native)
    return "yes"
