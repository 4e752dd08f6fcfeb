/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.c: a c10::OpRegistrationListener, unchanged in 1.13 to 2.15, without C++: an object that starts with the
 * address of its virtual functions. PyTorch reports all existing operators to it at once. A listener that was called
 * for them has the functions in the right order.
 */
#include "agents/torch/operators.h"

#define LEAST_OPERATORS 100 /* PyTorch has thousands */

struct listener {
	const struct functions {
		void (*destroy)(struct listener *listener), (*destroy_and_free)(struct listener *listener);
		void (*registered)(struct listener *listener, const void *operator);
		void (*going)(struct listener *listener, const void *operator);
	} * functions;
	unsigned registered;
	void (*on_going)(void);
};

static void nothing(struct listener *listener) {}

static void count(struct listener *listener, const void *operator)
{
	listener->registered++; /* no atomic: PyTorch holds a lock */
}

static void operators_tell(struct listener *listener, const void *operator)
{
	listener->on_going();
}

/* In C++ the words before the functions describe the type, for dynamic_cast. */
static const struct {
	intptr_t to_top;
	const void *type;
	struct functions functions;
} table = {.functions = {nothing, nothing, count, operators_tell}};

bool operators_watch(const struct torch_entry *entry, void (*on_going)(void))
{
	static struct listener listener = {.functions = &table.functions};
	void *pointer = &listener; /* a std::unique_ptr is passed by its address */
	if (!entry->dispatcher || listener.on_going)
		return listener.registered >= LEAST_OPERATORS;
	listener.on_going = on_going;
	(void)entry->add_listener(entry->dispatcher(), &pointer);
	return listener.registered >= LEAST_OPERATORS;
}
