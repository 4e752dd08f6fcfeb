/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_ops.h: operators as torch.profiler counts them, to the last bit. An event that is the only child of one with
 * the same name is merged into it. Self is total minus the direct children. Rows are grouped by name, and by shapes if
 * asked for, in the order of their first event. Time is in microseconds, as sums of doubles in torch's order. Memory
 * is counted by thread (torch counts the allocations of all threads meanwhile).
 *
 * The table `ops` has stepscope's own definitions. This one is for users who compare, or have scripts written for
 * torch. Events are in the model's storage, which must outlive them.
 */
#ifndef ANALYSIS_OPERATORS_TORCH_OPS_H
#define ANALYSIS_OPERATORS_TORCH_OPS_H

#include "base/arena.h"
#include "model/model.h"

#define TORCH_NONE UINT32_MAX

struct torch_event {
	const char *name;   /* "ProfilerStep*" for all steps */
	const char *shapes; /* "[[2, 3], []]"; "[]" when there are none */
	const char *source; /* frames of Python, innermost first, one per line; "": none, or not asked for */
	int64_t start_ns, end_ns;
	double start_us, end_us; /* since the first event */
	double children_us;
	/* For an event of a device, its duration. For another event, the work that it launched itself, later including
	 * its children's. */
	double device_us, children_device_us;
	int64_t bytes[2], children_bytes[2]; /* allocated minus released: of the host, of devices */
	int64_t step;                        /* number of a step, -1: not a step */
	double flops;
	uint32_t parent, children; /* index, TORCH_NONE: none; number of them */
	uint32_t track;
	uint32_t inputs;         /* string: text of a symbol of kind INPUTS, 0: none */
	uint8_t scope;           /* at::RecordScope */
	int64_t sequence;        /* -1: none */
	uint32_t forward_thread; /* PyTorch's number of the thread; 0: none */
	uint32_t stack;          /* of Python; events of a backward have their forward's */
	uint32_t frame;          /* number of a function or module of Python in a trace; 0: another event */
	bool is_annotation, is_merged /* into its parent */, is_backward, is_device;
	bool is_async; /* of no thread: it has no self time, no parent and no children */
};

struct torch_row {
	const struct torch_event *first;
	int64_t count;
	double total_us, self_us, device_us, self_device_us, flops;
	int64_t bytes[2], self_bytes[2];
};

enum torch_group {
	TORCH_BY_NAME,
	TORCH_BY_SHAPE,
	TORCH_BY_CALL, /* a row for each event */
};

struct torch_ops {
	const struct model *model;
	struct torch_event *events;
	uint32_t event_count, event_capacity;
	uint32_t *order; /* events in torch's order: by start, the longer first; without merged ones */
	uint32_t order_count;
	struct torch_row *rows;
	uint32_t row_count, row_capacity;
	bool lacks_flops; /* some operators lack inputs that other steps have: sums would be incomplete */
	bool has_memory, has_operators, has_device, has_async; /* has_device: work of devices */
	struct arena texts;
};

struct torch_ops_options {
	uint32_t process; /* MODEL_NONE: all processes together */
	enum torch_group group;
	bool is_without_memory, is_without_shapes; /* as if they had not been recorded */
	bool is_profiled_only; /* only threads that the profiler in the program follows, if the recording tells which */
	uint32_t frames;       /* rows have equal stacks in the innermost N frames; 0: stacks do not matter */
};
void torch_ops_init(struct torch_ops *ops, const struct model *model, const struct torch_ops_options *options);
void torch_ops_release(struct torch_ops *ops);
/* Adds an event, valid until the next call. For torch_trace.c. */
struct torch_event *torch_ops_add_event(struct torch_ops *ops);

static inline double torch_event_us(const struct torch_event *event)
{
	return event->end_us - event->start_us;
}

#endif
