/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_patterns.c: the table `operator_patterns`: habits that PyTorch's own pattern matcher
 * (torch/profiler/_pattern_matcher.py, "TorchTidy") looks for. They are found in the nesting and order of the
 * operators of one thread. One pass; memory for the deepest nesting only.
 *
 * Calls of Python and of modules between operators are ignored: an operator has the same neighbours with and without
 * stacks.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/span_places.h"
#include "analysis/step_times/input_steps.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "model/cell_words.h"
#include "model/name_classes.h"
#include "model/operator_inputs.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

#define SELECT_DISTANCE 8 /* most operators from one indexing to the next one of a loop */
#define SELECT_RUN 10     /* N of them make a loop */
#define OPTIMIZER_OPS 20  /* N on single tensors in a step of an optimizer make the pattern */
#define TENSOR_CORE_MULTIPLE 8
#define DIMENSIONS 8

enum pattern {
	PATTERN_ZERO,
	PATTERN_SINGLE,
	PATTERN_INDEX,
	PATTERN_NEW_COPY,
	PATTERN_CONV_BIAS,
	PATTERN_ODD_SIZES,
	PATTERNS,
};

static const struct {
	const char *name, *meaning, *cannot_tell;
} texts[PATTERNS] = {
	[PATTERN_ZERO] = {CELL_PATTERN_ZERO,
                          "fills inside an optimizer's zero_grad(), where set_to_none would drop the gradients instead",
                          "no zero_grad() of an optimizer was recorded"},
	[PATTERN_SINGLE] = {CELL_PATTERN_SINGLE,
                            "optimizer steps with 20 or more operators on single tensors and none on tensor lists",
                            "no optimizer step was recorded"},
	[PATTERN_INDEX] = {CELL_PATTERN_INDEX,
                           "runs of 10 or more aten::select with the same number of operators (at most 8) "
                           "between them; data loaders do not count, since they take the samples of a batch one "
                           "by one",
                           "no operators of PyTorch were recorded"},
	[PATTERN_NEW_COPY] = {CELL_PATTERN_NEW_COPY,
                              "copies by aten::to() right after an operator that creates a tensor",
                              "no copy calls of a device runtime were recorded"},
	[PATTERN_CONV_BIAS] = {CELL_PATTERN_CONV_BIAS,
                               "convolutions with a bias right before a batch norm, which cancels the bias",
                               "shapes of inputs were not recorded"},
	[PATTERN_ODD_SIZES] = {CELL_PATTERN_ODD_SIZES,
                               "matrix products in half precision with a size that is not a multiple of 8",
                               "shapes and types of inputs were not recorded"},
};

enum name_kind {
	NAME_OTHER,
	NAME_ZERO_GRAD,
	NAME_STEP,
	NAME_MEMCPY,
	NAME_LOADER,
	NAME_ATEN, /* from here on operators of PyTorch */
	NAME_ZERO,
	NAME_FUSED,
	NAME_SINGLE,
	NAME_SELECT,
	NAME_FACTORY,
	NAME_TO,
	NAME_CONV,
	NAME_NORM,
	NAME_MATMUL,
};

struct pattern_level {
	uint8_t name;
	uint32_t row;
	int32_t step;
	int64_t start_ns, end_ns;
	bool is_behind_factory;  /* the operator before it made a tensor */
	uint32_t singles, fused; /* in a step of an optimizer */
	int64_t nested_ns;       /* likewise: steps of optimizers in it that were found */
	/* its children so far */
	uint32_t children, last_row;
	uint8_t last_name;
	bool last_has_bias;
	int64_t last_ns;
	/* and the run of aten::select among them */
	uint32_t select_at, distance, run, run_row;
	int64_t run_start_ns, run_end_ns;
	int32_t run_step;
};

struct pattern_found {
	bool can_tell;
	int64_t count, total_ns, longest_ns;
	int64_t sampled, sampled_ns; /* of these, in sampled steps, which stand for others */
	struct step_sightings seen;
	uint32_t track, row; /* of the longest one */
};

