# SPDX-License-Identifier: Apache-2.0
"""Hooks for PyTorch's lists of hooks. Calling one calls C, without a frame or anything else that profilers and debuggers of the program would
be told of; what C calls of ours is hidden from them, too."""
import sys


def hook(native, call, followed=None):
    """One that calls call(its first three arguments). torch.compile, which cannot look into C and would break a graph there, finds one that
    does nothing, or calls followed(its first argument)."""

    class Hook:
        def __call__(self, *arguments):
            return followed and followed(arguments[0])

    if native.stand_in(Hook.__call__, hook, call):
        return Hook()
    is_compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", lambda: False)
    return lambda *arguments: None if is_compiling() else call(*arguments)
