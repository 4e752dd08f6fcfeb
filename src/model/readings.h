/* SPDX-License-Identifier: Apache-2.0
 *
 * readings.h: CPU time of threads and their waits for a processor, from the recorder's readings.
 */
#ifndef MODEL_READINGS_H
#define MODEL_READINGS_H

#include "model/model.h"

/* Sorts the readings by track and time, and fills the steps. A step gets the differences between the reading next to its
 * end and the one next to its start: CPU time and wait of its thread, CPU time of its process. Both readings must be
 * within a fiftieth of the step's duration. Part of model_finish(). */
void readings_finish(struct model *model);

/* The activity of a thread between two instants. */
struct thread_activity {
	bool is_known, has_wait; /* false: no readings are near enough; its wait for a processor was not read */
	int64_t cpu_ns, wait_ns; /* wait_ns: for a processor */
	int64_t sleep_ns;        /* the rest */
};

/* Takes the readings nearest to both instants, at most that far away from them. After model_finish(). */
struct thread_activity readings_between(const struct model *model, uint32_t track, int64_t start_ns, int64_t end_ns,
                                        int64_t most_ns);

#endif
