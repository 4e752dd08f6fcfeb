/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_args.c: args of spans: inputs of operators in the form of our own recordings (docs/file-format.md), launches
 * of kernels, and all others as facts of the span.
 */
#include "base/memory.h"
#include "importers/kineto/kineto_import.h"
#include "model/launch_config.h"
#include "model/step_facts.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

#define INPUTS_BYTES ((size_t)64 << 10) /* longer lists are left out */
#define TEXT_BYTES ((size_t)4096)       /* longer facts are cut */
#define RAW_BYTES ((size_t)8192)        /* longer args are not remembered */
#define RAWS_MAX (1u << 20)
#define RAWS_BYTES ((size_t)64 << 20) /* limit for all remembered args; then the memo starts over */

/* ---- texts seen before ---- */

void kineto_memo_init(struct kineto_import *import)
{
	intern_init(&import->memo.raws);
	buffer_init(&import->raw, RAW_BYTES);
}

void kineto_memo_release(struct kineto_import *import)
{
	intern_release(&import->memo.raws);
	buffer_release(&import->raw);
	free(import->memo.known);
}

/* Includes the type: the text "[[2]]" is not the list [[2]]. */
static void add_raw(struct kineto_import *import, const struct kineto_value *value)
{
	size_t length = value->type == VALUE_NONE ? 0 : value->length;
	char *to = buffer_reserve(&import->raw, length + 2);
	if (!to)
		return;
	*to = (char)value->type;
	if (length)
		memcpy(to + 1, value->at, length);
	to[length + 1] = 0x1f;
	import->raw.length += length + 2;
}

/* Looks up the text in import->raw; NULL: too long to be kept. *is_new: the caller must fill the entry. */
static struct kineto_known *known_of(struct kineto_import *import, bool *is_new)
{
	struct kineto_memo *memo = &import->memo;
	if (import->raw.is_overflown)
		return NULL;
	if (memo->raws.count > RAWS_MAX || memo->bytes > RAWS_BYTES) {
		intern_release(&memo->raws);
		intern_init(&memo->raws);
		memo->bytes = 0;
	}
	uint32_t count = memo->raws.count;
	uint32_t number = intern_add_n(&memo->raws, import->raw.data, import->raw.length);
	if (number >= memo->capacity) {
		memo->capacity = memo->capacity ? 2 * memo->capacity : 1024;
		memo->known = memory_resize(memo->known, memo->capacity, sizeof *memo->known);
	}
	*is_new = memo->raws.count != count;
	memo->bytes += *is_new ? import->raw.length : 0;
	return &memo->known[number];
}

/* ---- inputs ---- */

static bool is_list(const struct kineto_value *value)
{
	return value->type == VALUE_ARRAY && value->length <= INPUTS_BYTES;
}

/* Writes [[2,3],[],[[4],[5]]] as "[2, 3] [] [[4], [5]]". A list of tensors that is the only input gets another pair of
 * brackets. */
static void append_sizes(struct buffer *out, const struct kineto_value *list)
{
	size_t start = out->length;
	int depth = 0, inputs = 0, deepest = 0;
	for (uint32_t i = 1; i + 1 < list->length; i++) {
		char c = list->at[i];
		if (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '"')
			continue;
		inputs += depth == 0 && c == '[';
		depth += (c == '[') - (c == ']');
		deepest = depth > deepest ? depth : deepest;
		if (c == ',' && depth == 0)
			buffer_add_byte(out, ' ');
		else if (c == ',')
			buffer_add(out, ", ", 2);
		else
			buffer_add_byte(out, (uint8_t)c);
	}
	if (inputs == 1 && deepest > 1 && buffer_add(out, "[]", 2)) {
		memmove(out->data + start + 1, out->data + start, out->length - start - 2);
		out->data[start] = '[';
		out->data[out->length - 1] = ']';
	}
}

