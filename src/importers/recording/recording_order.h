/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_order.h: the order in which processes and files are read, and data that depends on it.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_ORDER_H
#define IMPORTERS_RECORDING_RECORDING_ORDER_H

#include "importers/recording/recording.h"

/* Adds the processes to the model. Trainers come first, by rank, so that process numbers are meaningful to people. */
void recording_add_processes(struct recording *recording);
/* Sorts the files by process, session and number. Unusable files come last. */
void recording_sort_files(struct recording *recording);
/* Finds the time since which each session has all its events, if rotation removed older ones. */
void recording_find_detail_since(struct recording *recording);

#endif