struct pattern_fold {
	const struct model *model;
	const struct step_times *times, *sized; /* sized: for the steps with inputs */
	bool is_part; /* some steps lack inputs: patterns of inputs count only in the others */
	struct name_classes names;
	struct pattern_found found[PATTERNS];
	struct pattern_level *levels; /* the first is the thread itself */
	uint32_t depth, capacity;
	uint32_t track, zero_grads, loaders; /* zero_grads, loaders: number of open ones */
	uint32_t unsized[2];                 /* convolutions and products without shapes */
};

static bool is_any_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static uint8_t patterns_classify(const char *name)
{
	static const char *const zeros[] = {"aten::zero_", "aten::_foreach_zero_", NULL};
	static const char *const singles[] = {"aten::add_", "aten::mul_",  "aten::addcmul_", "aten::addcdiv_",
	                                      "aten::sub_", "aten::lerp_", "aten::sqrt",     NULL};
	static const char *const factories[] = {
		"aten::zeros",   "aten::ones",   "aten::full", "aten::rand",  "aten::randn",
		"aten::randint", "aten::arange", "aten::eye",  "aten::empty", NULL};
	static const char *const products[] = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", NULL};

	if (strncmp(name, "aten::", 6) != 0)
		return pytorch_begins(name, PYTORCH_OPTIMIZER_STEP)
		               /* optimizers of Apex and others work on lists in their kernels */
		               ? (strstr(name, "Fused") ? NAME_OTHER : NAME_STEP)
		               : pytorch_begins(name, PYTORCH_OPTIMIZER_ZERO_GRAD) ? NAME_ZERO_GRAD
		                 : pytorch_begins(name, PYTORCH_LOADER)            ? NAME_LOADER
		                 : strstr(name, "Memcpy") && (!strncmp(name, "cuda", 4) || !strncmp(name, "hip", 3))
		                         ? NAME_MEMCPY
		                         : NAME_OTHER;
	if (is_any_of(name, zeros))
		return NAME_ZERO;
	if (!strncmp(name, "aten::_foreach_", 15) || !strncmp(name, "aten::_fused_", 13))
		return NAME_FUSED;
	return is_any_of(name, singles)                                                 ? NAME_SINGLE
	       : is_any_of(name, factories)                                             ? NAME_FACTORY
	       : is_any_of(name, products)                                              ? NAME_MATMUL
	       : !strcmp(name, "aten::select")                                          ? NAME_SELECT
	       : !strcmp(name, "aten::to") || !strcmp(name, "aten::_to_copy")           ? NAME_TO
	       : !strncmp(name, "aten::conv", 10) && name[10] >= '1' && name[10] <= '3' ? NAME_CONV
	       : !strcmp(name, "aten::batch_norm")                                      ? NAME_NORM
	                                                                                : NAME_ATEN;
}

static bool is_of_inputs(enum pattern pattern)
{
	return pattern == PATTERN_CONV_BIAS || pattern == PATTERN_ODD_SIZES;
}

static void patterns_add_time(struct pattern_fold *fold, enum pattern pattern, int32_t step, int64_t dur_ns)
{
	struct pattern_found *found = &fold->found[pattern];

	if (!step_times_measures(fold->times, step))
		return;
	clamped_add(&found->total_ns, dur_ns);
	if (step_kinds_is_sampled(fold->times, step))
		clamped_add(&found->sampled_ns, dur_ns);
}

static void patterns_find(struct pattern_fold *fold, enum pattern pattern, uint32_t row, int32_t step, int64_t dur_ns)
{
	struct pattern_found *found = &fold->found[pattern];

	if (!step_times_measures(fold->times, step))
		return;
	found->count++;
	patterns_add_time(fold, pattern, step, dur_ns);
	found->sampled += step_kinds_is_sampled(fold->times, step);
	step_kinds_sight(&found->seen, is_of_inputs(pattern) ? fold->sized : fold->times, step, 1);
	if (dur_ns < found->longest_ns)
		return;
	found->longest_ns = dur_ns;
	found->track = fold->track;
	found->row = row;
}

