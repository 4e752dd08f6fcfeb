/* SPDX-License-Identifier: Apache-2.0
 *
 * labels.h: what tables call processes, threads and steps, everywhere the same. Texts live in the arena that is given.
 */
#ifndef ANALYSIS_SHARED_LABELS_H
#define ANALYSIS_SHARED_LABELS_H

#include "base/arena.h"
#include "model/model.h"

/* "rank 0", "rank 0, pid 4242" when several processes have that rank, or "pid 4242". MODEL_NONE: "all". */
const char *process_label(const struct model *model, uint32_t process, struct arena *arena);

/* "loader (tid 4243)"; "tid 4243" when it has no name. */
const char *track_label(const struct model *model, uint32_t track, struct arena *arena);

/* The columns of a table that has these as keys. */
#define PROCESS_COLUMN                                                                                                 \
	{                                                                                                              \
		.name = "process", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rank, or pid"                  \
	}
#define STEP_NUMBER_COLUMN                                                                                             \
	{                                                                                                              \
		.name = "step", .type = TABLE_INT, .role = ROLE_KEY, .definition = "number of the step"                \
	}

/* For tables with a row per step or mark: each of these texts is made once, and stays as long as the arena. */
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

/* The count of things with its word: "1 step", "12 steps". */
const char *counted(struct arena *arena, uint64_t count, const char *thing);

/* Why processes of the program among these (by their number) are not compared as ranks: some have the same one, as of several jobs, one that was
 * started again, or two beside each other; or steps of one have not the numbers that they have in others. NULL: they can be. */
const char *ranks_apart(const struct model *model, const bool *is_counted);

#endif
