/* SPDX-License-Identifier: Apache-2.0
 *
 * labels.h: the names of processes, threads and steps, the same in all tables. Texts are allocated in the given arena.
 */
#ifndef ANALYSIS_SHARED_LABELS_H
#define ANALYSIS_SHARED_LABELS_H

#include "base/arena.h"
#include "model/model.h"

/* Returns "rank 0", "rank 0, pid 4242" if several processes have that rank, or "pid 4242". MODEL_NONE: "all". */
const char *process_label(const struct model *model, uint32_t process, struct arena *arena);

/* Returns "loader (tid 4243)", or "tid 4243" if the thread has no name. */
const char *track_label(const struct model *model, uint32_t track, struct arena *arena);

/* The key columns of tables with a row per process or step. */
#define PROCESS_COLUMN                                                                                                 \
	{                                                                                                              \
		.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"                  \
	}
#define STEP_NUMBER_COLUMN                                                                                             \
	{                                                                                                              \
		.name = "step", .type = TABLE_INT, .role = ROLE_KEY, .definition = "number of the step"                \
	}

/* For tables with a row per step or mark: each of these texts is made once and kept as long as the arena. */
struct labels {
	const struct model *model;
	struct arena *arena;
	const char **processes, **tracks; /* by number, NULL: not made yet */
};
void labels_init(struct labels *labels, const struct model *model, struct arena *arena);
void labels_release(struct labels *labels);
const char *labels_process(struct labels *labels, uint32_t process);
const char *labels_track(struct labels *labels, uint32_t track);

const char *role_name(int role); /* "trainer", "worker", ... */

/* Returns the count with its noun: "1 step", "12 steps". */
const char *counted(struct arena *arena, uint64_t count, const char *thing);

/* Returns why the counted processes are not compared as ranks, NULL if they can be. is_counted is indexed by process.
 * Reasons: several trainers have the same rank, as after a restart or with several jobs, or a trainer lost the
 * original numbers of its steps. */
const char *ranks_apart(const struct model *model, const bool *is_counted);

#endif
