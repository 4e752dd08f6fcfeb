/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_tokens.c: see kineto_tokens.h. A span is a record when it lies in no other one but an optimizer's call. Neighbours that say the
 * same become one, so that a step costs some ten of them.
 */
#include "importers/kineto/kineto_tokens.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_deliver.h"
#include "model/operator_inputs.h"
#include "pytorch/names.h"
#include "steps/node_makers.h"
#include "steps/record_class.h"
#include "steps/record_fold.h"
#include "steps/record_gradients.h"

#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 1024u /* deeper ones do not matter to steps; Python itself allows 1000 calls in calls */
#define COMPACT_AT ((size_t)65536)

struct open_token {
	int64_t end_ns;
	struct fold_level level;
	bool in_backward;
	size_t node;      /* record of a backward's node, NO_RECORD */
	size_t outermost; /* of the outermost operator, NO_RECORD */
	bool has_number;  /* that one has one */
};

struct node_elsewhere { /* of a backward, in another thread, where an engine works for a device */
	int64_t start_ns, end_ns;
	uint32_t name;
};

struct nodes_elsewhere { /* by start */
	struct node_elsewhere *list;
	uint32_t count, capacity;
};

struct scan {
	struct kineto_tokens *tokens;
	const struct kineto_import *import;
	const struct node_numbers *nodes;
	uint8_t *classes; /* by string: 1 + enum record_class */
	bool has_frames;
	uint8_t *of_spans; /* enum record_class; find_classes() */
	struct open_token *open;
	uint32_t depth, capacity;
	struct record_fold fold;
	struct node_makers makers;                              /* where there are no numbers */
	const struct node_elsewhere *elsewhere, *elsewhere_end; /* likewise: those that are left */
	uint64_t node;                                          /* number of that, and of the thread that made it */
	bool wants_number;                                      /* the next node is the one in it, that has it */
	bool is_behind_backward;                                /* or in one, before anything of a layer */
	int64_t gradient_end_ns; /* of CLASS_ACCUMULATE, when nothing has begun since then */
};

/* A trace names what the program and its libraries do in many ways, but says less of it than a recording: code of torch.compile,
 * collectives and modes are operators like others. */
static enum record_class class_of_name(const char *name)
{
	enum record_class class = record_class_of(NAME_OF_TRACED, name, strlen(name));
	switch (class) {
	case CLASS_FUNCTION:
	case CLASS_COLLECTIVE:
	case CLASS_MODE:
	case CLASS_COMPILED:
	case CLASS_PROFILER_STEP:
		return CLASS_OP;
	case CLASS_WRITE_MANY: /* tensors_of() */
		return CLASS_WRITE;
	case CLASS_ZERO_MANY:
		return CLASS_ZERO;
	case CLASS_DATA_HERE:
		return CLASS_DATA;
	default:
		return class;
	}
}

static enum record_class kineto_tokens_class_of(struct scan *scan, const struct staged_span *span)
{
	if (span->kind != SPAN_OP && span->kind != SPAN_ANNOTATION)
		return CLASS_UNKNOWN;
	uint8_t *known = &scan->classes[span->name];
	if (!*known)
		*known = (uint8_t)(1 + class_of_name(model_text(scan->import->model, span->name)));
	enum record_class class = (enum record_class)(*known - 1);
	return span->kind == SPAN_ANNOTATION && !record_is_of_loop(class) ? CLASS_UNKNOWN : class;
}

/* The engine's work on a node, or the node in it; alone in old traces. */
static bool is_node(enum record_class class)
{
	return class == CLASS_ENGINE || class == CLASS_NODE;
}

/* ---- records ---- */

static bool kineto_tokens_may_join(const struct train_record *a, const struct train_record *b)
{
	bool is_work = a->token == TOKEN_OP ||
	               a->token == TOKEN_FORWARD; /* between nodes other threads may tell of steps */
	return is_work && !a->is_seed && !b->is_seed && a->token == b->token && !record_may_update(a) &&
	       !record_may_update(b) && a->range == b->range && a->is_inside == b->is_inside &&
	       (a->work == WORK_PLAIN) == (b->work == WORK_PLAIN) && a->is_unused == b->is_unused &&
	       !train_pauses(a->token, a->end_ns, b->start_ns);
}

