/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer_rates.h: how often each optimizer of a training is called, and which one sets the pace of others; for infer_steps.c.
 *
 *     for each call: optimizer_rates_add(&rates, optimizer, at);         // `at` grows
 *     for each call: optimizer_rates_follow(&rates, optimizer, at);      // when all have been added
 *     uint64_t leader = optimizer_rates_leader(&rates, optimizer);
 *     for each call: optimizer_rates_add_step(&rates, optimizer, step);  // when the steps are known
 *     optimizer_rates_release(&rates);
 *
 * The leader of optimizers that take turns is the one that is called first of them.
 */
#ifndef MODEL_OPTIMIZER_RATES_H
#define MODEL_OPTIMIZER_RATES_H

#include "model/number_map.h"

#include <stddef.h>

struct optimizer_rate {
	uint64_t leader; /* its own identity: it follows none */
	size_t calls;
	size_t last; /* where its last call is */
	size_t turn; /* the leader's calls before its last one */
	size_t calls_of_turn;
	size_t most;                         /* of its calls between two of the leader's */
	size_t steps, first_step, last_step; /* in which it is called */
};

struct optimizer_rates {       /* starts as {0} */
	struct number_map map; /* identity -> index in the list */
	struct optimizer_rate *list;
	size_t capacity;
	uint64_t leader; /* of the calls that come */
};

void optimizer_rates_add(struct optimizer_rates *rates, uint64_t optimizer, size_t at);
void optimizer_rates_follow(struct optimizer_rates *rates, uint64_t optimizer, size_t at);
/* Of one that is called several times between two calls of its leader, but over all no more often, so that the leader's calls are the
 * steps: a policy that learns twice at every second step of its critic. 0: none. */
uint64_t optimizer_rates_leader(const struct optimizer_rates *rates, uint64_t optimizer);
void optimizer_rates_add_step(struct optimizer_rates *rates, uint64_t optimizer, size_t step);
/* Of those that are not called in each step from their first one to their last one, the one in the fewest steps; NULL: all are. */
const struct optimizer_rate *optimizer_rates_rarest(const struct optimizer_rates *rates);
void optimizer_rates_release(struct optimizer_rates *rates);

#endif
