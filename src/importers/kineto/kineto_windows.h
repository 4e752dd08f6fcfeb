/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_windows.h: traces that are windows of one process, one after the other: torch.profiler with a schedule that repeats hands over a file
 * per window.
 */
#ifndef IMPORTERS_KINETO_KINETO_WINDOWS_H
#define IMPORTERS_KINETO_KINETO_WINDOWS_H

#include "importers/kineto/kineto_set.h"
#include "model/join.h"

/* The processes of which a file before in time has a window, too. Files are of one process when they say so: its number and rank are the same,
 * or its number and the name of the worker in front of the file's name; and when steps go on where those of the other end. free() *joins. */
uint32_t kineto_windows_find(const struct kineto_set *set, struct process_join **joins);

#endif
