/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.c: records calls of PyTorch modules as spans, without a hook that PyTorch, its compiler or a traceback could
 * notice. Our function replaces the `vectorcall` of torch.nn.Module.__call__. It opens a span, calls the original and
 * closes the span, whether the call returned or raised.
 *
 * A table by address identifies modules, see objects.h.
 */
#include "agents/python/objects.h"
#include "agents/python/vectorcall.h"
#include "base/time_now.h"

#include <dlfcn.h>
#include <stepscope/format.h>

static struct {
	PyObject *function, *name_of; /* the watched function; Python's part, which names unknown modules */
	PyObject *training;           /* the text "training" */
	PyObject *(*dictionary_of)(PyObject *, void *);
	vectorcall *original;
	PyObject *look;  /* Python's part, which looks at the arguments of models; NULL: it does not want to */
	int64_t next_ns; /* time of its next look, of CLOCK_MONOTONIC */
	/* symbol: of its name, 0: it has no name; identity: of the program's model, whatever wraps it */
	struct object_table table;
} modules;

static __thread struct {
	uint32_t depth;      /* open spans of this thread */
	PyObject *root;      /* the outermost module, recorded or noted; we hold a reference during its call */
	bool is_being_named; /* name_of() may call modules itself */
} calls;

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* name_module(module, path, held=module), from Python. path None: the module has no name, do not ask again; held: the
 * model in this wrapper. */
static PyObject *name_module(PyObject *self, PyObject *arguments)
{
	PyObject *module, *path, *held = NULL;
	uint32_t symbol = 0;
	if (!PyArg_ParseTuple(arguments, "OO|O:name_module", &module, &path, &held))
		return NULL;
	if (path != Py_None && !native_symbol((enum stepscope_kind)STEPSCOPE_SYMBOL_MODULE, path, &symbol))
		return NULL;
	if (!objects_put(&modules.table, module,
	                 (struct object_facts){.symbol = symbol, .identity = (uintptr_t)(held ? held : module)}))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *is_named_module(PyObject *self, PyObject *module)
{
	return PyBool_FromLong(objects_find(&modules.table, module) != NULL);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Python finds the path, once. Its exceptions are dropped, except those from outside (the user's Ctrl-C): then this
 * returns false with the exception set. */
static bool ask_for_name(PyObject *module, struct object_facts *found)
{
	*found = (struct object_facts){0};
	if (calls.is_being_named || modules.table.is_full)
		return true;
	calls.is_being_named = true;
	PyObject *root = calls.root ? calls.root : Py_None;
	bool is_done = native_call_ours(modules.name_of, module, root, NULL);
	calls.is_being_named = false;
	if (!is_done)
		return false;
	const struct object_entry *entry = objects_find(&modules.table, module);
	if (entry)
		*found = entry->facts;
	else if (!objects_put(&modules.table, module, (struct object_facts){.identity = (uintptr_t)module}))
		PyErr_Clear();
	return true;
}

/* Returns whether the program's model trains: True, False, or None if unknown. This runs no code of the program, so
 * it reads only the model's dictionary. A wrapper of torch.compile has a property instead, but the model in it does
 * not. */
static PyObject *is_training(uint64_t identity)
{
	PyObject *model = (PyObject *)(uintptr_t)identity;
	if (!modules.dictionary_of || !objects_find(&modules.table, model)) /* the wrapper holds another model by now */
		return Py_None;
	PyObject *dictionary = modules.dictionary_of(model, NULL);
	PyObject *mode = dictionary ? PyDict_GetItemWithError(dictionary, modules.training) : NULL;
	bool is_known = mode == Py_True || mode == Py_False;
	PyErr_Clear();
	Py_XDECREF(dictionary);
	return is_known ? mode : Py_None; /* True, False and None live for ever */
}

static void tell_mode(uint64_t identity)
{
	PyObject *mode = is_training(identity);
	if (mode != Py_None)
		library.stepscope_torch_module(identity, mode == Py_True);
}

static bool is_look_wanted(void)
{
	if (!modules.look || calls.depth || !library_records(STEPSCOPE_ACTIVE_MEMORY))
		return false;
	return time_now_ns(CLOCK_MONOTONIC) >= modules.next_ns;
}

/* Returns false as ask_for_name() does. */
static bool modules_look_at(PyObject *const *arguments, size_t count)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)count);
	if (!tuple) {
		PyErr_Clear();
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		Py_INCREF(arguments[i]);
		PyTuple_SetItem(tuple, (Py_ssize_t)i, arguments[i]);
	}
	PyObject *look = modules.look; /* it may replace modules.look */
	Py_INCREF(look);
	bool is_done = native_call_ours(look, tuple, NULL, NULL);
	Py_DECREF(look);
	Py_DECREF(tuple);
	return is_done;
}

/* Returns true if the module is the outermost of the thread. leave_root() takes the result. */
static bool enter_root(PyObject *module)
{
	if (calls.root)
		return false;
	Py_INCREF(module);
	calls.root = module;
	return true;
}

