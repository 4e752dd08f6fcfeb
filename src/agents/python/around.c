/* SPDX-License-Identifier: Apache-2.0
 *
 * around.c: around(function, ...) makes a callable that replaces one of PyTorch's functions and does something before
 * and after each call. It makes no frame, so tracebacks do not change. Results and exceptions pass untouched. It looks
 * like the function: attributes, signature, repr and pickle are the function's.
 */
#include "agents/python/native.h"

#include <string.h>

enum around_use { /* of the call, for the recording */
	AROUND_NONE,
	AROUND_READS,    /* the thread's CPU time is read before and after the call */
	AROUND_TAKES,    /* the same, and the call takes batches of workers */
	AROUND_DISPATCH, /* the call gives a worker of the loop, its first argument, a batch to make */
};

struct around {
	PyObject ob_base;
	PyObject *function;
	PyObject *before;  /* called with one of the arguments; its exceptions are dropped; NULL */
	PyObject *after;   /* the same, plus the type of the function's exception, or None; NULL */
	bool is_optimizer; /* the call is a step of the optimizer that is its first argument */
	bool is_recursive; /* nested calls of it have no range */
	bool is_rare;      /* the range is recorded in steps without operators, too */
	PyObject *outer;   /* another `around`: calls nested in one of that have no range; NULL */
	uint8_t stretch;   /* enum stepscope_training, if PyTorch has no record of the call; 0: none */
	uint32_t symbol;   /* of the range; 0: none, or not known yet */
	PyObject *name;    /* of the range; NULL: none */
	PyObject *idle;    /* attribute of the first argument: if true, the call does nothing and has no range; NULL */
	enum around_use use;
	int argument; /* index of the argument that before and after get */
};

static __thread const struct around *recursive; /* the recursive `around` whose call this thread is in */
static PyTypeObject *around_type;
static PyObject *method_type; /* types.MethodType */

/* Returns the argument that before and after get; None if it was not passed by position. */
static PyObject *told(const struct around *around, PyObject *arguments)
{
	return PyTuple_Size(arguments) > around->argument ? PyTuple_GetItem(arguments, around->argument) : Py_None;
}

/* Calls `after` with the type of the function's exception, and then lets the exception pass. */
static PyObject *call_after(struct around *around, PyObject *arguments, PyObject *result)
{
	PyObject *type, *value, *traceback;
	if (!around->after)
		return result;
	PyErr_Fetch(&type, &value, &traceback);
	if (native_call_ours(around->after, told(around, arguments), type ? type : Py_None, NULL)) {
		PyErr_Restore(type, value, traceback);
		return result;
	}
	Py_XDECREF(result);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return NULL;
}

/* Returns true if the end of `key` must be called. */
static bool around_begin_range(struct around *around, const void *key)
{
	unsigned bits = STEPSCOPE_ACTIVE_DETAIL | (around->is_rare ? STEPSCOPE_ACTIVE_RARE : 0);
	bool is_wanted = around->name && library_records(bits);
	if (is_wanted && !around->symbol && !native_symbol(STEPSCOPE_KIND_RANGE, around->name, &around->symbol))
		PyErr_Clear();
	uint32_t symbol = is_wanted ? around->symbol : 0;
	return (symbol || around->stretch) && library.stepscope_torch_range(symbol, around->stretch, key);
}

/* Returns true if the object reports that the call does nothing. */
static bool is_idle(const struct around *around, PyObject *arguments)
{
	if (!around->idle || PyTuple_Size(arguments) < 1)
		return false;
	PyObject *value = PyObject_GetAttr(PyTuple_GetItem(arguments, 0), around->idle);
	bool is_idle = value && PyObject_IsTrue(value) == 1;
	Py_XDECREF(value);
	PyErr_Clear();
	return is_idle;
}

/* Calls the function in its range. */
static PyObject *call_function(struct around *around, PyObject *arguments, PyObject *keywords, const void *key)
{
	struct native_dispatch dispatch = {0};
	bool is_dispatch = around->use == AROUND_DISPATCH && PyTuple_Size(arguments) > 0;
	if (is_dispatch)
		native_dispatch_find(&dispatch, PyTuple_GetItem(arguments, 0));
	bool is_begun = !is_idle(around, arguments) && around_begin_range(around, key);
	if (is_begun && dispatch.is_known)
		library.stepscope_torch_loader_fact(STEPSCOPE_LOADER_LOOP, dispatch.loop);
	uint64_t taken = around->use == AROUND_TAKES ? native_take(told(around, arguments)) : 0;
	PyObject *result = PyObject_Call(around->function, arguments, keywords);
	result = call_after(around, arguments, result);
	if (around->use == AROUND_TAKES)
		native_untake(taken);
	if (is_begun && dispatch.is_known)
		native_dispatch_end(&dispatch, PyTuple_GetItem(arguments, 0), key);
	else if (is_begun)
		library.stepscope_torch_range_end(key);
	return result;
}

static PyObject *call(struct around *around, PyObject *arguments, PyObject *keywords)
{
	if (around->use == AROUND_READS || around->use == AROUND_TAKES)
		native_read_use();
	if (around->before && !native_call_ours(around->before, told(around, arguments), NULL, NULL))
		return NULL;
	if (around->is_optimizer && PyTuple_Size(arguments) > 0)
		native_optimizer_begun(PyTuple_GetItem(arguments, 0));
	PyObject *result = NULL;
	result = call_function(around, arguments, keywords, &result);
	bool has_result = result != NULL;
	if (around->use == AROUND_READS || around->use == AROUND_TAKES)
		native_read_use();
	if (around->is_optimizer && has_result && PyTuple_Size(arguments) > 0)
		native_optimizer_done(PyTuple_GetItem(arguments, 0));
	return result;
}

