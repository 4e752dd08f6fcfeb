# SPDX-License-Identifier: Apache-2.0
"""Waits of a training loop outside of operators: torch.save and torch.load, the garbage collector, compilation."""
import gc
import sys


def watch(torch, native):
    for name in ("save", "load"):
        wrapped = native.around(getattr(torch.serialization, name), name=f"torch.{name}", is_save=name == "save", is_rare=True)
        setattr(torch.serialization, name, wrapped)
        setattr(torch, name, wrapped)
    gc.callbacks.append(native.garbage_callback)
    native.garbage_notice(lambda: _watch_compilation(native))


def _watch_compilation(native):
    """Returns true once Dynamo, which PyTorch imports only when needed, reports compilations."""
    handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
    if handler is None:
        return False
    start, end = (getattr(handler, f"register_{when}_callback", None) for when in ("start", "end"))
    if start is None or end is None:  # before PyTorch 2.2
        return True
    span = native.rare_range("torch.compile")
    start(native.unseen(lambda *_: span.__enter__() and None))
    end(native.unseen(lambda *_: span.__exit__()))
    return True