/* Writes ["float", "", "Scalar"] as "float;;Scalar". */
static void append_texts(struct buffer *out, const struct kineto_value *list)
{
	struct kineto_walk walk = kineto_walk_begin(list);
	for (bool is_first = true; kineto_walk_next(&walk); is_first = false) {
		if (!is_first)
			buffer_add_byte(out, ';');
		size_t at = out->length;
		kineto_append_text(out, &walk.value);
		for (; at < out->length; at++)
			if (out->data[at] == ';' || out->data[at] == '\n')
				out->data[at] = out->data[at] == ';' ? ',' : ' ';
	}
}

static uint32_t count_long(const struct kineto_value *const *lists, size_t count)
{
	uint32_t found = 0;
	for (size_t i = 0; i < count; i++)
		found += lists[i]->type == VALUE_ARRAY && lists[i]->length > INPUTS_BYTES;
	return found;
}

static bool has_contents(const struct kineto_value *list)
{
	for (uint32_t i = 1; i + 1 < list->length; i++)
		if (!strchr(" \n\t\r", list->at[i]))
			return true;
	return false;
}

void kineto_take_inputs(struct kineto_import *import, const struct kineto_event *event, struct staged_span *span)
{
	const struct kineto_value *dims = &event->known[KINETO_ARG_INPUT_DIMS],
				  *types = &event->known[KINETO_ARG_INPUT_TYPES],
				  *strides = &event->known[KINETO_ARG_INPUT_STRIDES],
				  *values = &event->known[KINETO_ARG_INPUT_VALUES];
	struct intern *strings = &import->model->strings;
	struct buffer *text = &import->inputs;
	if (event->known[KINETO_ARG_SHAPE].type == VALUE_STRING)
		span->shape = kineto_intern(import, &event->known[KINETO_ARG_SHAPE]);
	const struct kineto_value *const raws[] = {dims, types, strides, values};
	import->args_cut += count_long(raws, sizeof raws / sizeof *raws);
	if (!is_list(dims) || !has_contents(dims))
		return;
	bool is_new = true;
	buffer_clear(&import->raw);
	for (size_t i = 0; i < 4; i++)
		add_raw(import, raws[i]);
	struct kineto_known *known = known_of(import, &is_new);
	import->has_shapes = true;
	if (!is_new) {
		span->shape = known->shape;
		span->inputs = known->inputs;
		return;
	}
	buffer_clear(text);
	append_sizes(text, dims);
	span->shape = intern_add_n(strings, text->data, text->length);
	if (is_list(types)) {
		buffer_add(text, "\nt ", 3);
		append_texts(text, types);
	}
	if (is_list(strides)) {
		buffer_add(text, "\ns ", 3);
		append_sizes(text, strides);
	}
	if (is_list(values)) {
		buffer_add(text, "\nv ", 3);
		append_texts(text, values);
	}
	if (!text->is_overflown)
		span->inputs = intern_add_n(strings, text->data, text->length);
	if (known)
		*known = (struct kineto_known){span->shape, span->inputs};
}

/* ---- launches ---- */

static void kineto_args_set_number(struct launch_config *config, enum launch_fact fact,
                                   const struct kineto_value *value, double scale)
{
	double number;
	if (kineto_double(value, &number))
		launch_config_set(config, fact, number * scale);
}

static void set_triple(struct launch_config *config, enum launch_fact first, const struct kineto_value *list)
{
	struct kineto_walk walk = kineto_walk_begin(list);
	for (int i = 0; i < 3 && kineto_walk_next(&walk); i++)
		kineto_args_set_number(config, (enum launch_fact)(first + i), &walk.value, 1);
}

/* Args that only some kernels have. */
static const struct launch_arg {
	const char *key;
	int fact; /* enum launch_fact, or -1 - enum launch_text */
} launch_args[] = {
	{"graph id", LAUNCH_GRAPH},
	{"graph node id", LAUNCH_GRAPH_NODE},
	{"In msg nelems", LAUNCH_IN_COUNT},
	{"Out msg nelems", LAUNCH_OUT_COUNT},
	{PYTORCH_GROUP_SIZE, LAUNCH_GROUP_RANKS},
	{"Collective name", -1 - LAUNCH_COLLECTIVE},
	{"dtype", -1 - LAUNCH_DTYPE},
	{PYTORCH_GROUP_NAME, -1 - LAUNCH_GROUP},
	{"kind", -1 - LAUNCH_COPY_KIND},
};

