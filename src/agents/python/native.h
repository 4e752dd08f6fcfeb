/* SPDX-License-Identifier: Apache-2.0
 *
 * native.h: the parts of the Python extension stepscope._native. One file serves CPython 3.8 and newer
 * (Py_LIMITED_API). All functions are called with the global interpreter lock held. Wrong types raise TypeError; no
 * other failure reaches the program.
 */
#ifndef AGENTS_PYTHON_NATIVE_H
#define AGENTS_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include "agents/python/library.h"

#include <Python.h>

/* In the limited API since 3.10; unchanged since 3.7. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define NATIVE_FAST(function) ((PyCFunction)(void (*)(void))(function))

/* Returns a Python string as bytes. Characters without UTF-8 (a file name with bytes of another encoding) become
 * \udcNN. */
PyObject *native_utf8(PyObject *text);

/* Finds the symbol of a Python string; 0 if nothing is recorded. Returns false with an exception if it fails:
 * TypeError if `text` is not a string. */
bool native_symbol(enum stepscope_kind kind, PyObject *text, uint32_t *symbol);

/* Reads the thread's CPU time, if something is recorded: a wait or another part of a step starts or ends here. */
static inline void native_read_use(void)
{
	if (library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_read_use();
}

/* Call when the program calls this optimizer, and when that call has ended. */
void native_optimizer_begun(PyObject *optimizer);
void native_optimizer_done(PyObject *optimizer);

/* The way of a batch, see handover.c. */
struct native_dispatch { /* the call that gives a worker the samples of the next batch */
	bool is_known;
	uint64_t loop;   /* number of the loop */
	long long batch; /* number of the batch that may come; -1: this PyTorch differs */
};
/* Before the call's range starts: may run Python. */
void native_dispatch_find(struct native_dispatch *dispatch, PyObject *loop);
/* Ends the range. */
void native_dispatch_end(const struct native_dispatch *dispatch, PyObject *loop, const void *key);
/* From here on this thread takes batches of the loop. */
uint64_t native_take(PyObject *loop); /* returns the value for native_untake() */
void native_untake(uint64_t before);

/* Between these two calls, no profiler or debugger of the program sees the code that runs in this thread, and
 * torch.compile compiles none of it. native_show() takes the result of native_hide(). */
PyObject *native_hide(void);
void native_show(PyObject *hidden);

/* Calls our own Python code that way, with up to three arguments (NULL: no more). Its exceptions are dropped, except
 * those from outside (the user's Ctrl-C): then it returns false. */
bool native_call_ours(PyObject *function, PyObject *first, PyObject *second, PyObject *third);

/* Each adds its functions to the module. */
bool native_add_ranges(PyObject *module);
bool native_add_around(PyObject *module);
bool native_add_unseen(PyObject *module);
bool native_add_calls(PyObject *module);
bool native_add_handover(PyObject *module);
extern PyMethodDef native_garbage_methods[], native_mark_methods[], native_module_methods[], native_optimizer_methods[],
	native_session_methods[], native_torch_methods[];

#endif
