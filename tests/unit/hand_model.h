/* SPDX-License-Identifier: Apache-2.0
 *
 * hand_model.h: a small training run made by hand, whose tables can be computed on paper: two ranks, steps 0..4, the last
 * one of rank 1 cut off by a kill. Times of one step, in ms from its begin:
 *
 *     data 0-10    forward 10-30 (op matmul 12-22, in it matmul 14-18; range layer 24-28)    backward 30-60
 *     optimizer 60-70    outside phases 70-100 + 10 * number of the step
 *
 * Rank 1 does the same but waits 20 ms more for data. 5 ms lie between two steps.
 */
#ifndef UNIT_HAND_MODEL_H
#define UNIT_HAND_MODEL_H

#include "model/model.h"

#define MS 1000000LL

/* Initialises and finishes the model; release it with model_release(). */
void hand_model_init(struct model *model);

#endif
