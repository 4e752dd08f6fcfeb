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

/* Returns the track's reading nearest to the time, of those with the process's CPU time if `of_process` is set. NULL:
 * there is none within `most_ns`. After model_finish(). */
const struct thread_reading *readings_nearest(const struct model *model, uint32_t track, int64_t time_ns,
                                              int64_t most_ns, bool of_process);

#endif
