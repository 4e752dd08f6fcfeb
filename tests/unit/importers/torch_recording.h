/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_recording.h: the recording of a PyTorch training loop, made by hand: one segment with the threads MAIN and OTHER. Each event
 * comes ten nanoseconds after the one before it.
 *
 *     begin();
 *     for (int i = 0; i < 3; i++)
 *         step();
 *     finish("exit");
 *     assert_int_equal(model.steps_count, 3);
 *     model_release(&model);
 */
#ifndef UNIT_TORCH_RECORDING_H
#define UNIT_TORCH_RECORDING_H

#include "loaded_model.h"
#include "segment_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

#define MAIN 1
#define OTHER 2

/* The symbols of the segment. */
enum names {
	AGENT = 20,
	KEY,
	OP,
	NODE,
	GRADIENT,
	ACCUMULATE,
	DATA,
	CALL,
	ZERO,
	RANGE,
	MODE,
	REGION,
	COMPILED_CALL,
	COMPILED,
	MODULE,
	NAMES_END, /* after the names for events of any kind */
	ADD = NAMES_END,
	ONES,
	FOO,
	COMPILE,
	GARBAGE,
	PROFILED, /* ProfilerStep#0; the next four numbers follow it */
};

extern struct segment_builder segment;
extern uint64_t now;      /* the tick of the last event */
extern uint64_t sequence; /* the number of the last operator of a graph */

/* Starts the segment, with its threads and all symbols. */
void begin(void);

/* Opens a range or an operator on the thread, or closes the innermost one. */
void open_on(uint32_t stream, uint32_t name);
void close_on(uint32_t stream);

/* Adds an operator that makes a node of a graph; forward() adds it on MAIN. */
void forward_on(uint32_t stream);
void forward(void);

/* Adds the node of the operator with this number. */
void node_on(uint32_t stream, uint64_t number);

/* Adds the node of the last operator, and one that keeps a gradient. */
void backward_on(uint32_t stream);

/* Adds a call of this optimizer; call() adds it on MAIN. */
void call_on(uint32_t stream, uint64_t optimizer);
void call(uint64_t optimizer);

/* Adds a fetch of the loader; without a batch it is the end of the loop's batches. */
void data(bool has_batch);

/* Adds a batch, a forward, a backward and a call of optimizer 5. */
void step(void);

/* Adds a gap of nine dropped events, of which the first was dropped five nanoseconds before. */
void gap(int32_t net, int32_t lowest);

/* Loads the steps of the filter into `model` and checks their order and numbers. Without a reason the program was killed. */
void finish_with(const char *reason, const struct model_filter *filter);

/* Loads all steps. */
void finish(const char *reason);

/* Returns the number of spans with this name on the thread of the first step. A depth of -1 counts those at any depth. */
uint32_t span_count(const char *name, int depth);

/* Returns the duration of the first span with this name on the thread of the first step; -1 if there is none. */
int64_t duration_of(const char *name);

#endif
