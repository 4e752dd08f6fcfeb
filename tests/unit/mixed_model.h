/* SPDX-License-Identifier: Apache-2.0
 *
 * mixed_model.h: runs made by hand in which operators were recorded in some steps. One letter a step: 'o' operators, '.' none, 'p' in a part
 * of it, 'r' in all of it, and they were removed again. A step has 1 ms of data, then forward to its end; in it, where operators are, one
 * matmul of 4 ms.
 */
#ifndef UNIT_MIXED_MODEL_H
#define UNIT_MIXED_MODEL_H

#include "model/model.h"

struct mixed_run {
	const char *kinds; /* of its steps */
	double step_ms;    /* without operators */
	double cost_ms;    /* of those with any, more than that */
	/* One number a step, added to its duration; NULL: none is. */
	const double *more_ms;
	int32_t rank; /* -1: none */
	bool infers;  /* phases are not marked */
	/* What happens rarely is known of steps without operators, too. */
	bool has_rare;
	/* A letter a step: 'g' a collection of garbage of 1 ms in it; NULL: none. And 's' where operators are: another operator, of 1 ms. */
	const char *garbage, *seldom;
	const char *budget; /* what the recorder said of it; NULL: nothing */
	int64_t first_ns;   /* when it begins */
};

/* Adds a process with these steps; finish the model behind the last one. The process. */
uint32_t mixed_model_add(struct model *model, const struct mixed_run *run);
/* One without a rank, finished. Release it with model_release(). */
void mixed_model_init(struct model *model, const char *kinds, double step_ms, double cost_ms);

#endif
