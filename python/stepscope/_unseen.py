# SPDX-License-Identifier: Apache-2.0
"""Hooks for PyTorch's lists of hooks. A call of a hook enters C directly: profilers and debuggers of the program see no
frame and no event. The Python functions that C then calls are hidden from them, too."""
import sys


def hook(native, call, followed=None):
    """Returns a hook that calls call() with its first three arguments.

    torch.compile cannot trace into C and would break the graph. So it sees a hook that does nothing, or that calls
    followed() with the first argument.
    """

    class Hook:
        def __call__(self, *arguments):
            return followed and followed(arguments[0])

    if native.stand_in(Hook.__call__, hook, call):
        return Hook()
    is_compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", lambda: False)
    return lambda *arguments: None if is_compiling() else call(*arguments)
