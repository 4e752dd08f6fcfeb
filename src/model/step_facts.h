/* SPDX-License-Identifier: Apache-2.0
 *
 * step_facts.h: facts of a step that its span does not hold. Our exporter writes them as args in Kineto's format, and
 * our importer reads them. A trace of Kineto itself has none of these args, so a fact is not written if it equals the
 * default of such a trace.
 */
#ifndef MODEL_STEP_FACTS_H
#define MODEL_STEP_FACTS_H

#include "model/model.h"

enum step_fact {
	STEP_CAPTURE_MODE,
	STEP_OPERATORS,      /* 0: it was not recorded completely with operators */
	STEP_SOME_OPERATORS, /* of these, 1: a part was recorded with operators, or they were removed later */
	STEP_PHASES,         /* 0: unknown */
	STEP_TOKEN_COUNT,
	STEP_SAMPLE_COUNT,
	STEP_CPU_NS,
	STEP_WAITS,
	STEP_PAGE_FAULTS,
	STEP_RARE,  /* of these, 1: rare events were recorded during the whole step */
	STEP_CALLS, /* 1: phases come only from calls of PyTorch's functions */
	STEP_READ_CPU_NS,
	STEP_PROCESSOR_WAIT_NS,
	STEP_PROCESS_CPU_NS,
	STEP_INPUTS, /* 0: not all operators have inputs; only for a step with operators, if other steps have inputs */
	STEP_FACTS
};

const char *step_fact_key(enum step_fact fact); /* "stepscope tokens" */
bool step_fact_get(const struct model_step *step, enum step_fact fact, uint64_t *value);
void step_fact_set(struct model_step *step, enum step_fact fact, uint64_t value);
/* Initialises a step for which no fact is set. */
void step_facts_init(struct model_step *step);

#endif
