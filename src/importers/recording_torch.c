/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch.c: see recording_torch.h. A record counts when it lies in no other one but an optimizer's call; ranges of the user's
 * around it do not matter, but a step or phase must not cut them.
 */
#include "importers/recording_torch.h"

#include "base/memory.h"
#include "model/infer_steps.h"

#include <stdlib.h>
#include <string.h>

enum symbol_class {
	CLASS_UNKNOWN, /* a range, a phase, ...: around records */
	CLASS_OP,
	CLASS_NODE,
	CLASS_ACCUMULATE,
	CLASS_DATA,
	CLASS_OPTIMIZER,
	CLASS_ZERO_GRAD,
	CLASS_OPTIMIZER_KEY, /* of the argument that says which one it is */
};

struct open_record {
	uint32_t record; /* index, NO_RANGE: it is inside of another one and not kept */
	uint32_t range;  /* index, NO_RANGE: it is no range */
	bool is_phase;
};

struct stream_scan {
	uint32_t stream;
	struct train_record *records;
	uint32_t record_count, record_capacity;
	struct train_range *ranges;
	uint32_t range_count, range_capacity;
	struct open_record *open;
	uint32_t depth, capacity;
	uint32_t inside;    /* open records that are no optimizer's call */
	uint32_t optimizer; /* open optimizer's calls */
	uint32_t calls, nodes;
	int64_t last_ns;
};

struct torch_scan {
	uint8_t *classes; /* by symbol */
	uint32_t class_capacity;
	struct stream_scan *streams;
	uint32_t stream_count;
	bool has_steps; /* marked by the program */
	bool has_phases;
};

/* Interned by the agent before its first operator (src/agents/torch/agent.c). */
static const char agent_name[] = "torch.agent";

static bool starts_with(const char *text, uint32_t length, const char *prefix)
{
	size_t bytes = strlen(prefix);
	return length >= bytes && memcmp(text, prefix, bytes) == 0;
}

static enum symbol_class class_of(uint8_t kind, const char *text, uint32_t length)
{
	switch (kind) {
	case STEPSCOPE_SYMBOL_TEXT:
		return length == 15 && starts_with(text, length, "torch.optimizer") ? CLASS_OPTIMIZER_KEY
		                                                                    : CLASS_UNKNOWN;
	case STEPSCOPE_SYMBOL_OP:
		return starts_with(text, length, "autograd::engine::evaluate_function: ") ? CLASS_NODE : CLASS_OP;
	case STEPSCOPE_SYMBOL_BACKWARD:
		return starts_with(text, length, "torch::autograd::AccumulateGrad") ? CLASS_ACCUMULATE : CLASS_OP;
	case STEPSCOPE_SYMBOL_SCRIPT:
		return CLASS_OP;
	case STEPSCOPE_SYMBOL_ANNOTATION:
		return starts_with(text, length, "Optimizer.step#")          ? CLASS_OPTIMIZER
		       : starts_with(text, length, "Optimizer.zero_grad#")   ? CLASS_ZERO_GRAD
		       : starts_with(text, length, "enumerate(DataLoader)#") ? CLASS_DATA
		                                                             : CLASS_UNKNOWN;
	default:
		return CLASS_UNKNOWN;
	}
}

void torch_scan_symbol(struct recording *recording, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct session *session = recording->session;
	bool is_mark = kind == STEPSCOPE_SYMBOL_TEXT && length == sizeof agent_name - 1 &&
	               !memcmp(text, agent_name, length);
	if (is_mark && !session->torch) {
		session->torch = memory_resize(NULL, 1, sizeof *session->torch);
		memset(session->torch, 0, sizeof *session->torch);
	}
	struct torch_scan *scan = session->torch;
	enum symbol_class class = scan ? class_of(kind, text, length) : CLASS_UNKNOWN;
	if (class == CLASS_UNKNOWN || id >= 1u << 24)
		return;
	if (id >= scan->class_capacity) {
		uint32_t capacity = (id / 1024 + 1) * 2048;
		scan->classes = memory_resize(scan->classes, capacity, 1);
		memset(scan->classes + scan->class_capacity, 0, capacity - scan->class_capacity);
		scan->class_capacity = capacity;
	}
	scan->classes[id] = (uint8_t) class;
}

