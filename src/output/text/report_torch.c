/* SPDX-License-Identifier: Apache-2.0
 *
 * report_torch.c: see the header.
 */
#include "output/text/report_torch.h"

#include "analysis/memory/memory_pool.h"
#include "analysis/operators/flop_likeness.h"
#include "analysis/operators/torch_trace.h"
#include "base/options.h"
#include "model/reasons.h"
#include "output/text/torch_table.h"
#include "output/text/torch_table_json.h"

#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 55
#define SHAPES_WIDTH 80
#define SOURCE_WIDTH 75
#define ROWS 100

static bool report_torch_has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static enum status check_word(const char *option, const char *word, const char *const *words, struct error *err)
{
	const char *nearest = nearest_name(word, words);

	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return STATUS_OK;
	error_set(err, STATUS_USAGE, "option '%s' has no value '%s'", option, word);
	if (nearest)
		error_hint(err, "did you mean '%s %s'?", option, nearest);
	else
		error_hint(err, "for example '%s %s'", option, words[0]);
	return STATUS_USAGE;
}

/* "none" means none of these columns. */
static enum status check_columns(const char *columns, struct error *err)
{
	static const char *const words[] = {"memory", "flops", "none", "no-memory", "no-shapes", "no-stacks",
	                                    "cuda",   "xpu",   "mtia", "hpu",       NULL};
	char word[32];

	for (const char *at = columns; at;) {
		size_t length = strcspn(at, ",");

		snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), at);
		if (check_word("--columns", word, words, err))
			return err->status;
		at = at[length] ? at + length + 1 : NULL;
	}
	return STATUS_OK;
}

enum status report_torch_check(const struct report_torch *wish, struct error *err)
{
	static const char *const styles[] = {"torch", "torch-1.13", NULL};
	static const char *const units[] = {"us", "ms", "s", NULL};

	if (check_word("--style", wish->style, styles, err))
		return err->status;
	if (wish->time_unit && check_word("--time-unit", wish->time_unit, units, err))
		return err->status;
	if (check_columns(wish->columns, err))
		return err->status;
	if (wish->frames < 0 || wish->frames > 1000000)
		return error_set(err, STATUS_USAGE, "option '--frames' needs a number of frames");
	return STATUS_OK;
}

static int64_t width_of(int64_t wish, int64_t usual)
{
	return wish == REPORT_TORCH_WIDTH ? usual : wish < 0 ? TORCH_TABLE_NO_LIMIT : wish;
}

static uint32_t frames_of(const struct report_torch *wish)
{
	if (report_torch_has_word(wish->columns, "no-stacks"))
		return 0;
	return wish->has_events ? UINT32_MAX : (uint32_t)wish->frames;
}

/* Explains an empty table: either there were no operators, or they were not recorded. */
static void say_nothing_recorded(struct buffer *out, const struct model *model)
{
	const char *capture = model_meta(model, MODEL_NONE, "capture");
	const char *format = model_meta(model, MODEL_NONE, "trace.format");
	bool has_detail = false;

	if (format && !torch_trace_is(model)) {
		buffer_printf(out, "operators: not measured: %s\n", model_reason(model, REASON_NO_OPERATORS));
		return;
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		has_detail |= model->steps[i].has_detail;
	if (has_detail || (!model->steps_count && !capture))
		buffer_add_text(out, "operators: the recording contains none\n");
	else
		buffer_printf(out, "operators: not measured: no step was recorded with operators%s%s\n",
		              capture ? "; " : "", capture ? capture : "");
}

/* Says which steps the table covers. PyTorch's own table covers the steps that its profiler saw. */
static void say_from_which_steps(struct buffer *out, const struct model *model, bool is_by_shape)
{
	uint32_t with = 0, with_inputs = 0;

	for (uint32_t i = 0; i < model->steps_count; i++)
		with += model->steps[i].has_detail, with_inputs += model->steps[i].has_shapes;
	if (is_by_shape && with_inputs && with_inputs < with)
		buffer_printf(out, "from %u of %u steps, those with inputs\n", with_inputs, model->steps_count);
	else if (with && with < model->steps_count)
		buffer_printf(out, "from %u of %u steps, those with operators\n", with, model->steps_count);
}

enum status report_torch_write(struct buffer *out, const struct model *model, const struct report_torch *wish,
                               struct error *err)
{
	static const char *const devices[] = {"cuda", "xpu", "mtia", "hpu"};
	/* torch computes FLOPs while it records, and a trace says whether it did */
	bool has_flops = !torch_trace_is(model) || model_meta(model, MODEL_NONE, "trace.with_flops");
	const char *lost = memory_sums_unknown(model);
	struct torch_ops ops;
	enum status status = STATUS_OK;

	const struct torch_ops_options options = {
		.process = MODEL_NONE,
		.group = wish->has_events    ? TORCH_BY_CALL
	                 : wish->is_by_shape ? TORCH_BY_SHAPE
	                                     : TORCH_BY_NAME,
		.is_profiled_only = wish->is_profiled_only && model->tells_profiled,
		.is_without_memory = lost || report_torch_has_word(wish->columns, "no-memory"),
		.is_without_shapes = report_torch_has_word(wish->columns, "no-shapes"),
		.frames = frames_of(wish)};

	torch_ops_init(&ops, model, &options);
	struct torch_table table = {
		.sort = wish->sort,
		.row_limit = wish->limit == REPORT_TORCH_WIDTH ? ROWS : wish->limit,
		.name_width = width_of(wish->name_width, NAME_WIDTH),
		.shapes_width = width_of(wish->shapes_width, SHAPES_WIDTH),
		.source_width = width_of(wish->source_width, SOURCE_WIDTH),
		.header = wish->header,
		.time_unit = wish->time_unit,
		.is_top_level = wish->is_top_level,
		.is_old = strcmp(wish->style, "torch") != 0,
		.has_memory = !lost &&
	                      (wish->columns ? report_torch_has_word(wish->columns, "memory") : ops.has_memory),
		.has_flops = wish->columns ? report_torch_has_word(wish->columns, "flops") : has_flops,
		.has_shapes = wish->is_by_shape || wish->has_events,
	};
	table.has_flops &= !ops.lacks_flops;
	if (ops.has_device)
		table.device = "cuda"; /* for AMD devices, too */
	for (int i = 0; i < 4; i++)
		if (report_torch_has_word(wish->columns, devices[i]))
			table.device = devices[i];
	if (wish->is_json)
		torch_table_json(out, &ops, &table, wish->has_events);
	else
		status = torch_table_write(out, &ops, &table, err);
	if (!status && !wish->is_json && !wish->is_window && !ops.has_operators)
		say_nothing_recorded(out, model);
	else if (!status && !wish->is_json && !wish->is_window)
		say_from_which_steps(out, model, options.group == TORCH_BY_SHAPE);
	if (!status && !wish->is_json && !wish->is_window && has_flops && ops.lacks_flops)
		buffer_printf(out, "FLOP: not measured: %s\n", FLOP_LIKENESS_MISSING);
	if (!status && !wish->is_json && !wish->is_window && lost)
		buffer_printf(out, "memory: not measured: %s\n", lost);
	torch_ops_release(&ops);
	return status;
}