/* ---- shapes ---- */

/* Returns true if the third input has one dimension. */
static bool has_bias(const struct operator_inputs *inputs)
{
	struct inputs_part part = {0};
	int64_t sizes[DIMENSIONS];

	for (int i = 0; i < 3; i++) {
		if (!operator_inputs_next(&inputs->sizes, ' ', &part))
			return false;
	}
	return operator_inputs_numbers(&part, sizes, DIMENSIONS) == 1;
}

static bool is_half(const struct operator_inputs *inputs)
{
	struct inputs_part part = {0};

	return operator_inputs_next(&inputs->types, ';', &part) &&
	       (memmem(part.text, part.length, "Half", 4) || memmem(part.text, part.length, "BFloat16", 8));
}

/* Returns true if one of the last two dimensions of a matrix is not a multiple of 8. */
static bool has_odd_size(const struct operator_inputs *inputs)
{
	struct inputs_part part = {0};
	int64_t sizes[DIMENSIONS];

	while (operator_inputs_next(&inputs->sizes, ' ', &part)) {
		int count = operator_inputs_numbers(&part, sizes, DIMENSIONS);

		if (count >= 2 &&
		    (sizes[count - 1] % TENSOR_CORE_MULTIPLE != 0 || sizes[count - 2] % TENSOR_CORE_MULTIPLE != 0))
			return true;
	}
	return false;
}

static struct operator_inputs inputs_of(struct pattern_fold *fold, uint32_t string, int which)
{
	struct operator_inputs inputs = operator_inputs_split(model_text(fold->model, string));

	fold->unsized[which] += !inputs.sizes.length || (which && !inputs.types.length);
	return inputs;
}

/* ---- loops over an index ---- */

static void end_run(struct pattern_fold *fold, struct pattern_level *parent)
{
	if (parent->run >= SELECT_RUN)
		patterns_find(fold, PATTERN_INDEX, parent->run_row, parent->run_step,
		              parent->run_end_ns - parent->run_start_ns);
	parent->run = 0;
}

static void add_select(struct pattern_fold *fold, struct pattern_level *parent, const struct pattern_level *select)
{
	uint32_t distance = parent->children - parent->select_at;
	bool goes_on = parent->run && distance <= SELECT_DISTANCE && (parent->run == 1 || distance == parent->distance);

	if (!goes_on) {
		end_run(fold, parent);
		parent->run_start_ns = select->start_ns;
		parent->run_row = select->row;
		parent->run_step = select->step;
	}
	parent->run++;
	parent->distance = distance;
	parent->select_at = parent->children;
	parent->run_end_ns = select->end_ns;
}

/* ---- spans ---- */

/* One that steps in another one's step (ZeroRedundancyOptimizer) is a part of that: its time counts once, and so does
 * the step. */
static void end_optimizer(struct pattern_fold *fold, const struct pattern_level *level)
{
	int64_t dur_ns = level->end_ns - level->start_ns, found_ns = level->nested_ns;

	if (level->singles >= OPTIMIZER_OPS && !level->fused) {
		if (level->nested_ns)
			patterns_add_time(fold, PATTERN_SINGLE, level->step, dur_ns - level->nested_ns);
		else
			patterns_find(fold, PATTERN_SINGLE, level->row, level->step, dur_ns);
		found_ns = dur_ns;
	}
	for (uint32_t i = fold->depth - 1; i > 0; i--) {
		if (fold->levels[i].name != NAME_STEP)
			continue;
		fold->levels[i].nested_ns += found_ns;
		return;
	}
}

static void patterns_leave(struct pattern_fold *fold, int64_t now_ns)
{
	while (fold->depth > 1 && fold->levels[fold->depth - 1].end_ns <= now_ns) {
		struct pattern_level *level = &fold->levels[--fold->depth];

		end_run(fold, level);
		fold->zero_grads -= level->name == NAME_ZERO_GRAD;
		fold->loaders -= level->name == NAME_LOADER;
		if (level->name == NAME_STEP)
			end_optimizer(fold, level);
	}
}

