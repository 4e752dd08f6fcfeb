/* SPDX-License-Identifier: Apache-2.0
 *
 * run_captured.h: what a run captured, over all its processes, in one sentence. It speaks for those that trained; only where none did for
 * those that ran operators, and only where there are none of these either it says why not.
 *
 *     struct run_captured captured;
 *     run_captured_find(&captured, run);
 *     run_captured_say(&captured, &text);    "3 of 4 processes trained, ranks 0-2: captured steps 2-3 (2 steps) with operators ..."
 *     run_captured_release(&captured);
 */
#ifndef RUN_RUN_CAPTURED_H
#define RUN_RUN_CAPTURED_H

#include "base/buffer.h"
#include "format/own_facts.h"
#include "run/run_state.h"

struct run_captured {
	struct captured_process {
		const struct watched *watched;
		int32_t rank; /* -1: not known */
		enum captured outcome;
		char *sentence;
		bool is_unwritten; /* its end could not be brought into the file */
	} * trainers;              /* by rank; those without one last */
	int trainer_count, workers;
	const struct watched *program;
	uint64_t blocks_left;             /* 0: there was more than could be looked at */
	uint64_t dropped, dropped_coarse; /* of all */
	int unwritten_workers;
	const char *problem; /* of one whose end could not be written */
};

void run_captured_find(struct run_captured *captured, const struct run *run);
bool run_captured_is_empty(const struct run_captured *captured);
void run_captured_say(const struct run_captured *captured, struct buffer *out);
void run_captured_release(struct run_captured *captured);

#endif