static struct stream_scan *stream_of(struct torch_scan *scan, uint32_t number)
{
	for (uint32_t i = scan->stream_count; i-- > 0;)
		if (scan->streams[i].stream == number)
			return &scan->streams[i];
	scan->streams = memory_resize(scan->streams, scan->stream_count + 1, sizeof *scan->streams);
	scan->streams[scan->stream_count] = (struct stream_scan){.stream = number};
	return &scan->streams[scan->stream_count++];
}

static struct open_record *push(struct stream_scan *stream)
{
	if (stream->depth == stream->capacity) {
		stream->capacity = stream->capacity ? 2 * stream->capacity : 32;
		stream->open = memory_resize(stream->open, stream->capacity, sizeof *stream->open);
	}
	stream->open[stream->depth] = (struct open_record){NO_RANGE, NO_RANGE, false};
	return &stream->open[stream->depth++];
}

static uint32_t innermost_range(const struct stream_scan *stream)
{
	for (uint32_t i = stream->depth; i-- > 0;)
		if (stream->open[i].range != NO_RANGE)
			return stream->open[i].range;
	return NO_RANGE;
}

static uint32_t add_range(struct stream_scan *stream, int64_t time_ns)
{
	if (stream->range_count == stream->range_capacity) {
		stream->range_capacity = stream->range_capacity ? 2 * stream->range_capacity : 64;
		stream->ranges = memory_resize(stream->ranges, stream->range_capacity, sizeof *stream->ranges);
	}
	stream->ranges[stream->range_count] = (struct train_range){time_ns, time_ns, innermost_range(stream)};
	return stream->range_count++;
}

static uint8_t token_of(enum symbol_class class, const struct segment_event *event)
{
	switch (class) {
	case CLASS_NODE:
		return TOKEN_BACKWARD;
	case CLASS_DATA:
		return TOKEN_DATA;
	case CLASS_OPTIMIZER:
		return TOKEN_OPTIMIZER;
	case CLASS_ZERO_GRAD:
		return TOKEN_ZERO_GRAD;
	default: /* an operator has a payload when it has a sequence number */
		return event->payload_count ? TOKEN_FORWARD : TOKEN_OP;
	}
}

static uint32_t add_record(struct stream_scan *stream, uint8_t token, int64_t time_ns)
{
	if (stream->record_count == stream->record_capacity) {
		stream->record_capacity = stream->record_capacity ? 2 * stream->record_capacity : 256;
		stream->records = memory_resize(stream->records, stream->record_capacity, sizeof *stream->records);
	}
	stream->records[stream->record_count] = (struct train_record){.start_ns = time_ns,
	                                                              .end_ns = time_ns,
	                                                              .range = innermost_range(stream),
	                                                              .token = token,
	                                                              .is_inside = stream->optimizer > 0};
	stream->calls += token == TOKEN_OPTIMIZER;
	stream->nodes += token == TOKEN_BACKWARD;
	return stream->record_count++;
}

/* The node that is being worked on adds to a gradient: a backward that trains. */
static void note_accumulation(struct stream_scan *stream)
{
	for (uint32_t i = stream->depth; i-- > 0;) {
		uint32_t record = stream->open[i].record;
		if (record != NO_RANGE && stream->records[record].token == TOKEN_BACKWARD)
			stream->records[record].is_training = true;
	}
}

static void on_begin(struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event,
                     int64_t time_ns)
{
	enum symbol_class class = event->id < scan->class_capacity ? scan->classes[event->id] : CLASS_UNKNOWN;
	bool is_phase = event->id >= STEPSCOPE_BUILTIN_PHASE_DATA && event->id <= STEPSCOPE_BUILTIN_PHASE_EVALUATION;
	scan->has_phases |= is_phase;
	if (class == CLASS_ACCUMULATE)
		note_accumulation(stream);
	uint32_t range = class == CLASS_UNKNOWN && !stream->inside ? add_range(stream, time_ns) : NO_RANGE;
	bool is_kept = class != CLASS_UNKNOWN && !stream->inside;
	uint8_t token = token_of(class, event);
	uint32_t record = is_kept ? add_record(stream, token, time_ns) : NO_RANGE;
	struct open_record *open = push(stream);
	open->record = record;
	open->range = range;
	open->is_phase = is_phase || event->id == STEPSCOPE_BUILTIN_MICRO_BATCH;
	if (is_kept && token == TOKEN_OPTIMIZER)
		stream->optimizer++;
	else if (is_kept)
		stream->inside++;
}

