/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.c: spans with a start and an end: range(), phase(), micro_batch(), ranges_push() and ranges_pop().
 *
 * One object per name is kept and given out again and again, so that `with range("x"):` allocates nothing. It is never
 * given to two users at once: its address distinguishes the end of a range from that of another (two coroutines).
 * Phases and micro-batches nest per thread in the recorder, and pushed ranges are popped.
 */
#include "agents/python/native.h"
#include "pytorch/names.h"

#define NAMES_MAX 4096 /* after this number the objects are made again, for programs that make up names as they go */

enum span_type {
	SPAN_OF_RANGE,
	SPAN_OF_PHASE,
	SPAN_OF_MICRO_BATCH,
};

struct ranges_span {
	PyObject ob_base;
	PyObject *name;
	enum span_type type;
	uint32_t symbol; /* 0: not known yet */
	/* of a range: number of uses that have begun and not ended, more than one if the program shares it; and of
	 * these that are recorded */
	uint32_t held, open;
	int64_t number;    /* phase, or index of the micro-batch */
	bool has_schedule; /* of a step of torch.profiler: its profiler has a schedule */
	unsigned bits;     /* of a range: it is recorded while one of these bits of active() is set */
};

static PyTypeObject *span_type;
static PyObject *ranges, *phases; /* dictionaries: name to object */

static const char *const type_names[] = {"range", "phase", "micro_batch"};
#define TYPES (sizeof(type_names) / sizeof(type_names[0]))
static PyObject *makers[TYPES]; /* the functions of these names */

static const char *const phase_names[] = {NULL,        "data",          "forward",    "backward",
                                          "optimizer", "communication", "checkpoint", "evaluation"};
#define PHASES (sizeof(phase_names) / sizeof(phase_names[0]))

PyObject *native_utf8(PyObject *text)
{
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

bool native_symbol(enum stepscope_kind kind, PyObject *text, uint32_t *symbol)
{
	*symbol = 0;
	if (!PyUnicode_Check(text)) {
		PyErr_Format(PyExc_TypeError, "a name must be a string, not %R", Py_TYPE(text));
		return false;
	}
	if (!library_records(~0u))
		return true;
	PyObject *bytes = native_utf8(text);
	if (!bytes)
		return false;
	*symbol = library.stepscope_name(kind, PyBytes_AsString(bytes));
	Py_DECREF(bytes);
	return true;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static bool find_symbol(struct ranges_span *span)
{
	return span->symbol || native_symbol(STEPSCOPE_KIND_RANGE, span->name, &span->symbol);
}

static bool ranges_begin_range(struct ranges_span *span)
{
	bool is_wanted = library_records(span->bits);
	if (is_wanted && !find_symbol(span))
		return false;
	uint32_t symbol = is_wanted ? span->symbol : 0;
	span->open += span->number ? library.stepscope_torch_profiler_step(symbol, (uint32_t)span->number - 1,
	                                                                   span->has_schedule, span)
	                           : library.stepscope_torch_range(symbol, 0, span);
	return true;
}

/* If it has only one user, the range may have begun in another thread. */
static void end_range(struct ranges_span *span)
{
	bool is_alone = span->held == 1;
	if (library.stepscope_torch_range_end(span))
		span->open--;
	else if (is_alone) {
		library.stepscope_torch_range_end_elsewhere(span);
		span->open = 0;
	}
}

static PyObject *span_enter(PyObject *self, PyObject *nothing)
{
	struct ranges_span *span = (struct ranges_span *)self;
	bool is_range = span->type == SPAN_OF_RANGE;
	if (library_records(is_range && !span->number ? span->bits : STEPSCOPE_ACTIVE_STEPS)) {
		if (is_range && !ranges_begin_range(span))
			return NULL;
		if (span->type == SPAN_OF_PHASE)
			library.stepscope_emit_phase_begin((int)span->number);
		if (span->type == SPAN_OF_MICRO_BATCH)
			library.stepscope_emit_micro_batch_begin(span->number);
	}
	span->held++;
	Py_INCREF(self);
	return self;
}

static PyObject *span_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	struct ranges_span *span = (struct ranges_span *)self;
	if (span->type != SPAN_OF_RANGE && library_records(STEPSCOPE_ACTIVE_STEPS))
		library.stepscope_emit_phase_end();
	else if (span->open) /* even while nothing is recorded, otherwise it would be open for ever */
		end_range(span);
	span->held -= span->held > 0;
	Py_RETURN_NONE;
}

/* As a decorator: this is rare, so Python does the wrapping. */
static PyObject *span_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyObject *function;
	static char *names[] = {"function", NULL};
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:range", names, &function))
		return NULL;
	PyObject *module = PyImport_ImportModule("stepscope._decorate");
	PyObject *wrapped = module ? PyObject_CallMethod(module, "wrap", "OO", self, function) : NULL;
	Py_XDECREF(module);
	return wrapped;
}

