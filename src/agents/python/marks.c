/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.c: events at one instant: steps, values, marks, facts, allocations.
 */
#include "agents/python/native.h"

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Takes None or a count. Returns false for other values, with an exception. */
static bool get_count(PyObject *object, bool *is_given, uint64_t *count)
{
	*is_given = object && object != Py_None;
	if (!*is_given)
		return true;
	*count = PyLong_AsUnsignedLongLong(object);
	return !PyErr_Occurred();
}

/* True if a profiler in the program began the newest step (python/stepscope/profiler.py). A step that the program
 * marks itself takes its place. */
static bool is_announced;

static PyObject *step_abandon(PyObject *self, PyObject *nothing)
{
	library.stepscope_step_abandon();
	Py_RETURN_NONE;
}

static PyObject *step_announce(PyObject *self, PyObject *number)
{
	long long value = PyLong_AsLongLong(number);
	if (value == -1 && PyErr_Occurred())
		return NULL;
	is_announced = true;
	if (library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_emit_step_begin(value);
	Py_RETURN_NONE;
}

static PyObject *step_is_announced(PyObject *self, PyObject *nothing)
{
	return PyBool_FromLong(is_announced);
}

/* Tokens and samples, each if it is given. */
struct step_counts {
	bool is_given[2];
	uint64_t counts[2];
};

static bool get_counts(PyObject *const *objects, struct step_counts *counts)
{
	return get_count(objects[0], &counts->is_given[0], &counts->counts[0]) &&
	       get_count(objects[1], &counts->is_given[1], &counts->counts[1]);
}

static void put_counts(const struct step_counts *counts)
{
	for (int i = 0; i < 2; i++)
		if (counts->is_given[i] && library_records(STEPSCOPE_ACTIVE_STEPS))
			library.stepscope_emit_step_count(i, counts->counts[i]);
}

/* Checks all arguments before the step starts. */
static PyObject *step_begin(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	PyObject *const given[2] = {count > 1 ? arguments[1] : NULL, count > 2 ? arguments[2] : NULL};
	struct step_counts counts;
	if (count < 1 || count > 3)
		return PyErr_Format(PyExc_TypeError,
		                    "step_begin() takes a number, and optionally tokens and samples (%zd given)",
		                    count);
	long long value = PyLong_AsLongLong(arguments[0]);
	if ((value == -1 && PyErr_Occurred()) || !get_counts(given, &counts))
		return NULL;
	if (is_announced)
		library.stepscope_step_abandon();
	is_announced = false;
	if (library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_emit_step_begin(value);
	put_counts(&counts);
	Py_RETURN_NONE;
}

static PyObject *step_end(PyObject *self, PyObject *nothing)
{
	if (library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_emit_step_end();
	Py_RETURN_NONE;
}

static PyObject *step_count(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"tokens", "samples", NULL};
	PyObject *given[2] = {NULL, NULL};
	struct step_counts counts;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:step_count", names, &given[0], &given[1]) ||
	    !get_counts(given, &counts))
		return NULL;
	put_counts(&counts);
	Py_RETURN_NONE;
}

/* ---- values and marks -------------------------------------------------------------------------------------------- */

/* Returns false with an exception. Calls item() of a tensor, because PyTorch warns about float() of a tensor with a
 * graph. */
static bool get_double(PyObject *object, double *value)
{
	PyObject *item = NULL;
	if (!PyFloat_Check(object) && !PyLong_Check(object) && PyObject_HasAttrString(object, "item")) {
		item = PyObject_CallMethod(object, "item", NULL);
		if (!item)
			return false;
		object = item;
	}
	*value = PyFloat_AsDouble(object);
	Py_XDECREF(item);
	return *value != -1.0 || !PyErr_Occurred();
}

/* While nothing is recorded, the value is not read: a tensor on a device would wait for the device. */
static PyObject *marks_put_value(enum stepscope_kind kind, const char *function, PyObject *const *arguments,
                                 Py_ssize_t count)
{
	uint32_t symbol;
	if (count != 2)
		return PyErr_Format(PyExc_TypeError, "%s() takes a name and a value (%zd given)", function, count);
	if (!native_symbol(kind, arguments[0], &symbol))
		return NULL;
	if (!library_records(STEPSCOPE_ACTIVE_STEPS))
		Py_RETURN_NONE;
	double value;
	if (!get_double(arguments[1], &value))
		return NULL;
	library.stepscope_emit_value(symbol, value);
	Py_RETURN_NONE;
}

static PyObject *counter(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	return marks_put_value(STEPSCOPE_KIND_COUNTER, "counter", arguments, count);
}

static PyObject *metric(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	return marks_put_value(STEPSCOPE_KIND_METRIC, "metric", arguments, count);
}

static PyObject *mark(PyObject *self, PyObject *name)
{
	uint32_t symbol;
	if (!native_symbol(STEPSCOPE_KIND_MARK, name, &symbol))
		return NULL;
	if (library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_emit_mark(symbol);
	Py_RETURN_NONE;
}

static PyObject *metadata(PyObject *self, PyObject *arguments)
{
	PyObject *key, *value;
	if (!PyArg_ParseTuple(arguments, "UU:metadata", &key, &value))
		return NULL;
	if (!library_records(STEPSCOPE_ACTIVE_STEPS))
		Py_RETURN_NONE;
	PyObject *key_bytes = native_utf8(key), *value_bytes = native_utf8(value);
	if (key_bytes && value_bytes)
		library.stepscope_emit_metadata(PyBytes_AsString(key_bytes), PyBytes_AsString(value_bytes));
	PyErr_Clear();
	Py_XDECREF(key_bytes);
	Py_XDECREF(value_bytes);
	Py_RETURN_NONE;
}

static PyObject *thread_name(PyObject *self, PyObject *arguments)
{
	PyObject *name;
	if (!PyArg_ParseTuple(arguments, "U:thread_name", &name))
		return NULL;
	PyObject *bytes = library_records(STEPSCOPE_ACTIVE_STEPS) ? native_utf8(name) : NULL;
	if (bytes)
		library.stepscope_emit_thread_name(PyBytes_AsString(bytes));
	PyErr_Clear();
	Py_XDECREF(bytes);
	Py_RETURN_NONE;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int marks_category_of(const char *word)
{
	static const char *const words[] = {"other", "parameter", "gradient", "optimizer", "activation",
	                                    "input", "temporary", "autograd", "buffer"};
	for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	PyErr_Format(PyExc_ValueError,
	             "unknown memory category '%s': use other, parameter, gradient, optimizer, activation, "
	             "input, temporary, autograd or buffer",
	             word);
	return -1;
}

/* A converter for PyArg_ParseTupleAndKeywords(), whose own K accepts numbers that do not fit. */
static int to_address(PyObject *object, void *address)
{
	PyObject *index = PyNumber_Index(object);
	*(unsigned long long *)address = index ? PyLong_AsUnsignedLongLong(index) : 0;
	Py_XDECREF(index);
	return !PyErr_Occurred();
}

static int to_bytes(PyObject *object, void *bytes)
{
	if (!to_address(object, bytes))
		return 0;
	if (*(unsigned long long *)bytes <= INT64_MAX)
		return 1;
	PyErr_SetString(PyExc_OverflowError, "the number of bytes does not fit in 63 bits");
	return 0;
}

static PyObject *memory_alloc(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"address", "bytes", "category", "device", NULL};
	unsigned long long address, bytes;
	const char *word = "other";
	int device = STEPSCOPE_DEVICE_CPU;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&O&|si:memory_alloc", names, to_address, &address,
	                                 to_bytes, &bytes, &word, &device))
		return NULL;
	int category = marks_category_of(word);
	if (category < 0)
		return NULL;
	if (library_records(STEPSCOPE_ACTIVE_MEMORY))
		library.stepscope_emit_alloc((const void *)(uintptr_t)address, bytes, category, device);
	Py_RETURN_NONE;
}