/* The first record that may still change; one that waits for too long does not. */
static size_t first_pending(struct scan *scan)
{
	size_t pending = scan->makers.count ? scan->makers.list[0].record : scan->fold.pending;
	if (pending == NO_RECORD || scan->tokens->count - pending <= COMPACT_AT / 2)
		return pending;
	node_makers_forget(&scan->makers);
	scan->fold.pending = NO_RECORD;
	return NO_RECORD;
}

static void move_pending(struct scan *scan, size_t less)
{
	node_makers_move(&scan->makers, less);
	scan->fold.pending -= scan->fold.pending != NO_RECORD ? less : 0;
}

/* Makes one of neighbours that say the same, up to the one that may still change. */
static void compact(struct scan *scan)
{
	struct kineto_tokens *tokens = scan->tokens;
	size_t kept = 0, pending = first_pending(scan);
	for (size_t i = 0; i < tokens->count; i++) {
		struct train_record *last = kept ? &tokens->records[kept - 1] : NULL;
		if (i == pending)
			move_pending(scan, i - kept);
		if (!last || i >= pending || !kineto_tokens_may_join(last, &tokens->records[i])) {
			tokens->records[kept++] = tokens->records[i];
			continue;
		}
		if (tokens->records[i].end_ns > last->end_ns)
			last->end_ns = tokens->records[i].end_ns;
		last->work = train_join_work(last->work, tokens->records[i].work);
		last->layers += tokens->records[i].layers;
	}
	tokens->count = kept;
	tokens->compact_at = 2 * kept > COMPACT_AT ? 2 * kept : COMPACT_AT;
}

static size_t add_record(struct scan *scan, uint8_t token, int64_t start_ns, int64_t end_ns)
{
	struct kineto_tokens *tokens = scan->tokens;
	if (tokens->count >= tokens->compact_at)
		compact(scan);
	MEMORY_GROW(tokens->records, tokens->count, tokens->capacity, 16); /* few: many threads have a span or two */
	tokens->records[tokens->count] = (struct train_record){
		.start_ns = start_ns,
		.end_ns = end_ns,
		.range = scan->depth ? scan->open[scan->depth - 1].level.range : NO_RANGE,
		.token = token,
		.is_inside = scan->fold.optimizers > 0};
	return tokens->count++;
}

/* Without numbers: an operator, alone or in the one that is the record, may have made a node that comes later. */
static void note_maker(struct scan *scan, const struct staged_span *span, size_t record)
{
	if (scan->import->has_no_sequence && record != NO_RECORD)
		node_makers_add(&scan->makers, model_text(scan->import->model, span->name), span->start_ns, record);
}

static void find_maker(struct scan *scan, const struct staged_span *node, enum record_class class, int64_t end_ns)
{
	const char *name = model_text(scan->import->model, node->name);
	if (!scan->import->has_no_sequence || record_token(class) != TOKEN_BACKWARD ||
	    (!pytorch_begins(name, PYTORCH_ENGINE) && node_makers_is_in_node(&scan->makers, node->start_ns)))
		return;
	size_t record = node_makers_take(&scan->makers, name, end_ns);
	scan->tokens->nodes += is_node(class); /* no operator makes the others */
	if (record == NO_NODE_MAKER)
		return;
	scan->tokens->records[record].token = TOKEN_FORWARD;
	scan->tokens->nodes_made++;
}

/* The operators of nodes in other threads are on this one. */
static void find_makers_elsewhere(struct scan *scan, int64_t time_ns)
{
	for (; scan->elsewhere < scan->elsewhere_end && scan->elsewhere->start_ns <= time_ns; scan->elsewhere++) {
		const char *name = model_text(scan->import->model, scan->elsewhere->name);
		size_t record = node_makers_take(&scan->makers, name, scan->elsewhere->end_ns);
		if (record == NO_NODE_MAKER)
			continue;
		scan->tokens->records[record].token = TOKEN_FORWARD;
		scan->tokens->nodes_made++;
	}
}

