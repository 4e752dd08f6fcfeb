/* SPDX-License-Identifier: Apache-2.0
 *
 * handover.c: the way of a batch between the process of a loop and its workers: which worker gets which batch, and how
 * long the finished batch is pickled and unpickled. The functions stand around those of multiprocessing's pickler, by
 * the name under which its queues look it up. They pass results and exceptions unchanged.
 *
 * A queue carries pairs: a batch's number and the batch. Objects of the program's queues that are no such pairs are not
 * recorded.
 */
#include "agents/python/objects.h"
#include "agents/torch/agent.h"
#include "pytorch/names.h"

static struct {
	struct object_table loops;        /* identity: number of the loop, see stepscope_torch_loader() */
	PyObject *number_of_loop;         /* Python's function that notes a loop's number */
	PyObject *text_next, *text_tasks; /* names of attributes */
	uint32_t pickle_symbol, unpickle_symbol;
} handover;
/* 1: this thread takes batches of an unknown loop; 2 + the number of its loop; 0: it takes none. */
static __thread uint64_t taking;

static void begin(uint32_t *symbol, const char *name, bool *is_begun, const void *key)
{
	native_read_use();
	if (!*symbol)
		*symbol = library.stepscope_name(STEPSCOPE_KIND_RANGE, name);
	*is_begun = *symbol && library.stepscope_torch_range(*symbol, 0, key);
}

static void end_with(const void *key, int fact, long long value)
{
	struct stepscope_loader_facts facts = {.count = value >= 0, .list = {{fact, (uint64_t)value}}};
	library.stepscope_torch_range_end_with(key, &facts);
	native_read_use();
}

static bool is_recorded(void)
{
	return library_records(STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_RARE);
}

/* Returns -1 if the object is not a pair: a number and an object. */
static long long batch_of(PyObject *object)
{
	if (!object || !PyTuple_Check(object) || PyTuple_Size(object) != 2 || !PyLong_Check(PyTuple_GetItem(object, 0)))
		return -1;
	long long number = PyLong_AsLongLong(PyTuple_GetItem(object, 0));
	PyErr_Clear();
	return number;
}

static long long pickled_size(PyObject *bytes)
{
	Py_ssize_t size = bytes ? PyObject_Size(bytes) : -1;
	if (size < 0 && bytes)
		PyErr_Clear();
	return size;
}

static PyObject *call_dumps(PyObject *original, PyObject *arguments, PyObject *keywords)
{
	PyObject *result = NULL;
	long long batch = PyTuple_Size(arguments) > 0 ? batch_of(PyTuple_GetItem(arguments, 0)) : -1;
	bool is_begun = false;
	if (batch >= 0 && is_recorded())
		begin(&handover.pickle_symbol, PYTORCH_LOADER_PICKLE, &is_begun, &result);
	if (is_begun)
		library.stepscope_torch_loader_fact(STEPSCOPE_LOADER_BATCH, (uint64_t)batch);
	result = PyObject_Call(original, arguments, keywords);
	if (is_begun)
		end_with(&result, STEPSCOPE_LOADER_BYTES, pickled_size(result));
	return result;
}

static PyObject *call_loads(PyObject *original, PyObject *arguments, PyObject *keywords)
{
	PyObject *result = NULL;
	bool is_begun = false;
	if (taking && PyTuple_Size(arguments) > 0 && is_recorded())
		begin(&handover.unpickle_symbol, PYTORCH_LOADER_UNPICKLE, &is_begun, &result);
	if (is_begun && taking > 1)
		library.stepscope_torch_loader_fact(STEPSCOPE_LOADER_LOOP, taking - 2);
	if (is_begun)
		library.stepscope_torch_loader_fact(STEPSCOPE_LOADER_BYTES,
		                                    (uint64_t)pickled_size(PyTuple_GetItem(arguments, 0)));
	result = PyObject_Call(original, arguments, keywords);
	if (is_begun)
		end_with(&result, STEPSCOPE_LOADER_BATCH, batch_of(result));
	return result;
}

/* The thread that pins takes them without a loop at hand. */
uint64_t native_take(PyObject *loop)
{
	uint64_t before = taking;
	const struct object_entry *entry = objects_find(&handover.loops, loop);
	taking = entry ? entry->facts.identity + 2 : 1;
	return before;
}

