# SPDX-License-Identifier: Apache-2.0
"""Python lines of operators: lets the C library read stacks that are known here, before it is believed. One difference and lines are off."""
import atexit
import sys

MOST = 64  # frames that are compared


def _story(frame):
    """What the interpreter says of the stack, innermost frame first: see lines_check() in src/agents/torch/lines.h."""
    text, count = [], 0
    while frame is not None and count < MOST:
        code = frame.f_code
        text.append(f"{frame.f_lineno or 0} {getattr(code, 'co_qualname', code.co_name)}\n{code.co_filename}\n")
        frame, count = frame.f_back, count + 1
    return "".join(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Known:
    """Functions of different kinds around the check."""

    def __init__(self, native):
        self.check = native.torch_lines_check

    def here(self):
        return self.check(_story(sys._getframe()))  # both on one line, on purpose

    def method(self):
        def nested(count):
            return self.here() if count == 0 else nested(count - 1)
        return [(
            lambda: nested(2)
        )() for _ in range(1)][0]

    def generator(self):
        yield (
            self.method()
        )


def check(native):
    known = _Known(native)
    for _ in range(2):  # the second time the interpreter may have changed the code to a faster one
        known.here()
        known.method()
        next(known.generator())
    atexit.register(native.torch_lines_stop)
