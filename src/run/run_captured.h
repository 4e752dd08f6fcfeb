/* SPDX-License-Identifier: Apache-2.0
 *
 * run_captured.h: facts about the recordings of all processes of a run. The run speaks for the processes that trained.
 * If none trained, it speaks for those that ran operators or ranges, and if none did, for all. run_words.h words the
 * facts.
 *
 *     struct run_captured captured;
 *     run_captured_find(&captured, run);     reads the recordings, then run_captured_settle()
 *     run_captured_release(&captured);
 */
#ifndef RUN_RUN_CAPTURED_H
#define RUN_RUN_CAPTURED_H

#include "format/own_facts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run;

/* The end of the recording of one process. */
enum captured_end {
	CAPTURED_END_TOLD,      /* the process wrote a sentence about its recording */
	CAPTURED_END_OPEN,      /* the process still records */
	CAPTURED_END_LOST,      /* the end is missing, and the buffers that held it are gone */
	CAPTURED_END_COMPLETE,  /* everything is in the file, but the process wrote no sentence: it was killed */
	CAPTURED_END_UNWRITTEN, /* the process wrote no sentence, and the end waits in memory: see unwritten_reason */
};

/* The last steps of a process that wrote no sentence about its recording. */
struct captured_steps {
	bool has_last;     /* the program marks steps: */
	int64_t last;      /* the number of the last one */
	uint64_t counted;  /* steps that were counted, if the program marks none */
	bool has_schedule; /* it is known which of the counted steps have operators: */
	uint64_t detailed; /* their number, */
	int64_t first_detailed, last_detailed;
};

struct captured_process {
	/* found in the recording: */
	pid_t pid;
	int order;    /* order in which the processes were found */
	int32_t rank; /* -1: unknown */
	enum captured outcome;
	enum captured_end end;
	char *told;                   /* CAPTURED_END_TOLD: the sentence. Owned */
	struct captured_steps steps;  /* CAPTURED_END_COMPLETE */
	const char *unwritten_reason; /* why the end is not in the file; NULL: it is in the file. Belongs to the
	                               * watch */
	/* decided by run_captured_settle(): */
	bool is_spoken_for;
	bool is_rank_shared; /* other processes that are spoken for have the same rank: a job was restarted, or there
	                      * are two jobs */
};

struct run_captured {
	/* found in the recordings: */
	struct captured_process *trainers; /* all but the workers */
	int trainer_count, workers, unwritten_workers;
	const char *unwritten_reason;     /* of the last process whose end could not be written */
	uint64_t dropped, dropped_coarse; /* events, and those of steps and phases among them, of all processes */
	bool is_dropped_least;            /* the recordings are so long that only a part was read */
	/* decided by run_captured_settle(): */
	enum captured outcome; /* the best outcome of all trainers */
	int spoken_count;      /* trainers with this outcome */
	int unwritten;         /* processes that are not spoken for and whose end could not be written */
};

/* Reads the recordings of all processes of the run, then settles. */
void run_captured_find(struct run_captured *captured, const struct run *run);

/* Puts the trainers in the order of their ranks, unknown ones last, and decides which to speak for. */
void run_captured_settle(struct run_captured *captured);

/* Returns true if no process of the run left a recording. */
bool run_captured_is_empty(const struct run_captured *captured);
void run_captured_release(struct run_captured *captured);

#endif
