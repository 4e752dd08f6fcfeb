/* SPDX-License-Identifier: Apache-2.0
 *
 * vectorcall.h: C in the place of a Python function's code, wherever C calls the function, as it does for the `__call__` of an object of a
 * Python class. The function stays the same object with the same code, so who looks at it (torch.compile, a traceback, pickle) sees
 * nothing.
 *
 *     original = vectorcall_replace(torch.nn.Module.__call__, torch.nn.Module.train, call_module);
 *     if (!original)
 *             ...this Python calls functions in a way of its own...
 */
#ifndef AGENTS_PYTHON_VECTORCALL_H
#define AGENTS_PYTHON_VECTORCALL_H

#include "agents/python/native.h"

typedef PyObject *vectorcall(PyObject *callable, PyObject *const *arguments, size_t count_and_flag, PyObject *names);

static inline size_t vectorcall_count(size_t count_and_flag)
{
	return count_and_flag & ~((size_t)1 << (8 * sizeof(size_t) - 1));
}

/* What was there before, for good; NULL: it cannot be done. `other` is a plain Python function, too: what both have is the interpreter's.
 * The caller keeps the function alive. */
vectorcall *vectorcall_replace(PyObject *function, PyObject *other, vectorcall *call);

#endif
