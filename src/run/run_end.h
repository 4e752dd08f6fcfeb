/* SPDX-License-Identifier: Apache-2.0
 *
 * run_end.h: facts about the end of a process. run_words.h words them.
 *
 *     struct run_end end = run_end_find(run, process, &identity);
 *     run_words_death(&text, &end);      "rank 3 (pid 4242) was killed by SIGKILL, last step 17, last op 'matmul'"
 */
#ifndef RUN_RUN_END_H
#define RUN_RUN_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fold_result;
struct run;
struct stepscope_segment_header;
struct watched;

struct run_end {
	pid_t pid;    /* its own id, in its own namespace */
	int32_t rank; /* -1: unknown */
	bool is_worker;
	bool has_status;       /* false: the exit status is unknown */
	int wait_status;       /* as from wait() */
	bool is_out_of_memory; /* SIGKILL ended it, and memory was full: the kernel killed processes of this run */
	const struct fold_result *place; /* where the process was; NULL: unknown. Belongs to the watch of the run */
};

/* For a process that records: rank and role are taken from the identity. May read the counters of the machine. */
struct run_end run_end_find(struct run *run, const struct watched *process,
                            const struct stepscope_segment_header *identity);

/* For the program that the run started. `recorded` is the same process in the watch, or NULL if the program did not
 * record. */
struct run_end run_end_of_program(struct run *run, const struct watched *recorded);

#endif
