/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome_args.c: args of spans with more args than an External id, and the flow events of their links.
 */
#include "model/launch_config.h"
#include "model/launches.h"
#include "model/operator_inputs.h"
#include "model/step_facts.h"
#include "output/export/export_chrome.h"
#include "output/export/export_number.h"
#include "pytorch/names.h"
#include "pytorch/types.h"
#include "stepscope/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct arg_list { /* writes the commas */
	struct chrome *chrome;
	bool has_any;
};

static void put_key(struct arg_list *list, const char *key)
{
	writer_text(&list->chrome->w, list->has_any ? ", \"" : "\"");
	writer_text(&list->chrome->w, key);
	writer_text(&list->chrome->w, "\": ");
	list->has_any = true;
}

static void put_integer(struct arg_list *list, const char *key, int64_t value)
{
	put_key(list, key);
	writer_printf(&list->chrome->w, "%" PRId64, value);
}

/* Returns true if the text has only sizes of inputs: "[8, 128] [64]", where one input may be a list of tensors, "[[8],
 * [64]] []". *is_whole is set if one list holds all inputs: "[[8, 128], [64]]", "[[[8], [64]]]". */
static bool is_dims(const char *text, bool *is_whole)
{
	int depth = 0, deepest = 0, inputs = 0;

	for (; *text; text++) {
		if (*text == '[') {
			inputs += depth++ == 0;
		} else if (*text == ']') {
			depth--;
		} else if (!strchr(depth ? "0123456789-, " : " ", *text)) {
			return false;
		}
		deepest = depth > deepest ? depth : deepest;
		if (depth < 0 || depth > 3)
			return false;
	}
	*is_whole = inputs == 1 && deepest > 1;
	return depth == 0 && inputs && (deepest < 3 || inputs == 1);
}

/* Readers expect "Input Dims": [[8, 128], [64]]. Anything that is not a list of sizes stays a text. */
static void put_shape(struct arg_list *list, uint32_t shape)
{
	const char *text = model_text(list->chrome->model, shape);
	struct writer *w = &list->chrome->w;
	bool is_whole;

	if (!is_dims(text, &is_whole)) {
		put_key(list, "Shape");
		writer_text(w, "\"");
		chrome_string(list->chrome, shape);
		writer_text(w, "\"");
		return;
	}
	put_key(list, "Input Dims");
	writer_text(w, is_whole ? "" : "[");
	for (int depth = 0; *text; text++) {
		depth += (*text == '[') - (*text == ']');
		if (depth == 0 && *text == ' ')
			writer_text(w, ", ");
		else
			writer_bytes(w, text, 1);
	}
	writer_text(w, is_whole ? "" : "]");
}

/* Sizes and strides have the same form: "[3, 5] []" becomes [[3, 5], []]. */
static void put_strides(struct arg_list *list, const struct inputs_part *line)
{
	struct inputs_part part = {0};

	put_key(list, "Input Strides");
	for (const char *comma = "["; operator_inputs_next(line, ' ', &part); comma = ", ") {
		writer_text(&list->chrome->w, comma);
		writer_bytes(&list->chrome->w, part.text, part.length);
	}
	writer_text(&list->chrome->w, "]");
}

static void put_texts(struct arg_list *list, const char *key, const struct inputs_part *line)
{
	struct inputs_part part = {0};
	struct buffer *scratch = &list->chrome->scratch;

	put_key(list, key);
	for (const char *comma = "[\""; operator_inputs_next(line, ';', &part); comma = ", \"") {
		writer_text(&list->chrome->w, comma);
		buffer_clear(scratch);
		export_escape(scratch, part.text, part.length);
		writer_bytes(&list->chrome->w, scratch->data, scratch->length);
		writer_text(&list->chrome->w, "\"");
	}
	writer_text(&list->chrome->w, "]");
}

static bool is_strides(const struct inputs_part *line)
{
	for (size_t i = 0; i < line->length; i++)
		if (!strchr("0123456789-, []", line->text[i]))
			return false;
	return line->length > 0;
}

