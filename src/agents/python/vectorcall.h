/* SPDX-License-Identifier: Apache-2.0
 *
 * vectorcall.h: puts C in the place of a Python function's code, wherever C calls the function. C does so for the
 * `__call__` of an object of a Python class. The function stays the same object with the same code, so torch.compile,
 * tracebacks and pickle see no difference.
 *
 *     original = vectorcall_replace(torch.nn.Module.__call__, torch.nn.Module.train, call_module);
 *     if (!original)
 *             ...this Python calls functions in another way...
 */
#ifndef AGENTS_PYTHON_VECTORCALL_H
#define AGENTS_PYTHON_VECTORCALL_H

#include "agents/python/native.h"

typedef PyObject *vectorcall(PyObject *callable, PyObject *const *arguments, size_t count_and_flag, PyObject *names);

static inline size_t vectorcall_count(size_t count_and_flag)
{
	return count_and_flag & ~((size_t)1 << (8 * sizeof(size_t) - 1));
}

/* Replaces the vectorcall of `function` for good. Returns the previous one; NULL: that is not possible. `other` is
 * another plain Python function: the code that both share is the interpreter's. The caller keeps the function alive. */
vectorcall *vectorcall_replace(PyObject *function, PyObject *other, vectorcall *call);

#endif