static void leave_root(bool is_root)
{
	if (is_root)
		Py_CLEAR(calls.root);
}

/* While PyTorch's records are not observed: notes the thread's call, for the report about a process that dies. */
static PyObject *call_inner(const struct object_facts *facts, PyObject *function, PyObject *const *arguments,
                            size_t count_and_flag, PyObject *names)
{
	uint32_t before = library.stepscope_torch_in_call(facts->symbol);
	PyObject *result = modules.original(function, arguments, count_and_flag, names);
	(void)library.stepscope_torch_in_call(before);
	return result;
}

/* The outermost call also reports that a forward, or an evaluation, is running. */
static PyObject *note_call(PyObject *function, PyObject *const *arguments, size_t count_and_flag, PyObject *names)
{
	const struct object_entry *known = objects_find(&modules.table, arguments[0]);
	struct object_facts facts = known ? known->facts : (struct object_facts){0};
	if (!known && !ask_for_name(arguments[0], &facts))
		return NULL;
	if (!library.stepscope_torch_wants_module())
		return call_inner(&facts, function, arguments, count_and_flag, names);
	PyObject *result = NULL;
	PyObject *mode = is_training(facts.identity);
	bool is_root = enter_root(arguments[0]);
	bool is_begun = library.stepscope_torch_call_module(mode == Py_None ? 0 : facts.identity, mode == Py_True,
	                                                    facts.symbol, &result);
	result = call_inner(&facts, function, arguments, count_and_flag, names);
	if (is_begun)
		library.stepscope_torch_range_end(&result);
	leave_root(is_root);
	return result;
}

static PyObject *call_module(PyObject *function, PyObject *const *arguments, size_t count_and_flag, PyObject *names)
{
	size_t count = vectorcall_count(count_and_flag);
	if (library_records(STEPSCOPE_ACTIVE_CALLS) && count)
		return note_call(function, arguments, count_and_flag, names);
	if (!library_records(STEPSCOPE_ACTIVE_DETAIL) || count == 0)
		return modules.original(function, arguments, count_and_flag, names);
	const struct object_entry *known = objects_find(&modules.table, arguments[0]);
	struct object_facts facts = known ? known->facts : (struct object_facts){0};
	if (!known && !ask_for_name(arguments[0], &facts))
		return NULL;
	if (!facts.symbol)
		return modules.original(function, arguments, count_and_flag, names);
	if (is_look_wanted() && !modules_look_at(arguments + 1, count + (names ? (size_t)PyTuple_Size(names) : 0) - 1))
		return NULL;
	PyObject *result = NULL;
	bool is_root = enter_root(arguments[0]);
	calls.depth++;
	bool is_begun = library.stepscope_torch_range(facts.symbol, 0, &result);
	if (calls.depth == 1)
		tell_mode(facts.identity);
	result = modules.original(function, arguments, count_and_flag, names);
	if (is_begun)
		library.stepscope_torch_range_end(&result);
	calls.depth--;
	leave_root(is_root);
	return result;
}

/* ---- getting in -------------------------------------------------------------------------------------------------- */

/* watch_modules(torch.nn.Module.__call__, name_of, other): True if calls are seen from now on. */
static PyObject *watch_modules(PyObject *self, PyObject *arguments)
{
	PyObject *function, *name_of, *other;
	if (!PyArg_ParseTuple(arguments, "OOO:watch_modules", &function, &name_of, &other))
		return NULL;
	if (modules.function)
		return PyBool_FromLong(modules.function == function);
	modules.training = PyUnicode_InternFromString("training");
	if (!modules.training)
		return NULL;
	modules.original = vectorcall_replace(function, other, call_module);
	if (!modules.original)
		Py_RETURN_FALSE;
	Py_INCREF(function);
	Py_INCREF(name_of);
	/* in the limited API since 3.10 */
	*(void **)&modules.dictionary_of = dlsym(RTLD_DEFAULT, "PyObject_GenericGetDict");
	modules.function = function;
	modules.name_of = name_of;
	Py_RETURN_TRUE;
}

/* watch_arguments(look, next_ns): calls look(arguments) before the program's next call of a model, from that time
 * on. */
static PyObject *watch_arguments(PyObject *self, PyObject *arguments)
{
	PyObject *look;
	long long next_ns;
	if (!PyArg_ParseTuple(arguments, "OL:watch_arguments", &look, &next_ns))
		return NULL;
	Py_INCREF(look);
	Py_XDECREF(modules.look);
	modules.look = look;
	modules.next_ns = next_ns;
	Py_RETURN_NONE;
}

PyMethodDef native_module_methods[] = {
	{"watch_arguments", watch_arguments, METH_VARARGS, NULL},
	{"watch_modules", watch_modules, METH_VARARGS, NULL},
	{"name_module", name_module, METH_VARARGS, NULL},
	{"is_named_module", is_named_module, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};