static PyObject *span_repr(PyObject *self)
{
	struct ranges_span *span = (struct ranges_span *)self;
	return PyUnicode_FromFormat("stepscope.%s(%R)", type_names[span->type], span->name);
}

static void span_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct ranges_span *span = (struct ranges_span *)self;
	for (span->held = 1; span->open; end_range(span)) /* no user is left to end it */
		;
	Py_XDECREF(span->name);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *span_new(enum span_type type, PyObject *name, int64_t number)
{
	struct ranges_span *span = PyObject_New(struct ranges_span, span_type);
	if (!span)
		return NULL;
	Py_INCREF(name);
	span->name = name;
	span->type = type;
	span->symbol = span->held = span->open = 0;
	span->number = number;
	span->has_schedule = false;
	span->bits = STEPSCOPE_ACTIVE_DETAIL;
	return (PyObject *)span;
}

/* For copies and pickles: made again from its name, or index. */
static PyObject *span_reduce(PyObject *self, PyObject *nothing)
{
	struct ranges_span *span = (struct ranges_span *)self;
	return Py_BuildValue("O(O)", makers[span->type], span->name);
}

/* Python code cannot make one: it would have no content. */
static PyObject *span_no_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	return PyErr_Format(PyExc_TypeError, "cannot create 'stepscope._native.Span' instances");
}

