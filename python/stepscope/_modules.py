# SPDX-License-Identifier: Apache-2.0
"""Names of modules: the path from the module that the program calls, `layers.3.attn.q_proj`; that one has the name of its class.

Called by the extension once per module that it does not know. Keeps no module alive.
"""
import weakref

# What these hold is the program's model under another roof. The first need their holder, for a model may have a part called so itself.
_HOLDERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine", "PipelineParallel"}
_TRANSPARENT = {"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_module"}
_WALKS = 16  # through a root again, for modules that it has got since

_roots = []   # (class, weak reference, prefix) of each
_walks = {}   # id of a root -> how often


def _is_through(holder, name):
    """Does this part have its holder's path?"""
    return name in _TRANSPARENT or (name == "module" and type(holder).__name__ in _HOLDERS)


def _walk(native, module, path, prefix, seen):
    """Names what has no name yet, in the order of named_modules(): a shared one has its first path."""
    if id(module) in seen:
        return
    seen.add(id(module))
    if not native.is_named_module(module):
        native.name_module(module, prefix + path if path else prefix.rstrip(".") or type(module).__name__)
    for name, child in module._modules.items():
        if child is None:
            continue
        if _is_through(module, name):
            _walk_through(native, module, child, path, prefix, seen)
        else:
            _walk(native, child, f"{path}.{name}" if path else name, prefix, seen)


def _walk_through(native, holder, child, path, prefix, seen):
    """The holder gets its class behind the path, the held one the path alone."""
    if path:
        native.name_module(holder, f"{prefix}{path} ({type(holder).__name__})")
        _walk(native, child, path, prefix, seen)
        return
    native.name_module(holder, type(holder).__name__, _held(holder))
    if id(child) in seen:
        return
    if not native.is_named_module(child):
        native.name_module(child, prefix.rstrip(".") or type(child).__name__)
    _walk(native, child, "", prefix, seen)


def _held(module):
    """The program's own model, out of its wrappers."""
    for _ in range(16):
        inner = next((child for name, child in module._modules.items() if child is not None and _is_through(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def _prefix_of(module):
    """Empty for the first model of the program, or one that comes after it is gone; others have their class in front, so that
    discriminators and generators are told apart."""
    if getattr(module, "_is_replica", False):
        return ""
    name = type(module).__name__
    _roots[:] = [root for root in _roots if root[1]() is not None]
    taken = {root[2] for root in _roots}
    for prefix in ["", f"{name}."] + [f"{name}#{n}." for n in range(2, 100)]:
        if prefix not in taken:
            break
    _roots.append((name, weakref.ref(module), prefix))
    return prefix


def make_namer(native):
    """What the extension calls with a module that it does not know, and the outermost one of the thread that runs, or None."""

    def name_of(module, root):
        if root is not None and root is not module:
            walks = _walks.get(id(root), 0)
            if walks < _WALKS:
                _walks[id(root)] = walks + 1
                _walk(native, root, "", "", set())
            if not native.is_named_module(module):  # made on the way, or kept in a list: no part of the model
                native.name_module(module, type(module).__name__)
            return
        held = _held(module)
        prefix = _prefix_of(held) if held._modules else f"{type(held).__name__}."
        _walk(native, module, "", prefix, set())

    return name_of


def watch(torch, native):
    """Sees the calls of modules from here on; why not, when that cannot be."""
    call = torch.nn.Module.__call__
    if getattr(call, "__code__", None) is None or not native.watch_modules(call, make_namer(native), torch.nn.Module.train):
        return "this Python calls functions in a way of its own"
    return "yes"