/* Within a call of the engine the numbers of nodes that one thread made go down. */
static void follow_node(struct scan *scan, const struct staged_span *span, size_t record)
{
	uint64_t number = kineto_tokens_sequence_of(scan->import, span);
	if (record == NO_RECORD || number == STEPSCOPE_NO_SEQUENCE)
		return;
	if (number >> NODE_NUMBER_BITS == scan->node >> NODE_NUMBER_BITS && number >= scan->node)
		scan->tokens->records[record].is_first = true;
	scan->node = number;
	scan->wants_number = false;
}

static void follow_sequence(struct scan *scan, const struct staged_span *span, size_t record)
{
	uint64_t sequence = kineto_tokens_sequence_of(scan->import, span);
	if (sequence == STEPSCOPE_NO_SEQUENCE)
		return;
	sequence = kineto_tokens_number_of(sequence);
	if (fold_has_made_node(&scan->fold, sequence)) {
		struct train_record *forward = &scan->tokens->records[scan->fold.pending];
		bool is_known = forward->token == TOKEN_FORWARD; /* by another operator in it */
		forward->token = TOKEN_FORWARD;
		forward->is_unused = (!is_known || forward->is_unused) &&
		                     !node_numbers_have(scan->nodes, ALL_THREADS, scan->fold.pending_sequence,
		                                        sequence);
	}
	if (scan->tokens->records[record].work == WORK_PLAIN)
		scan->tokens->records[record].work = WORK_ANY;
	fold_set_pending(&scan->fold, scan->tokens->records[record].is_seed ? NO_RECORD : record,
	                 sequence); /* ones make no node */
}

static void kineto_tokens_note_number(struct scan *scan, const struct staged_span *span, enum record_class class)
{
	uint64_t sequence = kineto_tokens_sequence_of(scan->import, span);
	if (sequence != STEPSCOPE_NO_SEQUENCE)
		fold_note_number(&scan->fold, class, kineto_tokens_number_of(sequence));
}

/* Within an operator that has no number, as compiled code has none. That may have made a node of a graph itself, before what it calls, as code of
 * TorchScript does: a number is gone that no operator can have taken, and a backward worked on it. */
static void follow_inner_sequence(struct scan *scan, const struct staged_span *span, size_t record)
{
	uint64_t sequence = kineto_tokens_sequence_of(scan->import, span);
	if (sequence == STEPSCOPE_NO_SEQUENCE)
		return;
	follow_sequence(scan, span, record);
	uint64_t next = kineto_tokens_number_of(sequence), first;
	if (fold_skips_numbers(&scan->fold, next, &first) && scan->nodes->count &&
	    node_numbers_have(scan->nodes, ALL_THREADS, first, next))
		scan->tokens->records[record].token = TOKEN_FORWARD;
}

/* Behind the last operator no higher number tells, but the node that it made. What is missing may have that as well as not. */
static void settle_last(struct scan *scan)
{
	uint64_t number = scan->fold.pending_sequence;
	if (scan->fold.pending != NO_RECORD && !scan->import->is_repaired && scan->nodes->count &&
	    node_numbers_have(scan->nodes, ALL_THREADS, number, number + 1))
		scan->tokens->records[scan->fold.pending].token = TOKEN_FORWARD;
	scan->fold.pending = NO_RECORD;
}

/* ---- spans ---- */

static struct open_token *kineto_tokens_push(struct scan *scan, int64_t end_ns)
{
	struct open_token open = {.level.range = NO_RANGE};
	if (scan->depth)
		open = scan->open[scan->depth - 1];
	MEMORY_GROW(scan->open, scan->depth, scan->capacity, 64);
	open.end_ns = end_ns;
	open.level = fold_level_in(&open.level);
	open.in_backward = false;
	open.node = scan->depth ? open.node : NO_RECORD;
	open.outermost = scan->depth ? open.outermost : NO_RECORD;
	scan->open[scan->depth++] = open;
	return &scan->open[scan->depth - 1];
}

static void kineto_tokens_leave(struct scan *scan, int64_t time_ns)
{
	while (scan->depth && scan->open[scan->depth - 1].end_ns <= time_ns) {
		const struct open_token *open = &scan->open[--scan->depth];
		fold_level_close(&scan->fold, &open->level);
	}
}

