# SPDX-License-Identifier: Apache-2.0
"""Checks how the C library reads the Python lines of operators, with stacks that are known here. If one line differs,
the recording has no lines."""
import atexit
import sys

MOST = 64  # maximum number of frames to compare


def _story(frame):
    """Returns the stack as the interpreter knows it, innermost frame first.

    lines_check() in src/agents/torch/lines.h defines the format.
    """
    text, count = [], 0
    while frame is not None and count < MOST:
        code = frame.f_code
        text.append(f"{frame.f_lineno or 0} {getattr(code, 'co_qualname', code.co_name)}\n{code.co_filename}\n")
        frame, count = frame.f_back, count + 1
    return "".join(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Known:
    """Runs the check in functions of different kinds."""

    def __init__(self, native):
        self.check = native.torch_lines_check

    def here(self):
        return self.check(_story(sys._getframe()))  # both calls must be on one line

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
    for _ in range(2):  # for the second call the interpreter may have specialized the code
        known.here()
        known.method()
        next(known.generator())
    atexit.register(native.torch_lines_stop)
