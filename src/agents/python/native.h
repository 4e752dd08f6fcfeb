/* SPDX-License-Identifier: Apache-2.0
 *
 * native.h: the parts of the Python extension stepscope._native. One file serves CPython 3.8 and newer (Py_LIMITED_API); everything
 * is called with the global interpreter lock held. Wrong types raise TypeError; nothing else that goes wrong reaches the program.
 */
#ifndef AGENTS_PYTHON_NATIVE_H
#define AGENTS_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include "agents/python/library.h"

#include <Python.h>

/* In the limited API since 3.10, and the same since 3.7. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define NATIVE_FAST(function) ((PyCFunction)(void (*)(void))(function))

/* A Python string as bytes, whatever is in it: what has no UTF-8 (a file name with bytes of another encoding) is written as \udcNN. */
PyObject *native_utf8(PyObject *text);

/* Symbol of a Python string; 0 when nothing is recorded. False: it is no string, and TypeError is set. */
bool native_symbol(enum stepscope_kind kind, PyObject *text, uint32_t *symbol);

/* The program calls this optimizer; the call has ended. */
void native_optimizer_begun(PyObject *optimizer);
void native_optimizer_done(PyObject *optimizer);

/* Between these two no profiler or debugger of the program sees what runs in this thread, and torch.compile compiles none of it; the second
 * gets what the first returned. */
PyObject *native_hide(void);
void native_show(PyObject *hidden);

/* Calls Python code of ours so, with up to three arguments (NULL: no more). What it raises is forgotten, unless it came from outside (the
 * user's Ctrl-C): false. */
bool native_call_ours(PyObject *function, PyObject *first, PyObject *second, PyObject *third);

/* Each adds its functions to the module. */
bool native_add_ranges(PyObject *module);
bool native_add_around(PyObject *module);
bool native_add_unseen(PyObject *module);
bool native_add_calls(PyObject *module);
extern PyMethodDef native_garbage_methods[], native_mark_methods[], native_module_methods[], native_optimizer_methods[],
	native_session_methods[], native_torch_methods[];

#endif
