/* SPDX-License-Identifier: Apache-2.0
 *
 * inference.h: steps and phases of one training as they were inferred.
 */
#ifndef STEPS_INFERENCE_H
#define STEPS_INFERENCE_H

#include "steps/infer_steps.h"

/* Behind those that are there; valid until the next call. */
struct inferred *inference_add(struct inference *inference, uint8_t what, int64_t start_ns, int64_t end_ns);
/* Of a program that marks its steps, but no phases: leaves the phases, in pieces where a step begins or ends, at `bounds`, in order. */
void inference_cut_phases(struct inference *inference, const int64_t *bounds, uint32_t bound_count);
void inference_release(struct inference *inference);

#endif