/* Which optimizer the innermost call is of. */
static void on_argument(const struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event)
{
	uint32_t record = stream->depth ? stream->open[stream->depth - 1].record : NO_RANGE;
	if (event->id < scan->class_capacity && scan->classes[event->id] == CLASS_OPTIMIZER_KEY &&
	    event->payload_count > 1 && record != NO_RANGE && stream->records[record].token == TOKEN_OPTIMIZER)
		stream->records[record].optimizer = event->payload[1];
}

static void pop(struct stream_scan *stream, int64_t time_ns)
{
	const struct open_record *open = &stream->open[--stream->depth];
	if (open->range != NO_RANGE)
		stream->ranges[open->range].end_ns = time_ns;
	if (open->record == NO_RANGE)
		return;
	stream->records[open->record].end_ns = time_ns;
	if (stream->records[open->record].token == TOKEN_OPTIMIZER)
		stream->optimizer--;
	else
		stream->inside--;
}

static void on_end(struct stream_scan *stream, uint32_t id, int64_t time_ns)
{
	bool is_phase = id == STEPSCOPE_END_PHASE;
	uint32_t level = stream->depth;
	while (is_phase && level && !stream->open[level - 1].is_phase)
		level--;
	if (!level || (!is_phase && stream->open[level - 1].is_phase))
		return;
	while (stream->depth >= level)
		pop(stream, time_ns);
}

void torch_scan_event(struct recording *recording, uint32_t number, const struct segment_event *event, int64_t time_ns)
{
	struct torch_scan *scan = recording->session->torch;
	if (!scan)
		return;
	struct stream_scan *stream = stream_of(scan, number);
	stream->last_ns = time_ns;
	switch (event->type) {
	case STEPSCOPE_EVENT_BEGIN:
		on_begin(scan, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_END:
		on_end(stream, event->id, time_ns);
		break;
	case STEPSCOPE_EVENT_SWITCH:
		on_end(stream, event->id <= STEPSCOPE_BUILTIN_MICRO_BATCH ? STEPSCOPE_END_PHASE : STEPSCOPE_END_DETAIL,
		       time_ns);
		on_begin(scan, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_ARG:
		on_argument(scan, stream, event);
		break;
	case STEPSCOPE_EVENT_GAP:
		while (stream->depth)
			pop(stream, time_ns);
		break;
	case STEPSCOPE_EVENT_STEP:
		scan->has_steps |= event->id == STEPSCOPE_STEP_BEGIN;
		break;
	default:
		break;
	}
}

/* ---- after all files ---- */

/* The thread that trains: where the optimizer is called, else where gradients are computed. */
static struct stream_scan *training_stream(struct torch_scan *scan)
{
	struct stream_scan *best = NULL;
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		struct stream_scan *stream = &scan->streams[i];
		bool is_better = !best || (stream->calls != best->calls ? stream->calls > best->calls
		                                                        : stream->nodes > best->nodes);
		if (is_better && stream->calls + stream->nodes)
			best = stream;
	}
	return best;
}

static void infer_session(struct recording *recording, struct session *session)
{
	struct torch_scan *scan = session->torch;
	struct stream_scan *training = scan && !scan->has_steps ? training_stream(scan) : NULL;
	if (!training)
		return;
	while (training->depth)
		pop(training, training->last_ns);
	struct inference inference;
	infer_steps(&inference, training->records, training->record_count, training->ranges);
	uint32_t found = number_map_find(&session->stream_map, training->stream);
	if (found == NUMBER_MAP_NONE || !inference.step_count) {
		inference_release(&inference);
		return;
	}
	struct stream *stream = session->streams[found];
	stream->inferred = inference.list;
	stream->inferred_count = (uint32_t)inference.count;
	stream->has_own_phases = scan->has_phases;
	if (inference.is_uncertain)
		model_add_ledger(
			recording->model, LEDGER_OTHER, recording->processes[session->process]->process, "steps", 1,
			"the number of steps is uncertain: optimizers that step without data between them were taken "
			"for one step");
}

void torch_scan_finish(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->session_count; i++) {
		struct session *session = recording->sessions[i];
		recording->session = session;
		infer_session(recording, session);
		torch_scan_release(session->torch);
		session->torch = NULL;
	}
}

void torch_scan_release(struct torch_scan *scan)
{
	if (!scan)
		return;
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		free(scan->streams[i].records);
		free(scan->streams[i].ranges);
		free(scan->streams[i].open);
	}
	free(scan->streams);
	free(scan->classes);
	free(scan);
}