static PyObject *memory_free(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"address", "device", NULL};
	unsigned long long address;
	int device = STEPSCOPE_DEVICE_CPU;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&|i:memory_free", names, to_address, &address, &device))
		return NULL;
	if (library_records(STEPSCOPE_ACTIVE_MEMORY))
		library.stepscope_emit_free((const void *)(uintptr_t)address, device);
	Py_RETURN_NONE;
}

PyMethodDef native_mark_methods[] = {
	{"step_begin", NATIVE_FAST(step_begin), METH_FASTCALL,
         "step_begin(number, tokens=None, samples=None, /): starts a step; first ends an open step."},
	{"step_end", step_end, METH_NOARGS, "step_end(): ends the open step."},
	{"step_announce", step_announce, METH_O,
         "step_announce(number): step_begin() for a profiler; a step that the program itself starts replaces it."},
	{"step_is_announced", step_is_announced, METH_NOARGS,
         "step_is_announced(): returns true if the program itself started no step since step_announce()."},
	{"step_abandon", step_abandon, METH_NOARGS,
         "step_abandon(): ends the open step, which then does not count as complete."},
	{"step_count", NATIVE_FAST(step_count), METH_VARARGS | METH_KEYWORDS,
         "step_count(tokens=None, samples=None): adds tokens and samples to the open step."},
	{"counter", NATIVE_FAST(counter), METH_FASTCALL, "counter(name, value): records a quantity over time."},
	{"metric", NATIVE_FAST(metric), METH_FASTCALL, "metric(name, value): records a result of the open step."},
	{"mark", mark, METH_O, "mark(name): records an event at this instant."},
	{"metadata", metadata, METH_VARARGS, "metadata(key, value): records a fact about the run; both are strings."},
	{"thread_name", thread_name, METH_VARARGS, "thread_name(name): names the calling thread in reports."},
	{"memory_alloc", NATIVE_FAST(memory_alloc), METH_VARARGS | METH_KEYWORDS,
         "memory_alloc(address, bytes, category='other', device=-1): records allocated memory."},
	{"memory_free", NATIVE_FAST(memory_free), METH_VARARGS | METH_KEYWORDS,
         "memory_free(address, device=-1): records released memory."},
	{NULL, NULL, 0, NULL},
};
