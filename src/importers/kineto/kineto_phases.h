/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_phases.h: phases among the ranges of a trace.
 */
#ifndef IMPORTERS_KINETO_KINETO_PHASES_H
#define IMPORTERS_KINETO_KINETO_PHASES_H

#include "importers/kineto/kineto_tokens.h"

/* Phases in pieces that nest with the ranges, and with the steps whose bounds are given, in order. One that a range begins or ends in the
 * middle of takes in the whole range, unless another phase or step is in that, too. Steps are left out. By start. */
void kineto_fit_phases(struct inference *phases, const struct kineto_tokens *tokens, const int64_t *bounds,
                       uint32_t bound_count);

#endif