static void kineto_tokens_add_range(struct scan *scan, const struct staged_span *span, struct open_token *open)
{
	struct kineto_tokens *tokens = scan->tokens;
	if (!fold_level_takes_range(&scan->fold, &open->level, RANGES_MAX))
		return;
	MEMORY_GROW(tokens->ranges, tokens->range_count, tokens->range_capacity, 64);
	tokens->ranges[tokens->range_count] = (struct train_range){
		.start_ns = span->start_ns, .end_ns = open->end_ns, .parent = open->level.range};
	fold_level_set_range(&open->level, tokens->range_count++);
}

static void kineto_tokens_add_hooked(struct kineto_tokens *tokens, int64_t start_ns, int64_t end_ns)
{
	if (tokens->hooked_count && start_ns < tokens->hooked[tokens->hooked_count - 1].end_ns)
		return; /* it lies in another one */
	MEMORY_GROW(tokens->hooked, tokens->hooked_count, tokens->hooked_capacity, 16);
	tokens->hooked[tokens->hooked_count++] = (struct train_call){start_ns, end_ns};
}

/* What accumulates within a node makes it a training one. */
static void note_inside(struct scan *scan, const struct staged_span *span, enum record_class class, int64_t end_ns)
{
	const struct open_token *open = &scan->open[scan->depth - 1];
	bool is_op = record_is_operator(class);
	if (is_op)
		note_maker(scan, span, open->outermost);
	if (class == CLASS_LAYER && open->outermost != NO_RECORD)
		scan->tokens->records[open->outermost].layers++;
	if (is_op && open->outermost != NO_RECORD && !open->has_number)
		follow_inner_sequence(scan, span, open->outermost);
	if (is_op)
		kineto_tokens_note_number(scan, span, class);
	if (is_node(class) && scan->wants_number)
		follow_node(scan, span, open->node);
	if (open->node != NO_RECORD)
		fold_add_gradient(&scan->tokens->records[open->node], class);
	if (class == CLASS_OPTIMIZER && open->in_backward)
		kineto_tokens_add_hooked(scan->tokens, span->start_ns, end_ns);
}

static void begin_node(struct scan *scan, const struct staged_span *span, size_t record)
{
	scan->tokens->records[record].is_first = scan->fold.has_ones;
	scan->fold.has_ones = false;
	scan->wants_number = true;
	follow_node(scan, span, record);
}

/* The first operator in it makes the sum with the gradient that was there, or else keeps the new one. */
static void note_sum(struct scan *scan, const struct staged_span *span, enum record_class class)
{
	struct train_record *last = scan->tokens->count ? &scan->tokens->records[scan->tokens->count - 1] : NULL;
	if (fold_is_sum(class) && last && last->token == TOKEN_BACKWARD && span->start_ns <= scan->gradient_end_ns)
		last->part++;
	scan->gradient_end_ns = INT64_MIN;
}

/* Of a list whose sizes are not known as many as there may be. */
static uint32_t tensors_of(const struct scan *scan, const struct staged_span *span)
{
	const struct model *model = scan->import->model;
	const char *name = model_text(model, span->name);
	struct operator_inputs inputs = operator_inputs_split(span->shape ? model_text(model, span->shape) : "");
	struct inputs_part list = {0};
	uint32_t brackets = 0;
	if (!pytorch_takes_many(name, strlen(name)))
		return 1;
	operator_inputs_next(&inputs.sizes, ' ', &list);
	for (size_t i = 0; i < list.length; i++)
		brackets += list.text[i] == '[';
	return brackets > 1 ? brackets - 1 : TRAIN_MANY_TENSORS; /* each has one, and the list */
}

/* It may be an update by hand, as long as no optimizer was called; if it makes a node of a graph it becomes a forward. An evaluation behind the
 * update writes, too (relu_). What is rounded behind a node is the node's. */
static void note_writes(struct scan *scan, const struct staged_span *span, enum record_class class, size_t record)
{
	bool is_write = (class == CLASS_WRITE && scan->is_behind_backward) || class == CLASS_ZERO;
	if (is_write && !scan->tokens->optimizer_calls && !node_makers_is_in_node(&scan->makers, span->start_ns))
		train_count_writes(&scan->tokens->records[record], tensors_of(scan, span), class == CLASS_ZERO);
}

