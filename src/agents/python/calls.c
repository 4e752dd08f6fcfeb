/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c: wraps functions of PyTorch, so that steps are counted while its records are not observed
 * (STEPSCOPE_ACTIVE_CALLS). They are record_function()'s `with`, the engine's run over a graph, and the update of a
 * gradient scaler. modules.c does the same for modules.
 *
 * Functions in Python are wrapped as in vectorcall.h: `with` calls them from C. Functions in C are wrapped in their
 * definition (PyMethodDef), which gets our function. The object that the program holds, and that torch.compile
 * compares, stays the same.
 */
#include "agents/python/vectorcall.h"
#include "agents/torch/process.h"

#include <dlfcn.h>

/* Offset of an object's definition, since CPython 3.8. */
#define DEFINITION_IN_DESCRIPTOR 40
#define DEFINITION_IN_FUNCTION 16

#define WITH_KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define FAST (METH_FASTCALL | METH_KEYWORDS) /* in newer versions of pybind11 */

typedef PyObject *keyword_function(PyObject *self, PyObject *arguments, PyObject *keywords);
typedef PyObject *fast_function(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);

union function_in_c {
	PyCFunction plain;
	keyword_function *with_keywords;
	fast_function *fast;
};

static struct {
	vectorcall *enter, *exit; /* of record_function */
	PyObject *record_kind;    /* record_function itself */
	keyword_function *run, *update;
} originals;

static PyObject *text_name, *text_accumulate;
static uint32_t backward_symbol;
static __thread unsigned open_ranges; /* number of record_function's ranges that were noted */

/* ---- record_function --------------------------------------------------------------------------------------------- */

/* Takes only PyTorch's own class. Subclasses are the program's business: the name may be code that runs, and no range
 * that counts steps is of a subclass. */
static void calls_begin_range(PyObject *record)
{
	if ((PyObject *)Py_TYPE(record) != originals.record_kind)
		return;
	PyObject *name = PyObject_GetAttr(record, text_name);
	PyObject *bytes = name && PyUnicode_Check(name) ? native_utf8(name) : NULL;
	if (bytes)
		open_ranges += library.stepscope_torch_call_range(PyBytes_AsString(bytes), record) != 0;
	PyErr_Clear();
	Py_XDECREF(bytes);
	Py_XDECREF(name);
}

static PyObject *call_enter(PyObject *function, PyObject *const *arguments, size_t count_and_flag, PyObject *names)
{
	PyObject *result = originals.enter(function, arguments, count_and_flag, names);
	if (result && library_records(STEPSCOPE_ACTIVE_CALLS) && vectorcall_count(count_and_flag))
		calls_begin_range(arguments[0]);
	return result;
}

static PyObject *call_exit(PyObject *function, PyObject *const *arguments, size_t count_and_flag, PyObject *names)
{
	bool is_noted = open_ranges && vectorcall_count(count_and_flag) &&
	                library.stepscope_torch_range_end(arguments[0]);
	open_ranges -= is_noted;
	return originals.exit(function, arguments, count_and_flag, names);
}

/* watch_records(record_function, its __enter__, its __exit__, other) */
static PyObject *watch_records(PyObject *self, PyObject *arguments)
{
	PyObject *kind, *enter, *exit, *other;
	if (!PyArg_ParseTuple(arguments, "OOOO:watch_records", &kind, &enter, &exit, &other))
		return NULL;
	if (!originals.exit)
		originals.exit = vectorcall_replace(exit, other, call_exit);
	if (originals.exit && !originals.enter)
		originals.enter = vectorcall_replace(enter, other, call_enter);
	if (!originals.enter)
		Py_RETURN_FALSE;
	Py_INCREF(kind);
	originals.record_kind = kind;
	Py_INCREF(enter);
	Py_INCREF(exit);
	Py_RETURN_TRUE;
}

/* ---- functions in C ---------------------------------------------------------------------------------------------- */

