/* SPDX-License-Identifier: Apache-2.0
 *
 * replayed.h: the replays of a run, made once for all tables.
 */
#ifndef ANALYSIS_WHAT_IF_REPLAYED_H
#define ANALYSIS_WHAT_IF_REPLAYED_H

#include "analysis/analysis_context.h"
#include "replay/what_if.h"

/* Replays the selected complete steps of all ranks. The context owns the result. */
struct what_if *replayed_get(struct analysis_context *context);

#endif