static enum train_work work_of(const struct scan *scan, const struct staged_span *span, enum record_class class)
{
	if (scan->fold.optimizers)
		return node_makers_is_in_node(&scan->makers, span->start_ns) ? WORK_ANY : WORK_PLAIN;
	if (class == CLASS_WRITE && strcmp(model_text(scan->import->model, span->name), "aten::copy_") == 0)
		return WORK_MOVE; /* times in whole microseconds: it may be in no aten::to */
	return class == CLASS_MOVE ? WORK_MOVE : class == CLASS_LAYER ? WORK_LAYER : WORK_ANY;
}

static void kineto_tokens_take_span(struct scan *scan, const struct staged_span *span, enum record_class class)
{
	if (!scan->has_frames && kineto_is_frame(span))
		return;
	int64_t end_ns = span->start_ns + (span->dur_ns > 0 ? span->dur_ns : 0);
	find_makers_elsewhere(scan, span->start_ns);
	kineto_tokens_leave(scan, span->start_ns);
	if (scan->depth && end_ns > scan->open[scan->depth - 1].end_ns)
		end_ns = scan->open[scan->depth - 1].end_ns;
	scan->tokens->has_phases |= span->kind == SPAN_PHASE;
	scan->tokens->optimizer_calls += class == CLASS_OPTIMIZER;
	if (span->kind == SPAN_STEP || span->kind == SPAN_RUNTIME || span->kind == SPAN_OVERHEAD)
		return;
	note_sum(scan, span, class);
	if (class == CLASS_ACCUMULATE)
		scan->gradient_end_ns = end_ns;
	if (scan->fold.hidden) {
		note_inside(scan, span, class, end_ns);
		return;
	}
	if (class == CLASS_UNKNOWN) {
		kineto_tokens_add_range(scan, span, kineto_tokens_push(scan, end_ns));
		return;
	}
	if (class == CLASS_SAMPLER) { /* nor what it calls */
		fold_level_hide(&scan->fold, &kineto_tokens_push(scan, end_ns)->level);
		return;
	}
	size_t record = add_record(scan, record_token(class), span->start_ns, end_ns);
	fold_add_gradient(&scan->tokens->records[record], class);
	scan->tokens->records[record].is_seed = class == CLASS_ONES;
	if (is_node(class))
		begin_node(scan, span, record);
	scan->fold.has_ones |= class == CLASS_ONES;
	if (class == CLASS_LAYER || class == CLASS_ONES || record_token(class) == TOKEN_BACKWARD)
		scan->is_behind_backward = class != CLASS_LAYER;
	if (record_is_operator(class)) {
		scan->tokens->records[record].work = (uint8_t)work_of(scan, span, class);
		scan->tokens->records[record].layers = class == CLASS_LAYER;
		follow_sequence(scan, span, record);
		kineto_tokens_note_number(scan, span, class);
		note_maker(scan, span, record);
		note_writes(scan, span, class, record);
	}
	find_maker(scan, span, class, end_ns);
	struct open_token *open = kineto_tokens_push(scan, end_ns);
	fold_level_open(&scan->fold, &open->level, record_token(class));
	open->node = record_token(class) == TOKEN_BACKWARD ? record : NO_RECORD;
	open->outermost = record_token(class) == TOKEN_OP ? record : NO_RECORD;
	open->has_number = kineto_tokens_sequence_of(scan->import, span) != STEPSCOPE_NO_SEQUENCE;
	open->in_backward = record_token(class) == TOKEN_BACKWARD;
}

/* ---- annotations that are operators ---- */

/* PyTorch up to 1.10 writes what a program annotates as operators. No operator calls an optimizer or asks for a batch: one that does is a
 * range of the user's. */
static void find_classes(struct scan *scan, const struct staged_track *track)
{
	struct open_operator {
		int64_t end_ns;
		uint32_t span;
	} *open = NULL;
	uint32_t depth = 0, capacity = 0;
	scan->of_spans = memory_resize(NULL, (size_t)track->count + 1, sizeof *scan->of_spans);
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		enum record_class class = kineto_tokens_class_of(scan, span);
		scan->of_spans[i] = (uint8_t) class;
		while (depth && open[depth - 1].end_ns <= span->start_ns)
			depth--;
		for (uint32_t k = depth; record_is_of_loop(class) && k && scan->of_spans[open[k - 1].span]; k--)
			scan->of_spans[open[k - 1].span] = CLASS_UNKNOWN;
		if (!record_is_operator(class) || class == CLASS_ONES || span->dur_ns <= 0)
			continue;
		MEMORY_GROW(open, depth, capacity, 64);
		open[depth++] = (struct open_operator){span->start_ns + span->dur_ns, i};
	}
	free(open);
}