/* Returns true if the call accumulates gradients, by keyword or by the last of seven arguments. */
static bool accumulates(PyObject *arguments, PyObject *keywords)
{
	PyObject *named = keywords ? PyDict_GetItem(keywords, text_accumulate) : NULL;
	return named == Py_True || (!named && PyTuple_Size(arguments) == 7 && PyTuple_GetItem(arguments, 6) == Py_True);
}

static PyObject *run_noted(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	if (!library_records(STEPSCOPE_ACTIVE_CALLS))
		return originals.run(self, arguments, keywords);
	PyObject *result = NULL;
	bool is_noted = library.stepscope_torch_call_backward(accumulates(arguments, keywords), &result);
	if (!backward_symbol)
		backward_symbol = library.stepscope_name(STEPSCOPE_KIND_RANGE, "backward()");
	uint32_t before = library.stepscope_torch_in_call(backward_symbol);
	result = originals.run(self, arguments, keywords);
	(void)library.stepscope_torch_in_call(before);
	if (is_noted)
		library.stepscope_torch_range_end(&result);
	return result;
}

static PyObject *call_run(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	native_read_use();
	PyObject *result = run_noted(self, arguments, keywords);
	native_read_use();
	return result;
}

static PyObject *call_update(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	if (!library_records(STEPSCOPE_ACTIVE_CALLS))
		return originals.update(self, arguments, keywords);
	PyObject *result = NULL;
	bool is_noted = library.stepscope_torch_call_scaler(&result);
	result = originals.update(self, arguments, keywords);
	if (is_noted)
		library.stepscope_torch_range_end(&result);
	return result;
}

/* ---- collectives: only for the report about a process that dies -------------------------------------------------- */

#define COLLECTIVES_MAX 32u

static struct collective {
	PyObject *self; /* __self__ of the function in C, which identifies it */
	union function_in_c original;
	const char *name;
	uint32_t symbol;
	bool waits; /* waits for the collective that this thread issued last */
} collectives[COLLECTIVES_MAX];
static unsigned collective_count;
static __thread const struct collective *issued;

static struct collective *find_collective(const PyObject *self)
{
	unsigned at = 0;
	while (at + 1 < collective_count && collectives[at].self != self)
		at++;
	return &collectives[at];
}

/* Returns the call that the thread was in before. */
static uint32_t begin_collective(struct collective *collective)
{
	if (!collective->symbol)
		collective->symbol = library.stepscope_name(STEPSCOPE_KIND_OP, collective->name);
	if (!collective->waits)
		issued = collective;
	const struct collective *told = collective->waits && issued ? issued : collective;
	return library.stepscope_torch_in_call(told->symbol);
}

static PyObject *call_collective(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct collective *collective = find_collective(self);
	if (!library_records(STEPSCOPE_ACTIVE_CALLS))
		return collective->original.with_keywords(self, arguments, keywords);
	uint32_t before = begin_collective(collective);
	PyObject *result = collective->original.with_keywords(self, arguments, keywords);
	(void)library.stepscope_torch_in_call(before);
	return result;
}

static PyObject *call_collective_fast(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
	struct collective *collective = find_collective(self);
	if (!library_records(STEPSCOPE_ACTIVE_CALLS))
		return collective->original.fast(self, arguments, count, names);
	uint32_t before = begin_collective(collective);
	PyObject *result = collective->original.fast(self, arguments, count, names);
	(void)library.stepscope_torch_in_call(before);
	return result;
}

/* Returns the definition of a function or method in C that has this name, takes keywords in one of the two ways, and
 * is writable. NULL: it is not as expected. */
