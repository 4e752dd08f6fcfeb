/* SPDX-License-Identifier: Apache-2.0
 *
 * module.c: the module stepscope._native. See native.h; documented for users in docs/python.md.
 */
#include "agents/python/native.h"

static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "stepscope._native",
	.m_doc = "The recorder, for Python.",
	.m_size = -1,
};

static bool module_fill(PyObject *module)
{
	return native_add_ranges(module) && native_add_around(module) && native_add_unseen(module) &&
	       native_add_calls(module) && native_add_handover(module) &&
	       PyModule_AddFunctions(module, native_garbage_methods) == 0 &&
	       PyModule_AddFunctions(module, native_mark_methods) == 0 &&
	       PyModule_AddFunctions(module, native_module_methods) == 0 &&
	       PyModule_AddFunctions(module, native_optimizer_methods) == 0 &&
	       PyModule_AddFunctions(module, native_session_methods) == 0 &&
	       PyModule_AddFunctions(module, native_torch_methods) == 0;
}

__attribute__((visibility("default"))) PyObject *PyInit__native(void);

PyObject *PyInit__native(void)
{
	char problem[600];
	/* objects of this Python differ from ours, and it would load us all the same */
	if (strstr(Py_GetVersion(), "free-threading")) {
		PyErr_SetString(PyExc_ImportError,
		                "it needs a Python with a global lock, but this Python is free-threaded");
		return NULL;
	}
	if (!library_open(problem, sizeof(problem))) {
		PyErr_SetString(PyExc_ImportError, problem);
		return NULL;
	}
	PyObject *module = PyModule_Create(&definition);
	if (module && !module_fill(module))
		Py_CLEAR(module);
	return module;
}
