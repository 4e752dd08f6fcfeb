/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.h: how a process ended, in words, for all tables that say so.
 */
#ifndef ANALYSIS_MACHINE_PROCESSES_H
#define ANALYSIS_MACHINE_PROCESSES_H

#include "base/arena.h"
#include "model/cell_words.h"
#include "model/model.h"

/* Last value of the counter; false when the process has none of that name. */
bool process_counter(const struct model *model, uint32_t process, const char *name, int64_t *value);

/* "exit status 0", "killed by SIGKILL", "closed: exit", "still running" or CELL_END_UNCLOSED */
const char *process_end(const struct model *model, uint32_t process, struct arena *arena);
/* Returns true if nothing is known of its end but that its recording is not closed: process_end() is CELL_END_UNCLOSED. */
bool process_end_is_unclosed(const struct model *model, uint32_t process);

/* Somebody saw it exit with status 0. A process may do so without closing its recording: children of Python's multiprocessing do. */
bool process_exited_well(const struct model *model, uint32_t process);
/* "exit status 3" or "killed by SIGKILL", when somebody saw it fail; else NULL. */
const char *process_failure(const struct model *model, uint32_t process, struct arena *arena);
/* The same of the program that `stepscope run` started, also where it recorded nothing itself: who starts ranks may start them again. Of
 * several, as on several machines, the first one that failed. Also where nobody was left to see it. */
const char *program_failure(const struct model *model, struct arena *arena);

#endif