static const struct launch_arg *launch_arg_of(const struct kineto_value *key)
{
	for (size_t i = 0; i < sizeof launch_args / sizeof *launch_args; i++)
		if (kineto_is_text(key, launch_args[i].key))
			return &launch_args[i];
	return NULL;
}

static void set_other(struct kineto_import *import, struct launch_config *config, const struct kineto_arg *arg)
{
	const struct launch_arg *known = launch_arg_of(&arg->key);
	if (!known)
		return;
	if (known->fact >= 0) {
		kineto_args_set_number(config, (enum launch_fact)known->fact, &arg->value, 1);
		return;
	}
	buffer_clear(&import->text);
	kineto_append_text(&import->text, &arg->value);
	if (arg->value.type == VALUE_STRING && import->text.length)
		launch_config_set_text(config, (enum launch_text)(-1 - known->fact), import->text.data);
}

static const uint8_t launch_keys[] = {KINETO_ARG_GRID,          KINETO_ARG_BLOCK,         KINETO_ARG_REGISTERS,
                                      KINETO_ARG_SHARED_MEMORY, KINETO_ARG_BLOCKS_PER_SM, KINETO_ARG_WARPS_PER_SM,
                                      KINETO_ARG_OCCUPANCY,     KINETO_ARG_BYTES,         KINETO_ARG_BANDWIDTH};

static uint32_t describe_launch(struct kineto_import *import, const struct kineto_event *event)
{
	struct launch_config config = {0};
	char text[LAUNCH_CONFIG_BYTES];
	set_triple(&config, LAUNCH_GRID_X, &event->known[KINETO_ARG_GRID]);
	set_triple(&config, LAUNCH_BLOCK_X, &event->known[KINETO_ARG_BLOCK]);
	kineto_args_set_number(&config, LAUNCH_REGISTERS, &event->known[KINETO_ARG_REGISTERS], 1);
	kineto_args_set_number(&config, LAUNCH_SHARED_BYTES, &event->known[KINETO_ARG_SHARED_MEMORY], 1);
	kineto_args_set_number(&config, LAUNCH_BLOCKS_PER_SM, &event->known[KINETO_ARG_BLOCKS_PER_SM], 1);
	kineto_args_set_number(&config, LAUNCH_WARPS_PER_SM, &event->known[KINETO_ARG_WARPS_PER_SM], 1);
	kineto_args_set_number(&config, LAUNCH_OCCUPANCY, &event->known[KINETO_ARG_OCCUPANCY], 0.01);
	kineto_args_set_number(&config, LAUNCH_BYTES, &event->known[KINETO_ARG_BYTES], 1);
	kineto_args_set_number(&config, LAUNCH_BYTES_PER_SECOND, &event->known[KINETO_ARG_BANDWIDTH], 1e9);
	for (uint32_t i = 0; i < event->arg_count; i++)
		set_other(import, &config, &event->args[i]);
	size_t length = launch_config_write(&config, text);
	return length ? intern_add_n(&import->model->strings, text, length) : 0;
}

void kineto_take_launch(struct kineto_import *import, const struct kineto_event *event, struct staged_span *span)
{
	bool is_new = true;
	buffer_clear(&import->raw);
	for (size_t i = 0; i < sizeof launch_keys; i++)
		add_raw(import, &event->known[launch_keys[i]]);
	for (uint32_t i = 0; i < event->arg_count; i++) {
		if (!launch_arg_of(&event->args[i].key))
			continue;
		add_raw(import, &event->args[i].key);
		add_raw(import, &event->args[i].value);
	}
	struct kineto_known *known = known_of(import, &is_new);
	if (is_new) {
		span->inputs = describe_launch(import, event);
		if (known)
			*known = (struct kineto_known){0, span->inputs};
	} else {
		span->inputs = known->inputs;
	}
}

/* ---- other args ---- */

