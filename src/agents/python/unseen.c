/* SPDX-License-Identifier: Apache-2.0
 *
 * unseen.c: runs our own Python code unseen by the program's profilers, debuggers and coverage tools. They are
 * suspended in its thread, as they are while they run themselves (CPython 3.11 and newer). torch.compile, which would
 * compile the code in the middle of a compiled step, is turned off for it.
 *
 * The code is not called through a C function either, because those profilers see C functions, too. It is called
 * through an object of our own type, or through a stand-in for a Python function.
 */
#include "agents/python/vectorcall.h"

#include <dlfcn.h>

#define STAND_INS 8

struct unseen_state {
	PyObject ob_base;
	PyObject *function;
};

static PyTypeObject *unseen_type;

static struct {
	PyObject *function, *call; /* the function that callers see, and the function that runs */
} stand_ins[STAND_INS];
static unsigned stand_in_count;

static struct {
	void (*enter)(PyThreadState *thread), (*leave)(PyThreadState *thread);
} tracing;

static PyObject *set_compiler; /* sets this thread's compiler, returns the previous one; None: compiles nothing */

PyObject *native_hide(void)
{
	PyObject *compiler = set_compiler ? PyObject_CallFunctionObjArgs(set_compiler, Py_None, NULL) : NULL;
	if (set_compiler && !compiler)
		PyErr_Clear();
	if (tracing.leave)
		tracing.enter(PyThreadState_Get());
	return compiler;
}

void native_show(PyObject *compiler)
{
	PyObject *type, *value, *traceback;
	if (tracing.leave)
		tracing.leave(PyThreadState_Get());
	if (compiler && compiler != Py_None) {
		PyErr_Fetch(&type, &value, &traceback);
		Py_XDECREF(PyObject_CallFunctionObjArgs(set_compiler, compiler, NULL));
		PyErr_Restore(type, value, traceback);
	}
	Py_XDECREF(compiler);
}

bool native_call_ours(PyObject *function, PyObject *first, PyObject *second, PyObject *third)
{
	PyObject *hidden = native_hide();
	PyObject *result = PyObject_CallFunctionObjArgs(function, first, second, third, NULL);
	native_show(hidden);
	Py_XDECREF(result);
	if (result)
		return true;
	if (!PyErr_ExceptionMatches(PyExc_Exception))
		return false;
	PyErr_Clear();
	return true;
}

static PyObject *unseen_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyObject *hidden = native_hide();
	PyObject *result = PyObject_Call(((struct unseen_state *)self)->function, arguments, keywords);
	native_show(hidden);
	return result;
}

static void unseen_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(((struct unseen_state *)self)->function);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyType_Slot unseen_slots[] = {
	{Py_tp_dealloc, (void *)unseen_dealloc},
	{Py_tp_call, (void *)unseen_call},
	{0, NULL},
};

static PyType_Spec unseen_spec = {"stepscope._native.Unseen", sizeof(struct unseen_state), 0, Py_TPFLAGS_DEFAULT,
                                  unseen_slots};

static PyObject *unseen(PyObject *self, PyObject *function)
{
	struct unseen_state *made = PyObject_New(struct unseen_state, unseen_type);
	if (!made)
		return NULL;
	Py_INCREF(function);
	made->function = function;
	return (PyObject *)made;
}

/* The first argument is the object that has the function as its `__call__`. */
static PyObject *call_stand_in(PyObject *function, PyObject *const *arguments, size_t count_and_flag, PyObject *names)
{
	size_t count = vectorcall_count(count_and_flag);
	unsigned at = 0;
	while (at + 1 < stand_in_count && stand_ins[at].function != function)
		at++;
	if (!native_call_ours(stand_ins[at].call, count > 1 ? arguments[1] : NULL, count > 2 ? arguments[2] : NULL,
	                      count > 3 ? arguments[3] : NULL))
		return NULL;
	Py_RETURN_NONE;
}

/* stand_in(function, other, call): if C calls the method, `call` gets its arguments instead, at most three, and the
 * result is None. */
static PyObject *stand_in(PyObject *self, PyObject *arguments)
{
	PyObject *function, *other, *call;
	if (!PyArg_ParseTuple(arguments, "OOO:stand_in", &function, &other, &call))
		return NULL;
	if (stand_in_count == STAND_INS || !vectorcall_replace(function, other, call_stand_in))
		Py_RETURN_FALSE;
	Py_INCREF(function);
	Py_INCREF(call);
	stand_ins[stand_in_count].function = function;
	stand_ins[stand_in_count++].call = call;
	Py_RETURN_TRUE;
}

/* leave_uncompiled(set_compiler): torch.compile's own function to set the compiler. */
static PyObject *leave_uncompiled(PyObject *self, PyObject *function)
{
	Py_INCREF(function);
	Py_XDECREF(set_compiler);
	set_compiler = function;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"unseen", unseen, METH_O,
         "unseen(function): calls the function, hidden from profilers and debuggers of the program."},
	{"stand_in", stand_in, METH_VARARGS, NULL},
	{"leave_uncompiled", leave_uncompiled, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

bool native_add_unseen(PyObject *module)
{
	*(void **)&tracing.enter = dlsym(RTLD_DEFAULT, "PyThreadState_EnterTracing");
	if (tracing.enter)
		*(void **)&tracing.leave = dlsym(RTLD_DEFAULT, "PyThreadState_LeaveTracing");
	unseen_type = (PyTypeObject *)PyType_FromSpec(&unseen_spec);
	return unseen_type && PyModule_AddFunctions(module, methods) == 0;
}
