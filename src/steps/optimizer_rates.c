/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer_rates.c: see optimizer_rates.h.
 */
#include "steps/optimizer_rates.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct optimizer_rate *rate_of(const struct optimizer_rates *rates, uint64_t optimizer)
{
	uint32_t found = number_map_find(&rates->map, optimizer);

	return found == NUMBER_MAP_NONE ? NULL : &rates->list[found];
}

void optimizer_rates_add(struct optimizer_rates *rates, uint64_t optimizer, size_t at)
{
	struct optimizer_rate *rate = rate_of(rates, optimizer);

	if (!rate) {
		MEMORY_GROW(rates->list, rates->map.count, rates->capacity, 8);
		assert(rates->list);
		rate = &rates->list[rates->map.count];
		*rate = (struct optimizer_rate){0};
		number_map_set(&rates->map, optimizer, rates->map.count);
	}
	rate->calls++;
	rate->last = at;
}

/* Another optimizer becomes the leader after the last call of the old one. */
void optimizer_rates_follow(struct optimizer_rates *rates, uint64_t optimizer, size_t at)
{
	struct optimizer_rate *rate = rate_of(rates, optimizer), *leader = rate_of(rates, rates->leader);

	if (!rate->leader && (!leader || leader->last < at))
		rates->leader = optimizer;
	if (!rate->leader)
		rate->leader = rates->leader;
	if (rate->leader == optimizer) {
		rate->turn++;
		return;
	}
	leader = rate_of(rates, rate->leader);
	if (rate->turn != leader->turn)
		rate->calls_of_turn = 0;
	rate->turn = leader->turn;
	rate->calls_of_turn++;
	if (leader->last > at && rate->calls_of_turn > rate->most)
		rate->most = rate->calls_of_turn;
}

/* A run may end within a turn, so a difference of one turn does not count. */
uint64_t optimizer_rates_leader(const struct optimizer_rates *rates, uint64_t optimizer)
{
	const struct optimizer_rate *rate = rate_of(rates, optimizer);
	const struct optimizer_rate *leader = rate ? rate_of(rates, rate->leader) : NULL;

	return leader && rate->most > 1 && rate->calls - rate->most < leader->calls ? rate->leader : 0;
}

void optimizer_rates_add_step(struct optimizer_rates *rates, uint64_t optimizer, size_t step)
{
	struct optimizer_rate *rate = rate_of(rates, optimizer);

	if (!rate->steps)
		rate->first_step = step;
	rate->steps += !rate->steps || rate->last_step != step;
	rate->last_step = step;
}

const struct optimizer_rate *optimizer_rates_rarest(const struct optimizer_rates *rates)
{
	const struct optimizer_rate *rarest = NULL;

	for (uint32_t i = 0; i < rates->map.count; i++) {
		const struct optimizer_rate *rate = &rates->list[i];

		if (rate->steps && rate->steps <= rate->last_step - rate->first_step &&
		    (!rarest || rate->steps < rarest->steps))
			rarest = rate;
	}
	return rarest;
}

void optimizer_rates_release(struct optimizer_rates *rates)
{
	number_map_release(&rates->map);
	free(rates->list);
	memset(rates, 0, sizeof(*rates));
}