static void put_inputs(struct arg_list *list, uint32_t string)
{
	struct operator_inputs inputs = operator_inputs_split(model_text(list->chrome->model, string));

	if (inputs.types.text)
		put_texts(list, "Input type", &inputs.types);
	if (inputs.strides.text && is_strides(&inputs.strides))
		put_strides(list, &inputs.strides);
	if (inputs.values.text)
		put_texts(list, "Concrete Inputs", &inputs.values);
}

/* Writes three facts of a launch under Kineto's name. */
static void put_triple(struct arg_list *list, const char *key, const struct launch_config *config,
                       enum launch_fact first)
{
	const double *sizes = &config->numbers[first];

	if (!launch_config_has(config, first))
		return;
	put_key(list, key);
	writer_printf(&list->chrome->w, "[%.0f, %.0f, %.0f]", sizes[0], sizes[1], sizes[2]);
}

static void put_launch_texts(struct arg_list *list, const struct launch_config *config)
{
	static const char *const keys[LAUNCH_TEXTS] = {
		[LAUNCH_COLLECTIVE] = "Collective name",
		[LAUNCH_DTYPE] = "dtype",
		[LAUNCH_GROUP] = PYTORCH_GROUP_NAME,
		[LAUNCH_COPY_KIND] = "kind",
	};
	struct buffer *scratch = &list->chrome->scratch;

	for (int i = 0; i < LAUNCH_TEXTS; i++) {
		const char *text = launch_config_text(config, (enum launch_text)i);

		if (!text)
			continue;
		put_key(list, keys[i]);
		buffer_clear(scratch);
		export_escape(scratch, text, strlen(text));
		writer_text(&list->chrome->w, "\"");
		writer_bytes(&list->chrome->w, scratch->data, scratch->length);
		writer_text(&list->chrome->w, "\"");
	}
}

/* Readers store these as 64-bit integers and fail on other values (rule H9 of validate). */
static bool is_integer_key(const char *key)
{
	static const char *const keys[] = {
		"bytes", "Ev Idx", "Sequence number", "Python parent id", "wait_on_cuda_event_record_corr_id", NULL};

	for (int i = 0; keys[i]; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static void put_launch(struct arg_list *list, uint32_t string)
{
	static const struct {
		enum launch_fact fact;
		const char *key;
		double scale;
	} numbers[] = {
		{LAUNCH_QUEUED, "queued", 1},
		{LAUNCH_REGISTERS, "registers per thread", 1},
		{LAUNCH_SHARED_BYTES, "shared memory", 1},
		{LAUNCH_BLOCKS_PER_SM, "blocks per SM", 1},
		{LAUNCH_WARPS_PER_SM, "warps per SM", 1},
		{LAUNCH_OCCUPANCY, "est. achieved occupancy %", 100},
		{LAUNCH_BYTES, "bytes", 1},
		{LAUNCH_BYTES_PER_SECOND, "memory bandwidth (GB/s)", 1e-9},
		{LAUNCH_GRAPH, "graph id", 1},
		{LAUNCH_GRAPH_NODE, "graph node id", 1},
		{LAUNCH_IN_COUNT, "In msg nelems", 1},
		{LAUNCH_OUT_COUNT, "Out msg nelems", 1},
		{LAUNCH_GROUP_RANKS, PYTORCH_GROUP_SIZE, 1},
	};
	struct launch_config config;

	if (!launch_config_read(&config, model_text(list->chrome->model, string)))
		return;
	put_triple(list, "grid", &config, LAUNCH_GRID_X);
	put_triple(list, "block", &config, LAUNCH_BLOCK_X);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!launch_config_has(&config, numbers[i].fact))
			continue;
		double number = config.numbers[numbers[i].fact] * numbers[i].scale;
		bool is_integer = is_integer_key(numbers[i].key);
		if (is_integer && !(number > -0x1p63 && number < 0x1p63))
			continue;
		put_key(list, numbers[i].key);
		writer_printf(&list->chrome->w, is_integer ? "%.0f" : "%.15g", number);
	}
	put_launch_texts(list, &config);
}