static PyMethodDef *find_definition(PyObject *function, const char *name)
{
	PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(function), "__name__");
	bool is_descriptor = type && PyUnicode_CompareWithASCIIString(type, "method_descriptor") == 0;
	bool is_function = type && PyUnicode_CompareWithASCIIString(type, "builtin_function_or_method") == 0;
	uint64_t place = (uint64_t)(uintptr_t)function +
	                 (is_descriptor ? DEFINITION_IN_DESCRIPTOR : DEFINITION_IN_FUNCTION);
	uint64_t address = 0;
	PyMethodDef definition;
	char text[64] = "";
	Py_XDECREF(type);
	PyErr_Clear();
	bool is_good = (is_descriptor || is_function) && strlen(name) < sizeof(text) &&
	               process_copy(place, &address, sizeof(address)) &&
	               process_copy(address, &definition, sizeof(definition)) &&
	               process_copy((uint64_t)(uintptr_t)definition.ml_name, text, strlen(name) + 1) &&
	               strcmp(text, name) == 0;
	int flags = is_good ? definition.ml_flags & ~METH_STATIC : 0;
	is_good &= flags == WITH_KEYWORDS || flags == FAST;
	return is_good && process_may_write(address, sizeof(definition)) ? (PyMethodDef *)(uintptr_t)address : NULL;
}

/* Puts `call` in the place of the definition's function, and returns that function. */
static union function_in_c put_in_place(PyMethodDef *definition, union function_in_c call)
{
	const union function_in_c original = {.plain = definition->ml_meth};
	__atomic_store_n(&definition->ml_meth, call.plain, __ATOMIC_RELEASE);
	return original;
}

/* Replaces a function that takes a dictionary of keywords, and returns it; NULL: not possible. */
static keyword_function *replace(PyObject *function, const char *name, keyword_function *call)
{
	PyMethodDef *definition = find_definition(function, name);
	bool is_good = definition && (definition->ml_flags & ~METH_STATIC) == WITH_KEYWORDS;
	return is_good ? put_in_place(definition, (union function_in_c){.with_keywords = call}).with_keywords : NULL;
}

/* watch_engine(method): the method of the engine's class that runs it over a graph. */
static PyObject *watch_engine(PyObject *self, PyObject *method)
{
	if (!originals.run)
		originals.run = replace(method, "run_backward", call_run);
	return PyBool_FromLong(originals.run != NULL);
}

/* watch_scaler(function): the function that a gradient scaler's update calls. */
static PyObject *watch_scaler(PyObject *self, PyObject *function)
{
	if (!originals.update)
		originals.update = replace(function, "_amp_update_scale_", call_update);
	return PyBool_FromLong(originals.update != NULL);
}

/* watch_collective(function, name, waits): a function of a process group or of its work. */
static PyObject *watch_collective(PyObject *self, PyObject *arguments)
{
	PyObject *function;
	const char *name;
	int waits;
	if (!PyArg_ParseTuple(arguments, "Osp:watch_collective", &function, &name, &waits))
		return NULL;
	PyObject *its_self = PyObject_GetAttrString(function, "__self__");
	PyMethodDef *definition = its_self ? find_definition(function, name) : NULL;
	PyErr_Clear();
	if (!definition || collective_count == COLLECTIVES_MAX) {
		Py_XDECREF(its_self);
		Py_RETURN_FALSE;
	}
	/* for ever, like the function's definition */
	struct collective *made = &collectives[collective_count++];
	*made = (struct collective){.self = its_self, .name = strdup(name), .waits = waits};
	const union function_in_c with_keywords = {.with_keywords = call_collective},
				  fast = {.fast = call_collective_fast};
	made->original = put_in_place(definition, definition->ml_flags & METH_FASTCALL ? fast : with_keywords);
	Py_RETURN_TRUE;
}

static PyObject *torch_sees_calls(PyObject *self, PyObject *nothing)
{
	library.stepscope_torch_sees_calls();
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"watch_records", watch_records, METH_VARARGS, NULL},
	{"watch_engine", watch_engine, METH_O, NULL},
	{"watch_scaler", watch_scaler, METH_O, NULL},
	{"watch_collective", watch_collective, METH_VARARGS, NULL},
	{"torch_sees_calls", torch_sees_calls, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

bool native_add_calls(PyObject *module)
{
	text_name = PyUnicode_InternFromString("name");
	text_accumulate = PyUnicode_InternFromString("accumulate_grad");
	return text_name && text_accumulate && PyModule_AddFunctions(module, methods) == 0;
}
