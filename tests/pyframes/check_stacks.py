# SPDX-License-Identifier: Apache-2.0
"""Run by the interpreter that is tested, with no package but its own: compares what src/pyframes reads of this thread with what the
interpreter says, in code of every kind. Prints how many stacks were equal."""
import contextlib
import ctypes
import functools
import gc
import random
import sys
import threading

MOST = 128
probe = ctypes.CDLL(sys.argv[1])
probe.probe_stack.restype = ctypes.c_char_p
probe.probe_stack.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
state_of = ctypes.pythonapi.PyGILState_GetThisThreadState
state_of.restype = ctypes.c_void_p
code_type = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "PyCode_Type"))
version = sys.version.replace("\n", " ").encode()
count = 0


def story(frame):
    text, kept = [], 0
    while frame is not None and kept < MOST:
        code = frame.f_code
        text.append("%d %s\n%s\n" % (frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name), code.co_filename))
        frame, kept = frame.f_back, kept + 1
    text = "".join(text) + ("cut" if frame is not None else "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def here(value=None):
    """Our caller's stack, by all ways."""
    global count
    for how in (0, 1, 2):
        told, read = story(sys._getframe()), probe.probe_stack(version, state_of(), code_type, how)
        if read.decode() != told:
            sys.exit("way %d read\n%s\nwhere the interpreter says\n%s" % (how, read.decode(), told))
    count += 1
    return value


class Kinds:
    def method(self):
        here()
        return [here(i) for i in range(3)] + [here(k) for k in {here(i): i for i in range(2)}]

    @staticmethod
    def static():
        (lambda: here(

        ))()

    @property
    def value(self):
        try:
            raise KeyError
        except KeyError:
            here()
        finally:
            here()
        return 1

    def __call__(self):
        return sorted([3, 1, 2], key=lambda x: here(x))

    here()


def decorate(function):
    @functools.wraps(function)
    def wrapped(*arguments):
        here()
        return function(*arguments)
    return wrapped


@decorate
def decorated(a,
              b=here(),
              ):
    with contextlib.suppress(ValueError):
        here()
        raise ValueError
    return (a +
            here(1) +
            sum(here(i)
                for i in range(2)))


def numbers(depth):
    yield here(depth)
    if depth:
        yield from numbers(depth - 1)
    here()


async def coroutine(depth):
    here()
    if depth:
        await coroutine(depth - 1)
    here()


def deep(depth):
    return here() if depth == 0 else deep(depth - 1)


class Dies:
    def __del__(self):
        here()


def collected():
    first, second = Dies(), Dies()
    first.other, second.other = second, first
    del first, second
    gc.collect()


def made(lines, seed):
    """A long function with jumps, with bare lines and with calls over several lines."""
    pick, text = random.Random(seed), ["def long_one(here):"]
    while len(text) < lines:
        text += [""] * pick.choice((0, 0, 0, 1, 3, 200))
        text.append(pick.choice(("    here()", "    x = [1, 2,\n\n         here(3)]", "    for i in range(2): here(i)",
                                 "    if here(1) and \\\n        here(0): pass", "    d = {'a': here(), 'b':\n        here()}")))
    name = pick.choice(("plain.py", "grün.py", "日本.py", "\U0001f40d.py", "half \udcff.py"))
    space = {}
    exec(compile("\n".join(text), name, "exec"), space)
    return space["long_one"]


def tree(pick, depth):
    for _ in range(pick.randrange(1, 3)):
        here()
        if depth:
            pick.choice((lambda: tree(pick, depth - 1),
                         lambda: list(map(lambda _: tree(pick, depth - 1), [0])),
                         lambda: [tree(pick, depth - 1) for _ in [0]]))()


def everything():
    kinds = Kinds()
    kinds.method(), kinds.static(), kinds.value, kinds()
    decorated(1)
    list(numbers(3))
    with contextlib.suppress(StopIteration):
        coroutine(2).send(None)
    for depth in (1, 60, 121, 122, 123, 124, 125, 126, 127, 128, 129, 500):
        deep(depth)
    collected()
    for i in range(40):
        made(60, i)(here)
        eval(compile("\n" * i + "(lambda: here())()", "<eval %d>" % i, "eval"))
    tree(random.Random(7), 7)


everything()
thread = threading.Thread(target=everything)
thread.start()
thread.join()
everything()  # the code may be specialised by now
print(count)