/* The copy belongs to the conversion around it that follows a new tensor. */
static void patterns_add_copy(struct pattern_fold *fold)
{
	fold->found[PATTERN_NEW_COPY].can_tell = true;
	for (uint32_t i = fold->depth - 1; i > 0; i--) {
		struct pattern_level *level = &fold->levels[i];

		if (level->name != NAME_TO || !level->is_behind_factory)
			continue;
		level->is_behind_factory = false;
		patterns_find(fold, PATTERN_NEW_COPY, level->row, level->step, level->end_ns - level->start_ns);
		return;
	}
}

static void count_in_step(struct pattern_fold *fold, uint8_t name)
{
	for (uint32_t i = fold->depth - 1; i > 0; i--) {
		if (fold->levels[i].name != NAME_STEP)
			continue;
		fold->levels[i].singles += name == NAME_SINGLE;
		fold->levels[i].fused += name == NAME_FUSED;
		return;
	}
}

/* Returns true if inputs were not asked for in its step, but in other steps. */
static bool is_without_inputs(const struct pattern_fold *fold, const struct pattern_level *level)
{
	return fold->is_part && level->step >= 0 && !fold->model->steps[level->step].has_shapes;
}

/* Looks for patterns of a span and of the sibling before it. */
static void patterns_look_at(struct pattern_fold *fold, struct pattern_level *level, struct pattern_level *parent,
                             uint32_t inputs_string)
{
	struct operator_inputs inputs;

	switch (level->name) {
	case NAME_ZERO:
		if (fold->zero_grads && parent->name != NAME_ZERO)
			patterns_find(fold, PATTERN_ZERO, level->row, level->step, level->end_ns - level->start_ns);
		break;
	case NAME_ZERO_GRAD:
		fold->zero_grads++;
		fold->found[PATTERN_ZERO].can_tell = true;
		break;
	case NAME_STEP:
		fold->found[PATTERN_SINGLE].can_tell = true;
		break;
	case NAME_SINGLE:
	case NAME_FUSED:
		count_in_step(fold, level->name);
		break;
	case NAME_LOADER:
		fold->loaders++;
		break;
	case NAME_SELECT:
		if (!fold->loaders) /* the loader's loop takes the samples of a batch one by one */
			add_select(fold, parent, level);
		break;
	case NAME_TO:
		level->is_behind_factory = parent->last_name == NAME_FACTORY;
		break;
	case NAME_MEMCPY:
		patterns_add_copy(fold);
		break;
	case NAME_NORM:
		if (parent->last_name == NAME_CONV && parent->last_has_bias)
			patterns_find(fold, PATTERN_CONV_BIAS, parent->last_row, level->step, parent->last_ns);
		break;
	case NAME_CONV:
		parent->last_has_bias = false;
		if (is_without_inputs(fold, level))
			break;
		inputs = inputs_of(fold, inputs_string, 0);
		parent->last_has_bias = has_bias(&inputs);
		break;
	case NAME_MATMUL:
		if (is_without_inputs(fold, level))
			break;
		inputs = inputs_of(fold, inputs_string, 1);
		if (is_half(&inputs) && has_odd_size(&inputs))
			patterns_find(fold, PATTERN_ODD_SIZES, level->row, level->step,
			              level->end_ns - level->start_ns);
		break;
	default:
		break;
	}
}

/* Sets only the necessary members, because it runs for each span. Members that depend on a count or on last_name are
 * not read before these are set. */
static void begin_level(struct pattern_level *level, const struct span_chunk *chunk, uint32_t i, uint8_t name)
{
	level->name = name;
	level->row = chunk->first_row + i;
	level->step = chunk->step[i];
	level->start_ns = chunk->start_ns[i];
	level->end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
	level->is_behind_factory = false;
	level->singles = level->fused = level->children = 0;
	level->nested_ns = 0;
	level->last_name = NAME_OTHER;
	level->run = level->select_at = 0;
}