void native_untake(uint64_t before)
{
	taking = before;
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

/* Returns the number of the batch that the loop sends next; -1: this PyTorch differs. */
static long long next_batch(PyObject *loop)
{
	PyObject *next = PyObject_GetAttr(loop, handover.text_next);
	long long number = next ? PyLong_AsLongLong(next) : -1;
	Py_XDECREF(next);
	PyErr_Clear();
	return number;
}

static const struct object_entry *find_loop(PyObject *loop)
{
	const struct object_entry *entry = objects_find(&handover.loops, loop);
	if (entry || !handover.number_of_loop)
		return entry;
	if (!native_call_ours(handover.number_of_loop, loop, NULL, NULL))
		PyErr_Clear();
	return objects_find(&handover.loops, loop);
}

void native_dispatch_find(struct native_dispatch *dispatch, PyObject *loop)
{
	const struct object_entry *entry = is_recorded() ? find_loop(loop) : NULL;
	if (entry)
		*dispatch = (struct native_dispatch){true, entry->facts.identity, next_batch(loop)};
}

/* Returns the worker that has the batch; -1: none has, the loop has no more samples. */
static long long worker_of(PyObject *loop, long long batch)
{
	PyObject *tasks = PyObject_GetAttr(loop, handover.text_tasks), *key = PyLong_FromLongLong(batch);
	PyObject *task = tasks && key ? PyObject_GetItem(tasks, key) : NULL;
	PyObject *worker = task ? PySequence_GetItem(task, 0) : NULL;
	long long number = worker ? PyLong_AsLongLong(worker) : -1;
	Py_XDECREF(worker);
	Py_XDECREF(task);
	Py_XDECREF(key);
	Py_XDECREF(tasks);
	PyErr_Clear();
	return number;
}

void native_dispatch_end(const struct native_dispatch *dispatch, PyObject *loop, const void *key)
{
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback); /* of the function */
	bool is_sent = dispatch->batch >= 0 && next_batch(loop) == dispatch->batch + 1;
	long long worker = is_sent ? worker_of(loop, dispatch->batch) : -1;
	struct stepscope_loader_facts facts = {
		.count = worker >= 0 ? 2 : 0,
		.list = {{STEPSCOPE_LOADER_BATCH, (uint64_t)dispatch->batch},
	                 {STEPSCOPE_LOADER_WORKER, (uint64_t)worker}},
	};
	PyErr_Restore(type, value, traceback);
	library.stepscope_torch_range_end_with(key, &facts);
}

/* ---- from Python ------------------------------------------------------------------------------------------------- */

static PyMethodDef pickler_methods[] = {
	{"dumps", NATIVE_FAST(call_dumps), METH_VARARGS | METH_KEYWORDS, NULL},
	{"loads", NATIVE_FAST(call_loads), METH_VARARGS | METH_KEYWORDS, NULL},
};

/* watch_dumps(function) and watch_loads(function) return its replacement. */
static PyObject *watch_dumps(PyObject *self, PyObject *function)
{
	return PyCFunction_NewEx(&pickler_methods[0], function, NULL);
}

static PyObject *watch_loads(PyObject *self, PyObject *function)
{
	return PyCFunction_NewEx(&pickler_methods[1], function, NULL);
}

/* loader_numbers(function): function(loop) calls loader_known(loop, number). */
static PyObject *loader_numbers(PyObject *self, PyObject *function)
{
	Py_XDECREF(handover.number_of_loop);
	Py_INCREF(function);
	handover.number_of_loop = function;
	Py_RETURN_NONE;
}

static PyObject *loader_known(PyObject *self, PyObject *arguments)
{
	PyObject *loop;
	unsigned long long number;
	if (!PyArg_ParseTuple(arguments, "OK:loader_known", &loop, &number))
		return NULL;
	if (!objects_put(&handover.loops, loop, (struct object_facts){.identity = number}))
		PyErr_Clear();
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"watch_dumps", watch_dumps, METH_O, NULL},
	{"watch_loads", watch_loads, METH_O, NULL},
	{"loader_numbers", loader_numbers, METH_O, NULL},
	{"loader_known", loader_known, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

bool native_add_handover(PyObject *module)
{
	handover.text_next = PyUnicode_InternFromString("_send_idx");
	handover.text_tasks = PyUnicode_InternFromString("_task_info");
	return handover.text_next && handover.text_tasks && PyModule_AddFunctions(module, methods) == 0;
}