static void chrome_args_put_value(struct arg_list *list, const struct span_arg *arg)
{
	struct writer *w = &list->chrome->w;

	switch (arg->type) {
	case STEPSCOPE_ARG_U64:
		writer_printf(w, "%" PRIu64, arg->u64);
		break;
	case STEPSCOPE_ARG_POINTER:
		writer_printf(w, "\"0x%" PRIx64 "\"", arg->u64);
		break;
	case STEPSCOPE_ARG_F64:
		if (isfinite(arg->f64))
			chrome_number(list->chrome, arg->f64);
		else
			writer_text(w, isnan(arg->f64) ? "\"NaN\"" : arg->f64 < 0 ? "\"-Infinity\"" : "\"Infinity\"");
		break;
	case STEPSCOPE_ARG_BOOL:
		writer_text(w, arg->u64 ? "true" : "false");
		break;
	case STEPSCOPE_ARG_SYMBOL:
		writer_text(w, "\"");
		chrome_string(list->chrome, arg->text);
		writer_text(w, "\"");
		break;
	default:
		writer_printf(w, "%" PRId64, arg->i64);
		break;
	}
}

/* Returns true for keys that are written from columns. */
static bool is_own_key(const char *key)
{
	static const char *const keys[] = {"External id", "Input Dims", "Shape", "device",   "stream",
	                                   "correlation", "open",       "shape", "inferred", NULL};

	for (int i = 0; keys[i]; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

/* Writes the type of an op's first input as torch does. Returns false for any other arg. */
static bool put_input_type(struct arg_list *list, const struct span_arg *arg, const struct chrome_span *span)
{
	const struct model *model = list->chrome->model;
	const struct pytorch_type *type = NULL;

	if (arg->type == STEPSCOPE_ARG_SYMBOL && span->chunk->kind[span->index] == SPAN_OP &&
	    strcmp(model_text(model, arg->key), "dtype") == 0)
		type = pytorch_type_of_dtype(model_text(model, arg->text));
	if (!type)
		return false;
	put_key(list, "Input type");
	writer_printf(&list->chrome->w, "[\"%s\"]", type->name);
	return true;
}

static int64_t nearest_integer(double value)
{
	return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : llround(value);
}

static bool as_integer(const struct span_arg *arg, int64_t *value)
{
	switch (arg->type) {
	case STEPSCOPE_ARG_I64:
		*value = arg->i64;
		return true;
	case STEPSCOPE_ARG_U64:
		*value = arg->u64 > INT64_MAX ? INT64_MAX : (int64_t)arg->u64;
		return true;
	case STEPSCOPE_ARG_F64:
		*value = isfinite(arg->f64) ? nearest_integer(arg->f64) : 0;
		return isfinite(arg->f64);
	default:
		return false;
	}
}

/* Writes an arg of the program. If readers expect another type under its key, the value gets a different key. */
static void chrome_args_put_arg(struct arg_list *list, const struct span_arg *arg)
{
	const char *key = model_text(list->chrome->model, arg->key);
	struct writer *w = &list->chrome->w;
	bool is_integer = is_integer_key(key);
	bool is_text = strcmp(key, "cuda_sync_kind") == 0;
	int64_t value = 0;
	bool has_integer = is_integer && as_integer(arg, &value);

	writer_text(w, list->has_any ? ", \"" : "\"");
	chrome_string(list->chrome, arg->key);
	if ((is_integer && !has_integer) || (is_text && arg->type != STEPSCOPE_ARG_SYMBOL))
		writer_text(w, " (as given)");
	writer_text(w, "\": ");
	list->has_any = true;
	if (has_integer)
		writer_printf(w, "%" PRId64, value);
	else
		chrome_args_put_value(list, arg);
}

static void put_further(struct arg_list *list, const struct chrome_span *span, uint32_t *next)
{
	const struct model *model = list->chrome->model;

	for (; *next < model->args_count; ++*next) {
		const struct span_arg *arg = &model->args[*next];

		if (arg->track != span->track || arg->row != span->row)
			return;
		if (is_own_key(model_text(model, arg->key)) || put_input_type(list, arg, span))
			continue;
		chrome_args_put_arg(list, arg);
	}
}

/* Returns the number of a link. If several processes are written, their numbers may collide, so the link's index is
 * used. */
static uint64_t link_number(const struct chrome *chrome, uint32_t link)
{
	return chrome->is_flow_by_index ? (uint64_t)link + 1 : chrome->model->links[link].number;
}

/* Finds the number that a runtime call and its kernel share. */
static bool find_correlation(const struct chrome *chrome, const struct chrome_span *span, uint32_t next,
                             uint64_t *number)
{
	for (; next < chrome->links.count; next++) {
		const struct link_end *end = &chrome->links.ends[next];
		const struct model_link *link = &chrome->model->links[end->link];

		if (end->track != span->track || end->row != span->row)
			return false;
		if (link->kind == STEPSCOPE_LINK_LAUNCH) {
			*number = link_number(chrome, end->link);
			return true;
		}
	}
	return false;
}

static void put_sequence(struct arg_list *list, uint64_t sequence)
{
	put_integer(list, "Sequence number", (int64_t)(sequence & 0xffffffffffffu));
	put_integer(list, "Fwd thread id", (int64_t)(sequence >> 48));
}

static void put_step(struct arg_list *list, const struct chrome_span *span)
{
	const struct model_step *step = chrome_step(list->chrome, span->track, span->chunk, span->index);
	uint64_t value;

	for (enum step_fact fact = 0; step && fact < STEP_FACTS; fact++) {
		if (!step_fact_get(step, fact, &value) || (fact == STEP_INPUTS && !list->chrome->has_shapes))
			continue;
		put_key(list, step_fact_key(fact));
		writer_printf(&list->chrome->w, "%" PRIu64, value);
	}
}

void chrome_args(struct chrome *chrome, const struct chrome_span *span, bool has_id, uint32_t *arg, uint32_t *link)
{
	struct arg_list list = {chrome, has_id};
	uint64_t correlation;

	if (span->is_device) {
		put_integer(&list, "device", chrome->model->tracks[span->track]->device);
		put_integer(&list, "stream", chrome->ids.tracks[span->track].tid);
	}
	if (span_correlation(span->chunk, span->index))
		put_integer(&list, "correlation", (int64_t)span_correlation(span->chunk, span->index));
	else if (find_correlation(chrome, span, *link, &correlation))
		put_integer(&list, "correlation", (int64_t)correlation);
	if (span->chunk->shape[span->index])
		put_shape(&list, span->chunk->shape[span->index]);
	if (span_inputs(span->chunk, span->index) && span_is_device_work(span->chunk->kind[span->index]))
		put_launch(&list, span_inputs(span->chunk, span->index));
	else if (span_inputs(span->chunk, span->index))
		put_inputs(&list, span_inputs(span->chunk, span->index));
	if (span_sequence(span->chunk, span->index) != STEPSCOPE_NO_SEQUENCE)
		put_sequence(&list, span_sequence(span->chunk, span->index));
	put_further(&list, span, arg);
	if (span->chunk->flags[span->index] & SPAN_IS_OPEN) {
		put_key(&list, "open");
		writer_text(&chrome->w, "true");
	}
	if (chrome_is_inferred(span->chunk, span->index)) {
		put_key(&list, "inferred");
		writer_text(&chrome->w, "true");
	}
	put_step(&list, span);
}

void chrome_flows(struct chrome *chrome, const struct chrome_span *span, uint32_t *next)
{
	static const char *const names[] = {
		[STEPSCOPE_LINK_LAUNCH] = "ac2g",
		[STEPSCOPE_LINK_BACKWARD] = "fwdbwd",
		[STEPSCOPE_LINK_OTHER] = "flow",
	};

	for (; *next < chrome->links.count; ++*next) {
		const struct link_end *end = &chrome->links.ends[*next];
		const struct model_link *link = &chrome->model->links[end->link];
		const char *name = names[link->kind <= STEPSCOPE_LINK_OTHER ? link->kind : STEPSCOPE_LINK_OTHER];

		if (end->track != span->track || end->row != span->row)
			return;
		writer_printf(&chrome->w, "{\"ph\": \"%s\", \"id\": %" PRIu64, end->is_to ? "f" : "s",
		              link_number(chrome, end->link));
		chrome_place(chrome, span->ids, span->chunk->start_ns[span->index]);
		writer_printf(&chrome->w, ", \"cat\": \"%s\", \"name\": \"%s\"%s},\n", name, name,
		              end->is_to ? ", \"bp\": \"e\"" : "");
		chrome->result->flows += end->is_to;
	}
}