/* ---- other threads ---- */

static int compare_records(const void *left, const void *right)
{
	const struct train_record *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The innermost range around a time; ranges by start, `at`: the last one that begins before it, NO_RANGE. */
static uint32_t range_around(const struct kineto_tokens *tokens, uint32_t at, int64_t time_ns)
{
	while (at != NO_RANGE && tokens->ranges[at].end_ns <= time_ns)
		at = tokens->ranges[at].parent;
	return at;
}

/* Whether a node lies in an optimizer's call, which then calls a closure. *call: a record before the node; it only advances. */
static bool is_in_call(const struct kineto_tokens *tokens, size_t count, size_t *call, int64_t time_ns)
{
	const struct train_record *records = tokens->records;
	while (*call < count && (records[*call].token != TOKEN_OPTIMIZER || records[*call].is_inside ||
	                         records[*call].end_ns <= time_ns))
		++*call;
	return *call < count && records[*call].start_ns <= time_ns;
}

/* Nodes of another thread, among the records of this one. */
static void take_nodes(struct kineto_tokens *tokens, const struct kineto_tokens *other)
{
	uint32_t next = 0;
	size_t call = 0, count = tokens->own_count;
	for (size_t i = 0; i < other->count; i++) {
		struct train_record record = other->records[i];
		if (record.token != TOKEN_BACKWARD)
			continue;
		while (next < tokens->range_count && tokens->ranges[next].start_ns <= record.start_ns)
			next++;
		record.range = range_around(tokens, next ? next - 1 : NO_RANGE, record.start_ns);
		record.is_inside = is_in_call(tokens, count, &call, record.start_ns);
		MEMORY_GROW(tokens->records, tokens->count, tokens->capacity, 16);
		tokens->records[tokens->count++] = record;
	}
}

static void read_track(struct kineto_tokens *tokens, struct kineto_import *import, const struct kineto_group *group,
                       uint32_t number, uint8_t *classes, bool has_frames, const struct nodes_elsewhere *elsewhere)
{
	struct staged_track *track = &import->stage.tracks[group->tracks[number]];
	struct scan scan = {.tokens = tokens,
	                    .import = import,
	                    .nodes = &group->nodes,
	                    .classes = classes,
	                    .has_frames = has_frames,
	                    .elsewhere = elsewhere->list,
	                    .elsewhere_end = elsewhere->list + elsewhere->count,
	                    .fold.pending = NO_RECORD,
	                    .gradient_end_ns = INT64_MIN};
	*tokens = (struct kineto_tokens){.compact_at = COMPACT_AT};
	kineto_sort(&import->stage, track);
	find_classes(&scan, track);
	for (uint32_t i = 0; i < track->count; i++)
		kineto_tokens_take_span(&scan, &track->spans[i], (enum record_class)scan.of_spans[i]);
	find_makers_elsewhere(&scan, INT64_MAX);
	settle_last(&scan);
	node_makers_forget(&scan.makers);
	compact(&scan);
	node_makers_release(&scan.makers);
	free(scan.of_spans);
	free(scan.open);
}

static int compare_nodes(const void *left, const void *right)
{
	const struct node_elsewhere *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The nodes of a track that lie in no other one. */
static void note_elsewhere(struct nodes_elsewhere *nodes, const struct kineto_import *import,
                           const struct staged_track *track, uint8_t *classes)
{
	struct scan scan = {.import = import, .classes = classes};
	int64_t last_end_ns = INT64_MIN;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		if (!is_node(kineto_tokens_class_of(&scan, span)) || span->start_ns < last_end_ns || span->dur_ns < 0)
			continue;
		last_end_ns = span->start_ns + span->dur_ns;
		MEMORY_GROW(nodes->list, nodes->count, nodes->capacity, 256);
		nodes->list[nodes->count++] = (struct node_elsewhere){span->start_ns, last_end_ns, span->name};
	}
}

/* Without sequence numbers: reads the track again, with the nodes of the other threads, whose operators may be in it. */
static void read_with_nodes(struct kineto_tokens *tokens, struct kineto_import *import,
                            const struct kineto_group *group, uint32_t chosen, const uint8_t *kinds, uint8_t *classes,
                            bool has_frames)
{
	const struct kineto_stage *stage = &import->stage;
	struct nodes_elsewhere nodes = {0};
	for (uint32_t i = 0; i < group->count; i++)
		if (i != chosen && kinds[group->tracks[i]] == TRACK_THREAD)
			note_elsewhere(&nodes, import, &stage->tracks[group->tracks[i]], classes);
	if (nodes.count) {
		merge_sort(nodes.list, nodes.count, sizeof *nodes.list, compare_nodes);
		kineto_tokens_release(tokens);
		read_track(tokens, import, group, chosen, classes, has_frames, &nodes);
	}
	free(nodes.list);
}

/* Of two that could be the one that trains: not the place in the file decides. */
static bool is_earlier(const struct staged_track *track, const struct staged_track *other)
{
	if (track->spans[0].start_ns != other->spans[0].start_ns)
		return track->spans[0].start_ns < other->spans[0].start_ns;
	return track->tid.number < other->tid.number;
}

/* The tracks of the process are read, into `of_tracks`; which one, of the group, trains? */
static uint32_t choose_track(const struct kineto_stage *stage, const struct kineto_group *group,
                             const struct kineto_tokens *of_tracks)
{
	uint64_t most = 0;
	uint32_t best = MODEL_NONE;
	for (uint32_t i = 0; i < group->count; i++) {
		const struct staged_track *track = &stage->tracks[group->tracks[i]];
		uint64_t weight = (uint64_t)of_tracks[i].optimizer_calls << 32 | track->count;
		weight |= track->has_steps ? UINT64_C(1) << 63 : 0;
		if (!of_tracks[i].compact_at) /* not read */
			continue;
		if (best == MODEL_NONE || weight > most ||
		    (weight == most && is_earlier(track, &stage->tracks[group->tracks[best]]))) {
			most = weight;
			best = i;
		}
	}
	return best;
}

bool kineto_tokens_init(struct kineto_tokens *tokens, struct kineto_import *import, const struct kineto_group *group,
                        const uint8_t *kinds, uint8_t *classes, bool has_frames, uint32_t *training)
{
	const struct kineto_stage *stage = &import->stage;
	const struct nodes_elsewhere none = {0};
	struct kineto_tokens *of_tracks = memory_resize(NULL, (size_t)group->count + 1, sizeof *of_tracks);
	memset(of_tracks, 0, ((size_t)group->count + 1) * sizeof *of_tracks);
	for (uint32_t i = 0; i < group->count; i++)
		if (kinds[group->tracks[i]] == TRACK_THREAD && stage->tracks[group->tracks[i]].count)
			read_track(&of_tracks[i], import, group, i, classes, has_frames, &none);
	uint32_t chosen = choose_track(stage, group, of_tracks);
	if (chosen == MODEL_NONE) { /* none was read */
		free(of_tracks);
		return false;
	}
	*training = group->tracks[chosen];
	if (import->has_no_sequence)
		read_with_nodes(&of_tracks[chosen], import, group, chosen, kinds, classes, has_frames);
	*tokens = of_tracks[chosen];
	bool has_calls = tokens->optimizer_calls > 0;
	tokens->own_count = tokens->count;
	of_tracks[chosen] = (struct kineto_tokens){0};
	for (uint32_t i = 0; i < group->count; i++) {
		take_nodes(tokens, &of_tracks[i]);
		tokens->has_phases |= of_tracks[i].has_phases;
		has_calls |= of_tracks[i].optimizer_calls > 0;
		tokens->nodes += of_tracks[i].nodes; /* their operators are on this thread: not looked for */
		kineto_tokens_release(&of_tracks[i]);
	}
	free(of_tracks);
	merge_sort(tokens->records, tokens->count, sizeof *tokens->records, compare_records);
	record_gradients_settle(tokens->records, tokens->count, tokens->optimizer_calls > 0, has_calls);
	return true;
}

void kineto_tokens_release(struct kineto_tokens *tokens)
{
	free(tokens->records);
	free(tokens->ranges);
	free(tokens->hooked);
}
