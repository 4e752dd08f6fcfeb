/* SPDX-License-Identifier: Apache-2.0
 *
 * step_facts.c: see step_facts.h.
 */
#include "model/step_facts.h"

#include <stepscope/format.h>

const char *step_fact_key(enum step_fact fact)
{
	static const char *const keys[] = {
		[STEP_CAPTURE_MODE] = "stepscope capture",
		[STEP_OPERATORS] = "stepscope operators",
		[STEP_SOME_OPERATORS] = "stepscope some operators",
		[STEP_PHASES] = "stepscope phases",
		[STEP_TOKEN_COUNT] = "stepscope tokens",
		[STEP_SAMPLE_COUNT] = "stepscope samples",
		[STEP_CPU_NS] = "stepscope cpu_ns",
		[STEP_WAITS] = "stepscope waits",
		[STEP_PAGE_FAULTS] = "stepscope page_faults",
		[STEP_RARE] = "stepscope rare",
		[STEP_READ_CPU_NS] = "stepscope read_cpu_ns",
		[STEP_PROCESSOR_WAIT_NS] = "stepscope processor_wait_ns",
		[STEP_PROCESS_CPU_NS] = "stepscope process_cpu_ns",
		[STEP_CALLS] = "stepscope calls",
		[STEP_INPUTS] = "stepscope inputs",
	};
	return keys[fact];
}

bool step_fact_get(const struct model_step *step, enum step_fact fact, uint64_t *value)
{
	const struct {
		bool is_told;
		uint64_t value;
	} facts[] = {
		[STEP_CAPTURE_MODE] = {step->capture != STEPSCOPE_CAPTURE_RECORD, step->capture},
		[STEP_OPERATORS] = {!step->has_detail, 0},
		[STEP_SOME_OPERATORS] = {!step->has_detail && step->has_any_detail, 1},
		[STEP_PHASES] = {step->has_lost_phases, 0},
		[STEP_RARE] = {!step->has_detail && step->has_rare, 1},
		[STEP_CALLS] = {step->has_calls_only, 1},
		[STEP_INPUTS] = {step->has_detail && !step->has_shapes, 0},
		[STEP_TOKEN_COUNT] = {step->has_tokens, step->tokens},
		[STEP_SAMPLE_COUNT] = {step->has_samples, step->samples},
		[STEP_CPU_NS] = {step->has_cpu && step->cpu_ns >= 0, (uint64_t)step->cpu_ns},
		[STEP_WAITS] = {step->has_cpu, step->waits},
		[STEP_PAGE_FAULTS] = {step->has_page_faults, step->page_faults},
		[STEP_READ_CPU_NS] = {step->readings & STEP_READ_CPU, (uint64_t)step->read_cpu_ns},
		[STEP_PROCESSOR_WAIT_NS] = {step->readings & STEP_READ_WAIT, (uint64_t)step->processor_wait_ns},
		[STEP_PROCESS_CPU_NS] = {step->readings & STEP_READ_PROCESS, (uint64_t)step->process_cpu_ns},
	};
	*value = facts[fact].value;
	return facts[fact].is_told;
}

static void set_reading(struct model_step *step, enum step_reading reading, int64_t *ns, uint64_t value)
{
	if (value > INT64_MAX)
		return;
	*ns = (int64_t)value;
	step->readings |= (uint8_t)reading;
}

void step_fact_set(struct model_step *step, enum step_fact fact, uint64_t value)
{
	switch (fact) {
	case STEP_RARE:
		step->has_rare = value;
		break;
	case STEP_CALLS:
		step->has_calls_only = value;
		break;
	case STEP_INPUTS:
		step->has_shapes = value;
		break;
	case STEP_CAPTURE_MODE:
		if (value <= STEPSCOPE_CAPTURE_SAVE)
			step->capture = (uint8_t)value;
		break;
	case STEP_OPERATORS:
		step->has_detail = step->has_any_detail = step->has_rare = value;
		break;
	case STEP_SOME_OPERATORS:
		step->has_any_detail = value;
		break;
	case STEP_PHASES:
		step->has_lost_phases = !value;
		break;
	case STEP_TOKEN_COUNT:
		step->has_tokens = true;
		step->tokens = value;
		break;
	case STEP_SAMPLE_COUNT:
		step->has_samples = true;
		step->samples = value;
		break;
	case STEP_CPU_NS:
		step->has_cpu = value <= INT64_MAX;
		step->cpu_ns = step->has_cpu ? (int64_t)value : 0;
		break;
	case STEP_WAITS:
		step->waits = value;
		break;
	case STEP_PAGE_FAULTS:
		step->has_page_faults = true;
		step->page_faults = value;
		break;
	case STEP_READ_CPU_NS:
		set_reading(step, STEP_READ_CPU, &step->read_cpu_ns, value);
		break;
	case STEP_PROCESSOR_WAIT_NS:
		set_reading(step, STEP_READ_WAIT, &step->processor_wait_ns, value);
		break;
	case STEP_PROCESS_CPU_NS:
		set_reading(step, STEP_READ_PROCESS, &step->process_cpu_ns, value);
		break;
	default:
		break;
	}
}

void step_facts_init(struct model_step *step)
{
	*step = (struct model_step){.capture = STEPSCOPE_CAPTURE_RECORD,
	                            .has_detail = true,
	                            .has_any_detail = true,
	                            .has_rare = true,
	                            .has_shapes = true};
}
