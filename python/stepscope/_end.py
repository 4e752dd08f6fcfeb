# SPDX-License-Identifier: Apache-2.0
"""Notes at the end of the process that an exception ended it because there was no memory."""
import atexit
import errno
import sys

_CHAIN = 8  # exceptions that are looked at: an exception may hide its cause
_TEXT = 300  # characters of a message that are kept
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)"
_WORDS = {  # of the messages of PyTorch 1.13 to 2.13
    "asked_bytes": [rf"[Tt]ried to allocate {_SIZE}"],
    "limit_bytes": [rf"{_SIZE} allowed", rf"total capac[a-z]+ of {_SIZE}", rf"{_SIZE} total capacity"],
}
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen")


def watch(native):
    """Looks at the exception that ended the program when Python ends."""
    atexit.register(_note, native)


def _note(native):
    if hasattr(sys, "ps1"):  # an interactive session goes on after an exception
        return
    problem = getattr(sys, "last_value", None)
    for _ in range(_CHAIN):
        if problem is None or _is_of_memory(problem):
            break
        problem = problem.__cause__ or problem.__context__
    if problem is None or not _is_of_memory(problem):
        return
    native.metadata("out_of_memory", _describe(problem))
    line = _line_of(problem.__traceback__)
    if line:
        native.metadata("out_of_memory.line", line)
    for key, value in _sizes_of(_message(problem)).items():
        native.metadata(f"out_of_memory.{key}", str(value))


def _message(problem):
    try:
        return str(problem)
    except Exception:  # a class of the program may do anything
        return ""


def _is_of_memory(problem):
    """Returns true for Python's MemoryError, PyTorch's OutOfMemoryError, and the RuntimeError of its CPU allocator."""
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError":
        return True
    if isinstance(problem, OSError):
        return problem.errno == errno.ENOMEM
    words = ("out of memory", "can't allocate memory", "bad_alloc")
    return isinstance(problem, RuntimeError) and any(word in _message(problem) for word in words)


def _describe(problem):
    kind, message = type(problem), _message(problem).split("\n")[0].strip()
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {message[:_TEXT]}" if message else name


def _sizes_of(message):
    """Returns the sizes that PyTorch's message has, and the process's limit of addresses if it has one."""
    sizes = {key: size for key, words in _WORDS.items() for size in [_size_after(message, words)] if size}
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY and "limit_bytes" not in sizes:
            with open("/proc/self/status", encoding="utf-8") as status:
                peak = next(line for line in status if line.startswith("VmPeak:"))
            sizes.update(limit_bytes=limit, used_bytes=int(peak.split()[1]) << 10)
    except (ImportError, OSError, ValueError, StopIteration, MemoryError):
        pass
    return sizes


def _size_after(message, words):
    """Returns the size before or after one of the words, such as "4.00 GiB allowed"; None if there is none."""
    import re

    for pattern in words:
        found = re.search(pattern, message)
        if found:
            return int(float(found.group(1)) * _UNITS[found.group(2)])
    return None


def _line_of(traceback):
    """Returns the innermost line that is not of a library, as "train.py(12): step"; "" if there is none."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not any(part in code.co_filename for part in _LIBRARIES):
            found = f"{code.co_filename}({traceback.tb_lineno}): {code.co_name}"
        traceback = traceback.tb_next
    return found
