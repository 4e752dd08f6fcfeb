/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_repeats.h: steps of a program of which nothing is known but its own ranges, as in inference: a range that comes
 * again and again and takes most of the time is a step.
 *
 *     struct repeats repeats = {0};
 *     for each span: repeats_add(&repeats, name, start_ns, dur_ns);    // by start; name 0: it may be no step
 *     uint32_t name = repeats_find(&repeats, model);
 *     repeats_release(&repeats);
 */
#ifndef STEPS_INFER_REPEATS_H
#define STEPS_INFER_REPEATS_H

#include "model/model.h"
#include "model/number_map.h"

struct repeat {
	uint64_t count, dur_ns;
	int64_t first_ns, last_ns;
	bool is_inside_itself; /* or crosses itself */
};

struct repeats {               /* starts as {0} */
	struct number_map map; /* name -> index in the list */
	struct repeat *list;
	struct repeat all; /* all spans */
};

/* Returns the string that a range has in each pass: "iteration 17" and "iteration 18" have one, "layer 17" and "layer 18"
 * have two. Returns 0 for ranges of PyTorch itself. */
uint32_t repeats_name(struct model *model, uint32_t name);
void repeats_add(struct repeats *repeats, uint32_t name, int64_t start_ns, int64_t dur_ns);
/* Returns the name that takes the most time, if that is at least half of the thread's; 0: none. */
uint32_t repeats_find(const struct repeats *repeats, const struct model *model);
void repeats_release(struct repeats *repeats);

#endif
