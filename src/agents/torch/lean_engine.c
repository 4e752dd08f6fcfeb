/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_engine.c: see lean_engine.h. The engine makes its record, calls evaluate_function() and destroys the record,
 * even if that call threw. We see each of the three calls. In the third, none of our frames is left on the stack, so
 * no exception passes through us.
 */
#include "agents/torch/lean_engine.h"

#include "agents/torch/lean_nodes.h"
#include "agents/torch/lean_record.h"
#include "agents/torch/thread.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef __x86_64__

#define LEAST_LEARNED 4 /* backwards of a sum have two nodes each */

typedef void construct_record(struct lean_record *record, uint8_t scope);
typedef void evaluate_node(void *engine, void *task, void *node, void *inputs, void *queue);

static struct { /* written before the slots are redirected */
	construct_record *construct;
	evaluate_node *evaluate;
	const void *maker; /* return address in the engine's code that makes its record */
	torch_start *start;
	bool is_led;
} engine;

/* ---- how the engine works ---------------------------------------------------------------------------------------- */

static struct {
	pthread_t thread;
	const char *(*name)(const void *record);
	const struct lean_record *record; /* the newest record of scope FUNCTION */
	const void *maker;
	bool is_evaluated;
	unsigned good, bad;
} learnt;

static bool is_here(void)
{
	return pthread_equal(pthread_self(), learnt.thread);
}

static void learn_construct(struct lean_record *record, uint8_t scope)
{
	const void *maker = __builtin_return_address(0);
	engine.construct(record, scope);
	if (scope != TORCH_SCOPE_FUNCTION || !is_here())
		return;
	learnt.record = record;
	learnt.maker = maker;
	learnt.is_evaluated = false;
}

static void learn_evaluate(void *self, void *task, void *node, void *inputs, void *queue)
{
	char text[LEAN_NODE_NAME_BYTES];
	if (is_here()) {
		bool is_of_record = learnt.record && learnt.record->callbacks.size == 1;
		learnt.is_evaluated = is_of_record &&
		                      strcmp(lean_nodes_name(node, text), learnt.name(learnt.record)) == 0;
		learnt.bad += !learnt.is_evaluated;
	}
	engine.evaluate(self, task, node, inputs, queue);
}

static void learn_destroy(const struct lean_record *record)
{
	if (!is_here() || record != learnt.record)
		return;
	learnt.record = NULL;
	if (!learnt.is_evaluated)
		return;
	learnt.bad += engine.maker && engine.maker != learnt.maker;
	learnt.good++;
	engine.maker = learnt.maker;
}

/* ---- lean -------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) bool make(struct lean_record *record)
{
	struct lean_asked asked;
	if (!torch_thread && !thread_make())
		return false;
	lean_places.ask(&asked, TORCH_SCOPE_FUNCTION);
	if (!asked.is_any)
		return false;
	bool is_ours = lean_is_ours(&asked.callbacks);
	if (asked.callbacks.pairs != asked.callbacks.local)
		free(asked.callbacks.pairs); /* more than four pairs come from malloc() in a c10::SmallVector */
	if (!is_ours)
		return false;
	lean_record_make(record);
	torch_thread->lean = record;
	return true;
}

static void construct(struct lean_record *record, uint8_t scope)
{
	bool is_of_engine = __builtin_return_address(0) == engine.maker && scope == TORCH_SCOPE_FUNCTION;
	if (!is_of_engine || !engine.start || !make(record))
		engine.construct(record, scope);
}

static __attribute__((noinline)) void begin_named(struct lean_record *record, const void *node)
{
	char text[LEAN_NODE_NAME_BYTES];
	lean_record_begin(record, engine.start, (uintptr_t)lean_nodes_name(node, text), false, -1);
}

static void evaluate(void *self, void *task, void *node, void *inputs, void *queue)
{
	struct lean_record *record = torch_thread ? torch_thread->lean : NULL;
	if (record) {
		torch_thread->lean = NULL;
		if (lean_places.inputs >= 0)
			memset((char *)record + lean_places.inputs, 0, 16);
		const void *schema = lean_nodes_schema(node);
		if (__builtin_expect(schema != NULL, 1))
			lean_record_begin(record, engine.start, (uintptr_t)schema, true, -1);
		else
			begin_named(record, node);
	}
	engine.evaluate(self, task, node, inputs, queue);
}

/* ---- leading ----------------------------------------------------------------------------------------------------- */

/* Redirects evaluate_function() first, because it must meet the records that the other function makes. */
static bool lean_engine_lead(construct_record *made, evaluate_node *evaluated)
{
	union {
		construct_record *construct;
		evaluate_node *evaluate;
		void *address;
	} function = {.evaluate = evaluated};
	const struct slots *slots = lean_libraries[0].slots;
	if (!slots_lead(&slots[LEAN_EVALUATE], function.address))
		return false;
	function.construct = made;
	return slots_lead(&slots[LEAN_SCOPE], function.address);
}

void lean_engine_learn(const struct torch_entry *entry)
{
	const struct lean_library *library = &lean_libraries[0];
	void *construct_it = lean_record_function(LEAN_SCOPE), *evaluate_it = lean_record_function(LEAN_EVALUATE);
	*(void **)&engine.construct = construct_it;
	*(void **)&engine.evaluate = evaluate_it;
	if (!construct_it || !evaluate_it || !lean_nodes_find(&library->loaded) || !library->slots[LEAN_SCOPE].count ||
	    !library->slots[LEAN_EVALUATE].count)
		return;
	learnt.thread = pthread_self();
	learnt.name = entry->name;
	lean_record_watch(learn_destroy);
	engine.is_led = library->is_led && lean_engine_lead(learn_construct, learn_evaluate);
}

static const char *doubt(const char *problem)
{
	if (problem)
		return problem;
	if (!engine.is_led)
		return "not all calls of the engine go through writable slots";
	return learnt.bad || learnt.good < LEAST_LEARNED ? "the engine works in an unknown way" : NULL;
}

const char *lean_engine_start(const char *problem)
{
	problem = doubt(problem);
	bool is_done = !engine.is_led ||
	               lean_engine_lead(problem ? engine.construct : construct, problem ? engine.evaluate : evaluate);
	return problem || is_done ? problem : "the slots are read-only";
}

void lean_engine_tells(torch_start *start)
{
	engine.start = start;
}

#else

void lean_engine_learn(const struct torch_entry *entry) {}

const char *lean_engine_start(const char *problem)
{
	return problem;
}

void lean_engine_tells(torch_start *start) {}

#endif
