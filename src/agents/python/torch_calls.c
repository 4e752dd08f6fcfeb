/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_calls.c: the functions of agents/torch/agent.h for python/stepscope/_torch.py. If the C function returns a
 * status, the Python function returns a bool.
 */
#include "agents/python/native.h"

#define DIMENSIONS_MAX 8

/* Each macro makes a Python function: without arguments, with a text, with a flag or with a number. */
#define CALL(name)                                                                                                     \
	static PyObject *name(PyObject *self, PyObject *nothing)                                                       \
	{                                                                                                              \
		library.stepscope_##name();                                                                            \
		Py_RETURN_NONE;                                                                                        \
	}
CALL(torch_settled)
CALL(torch_stop)
CALL(torch_lines_stop)
CALL(torch_loader_end)

#define CALL_STATUS(name)                                                                                              \
	static PyObject *name(PyObject *self, PyObject *nothing)                                                       \
	{                                                                                                              \
		return PyBool_FromLong(library.stepscope_##name() == 0);                                               \
	}
CALL_STATUS(torch_find)
CALL_STATUS(torch_probe_begin)
CALL_STATUS(torch_probe_solve)
CALL_STATUS(torch_probe_end)
CALL_STATUS(torch_start)
CALL_STATUS(torch_lines_find)

#define CALL_NUMBER(name)                                                                                              \
	static PyObject *name(PyObject *self, PyObject *nothing)                                                       \
	{                                                                                                              \
		return PyLong_FromUnsignedLongLong(library.stepscope_##name());                                        \
	}
CALL_NUMBER(torch_wants_owners)
CALL_NUMBER(torch_rotations)
CALL_NUMBER(torch_follow)
CALL_NUMBER(torch_too_deep)

#define CALL_TEXT(name)                                                                                                \
	static PyObject *name(PyObject *self, PyObject *arguments)                                                     \
	{                                                                                                              \
		const char *text;                                                                                      \
		if (!PyArg_ParseTuple(arguments, "s:" #name, &text))                                                   \
			return NULL;                                                                                   \
		return PyBool_FromLong(library.stepscope_##name(text) == 0);                                           \
	}
CALL_TEXT(torch_lines_check)
CALL_TEXT(torch_probe_check)

#define CALL_FLAG(name)                                                                                                \
	static PyObject *name(PyObject *self, PyObject *arguments)                                                     \
	{                                                                                                              \
		int is_wanted;                                                                                         \
		if (!PyArg_ParseTuple(arguments, "p:" #name, &is_wanted))                                              \
			return NULL;                                                                                   \
		library.stepscope_##name(is_wanted);                                                                   \
		Py_RETURN_NONE;                                                                                        \
	}
CALL_FLAG(torch_want_lines)
CALL_FLAG(torch_want_inputs)

#define CALL_WITH_NUMBER(name)                                                                                         \
	static PyObject *name(PyObject *self, PyObject *number)                                                        \
	{                                                                                                              \
		unsigned long long value = PyLong_AsUnsignedLongLong(number);                                          \
		if (PyErr_Occurred())                                                                                  \
			return NULL;                                                                                   \
		library.stepscope_##name(value);                                                                       \
		Py_RETURN_NONE;                                                                                        \
	}
CALL_WITH_NUMBER(torch_loader)
CALL_WITH_NUMBER(torch_loader_start)
CALL_WITH_NUMBER(torch_unfollow)

static PyObject *torch_problem(PyObject *self, PyObject *nothing)
{
	const char *problem = library.stepscope_torch_problem();
	return PyUnicode_DecodeUTF8(problem, (Py_ssize_t)strlen(problem), "replace");
}

/* Takes bytes. */
static PyObject *torch_want_lean(PyObject *self, PyObject *parts)
{
	const char *text = PyBytes_AsString(parts);
	if (!text)
		return NULL;
	library.stepscope_torch_want_lean(text);
	Py_RETURN_NONE;
}

/* Takes a tensor, a kind, a type, and a tuple of its sizes followed by its strides. */
static PyObject *torch_probe_tensor(PyObject *self, PyObject *arguments)
{
	unsigned long long tensor;
	int kind, type;
	PyObject *given;
	int64_t sizes[2 * DIMENSIONS_MAX];
	if (!PyArg_ParseTuple(arguments, "KiiO!:torch_probe_tensor", &tensor, &kind, &type, &PyTuple_Type, &given))
		return NULL;
	Py_ssize_t count = PyTuple_Size(given);
	if (count > 2 * DIMENSIONS_MAX)
		return PyErr_Format(PyExc_ValueError, "at most %d dimensions", DIMENSIONS_MAX);
	for (Py_ssize_t i = 0; i < count; i++)
		sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(given, i));
	if (PyErr_Occurred())
		return NULL;
	library.stepscope_torch_probe_tensor(tensor, kind, type, sizes, (int)count / 2);
	Py_RETURN_NONE;
}

static PyObject *torch_probe_value(PyObject *self, PyObject *arguments)
{
	unsigned long long bits;
	int type;
	if (!PyArg_ParseTuple(arguments, "iK:torch_probe_value", &type, &bits))
		return NULL;
	library.stepscope_torch_probe_value(type, bits);
	Py_RETURN_NONE;
}

static PyObject *torch_probe_inputs(PyObject *self, PyObject *arguments)
{
	unsigned long long first, second;
	if (!PyArg_ParseTuple(arguments, "KK:torch_probe_inputs", &first, &second))
		return NULL;
	library.stepscope_torch_probe_inputs(first, second);
	Py_RETURN_NONE;
}

static PyObject *torch_rank(PyObject *self, PyObject *arguments)
{
	int rank, world_size;
	if (!PyArg_ParseTuple(arguments, "ii:torch_rank", &rank, &world_size))
		return NULL;
	library.stepscope_torch_rank(rank, world_size);
	Py_RETURN_NONE;
}

/* Takes bytes, see stepscope_torch_owners(). */
static PyObject *torch_owners(PyObject *self, PyObject *words)
{
	char *start;
	Py_ssize_t size;
	if (PyBytes_AsStringAndSize(words, &start, &size) < 0)
		return NULL;
	library.stepscope_torch_owners(start, (int)(size / (Py_ssize_t)(3 * sizeof(uint64_t))));
	Py_RETURN_NONE;
}

static PyObject *torch_may_want_owners(PyObject *self, PyObject *nothing)
{
	return PyBool_FromLong(library.stepscope_torch_may_want_owners());
}

static PyObject *look; /* Python's part, which looks at tensors with gradients; NULL: it does not want to */

/* Runs in the main thread, when that runs Python next. */
static int look_behind_backward(void *nothing)
{
	PyObject *called = look; /* it may replace `look` */
	if (!called)
		return 0;
	Py_INCREF(called);
	bool is_done = native_call_ours(called, NULL, NULL, NULL);
	Py_DECREF(called);
	return is_done ? 0 : -1;
}

static void on_backward(void)
{
	(void)Py_AddPendingCall(look_behind_backward, NULL);
}

/* torch_watch_backward(look, is_later): calls look() once after the next backward, see backward_watch(); look None:
 * stops. */
static PyObject *torch_watch_backward(PyObject *self, PyObject *arguments)
{
	PyObject *given;
	int is_later;
	if (!PyArg_ParseTuple(arguments, "Op:torch_watch_backward", &given, &is_later))
		return NULL;
	Py_XDECREF(look);
	look = given == Py_None ? NULL : given;
	Py_XINCREF(look);
	library.stepscope_torch_watch_backward(look ? on_backward : NULL, is_later);
	Py_RETURN_NONE;
}

/* torch_make_records(is_on): returns whether it was on; None: this PyTorch cannot tell. */
static PyObject *torch_make_records(PyObject *self, PyObject *is_on)
{
	int was_on = library.stepscope_torch_make_records(is_on == Py_True);
	if (was_on < 0)
		Py_RETURN_NONE;
	return PyBool_FromLong(was_on);
}

PyMethodDef native_torch_methods[] = {
	{"torch_find", torch_find, METH_NOARGS, NULL},
	{"torch_want_lean", torch_want_lean, METH_O, NULL},
	{"torch_probe_begin", torch_probe_begin, METH_NOARGS, NULL},
	{"torch_probe_tensor", torch_probe_tensor, METH_VARARGS, NULL},
	{"torch_probe_value", torch_probe_value, METH_VARARGS, NULL},
	{"torch_probe_inputs", torch_probe_inputs, METH_VARARGS, NULL},
	{"torch_probe_solve", torch_probe_solve, METH_NOARGS, NULL},
	{"torch_probe_check", torch_probe_check, METH_VARARGS, NULL},
	{"torch_probe_end", torch_probe_end, METH_NOARGS, NULL},
	{"torch_settled", torch_settled, METH_NOARGS, NULL},
	{"torch_start", torch_start, METH_NOARGS, NULL},
	{"torch_want_inputs", torch_want_inputs, METH_VARARGS, NULL},
	{"torch_lines_find", torch_lines_find, METH_NOARGS, NULL},
	{"torch_lines_check", torch_lines_check, METH_VARARGS, NULL},
	{"torch_lines_stop", torch_lines_stop, METH_NOARGS, NULL},
	{"torch_want_lines", torch_want_lines, METH_VARARGS, NULL},
	{"torch_stop", torch_stop, METH_NOARGS, NULL},
	{"torch_follow", torch_follow, METH_NOARGS, NULL},
	{"torch_unfollow", torch_unfollow, METH_O, NULL},
	{"torch_loader", torch_loader, METH_O, NULL},
	{"torch_loader_start", torch_loader_start, METH_O, NULL},
	{"torch_loader_end", torch_loader_end, METH_NOARGS, NULL},
	{"torch_rank", torch_rank, METH_VARARGS, NULL},
	{"torch_owners", torch_owners, METH_O, NULL},
	{"torch_wants_owners", torch_wants_owners, METH_NOARGS, NULL},
	{"torch_rotations", torch_rotations, METH_NOARGS, NULL},
	{"torch_may_want_owners", torch_may_want_owners, METH_NOARGS, NULL},
	{"torch_watch_backward", torch_watch_backward, METH_VARARGS, NULL},
	{"torch_make_records", torch_make_records, METH_O, NULL},
	{"torch_too_deep", torch_too_deep, METH_NOARGS, NULL},
	{"torch_problem", torch_problem, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
