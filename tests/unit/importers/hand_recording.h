/* SPDX-License-Identifier: Apache-2.0
 *
 * hand_recording.h: segments made by hand for tests of the importer 'recording'. They have one thread, MAIN, and a symbol of each kind.
 *
 *     begin(&segment);
 *     on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
 *     on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
 *     segment_end(&segment, "exit");
 *     load(&segment);
 *     CHECK_SPANS(0, {10, 30, "matmul", 0, 0});
 *     model_release(&model);
 */
#ifndef UNIT_HAND_RECORDING_H
#define UNIT_HAND_RECORDING_H

#include "loaded_model.h"
#include "segment_builder.h"

#include <stepscope/stepscope.h>

#define MAIN 1
#define OP 20
#define RANGE 21
#define LOSS 22
#define QUEUE 23
#define SAVED 24
#define SHAPE 25
#define KERNEL 26
#define OTHER_OP 27

/* Starts a segment that has the thread and the symbols above. */
void begin(struct segment_builder *segment);

/* Adds an event of the thread MAIN without words. */
void on(struct segment_builder *segment, uint64_t tick, enum stepscope_event type, uint32_t id);

/* Loads into `model`, which is finished, and releases the segments. */
void load_all(struct segment_builder *segments, uint32_t count, const char *const *names,
              const struct model_filter *filter);

/* Loads one whole segment. */
void load(struct segment_builder *segment);

/* Returns the word that stands for the number in an event. */
uint64_t bits(double value);

#endif
