/* SPDX-License-Identifier: Apache-2.0
 *
 * step_facts.h: what is known of a step beside its span, as args that our exporter writes into Kineto's form and our importer finds there. What is
 * as in a trace of Kineto itself, which has none of them, is not written.
 */
#ifndef MODEL_STEP_FACTS_H
#define MODEL_STEP_FACTS_H

#include "model/model.h"

enum step_fact {
	STEP_CAPTURE_MODE,
	STEP_OPERATORS,      /* 0: not all of it was recorded with operators */
	STEP_SOME_OPERATORS, /* of these, 1: a part of it was, or they were removed again */
	STEP_PHASES,         /* 0: they are not known */
	STEP_TOKEN_COUNT,
	STEP_SAMPLE_COUNT,
	STEP_CPU_NS,
	STEP_WAITS,
	STEP_PAGE_FAULTS,
	STEP_RARE,  /* of these, 1: what happens rarely was recorded in all of it */
	STEP_CALLS, /* 1: phases are told by calls of PyTorch's functions only */
	STEP_INPUTS, /* 0: not all of its operators were recorded with inputs; said only where those of other steps were */
	STEP_FACTS
};

const char *step_fact_key(enum step_fact fact); /* "stepscope tokens" */
bool step_fact_get(const struct model_step *step, enum step_fact fact, uint64_t *value);
void step_fact_set(struct model_step *step, enum step_fact fact, uint64_t value);
/* A step of which none is set. */
void step_facts_init(struct model_step *step);

#endif
