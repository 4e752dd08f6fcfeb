# SPDX-License-Identifier: Apache-2.0
"""Changes libtorch_cpu.so in memory, so that it looks like one that was built otherwise, then starts us, and runs lean_programs.py:
`doctored.py PACKAGE CHANGE[=SYMBOL[=MORE]] NAME...`; without a symbol nothing is changed. For test_lean.py; x86-64 only, with LD_BIND_NOW=1 for `read_only`."""
import ctypes
import mmap
import os
import runpy
import struct
import sys
import tempfile
from pathlib import Path

import torch  # noqa: F401  loads it

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
RELRO, DYNAMIC = 0x6474E552, 2
STRTAB, SYMTAB, RELA, RELASZ, JMPREL, PLTRELSZ = 5, 6, 7, 8, 23, 2


def find_library(name):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        line = next(line for line in maps if f"/{name}" in line and line.split()[2] == "00000000")
    return int(line.split("-")[0], 16), ctypes.CDLL(line.split()[-1])


BASE, LIBRARY = find_library("libtorch_cpu")


def read(at, form):
    return struct.unpack(form, ctypes.string_at(at, struct.calcsize(form)))


def write(at, form, *values):
    """Also where it is read-only."""
    first = at & -PAGE
    for page in range(first, at + struct.calcsize(form), PAGE):
        libc.mprotect(page, PAGE, mmap.PROT_READ | mmap.PROT_WRITE)
    ctypes.memmove(at, struct.pack(form, *values), struct.calcsize(form))


def headers(kind):
    (offset,), (size, count) = read(BASE + 32, "Q"), read(BASE + 54, "HH")
    return [BASE + offset + at * size for at in range(count) if read(BASE + offset + at * size, "I") == (kind,)]


def dynamic():
    found, at = {}, BASE + read(headers(DYNAMIC)[0] + 16, "Q")[0]
    while True:
        tag, value = read(at, "qQ")
        if tag == 0:
            return found
        found.setdefault(tag, value)
        at += 16


TABLES = dynamic()


def symbol_of(info):
    return TABLES[SYMTAB] + (info >> 32) * 24


def name_at(symbol):
    return ctypes.string_at(TABLES[STRTAB] + read(symbol, "I")[0]).decode()


def slots(wanted):
    """Where its tables tell of slots of this function: each entry's address, and its words."""
    for start, size in ((JMPREL, PLTRELSZ), (RELA, RELASZ)):
        table = ctypes.string_at(TABLES[start], TABLES[size])
        for at, entry in enumerate(struct.iter_unpack("QQq", table)):
            if entry[1] & 0xFFFFFFFF in (6, 7) and name_at(symbol_of(entry[1])) == wanted:
                yield TABLES[start] + 24 * at, entry


def no_slot(name):
    """As where the linker bound the call."""
    for at, (_, info, _) in list(slots(name)):
        write(at + 8, "Q", info & ~0xFFFFFFFF)


def find_symbol(name):
    value = ctypes.cast(getattr(LIBRARY, name), ctypes.c_void_p).value - BASE
    table = ctypes.string_at(TABLES[SYMTAB], TABLES[STRTAB] - TABLES[SYMTAB])  # the first is the one with this address
    return next(TABLES[SYMTAB] + 24 * at for at, entry in enumerate(struct.iter_unpack("IBBHQQ", table[:len(table) // 24 * 24]))
                if entry[4] == value and name_at(TABLES[SYMTAB] + 24 * at) == name)


def no_function(name):
    write(find_symbol(name) + 6, "<HQ", 0, 0)


def moved(name, by):
    """What lies there is by as much further on."""
    at = find_symbol(name) + 8
    write(at, "Q", read(at, "Q")[0] + int(by))


def other(name, instead):
    """The name is that of another function."""
    write(find_symbol(name) + 8, "Q", read(find_symbol(instead) + 8, "Q")[0])


def read_only(name, is_told):
    """Its slot is in a page that nobody may write to; told: as a library's that the dynamic linker protects."""
    page = BASE + next(slots(name))[1][0] & -PAGE
    with tempfile.NamedTemporaryFile() as file:
        file.write(ctypes.string_at(page, PAGE))
        file.flush()
        only_read = os.open(file.name, os.O_RDONLY)
        assert libc.mmap(page, PAGE, mmap.PROT_READ, mmap.MAP_SHARED | 0x10, only_read, 0) == page
    if is_told == "told":
        header = headers(RELRO)[0]
        start, size = read(header + 16, "Q")[0] + BASE, read(header + 40, "Q")[0]
        first, last = min(start, page), max(start + size, page + PAGE)
        write(header + 16, "Q", first - BASE)
        write(header + 40, "Q", last - first)


package, change, *arguments = sys.argv[1:]
what, *of = change.split("=")
if of:
    {"no_slot": no_slot, "no_function": no_function, "moved": moved, "other": other, "read_only": read_only}[what](*of)
sys.path.append(package)
import stepscope  # noqa: E402

stepscope.auto()
program = str(Path(__file__).with_name("lean_programs.py"))
sys.argv = [program, *arguments]
runpy.run_path(program, run_name="__main__")