static bool make_arg(struct kineto_import *import, const struct kineto_value *value, struct span_arg *arg)
{
	switch (value->type) {
	case VALUE_TRUE:
	case VALUE_FALSE:
		arg->type = STEPSCOPE_ARG_BOOL;
		arg->u64 = value->type == VALUE_TRUE;
		return true;
	case VALUE_NUMBER:
		arg->type = STEPSCOPE_ARG_I64;
		if (kineto_integer(value, &arg->i64))
			return true;
		arg->type = STEPSCOPE_ARG_U64;
		if (kineto_unsigned(value, &arg->u64))
			return true;
		arg->type = STEPSCOPE_ARG_F64;
		if (kineto_double(value, &arg->f64))
			return true;
		break;
	case VALUE_NONE:
	case VALUE_NULL:
		return false;
	default:
		break;
	}
	struct kineto_value cut = *value;
	if (cut.length > TEXT_BYTES) {
		cut.length = TEXT_BYTES;
		import->args_cut++;
	}
	arg->type = STEPSCOPE_ARG_SYMBOL;
	arg->text = kineto_intern(import, &cut);
	return true;
}

static void kineto_args_add_arg(struct kineto_import *import, struct staged_extra *extra, uint32_t key,
                                const struct kineto_value *value)
{
	struct span_arg arg = {.key = key};
	if (!make_arg(import, value, &arg))
		return;
	struct kineto_stage *stage = &import->stage;
	STAGE_ARRAY_GROW(stage, args);
	if (!extra->arg_count++)
		extra->first_arg = stage->args_count;
	stage->args[stage->args_count++] = arg;
}

static bool read_sequence(const struct kineto_event *event, uint64_t *sequence)
{
	uint64_t thread = 0;
	if (!kineto_unsigned(&event->known[KINETO_ARG_SEQUENCE], sequence) || *sequence >> 48)
		return false;
	if (kineto_unsigned(&event->known[KINETO_ARG_FORWARD_THREAD], &thread) && thread < UINT16_MAX)
		*sequence |= thread << 48;
	return true;
}

static bool find_fact(const struct kineto_value *key, enum step_fact *fact)
{
	for (*fact = 0; *fact < STEP_FACTS; ++*fact)
		if (kineto_is_text(key, step_fact_key(*fact)))
			return true;
	return false;
}

/* Takes facts of a step that our own exporter writes. Returns false if it is an ordinary arg. */
static bool kineto_args_take_fact(struct kineto_import *import, struct staged_extra *extra,
                                  const struct kineto_arg *arg)
{
	struct kineto_stage *stage = &import->stage;
	enum step_fact fact;
	uint64_t value;
	if (!find_fact(&arg->key, &fact) || !kineto_unsigned(&arg->value, &value))
		return false;
	if (!extra->step) {
		STAGE_ARRAY_GROW(stage, steps);
		step_facts_init(&stage->steps[stage->steps_count]);
		stage->steps[stage->steps_count].row = MODEL_NONE;
		extra->step = ++stage->steps_count;
	}
	step_fact_set(&stage->steps[extra->step - 1], fact, value);
	return true;
}

void kineto_take_args(struct kineto_import *import, const struct kineto_event *event, bool is_launch,
                      struct staged_span *span)
{
	struct staged_extra extra = {.sequence = STEPSCOPE_NO_SEQUENCE};
	struct kineto_stage *stage = &import->stage;
	if (!read_sequence(event, &extra.sequence))
		extra.sequence = STEPSCOPE_NO_SEQUENCE;
	for (uint32_t i = 0; i < event->arg_count; i++) {
		bool is_known = is_launch ? launch_arg_of(&event->args[i].key) != NULL
		                          : span->kind == SPAN_STEP &&
		                                    kineto_args_take_fact(import, &extra, &event->args[i]);
		uint32_t key = is_known ? 0 : kineto_intern(import, &event->args[i].key);
		if (key)
			kineto_args_add_arg(import, &extra, key, &event->args[i].value);
	}
	import->args_left_out += event->args_left_out;
	if (extra.sequence == STEPSCOPE_NO_SEQUENCE && !extra.arg_count && !extra.step)
		return;
	STAGE_ARRAY_GROW(stage, extras);
	stage->extras[stage->extras_count++] = extra;
	span->extra = stage->extras_count;
}