static PyObject *around_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct around *around = (struct around *)self;
	if (recursive && (recursive == around || (const PyObject *)recursive == around->outer))
		return PyObject_Call(around->function, arguments, keywords);
	if (!around->is_recursive)
		return call(around, arguments, keywords);
	const struct around *outer = recursive;
	recursive = around;
	PyObject *result = call(around, arguments, keywords);
	recursive = outer;
	return result;
}

/* Binds as a method, like a function. */
static PyObject *around_get(PyObject *self, PyObject *object, PyObject *type)
{
	if (!object || object == Py_None) {
		Py_INCREF(self);
		return self;
	}
	return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
}

static bool is_own_name(PyObject *name)
{
	static const char *const own[] = {"__class__", "__call__", "__get__", "__reduce__", "__reduce_ex__"};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0)
			return true;
	return false;
}

static PyObject *around_getattro(PyObject *self, PyObject *name)
{
	struct around *around = (struct around *)self;
	if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
		Py_INCREF(around->function);
		return around->function;
	}
	return is_own_name(name) ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(around->function, name);
}

static int around_setattro(PyObject *self, PyObject *name, PyObject *value)
{
	return PyObject_SetAttr(((struct around *)self)->function, name, value);
}

static PyObject *around_repr(PyObject *self)
{
	return PyObject_Repr(((struct around *)self)->function);
}

/* Pickles by name, as functions do. */
static PyObject *around_reduce(PyObject *self, PyObject *arguments)
{
	return PyObject_GetAttrString(((struct around *)self)->function, "__qualname__");
}

static void around_dealloc(PyObject *self)
{
	struct around *around = (struct around *)self;
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF(around->function);
	Py_XDECREF(around->before);
	Py_XDECREF(around->after);
	Py_XDECREF(around->name);
	Py_XDECREF(around->idle);
	Py_XDECREF(around->outer);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Python code cannot make one: it would have no content. */
static PyObject *around_no_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	return PyErr_Format(PyExc_TypeError, "cannot create 'stepscope._native.Around' instances");
}

static PyMethodDef around_methods[] = {
	{"__reduce__", around_reduce, METH_NOARGS, NULL},
	{"__reduce_ex__", around_reduce, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot around_slots[] = {
	{Py_tp_dealloc, (void *)around_dealloc},
	{Py_tp_methods, around_methods},
	{Py_tp_call, (void *)around_call},
	{Py_tp_descr_get, (void *)around_get},
	{Py_tp_getattro, (void *)around_getattro},
	{Py_tp_setattro, (void *)around_setattro},
	{Py_tp_repr, (void *)around_repr},
	{Py_tp_new, (void *)around_no_new},
	{0, NULL},
};

static PyType_Spec around_spec = {"stepscope._native.Around", sizeof(struct around), 0, Py_TPFLAGS_DEFAULT,
                                  around_slots};

/* Returns a new reference; NULL for None. */
static PyObject *given(PyObject *object)
{
	if (object == Py_None)
		object = NULL;
	Py_XINCREF(object);
	return object;
}

static PyObject *around(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {
		"function",        "name",          "before", "after",        "is_optimizer", "is_save",
		"is_loader_start", "is_loader_end", "idle",   "is_recursive", "outer",        "argument",
		"is_rare",         "use",           NULL};
	PyObject *function, *name = NULL, *before = NULL, *after = NULL, *idle = NULL, *outer = NULL;
	int is_optimizer = 0, is_save = 0, is_loader_start = 0, is_loader_end = 0, is_recursive = 0, argument = 0;
	int is_rare = 0, use = AROUND_NONE;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OOOppppOpOipi:around", names, &function, &name,
	                                 &before, &after, &is_optimizer, &is_save, &is_loader_start, &is_loader_end,
	                                 &idle, &is_recursive, &outer, &argument, &is_rare, &use))
		return NULL;
	struct around *made = PyObject_New(struct around, around_type);
	if (!made)
		return NULL;
	Py_INCREF(function);
	made->function = function;
	made->name = given(name);
	made->before = given(before);
	made->after = given(after);
	made->idle = given(idle);
	made->outer = given(outer);
	made->is_optimizer = is_optimizer;
	made->is_recursive = is_recursive;
	made->is_rare = is_rare;
	made->use = (enum around_use)use;
	made->argument = argument < 0 ? 0 : argument;
	made->stretch = is_save           ? STEPSCOPE_TRAINING_SAVE
	                : is_loader_start ? STEPSCOPE_TRAINING_LOADER
	                : is_loader_end   ? STEPSCOPE_TRAINING_LOADER_END
	                                  : 0;
	made->symbol = 0;
	return (PyObject *)made;
}

static PyMethodDef methods[] = {
	{"around", NATIVE_FAST(around), METH_VARARGS | METH_KEYWORDS,
         "around(function, name=None, before=None, after=None, is_optimizer=False, "
         "is_save=False, is_loader_start=False, is_loader_end=False, idle=None, "
         "is_recursive=False, outer=None, argument=0, is_rare=False, use=0): replaces the function."},
	{NULL, NULL, 0, NULL},
};

bool native_add_around(PyObject *module)
{
	PyObject *types = PyImport_ImportModule("types");
	method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
	Py_XDECREF(types);
	around_type = (PyTypeObject *)PyType_FromSpec(&around_spec);
	if (!method_type || !around_type)
		return false;
	Py_INCREF(around_type); /* AddObject takes one reference, and we keep one */
	return PyModule_AddObject(module, "Around", (PyObject *)around_type) == 0 &&
	       PyModule_AddFunctions(module, methods) == 0;
}