static void patterns_enter(struct pattern_fold *fold, const struct span_chunk *chunk, uint32_t i)
{
	struct pattern_level *parent, *level;

	patterns_leave(fold, chunk->start_ns[i]);
	if (fold->depth == fold->capacity) {
		fold->capacity *= 2;
		fold->levels = memory_resize(fold->levels, fold->capacity, sizeof(*fold->levels));
	}
	parent = &fold->levels[fold->depth - 1];
	level = &fold->levels[fold->depth];
	begin_level(level, chunk, i, name_class(&fold->names, fold->model, chunk->name[i]));
	fold->found[PATTERN_INDEX].can_tell |= level->name >= NAME_ATEN;
	patterns_look_at(fold, level, parent, span_inputs(chunk, i));
	fold->depth++;
	parent->children++;
	if (parent->last_name == NAME_CONV && level->name == NAME_SINGLE) /* a batch norm first counts its batches */
		return;
	parent->last_name = level->name;
	parent->last_row = level->row;
	parent->last_ns = chunk->dur_ns[i];
}

static void patterns_fold_track(struct pattern_fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];

	fold->track = number;
	fold->depth = 1;
	fold->zero_grads = 0;
	fold->levels[0] = (struct pattern_level){.end_ns = INT64_MAX};
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			uint8_t kind = chunk->kind[i];

			if (kind == SPAN_OP || kind == SPAN_RANGE || kind == SPAN_ANNOTATION || kind == SPAN_RUNTIME)
				patterns_enter(fold, chunk, i);
		}
		model_chunk_done(fold->model, chunk);
	}
	patterns_leave(fold, INT64_MAX - 1);
	end_run(fold, &fold->levels[0]);
}

/* ---- the table ---- */

enum {
	COLUMN_PATTERN,
	COLUMN_COUNT,
	COLUMN_TOTAL,
	COLUMN_RATIO,
	COLUMN_OPERATION,
	COLUMN_MODULE,
	COLUMN_LINE,
	COLUMN_MEANING,
	COLUMN_LEAST,
	COLUMNS,
};

static const struct table_column columns[COLUMNS] = {
	[COLUMN_PATTERN] = {.name = "pattern",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "name of the pattern"},
	[COLUMN_COUNT] = {.name = "count",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "number of occurrences in the measured steps",
                          .rules = RULE_NOT_NEGATIVE},
	[COLUMN_TOTAL] = {.name = "total_ns",
                          .title = "total",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "host time in it",
                          .rules = RULE_NOT_NEGATIVE},
	[COLUMN_RATIO] = {.name = "ratio",
                          .title = "% of steps",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_SHARE,
                          .definition = "share of the time of steps; times on several threads add up",
                          .denominator = "time of the measured steps, all processes",
                          .rules = RULE_NOT_NEGATIVE},
	[COLUMN_OPERATION] = {.name = "operation",
                              .type = TABLE_TEXT,
                              .definition = "operator of the longest occurrence"},
	[COLUMN_MODULE] = {.name = "module",
                           .type = TABLE_TEXT,
                           .definition = "innermost module around the longest occurrence"},
	[COLUMN_LINE] = {.name = "line",
                         .type = TABLE_TEXT,
                         .definition = "innermost line of the user's program around the longest occurrence"},
	[COLUMN_MEANING] = {.name = "meaning", .type = TABLE_TEXT, .definition = "definition of the pattern"},
	[COLUMN_LEAST] = STEP_KINDS_LEAST_COLUMN,
};

static double time_of_steps(const struct step_times *times)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < times->count; i++)
		sum_ns += times->steps[i].is_measured ? step_kinds_dur_ns(times, i) : 0;
	return sum_ns;
}

