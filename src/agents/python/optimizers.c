/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizers.c: identifies the optimizer that steps. An address is not enough: an optimizer that is made again each
 * epoch often has the address of the one before the last. So each object has a generation, and the first call of an
 * optimizer made in the meantime is marked (STEPSCOPE_OPTIMIZER_IS_NEW).
 */
#include "agents/python/objects.h"

#include <stepscope/format.h>

static struct object_table
	optimizers; /* symbol: number of optimizers made, including it, 0: unknown; identity: of its newest call */
static uint32_t generations, made;
static PyObject *describer;      /* Python's function that records facts about an optimizer; NULL: not set */
static bool has_trained;         /* an optimizer's call has ended */
static uint32_t made_before_any; /* `made` at the newest call of all threads */
static __thread uint32_t
	made_before; /* `made` at the newest call of this thread; 0: it has made no call, and may continue another
	              * one */

static uint64_t address_of(const PyObject *optimizer)
{
	return (uint64_t)(uintptr_t)optimizer & STEPSCOPE_OPTIMIZER_ADDRESS;
}

/* An optimizer without weak references has only its address, as have those for which there is no room. */
static struct object_entry *optimizers_note(PyObject *optimizer, uint32_t number)
{
	uint64_t identity = address_of(optimizer) | (uint64_t)(++generations & 0x7fff) << 48;
	if (!objects_put(&optimizers, optimizer, (struct object_facts){.symbol = number, .identity = identity}))
		PyErr_Clear();
	return objects_find(&optimizers, optimizer);
}

/* Once per optimizer and recording. */
static void describe(struct object_entry *entry, PyObject *optimizer)
{
	uint32_t session = library.stepscope_session_number();
	if (!describer || entry->facts.session == session || !library_records(STEPSCOPE_ACTIVE_STEPS))
		return;
	entry->facts.session = session;
	if (!native_call_ours(describer, optimizer, NULL, NULL))
		PyErr_Clear();
}

void native_optimizer_begun(PyObject *optimizer)
{
	native_read_use();
	struct object_entry *entry = objects_find(&optimizers, optimizer);
	if (!entry)
		entry = optimizers_note(optimizer, 0);
	if (!entry) {
		library.stepscope_torch_optimizer(address_of(optimizer));
		return;
	}
	entry->facts.identity &= ~STEPSCOPE_OPTIMIZER_IS_NEW;
	if (entry->facts.symbol > (made_before ? made_before : made_before_any))
		entry->facts.identity |= STEPSCOPE_OPTIMIZER_IS_NEW;
	made_before = made_before_any = made;
	uint64_t identity = entry->facts.identity;
	describe(entry, optimizer); /* the table may move meanwhile */
	library.stepscope_torch_optimizer(identity);
}

void native_optimizer_done(PyObject *optimizer)
{
	const struct object_entry *entry = objects_find(&optimizers, optimizer);
	has_trained = true;
	native_read_use();
	library.stepscope_torch_optimizer_done(entry ? entry->facts.identity : address_of(optimizer));
}

/* For register_optimizer_step_pre_hook(): its first argument is the optimizer. */
static PyObject *optimizer_hook(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	if (count > 0)
		native_optimizer_begun(arguments[0]);
	Py_RETURN_NONE;
}

/* For register_optimizer_step_post_hook(). */
static PyObject *optimizer_done(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	if (count > 0)
		native_optimizer_done(arguments[0]);
	Py_RETURN_NONE;
}

/* Called from the constructor; an optimizer that loads its state from a file comes here, too. */
static PyObject *optimizer_made(PyObject *self, PyObject *optimizer)
{
	if (objects_find(&optimizers, optimizer))
		Py_RETURN_NONE;
	(void)optimizers_note(optimizer, ++made);
	library.stepscope_torch_optimizer_made();
	Py_RETURN_NONE;
}

/* Returns the optimizer's identity as a number: the object may be gone when the number is used. */
static PyObject *optimizer_number(PyObject *self, PyObject *optimizer)
{
	const struct object_entry *entry = objects_find(&optimizers, optimizer);
	if (!entry)
		entry = optimizers_note(optimizer, 0);
	return PyLong_FromUnsignedLongLong(entry ? entry->facts.identity & ~STEPSCOPE_OPTIMIZER_IS_NEW
	                                         : address_of(optimizer));
}

/* (code, number): torch.compile has made code, "3/1", that starts a call of that optimizer. */
static PyObject *optimizer_compiled(PyObject *self, PyObject *arguments)
{
	const char *code;
	unsigned long long number;
	if (!PyArg_ParseTuple(arguments, "sK:torch_optimizer_compiled", &code, &number))
		return NULL;
	library.stepscope_torch_compiled(code, number);
	Py_RETURN_NONE;
}

static PyObject *optimizer_describer(PyObject *self, PyObject *function)
{
	Py_XDECREF(describer);
	Py_INCREF(function);
	describer = function;
	Py_RETURN_NONE;
}

static PyObject *get_has_trained(PyObject *self, PyObject *nothing)
{
	return PyBool_FromLong(has_trained);
}

PyMethodDef native_optimizer_methods[] = {
	{"torch_optimizer_hook", NATIVE_FAST(optimizer_hook), METH_FASTCALL, NULL},
	{"torch_optimizer_done", NATIVE_FAST(optimizer_done), METH_FASTCALL, NULL},
	{"torch_optimizer_number", optimizer_number, METH_O, NULL},
	{"torch_optimizer_compiled", optimizer_compiled, METH_VARARGS, NULL},
	{"torch_optimizer_made", optimizer_made, METH_O, NULL},
	{"torch_optimizer_describer", optimizer_describer, METH_O, NULL},
	{"torch_has_trained", get_has_trained, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