static PyMethodDef span_methods[] = {
	{"__enter__", span_enter, METH_NOARGS, NULL},
	{"__exit__", NATIVE_FAST(span_exit), METH_FASTCALL, NULL},
	{"__reduce__", span_reduce, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot span_slots[] = {
	{Py_tp_dealloc, (void *)span_dealloc},
	{Py_tp_new, (void *)span_no_new},
	{Py_tp_methods, span_methods},
	{Py_tp_call, (void *)span_call},
	{Py_tp_repr, (void *)span_repr},
	{Py_tp_doc, (void *)"A context manager and decorator that records a span."},
	{0, NULL},
};

static PyType_Spec span_spec = {"stepscope._native.Span", sizeof(struct ranges_span), 0, Py_TPFLAGS_DEFAULT,
                                span_slots};

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Replaces the object with this name, which is in use, or was never ended. */
static PyObject *make_range(PyObject *name, uint32_t symbol)
{
	if (!PyUnicode_Check(name))
		return PyErr_Format(PyExc_TypeError, "range() takes a string, not %R", Py_TYPE(name));
	if (PyDict_Size(ranges) >= NAMES_MAX)
		PyDict_Clear(ranges);
	PyObject *made = span_new(SPAN_OF_RANGE, name, 0);
	if (!made)
		return NULL;
	((struct ranges_span *)made)->symbol = symbol;
	if (PyDict_SetItem(ranges, name, made) != 0)
		Py_CLEAR(made);
	return made;
}

static PyObject *range_of(PyObject *self, PyObject *name)
{
	PyObject *found = Py_TYPE(name) == &PyUnicode_Type ? PyDict_GetItemWithError(ranges, name) : NULL;
	if (!found)
		return PyErr_Occurred() ? NULL : make_range(name, 0);
	if (Py_REFCNT(found) > 1 || ((struct ranges_span *)found)->open)
		return make_range(name, ((struct ranges_span *)found)->symbol);
	Py_INCREF(found);
	return found;
}

static PyObject *ranges_phase_of(PyObject *self, PyObject *name)
{
	PyObject *found = PyUnicode_Check(name) ? PyDict_GetItemWithError(phases, name) : NULL;
	if (found) {
		Py_INCREF(found);
		return found;
	}
	if (PyErr_Occurred())
		return NULL;
	if (!PyUnicode_Check(name))
		return PyErr_Format(PyExc_TypeError, "phase() takes a string, not %R", Py_TYPE(name));
	return PyErr_Format(PyExc_ValueError,
	                    "unknown phase %R: use data, forward, backward, optimizer, communication, checkpoint "
	                    "or evaluation",
	                    name);
}

static PyObject *micro_batch(PyObject *self, PyObject *index)
{
	long long number = PyLong_AsLongLong(index);
	if (number == -1 && PyErr_Occurred())
		return NULL;
	return span_new(SPAN_OF_MICRO_BATCH, index, number);
}

/* A step of torch.profiler with this number, for a profiler that makes no range of it. It starts even while no detail
 * is recorded, because steps are counted by it. */
static PyObject *profiler_step(PyObject *self, PyObject *arguments)
{
	long long value;
	int has_schedule;
	if (!PyArg_ParseTuple(arguments, "Lp:profiler_step", &value, &has_schedule))
		return NULL;
	if (value < 0 || value >= INT32_MAX - 1)
		return PyErr_Format(PyExc_ValueError, "profiler_step() takes a number of 0 or more, not %lld", value);
	PyObject *name = PyUnicode_FromFormat("ProfilerStep#%lld", value);
	PyObject *made = name ? span_new(SPAN_OF_RANGE, name, value + 1) : NULL;
	Py_XDECREF(name);
	if (made)
		((struct ranges_span *)made)->has_schedule = has_schedule;
	return made;
}

static PyObject *range_with(PyObject *name, unsigned bits)
{
	PyObject *made = PyUnicode_Check(name) ? span_new(SPAN_OF_RANGE, name, 0) : NULL;
	if (!made)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "the name of a range is a string");
	((struct ranges_span *)made)->bits |= bits;
	return made;
}

/* A range that costs next to nothing to record, because it is rare. */
static PyObject *rare_range(PyObject *self, PyObject *name)
{
	return range_with(name, STEPSCOPE_ACTIVE_RARE);
}

/* A range of a framework's action: those of callbacks, of the model and of loops are recorded in all steps. */
static PyObject *action_range(PyObject *self, PyObject *name)
{
	PyObject *made = range_with(name, 0), *text = made ? native_utf8(name) : NULL;
	if (!text) {
		Py_XDECREF(made);
		return NULL;
	}
	if (pytorch_is_action(PyBytes_AsString(text), (size_t)PyBytes_Size(text)))
		((struct ranges_span *)made)->bits |= STEPSCOPE_ACTIVE_RARE | STEPSCOPE_ACTIVE_STEPS;
	Py_DECREF(text);
	return made;
}

/* The ranges that this thread has pushed in this recording. */
static __thread struct {
	unsigned session, depth;
} pushed;

static bool begin_pushed(struct ranges_span *span)
{
	if (!find_symbol(span))
		return false;
	unsigned session = library.stepscope_session_number();
	pushed.depth = pushed.session == session ? pushed.depth + 1 : 1;
	pushed.session = session;
	library.stepscope_emit_begin(span->symbol);
	return true;
}

static PyObject *ranges_push(PyObject *self, PyObject *name)
{
	PyObject *range = range_of(self, name);
	bool is_good = range &&
	               (!library_records(STEPSCOPE_ACTIVE_DETAIL) || begin_pushed((struct ranges_span *)range));
	Py_XDECREF(range);
	if (!is_good)
		return NULL;
	Py_RETURN_NONE;
}

/* Does nothing if no range is pushed, or only in an earlier recording. */
static PyObject *ranges_pop(PyObject *self, PyObject *nothing)
{
	if (!pushed.depth || pushed.session != library.stepscope_session_number())
		Py_RETURN_NONE;
	pushed.depth--;
	if (library_records(STEPSCOPE_ACTIVE_DETAIL))
		library.stepscope_emit_end();
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"range", range_of, METH_O, "range(name): returns a context manager and decorator that records a range."},
	{"profiler_step", profiler_step, METH_VARARGS, NULL},
	{"rare_range", rare_range, METH_O, NULL},
	{"action_range", action_range, METH_O, NULL},
	{"phase", ranges_phase_of, METH_O,
         "phase(name): returns a context manager and decorator that records a phase: data, "
         "forward, backward, optimizer, communication, checkpoint or evaluation."},
	{"micro_batch", micro_batch, METH_O,
         "micro_batch(index): returns a context manager that records one forward and backward "
         "pass of gradient accumulation."},
	{"push", ranges_push, METH_O, "push(name): starts a range; the next pop() of this thread ends it."},
	{"pop", ranges_pop, METH_NOARGS, "pop(): ends the range of the newest push() of this thread."},
	{NULL, NULL, 0, NULL},
};

static bool add_phases(void)
{
	phases = PyDict_New();
	for (size_t i = 1; phases && i < PHASES; i++) {
		PyObject *name = PyUnicode_InternFromString(phase_names[i]);
		PyObject *phase = name ? span_new(SPAN_OF_PHASE, name, (int64_t)i) : NULL;
		bool is_put = phase && PyDict_SetItem(phases, name, phase) == 0;
		Py_XDECREF(name);
		Py_XDECREF(phase);
		if (!is_put)
			return false;
	}
	return phases != NULL;
}

static bool ranges_add_functions(PyObject *module)
{
	bool is_good = PyModule_AddFunctions(module, methods) == 0;
	for (size_t i = 0; is_good && i < TYPES; i++) {
		makers[i] = PyObject_GetAttrString(module, type_names[i]);
		is_good = makers[i] != NULL;
	}
	return is_good;
}

bool native_add_ranges(PyObject *module)
{
	span_type = (PyTypeObject *)PyType_FromSpec(&span_spec);
	ranges = PyDict_New();
	if (!span_type || !ranges || !add_phases())
		return false;
	Py_INCREF(span_type); /* AddObject takes one reference, and we keep one */
	return PyModule_AddObject(module, "Span", (PyObject *)span_type) == 0 && ranges_add_functions(module);
}
