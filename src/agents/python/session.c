/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c: starts and stops the recording, and reports its state.
 */
#include "agents/python/native.h"

static PyObject *init(PyObject *self, PyObject *arguments)
{
	const char *options = NULL;
	int result;
	if (!PyArg_ParseTuple(arguments, "|z:init", &options))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	result = library.stepscope_init(options);
	Py_END_ALLOW_THREADS;
	if (result != 0)
		return PyErr_Format(PyExc_RuntimeError, "%s", library.stepscope_error());
	Py_RETURN_NONE;
}

static PyObject *shutdown(PyObject *self, PyObject *nothing)
{
	Py_BEGIN_ALLOW_THREADS;
	library.stepscope_shutdown();
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static PyObject *flush(PyObject *self, PyObject *nothing)
{
	Py_BEGIN_ALLOW_THREADS;
	library.stepscope_flush();
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static PyObject *active(PyObject *self, PyObject *nothing)
{
	return PyLong_FromUnsignedLong(__atomic_load_n(library.active, __ATOMIC_RELAXED));
}

static PyObject *is_recording(PyObject *self, PyObject *nothing)
{
	return PyBool_FromLong(library_records(STEPSCOPE_ACTIVE_DETAIL));
}

static PyObject *library_path(PyObject *self, PyObject *nothing)
{
	return PyUnicode_DecodeFSDefault(library.path);
}

/* A stretch that a profiler in the program wants, see python/stepscope/profiler.py. */
static PyObject *window_begin(PyObject *self, PyObject *arguments)
{
	unsigned with = 0;
	if (!PyArg_ParseTuple(arguments, "|I:window_begin", &with))
		return NULL;
	return PyLong_FromUnsignedLong(library.stepscope_window_begin(with));
}

static PyObject *window_end(PyObject *self, PyObject *arguments)
{
	unsigned number;
	if (!PyArg_ParseTuple(arguments, "I:window_end", &number))
		return NULL;
	library.stepscope_window_end(number);
	Py_RETURN_NONE;
}

static PyObject *run_directory(PyObject *self, PyObject *nothing)
{
	return PyUnicode_DecodeFSDefault(library.stepscope_run_directory());
}

PyMethodDef native_session_methods[] = {
	{"init", init, METH_VARARGS,
         "init(options=None): starts recording now, or raises RuntimeError with the reason. "
         "Options are a list such as 'with=shapes,out=runs/a' in the names of `stepscope run "
         "--help`. The environment overrides them."},
	{"shutdown", shutdown, METH_NOARGS, "shutdown(): writes pending data and closes the recording."},
	{"flush", flush, METH_NOARGS, "flush(): returns when everything recorded so far is in the file."},
	{"active", active, METH_NOARGS,
         "active(): bits of the data recorded now: 1 steps, 2 detail, 4 shapes, 8 memory."},
	{"is_recording", is_recording, METH_NOARGS,
         "is_recording(): returns true if ranges and operators are recorded now."},
	{"window_begin", window_begin, METH_VARARGS,
         "window_begin(bits=0): records detail from now on, regardless of the schedule; bits as "
         "in active(). Returns the number of the window, or 0 if nothing is recorded."},
	{"window_end", window_end, METH_VARARGS, "window_end(number)"},
	{"run_directory", run_directory, METH_NOARGS,
         "run_directory(): the directory of this process's recording, or '' before it starts."},
	{"library_path", library_path, METH_NOARGS, "library_path(): the libstepscope that this process uses."},
	{NULL, NULL, 0, NULL},
};
