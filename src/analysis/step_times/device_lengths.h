/* SPDX-License-Identifier: Apache-2.0
 *
 * device_lengths.h: the steps of a device whose host runs ahead.
 *
 * A host that does not wait for its device marks short steps until the queue is full, and a long one where it waits. The
 * step of the device lasts from the end of its work of the step before to the end of the step's own work. It counts if a
 * queue lies between: if the device still works for the step when the host has ended it.
 */
#ifndef ANALYSIS_STEP_TIMES_DEVICE_LENGTHS_H
#define ANALYSIS_STEP_TIMES_DEVICE_LENGTHS_H

#include "analysis/step_times/step_times.h"
#include "model/launches.h"

/* Sets length_ns of the steps of each process whose host runs ahead. times: durations are known. */
void device_lengths_find(struct step_times *times, const struct model *model, const struct launches *launches);

#endif
