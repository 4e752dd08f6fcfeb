/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.h: how a process ended, in words, for all tables.
 */
#ifndef ANALYSIS_MACHINE_PROCESSES_H
#define ANALYSIS_MACHINE_PROCESSES_H

#include "base/arena.h"
#include "model/cell_words.h"
#include "model/model.h"

/* Gets the last value of the counter. Returns false if the process has no counter of that name. */
bool process_counter(const struct model *model, uint32_t process, const char *name, int64_t *value);

/* Returns "exit status 0", "killed by SIGKILL", "closed: exit", "still running" or CELL_END_UNCLOSED. */
const char *process_end(const struct model *model, uint32_t process, struct arena *arena);
/* Returns true if nothing is known of its end but that its recording is not closed: process_end() is CELL_END_UNCLOSED. */
bool process_end_is_unclosed(const struct model *model, uint32_t process);

/* Returns the name of the signal that ended the process; NULL: none is known. */
const char *process_signal(const struct model *model, uint32_t process);

/* Returns true if another process saw it exit with status 0. A process may do so without closing its recording:
 * children of Python's multiprocessing do. */
bool process_exited_well(const struct model *model, uint32_t process);
/* Returns "exit status 3" or "killed by SIGKILL" if another process saw it fail; otherwise NULL. */
const char *process_failure(const struct model *model, uint32_t process, struct arena *arena);
/* Returns the failure of the program that `stepscope run` started, even if the program recorded nothing itself: a
 * launcher of ranks may start them again. With several programs, as on several machines, returns that of the first one
 * that failed. Also reports a failure that no process was left to see. */
const char *program_failure(const struct model *model, struct arena *arena);

#endif
