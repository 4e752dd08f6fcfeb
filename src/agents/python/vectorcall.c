/* SPDX-License-Identifier: Apache-2.0
 *
 * vectorcall.c: see vectorcall.h. The call of an object of a Python class goes through C: type slot -> __call__ -> the
 * function's `vectorcall`, a field that we overwrite.
 */
#include "agents/python/vectorcall.h"

#include <dlfcn.h>

#define VECTORCALL_OFFSET 56 /* of tp_vectorcall_offset in PyTypeObject; the next one is of tp_basicsize. Since 3.8 */
#define BASICSIZE_OFFSET 32

static long field(const void *type, int offset)
{
	Py_ssize_t value;
	memcpy(&value, (const char *)type + offset, sizeof(value));
	return value;
}

/* Returns the place of a function's vectorcall; NULL if this Python has another layout. */
static vectorcall **place_in(PyObject *function, PyObject *other)
{
	PyTypeObject *type = Py_TYPE(function);
	PyObject *basic = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
	long size = basic ? PyLong_AsLong(basic) : -1, at = field(type, VECTORCALL_OFFSET);
	Dl_info info, python;
	void *word, *same;
	PyObject *(*call_object)(PyObject *, PyObject *, PyObject *) = PyObject_Call;
	Py_XDECREF(basic);
	PyErr_Clear();
	if (Py_TYPE(other) != type || size <= 0 || field(type, BASICSIZE_OFFSET) != size || at <= 0 ||
	    at > size - (long)sizeof(word) || at % (long)sizeof(word) != 0)
		return NULL;
	memcpy(&word, (char *)function + at, sizeof(word));
	memcpy(&same, (char *)other + at, sizeof(same));
	/* both must be the interpreter's own code, which is the same for all functions */
	if (!word || word != same || !dladdr(word, &info) || !dladdr(*(void **)&call_object, &python) ||
	    info.dli_fbase != python.dli_fbase)
		return NULL;
	return (vectorcall **)(void *)((char *)function + at);
}

vectorcall *vectorcall_replace(PyObject *function, PyObject *other, vectorcall *call)
{
	vectorcall **place = place_in(function, other);
	if (!place)
		return NULL;
	vectorcall *original = *place;
	void (*set)(PyObject *, vectorcall *);
	/* since 3.12 the interpreter must learn of the change, because it takes a short cut otherwise */
	*(void **)&set = dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall");
	if (set)
		set(function, call);
	else
		*place = call;
	return original;
}
