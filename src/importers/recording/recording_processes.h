/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_processes.h: fills in a process of the model after all its events: times, costs, name, whether it is alive.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_PROCESSES_H
#define IMPORTERS_RECORDING_RECORDING_PROCESSES_H

#include "importers/recording/recording.h"

void recording_fill_process(struct recording *recording, struct recorded_process *process);

#endif
