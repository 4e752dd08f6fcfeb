/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer_rates.h: counts the calls of each optimizer of a training, and finds the optimizer that sets the pace of
 * others. Used by infer_steps.c.
 *
 *     for each call: optimizer_rates_add(&rates, optimizer, at);         // `at` grows
 *     for each call: optimizer_rates_follow(&rates, optimizer, at);      // after all were added
 *     uint64_t leader = optimizer_rates_leader(&rates, optimizer);
 *     for each call: optimizer_rates_add_step(&rates, optimizer, step);  // after the steps are known
 *     optimizer_rates_release(&rates);
 *
 * The leader of optimizers that take turns is the one called first.
 */
#ifndef STEPS_OPTIMIZER_RATES_H
#define STEPS_OPTIMIZER_RATES_H

#include "model/number_map.h"

#include <stddef.h>

struct optimizer_rate {
	uint64_t leader; /* identity; its own if it follows no other optimizer */
	size_t calls;
	size_t last; /* position of its last call */
	size_t turn; /* number of the leader's calls before its last call */
	size_t calls_of_turn;
	size_t most;                         /* most calls between two calls of the leader */
	size_t steps, first_step, last_step; /* steps in which it is called */
};

struct optimizer_rates {       /* starts as {0} */
	struct number_map map; /* identity -> index in the list */
	struct optimizer_rate *list;
	size_t capacity;
	uint64_t leader; /* of the following calls */
};

void optimizer_rates_add(struct optimizer_rates *rates, uint64_t optimizer, size_t at);
void optimizer_rates_follow(struct optimizer_rates *rates, uint64_t optimizer, size_t at);
/* Returns the leader of an optimizer that is called several times between two calls of its leader, but overall no more
 * often than the leader. Then the leader's calls are the steps. Example: a policy that learns twice at every second
 * step of its critic. 0: there is no such leader. */
uint64_t optimizer_rates_leader(const struct optimizer_rates *rates, uint64_t optimizer);
void optimizer_rates_add_step(struct optimizer_rates *rates, uint64_t optimizer, size_t step);
/* Returns the optimizer that is called in the fewest steps, among those not called in each step between their first and
 * last one. NULL: every optimizer is called in each step. */
const struct optimizer_rate *optimizer_rates_rarest(const struct optimizer_rates *rates);
void optimizer_rates_release(struct optimizer_rates *rates);

#endif
