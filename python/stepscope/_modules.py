# SPDX-License-Identifier: Apache-2.0
"""Names of modules: the path from the module that the program calls, `layers.3.attn.q_proj`; that one has the name of its class.

Called by the extension once per module that it does not know. Keeps no module alive.
"""
import weakref

# What these hold is the program's model under another roof. The first need their holder, for a model may have a part called so itself.
_HOLDERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine", "PipelineParallel"}
_TRANSPARENT = {"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_module"}
_WALKS = 16  # through a root again, for modules that it has got since

_LEAVES = 256  # modules without parts that the program called alone: more are not remembered

_roots = []   # (class, weak reference, prefix; None: it turned out to be a part of another one) of each
_leaves = {}  # id -> weak reference
_walks = {}   # id of a root -> how often


def _is_through(holder, name):
    """Does this part have its holder's path?"""
    return name in _TRANSPARENT or (name == "module" and type(holder).__name__ in _HOLDERS)


class _Walk:
    """Names what has no name yet, in the order of named_modules(): a shared one has its first path."""

    def __init__(self, native, prefix="", anew=frozenset()):
        self.native, self.prefix = native, prefix
        self.anew, self.seen = anew, set()  # ids: of what gets another name, of what was met

    def name(self, module, path):
        if id(module) in self.anew or not self.native.is_named_module(module):
            self.native.name_module(module, self.prefix + path if path else self.prefix.rstrip(".") or type(module).__name__)

    def visit(self, module, path=""):
        if id(module) in self.seen:
            return
        self.seen.add(id(module))
        self.name(module, path)
        for name, child in module._modules.items():
            if child is None:
                continue
            if _is_through(module, name):
                self.visit_through(module, child, path)
            else:
                self.visit(child, f"{path}.{name}" if path else name)

    def visit_through(self, holder, child, path):
        """The holder gets its class behind the path, the held one the path alone."""
        if path:
            self.native.name_module(holder, f"{self.prefix}{path} ({type(holder).__name__})")
        else:
            self.native.name_module(holder, type(holder).__name__, _held(holder))
        self.visit(child, path)


def _held(module):
    """The program's own model, out of its wrappers."""
    for _ in range(16):
        inner = next((child for name, child in module._modules.items() if child is not None and _is_through(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def _parts(module, found):
    """All modules in it and itself, by id."""
    if id(module) not in found:
        found[id(module)] = module
        for child in module._modules.values():
            if child is not None:
                _parts(child, found)
    return found


def _absorb(native, module):
    """Ids of what was called alone before this model was (to see how large its results are, in a constructor), and gets its path in it
    now. Not once there was training: its rows in the report would be two."""
    parts, anew = _parts(module, {}), {}
    if native.torch_has_trained():
        return anew
    for place, (name, reference, _) in enumerate(_roots):
        if parts.get(id(reference())) is not None:
            _roots[place] = (name, reference, None)
            _parts(reference(), anew)
    anew.update((key, None) for key, reference in _leaves.items() if key in parts and reference() is parts[key])
    return anew


def _prefix_of(module):
    """Empty for the first model of the program, or one that comes after it is gone; others have their class in front, so that
    discriminators and generators are told apart."""
    if vars(module).get("_is_replica"):
        return ""
    name = type(module).__name__
    _roots[:] = [root for root in _roots if root[1]() is not None]
    taken = {root[2] for root in _roots}
    for prefix in ["", f"{name}."] + [f"{name}#{n}." for n in range(2, 100)]:
        if prefix not in taken:
            break
    _roots.append((name, weakref.ref(module), prefix))
    return prefix


def _prefix_of_leaf(module):
    if len(_leaves) >= _LEAVES:
        for key in [key for key, reference in _leaves.items() if reference() is None]:
            del _leaves[key]
    if len(_leaves) < _LEAVES:
        _leaves[id(module)] = weakref.ref(module)
    return f"{type(module).__name__}."


def make_namer(native):
    """What the extension calls with a module that it does not know, and the outermost one of the thread that runs, or None."""

    def name_of(module, root):
        if root is not None and root is not module:
            walks = _walks.get(id(root), 0)
            if walks < _WALKS:
                _walks[id(root)] = walks + 1
                _Walk(native).visit(root)
            if not native.is_named_module(module):  # made on the way, or kept in a list: no part of the model
                native.name_module(module, type(module).__name__)
            return
        held = _held(module)
        anew = _absorb(native, held) if held._modules else ()
        prefix = _prefix_of(held) if held._modules else _prefix_of_leaf(held)
        _Walk(native, prefix, anew).visit(module)

    return name_of


def watch(torch, native):
    """Sees the calls of modules from here on; why not, when that cannot be."""
    call = torch.nn.Module.__call__
    if getattr(call, "__code__", None) is None or not native.watch_modules(call, make_namer(native), torch.nn.Module.train):
        return "this Python calls functions in a way of its own"
    return "yes"