static void patterns_set_place(struct table *table, int row, struct span_places *places,
                               const struct pattern_found *found)
{
	const struct model *model = places->model;
	uint32_t i, module = 0, line = 0, name = 0;

	if (found->count) {
		name = track_chunk(model->tracks[found->track], found->row, &i)->name[i];
		module = span_module_of(places, found->track, found->row);
		line = span_line_of(places, found->track, found->row);
	}
	table_set_text_or(table, row, COLUMN_OPERATION, name ? model_text(model, name) : NULL,
	                  "the pattern was not found");
	span_places_set(places, table, row, COLUMN_MODULE, module, COLUMN_LINE, line);
}

static void patterns_add_row(struct table *table, struct span_places *places, enum pattern pattern,
                             const struct pattern_found *found, const struct step_times *times)
{
	double steps_ns = time_of_steps(times), factor = step_kinds_factor(times, &found->seen);
	int64_t total_ns = found->total_ns - found->sampled_ns, count = found->count - found->sampled;
	int row = table_row(table);

	step_kinds_join(&total_ns, found->sampled_ns, factor);
	step_kinds_join(&count, found->sampled, factor);
	table_set_text(table, row, COLUMN_PATTERN, texts[pattern].name);
	table_set_text(table, row, COLUMN_MEANING, texts[pattern].meaning);
	if (!found->can_tell) {
		for (int column = COLUMN_COUNT; column < COLUMNS; column++)
			if (column != COLUMN_MEANING)
				table_set_missing(table, row, column, texts[pattern].cannot_tell);
		return;
	}
	table_set_int(table, row, COLUMN_COUNT, count);
	table_set_int(table, row, COLUMN_TOTAL, total_ns);
	step_kinds_set_least(table, row, COLUMN_LEAST, times, &found->seen);
	if (steps_ns > 0)
		table_set_double(table, row, COLUMN_RATIO, (double)total_ns / steps_ns);
	else
		table_set_missing(table, row, COLUMN_RATIO, "no complete step was recorded");
	patterns_set_place(table, row, places, found);
}

static enum status patterns_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct step_times with_inputs = {0};
	struct pattern_fold fold = {.model = model,
	                            .times = analysis_context_step_times(context),
	                            .names.classify = patterns_classify,
	                            .levels = memory_resize(NULL, 64, sizeof(*fold.levels)),
	                            .capacity = 64};
	struct span_places places;
	bool has_operators;

	fold.sized = input_steps_only(&with_inputs, fold.times, model);
	fold.is_part = fold.sized != fold.times;
	for (uint32_t i = 0; i < model->tracks_count; i++)
		if (model->tracks[i]->kind == TRACK_THREAD)
			patterns_fold_track(&fold, i);
	has_operators = fold.found[PATTERN_INDEX].can_tell;
	fold.found[PATTERN_CONV_BIAS].can_tell = has_operators && !fold.unsized[0];
	fold.found[PATTERN_ODD_SIZES].can_tell = has_operators && !fold.unsized[1];
	span_places_init(&places, model);
	table_init(table, "operator_patterns", "Patterns of operators",
	           "slow patterns that PyTorch's own pattern matcher searches for, by the order and "
	           "nesting of operators");
	table_columns(table, columns, COLUMNS);
	for (int pattern = 0; pattern < PATTERNS && has_operators; pattern++)
		patterns_add_row(table, &places, (enum pattern)pattern, &fold.found[pattern],
		                 is_of_inputs((enum pattern)pattern) ? fold.sized : fold.times);
	step_kinds_note_sums(table, fold.times, COLUMN_LEAST);
	if (!has_operators)
		table->empty = step_times_no_operations(context, &table->arena, texts[PATTERN_INDEX].cannot_tell);
	span_places_release(&places);
	name_classes_release(&fold.names);
	free(fold.levels);
	input_steps_release(&with_inputs);
	return STATUS_OK;
}

const struct analysis analysis_operator_patterns = {
	.name = "operator_patterns",
	.row = "pattern",
	.question = "which known-slow operator patterns occur, and what do they cost?",
	.run = patterns_run,
	.is_of_operators = true,
};
