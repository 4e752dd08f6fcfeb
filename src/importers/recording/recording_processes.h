/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_processes.h: what the model is told of a process after all its events: times, costs, name, whether it is
 * alive.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_PROCESSES_H
#define IMPORTERS_RECORDING_RECORDING_PROCESSES_H

#include "importers/recording/recording.h"

void recording_fill_process(struct recording *recording, struct recorded_process *process);

#endif
