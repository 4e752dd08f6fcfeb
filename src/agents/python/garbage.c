/* SPDX-License-Identifier: Apache-2.0
 *
 * garbage.c: records Python's garbage collections as ranges. Python prints and drops exceptions of a callback of gc,
 * even the user's Ctrl-C. So this is in C, where no Ctrl-C arrives. One that arrives in the Python code called from
 * here is sent again.
 */
#include "agents/python/native.h"

#define GENERATIONS 3

static struct {
	PyObject *notice; /* called after collections until it returns true; NULL: not called */
	uint32_t symbols[GENERATIONS], collected;
	bool is_open;
} garbage;

static long number_in(PyObject *info, const char *key)
{
	PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL;
	long number = value ? PyLong_AsLong(value) : -1;
	if (PyErr_Occurred())
		PyErr_Clear();
	return number;
}

static void garbage_begin(long generation)
{
	static const char *const names[GENERATIONS] = {"garbage collection 0", "garbage collection 1",
	                                               "garbage collection 2"};
	if (generation < 0 || generation >= GENERATIONS ||
	    !library_records(STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_RARE))
		return;
	if (!garbage.symbols[generation])
		garbage.symbols[generation] = library.stepscope_name(STEPSCOPE_KIND_RANGE, names[generation]);
	garbage.is_open = library.stepscope_torch_range(garbage.symbols[generation], 0, &garbage);
}

/* After a full collection, also records the number of objects it found: full ones are rare. */
static void garbage_end(PyObject *info)
{
	if (!garbage.is_open)
		return;
	garbage.is_open = false;
	library.stepscope_torch_range_end(&garbage);
	if (number_in(info, "generation") != GENERATIONS - 1)
		return;
	if (!garbage.collected)
		garbage.collected = library.stepscope_name(STEPSCOPE_KIND_COUNTER, "garbage.collected");
	library.stepscope_emit_value(garbage.collected, (double)number_in(info, "collected"));
}

static void notify(void)
{
	PyObject *hidden = native_hide();
	PyObject *done = PyObject_CallFunctionObjArgs(garbage.notice, NULL);
	native_show(hidden);
	if (!done && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
		PyErr_Clear();
		PyErr_SetInterrupt(); /* for the program, after the collection */
		return;
	}
	if (done != Py_False)
		Py_CLEAR(garbage.notice);
	if (!done && PyErr_ExceptionMatches(PyExc_Exception))
		PyErr_Clear(); /* other exceptions are the program's, and Python prints them */
	Py_XDECREF(done);
}

/* For gc.callbacks: called with "start" or "stop", and a dictionary. */
static PyObject *garbage_callback(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	if (count < 2 || !PyUnicode_Check(arguments[0]))
		Py_RETURN_NONE;
	if (PyUnicode_CompareWithASCIIString(arguments[0], "start") == 0) {
		garbage_begin(number_in(arguments[1], "generation"));
		Py_RETURN_NONE;
	}
	garbage_end(arguments[1]);
	if (garbage.notice)
		notify();
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *garbage_notice(PyObject *self, PyObject *function)
{
	Py_XINCREF(function);
	Py_XDECREF(garbage.notice);
	garbage.notice = function;
	Py_RETURN_NONE;
}

PyMethodDef native_garbage_methods[] = {
	{"garbage_callback", NATIVE_FAST(garbage_callback), METH_FASTCALL, "For gc.callbacks."},
	{"garbage_notice", garbage_notice, METH_O,
         "garbage_notice(function): calls the function after collections until it returns true."},
	{NULL, NULL, 0, NULL},
};
