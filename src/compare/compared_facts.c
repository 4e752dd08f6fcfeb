/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_facts.c: the facts that should be equal on both sides of a comparison: hardware, software, the work per
 * step. Facts that always differ from run to run (pids, paths of libraries, the seed of a loader) are left out.
 */
#include "analysis/machine/processes.h"
#include "analysis/operators/flop_likeness.h"
#include "base/memory.h"
#include "base/statistics.h"
#include "base/text.h"
#include "compare/compared.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES 12 /* most operators whose inputs are compared */

/* ---- facts that the run noted ---- */

/* Keys by prefix; the first matching row counts. */
static const struct key_rule {
	const char *begin;
	bool is_left_out;
	enum fact_kind kind;
} key_rules[] = {
	{"child", true, 0},
	{"clock", true, 0},
	{"cost", true, 0},
	{"budget.", true, 0}, /* it changes while the run runs */
	{"budget", false, FACT_RECORDING},
	{"pool", true, 0},
	{"exit", true, 0},
	{"oom_kills", true, 0},
	{"cwd", true, 0},
	{"capture", true, 0},
	{"profiler", true, 0},
	{"launcher", true, 0},
	{"unseen", true, 0},
	{"memory.", true, 0}, /* measured peaks */
	{"data_loader.seed", true, 0},
	{"data_loader.pid", true, 0},
	{"data_loader.pinning", true, 0}, /* a thread id */
	{"data_loader.worker", false, FACT_SETTINGS},
	{"process_group_thread", true, 0},
	{"processors", false, FACT_HARDWARE},
	{"data.", false, FACT_SETTINGS},
	{"torch.version", false, FACT_SOFTWARE},
	{"torch.library", true, 0},
	{"torch.start_ms", true, 0},
	{"torch.owners", true, 0}, /* durations of searches for optimizers */
	{"torch.threads", false, FACT_SETTINGS},
	{"torch.", false, FACT_RECORDING},
	{"trace.cuda_", false, FACT_SOFTWARE},
	{"trace.hip_", false, FACT_SOFTWARE},
	{"trace.trace_id", true, 0},
	{"trace.traceName", true, 0}, /* path of the written file */
	{"trace.", false, FACT_RECORDING},
	{"version", false, FACT_RECORDING},
	{"distributed.rank", true, 0},
	{"distributed.backend", false, FACT_SOFTWARE},
	{"device", false, FACT_HARDWARE},
	{"gpu", false, FACT_HARDWARE},
	{"cuda", false, FACT_SOFTWARE},
	{"hip", false, FACT_SOFTWARE},
	{"python", false, FACT_SOFTWARE},
	{"env.gpu", false, FACT_HARDWARE},
	{"env.", false, FACT_SOFTWARE},
	{"argv", false, FACT_SETTINGS},
	{"program", true, 0},
};

/* Words that indicate the work of a step, in keys that programs choose themselves. */
static const char *const work_words[] = {"batch",  "accum",  "context", "sequence", "seq_len", "max_length", "tokens",
                                         "layers", "hidden", ".dim",    "heads",    "vocab",   "parameter",  "flops",
                                         "dtype",  "model",  "image",   "width",    "depth"};

static bool classify_key(const char *key, enum fact_kind *kind)
{
	for (size_t i = 0; i < sizeof(key_rules) / sizeof(key_rules[0]); i++) {
		if (strncmp(key, key_rules[i].begin, strlen(key_rules[i].begin)) != 0)
			continue;
		*kind = key_rules[i].kind;
		return !key_rules[i].is_left_out;
	}
	*kind = FACT_SETTINGS;
	for (size_t i = 0; i < sizeof(work_words) / sizeof(work_words[0]); i++)
		if (strstr(key, work_words[i]))
			*kind = FACT_WORK;
	return true;
}

/* Classifies the texts of an nvidia-smi file about a GPU, such as "GPU 0.name", by the end of their key. The other
 * texts change during the run, or say why something was not measured. */
static bool classify_telemetry(const char *key, enum fact_kind *kind)
{
	static const struct {
		const char *end;
		enum fact_kind kind;
	} ends[] = {{".name", FACT_HARDWARE},
	            {".gpu_name", FACT_HARDWARE},
	            {".driver_version", FACT_SOFTWARE},
	            {".vbios_version", FACT_SOFTWARE},
	            {".compute_mode", FACT_SETTINGS},
	            {".persistence_mode", FACT_SETTINGS},
	            {".mig.mode.current", FACT_SETTINGS},
	            {".ecc.mode.current", FACT_SETTINGS}};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!text_ends_with(key, ends[i].end))
			continue;
		*kind = ends[i].kind;
		return true;
	}
	return false;
}

static bool is_telemetry(const struct model *model, uint32_t process)
{
	return process < model->processes_count && model->processes[process].role == STEPSCOPE_ROLE_HOST &&
	       !strcmp(model_text(model, model->processes[process].name), "nvidia-smi");
}

/* Returns true for facts that correct the header of a recording. They name the process they belong to: "process 4242",
 * "1 of 2, process 4242" (docs/file-format.md). */
static bool corrects_header(const char *key, const char *value)
{
	return (!strcmp(key, "trains") || !strcmp(key, "rank")) && strstr(value, "process ");
}

/* If several processes noted a key, the first one counts. */
static void read_noted(struct compared_run *run, const struct model *model)
{
	for (uint32_t i = 0; i < model->meta_count; i++) {
		const char *key = model_text(model, model->meta[i].key);
		const char *value = model_text(model, model->meta[i].value);
		bool is_outside = is_telemetry(model, model->meta[i].process);
		enum fact_kind kind;

		if (corrects_header(key, value))
			continue;
		if ((is_outside ? classify_telemetry(key, &kind) : classify_key(key, &kind)) &&
		    !compared_run_fact(run, key))
			compared_run_add_fact(run, kind, key, value);
	}
}

/* ---- facts from tables ---- */

/* Adds the median of the amounts that the steps report, if all steps report one. */
static void read_amount(struct compared_run *run, const char *name, bool is_tokens)
{
	double *values = memory_resize(NULL, run->steps_count + 1, sizeof(*values));
	size_t count = 0;

	for (size_t i = 0; i < run->steps_count; i++) {
		const struct compared_step *step = &run->steps[i];

		if (is_tokens ? step->has_tokens : step->has_samples)
			values[count++] = is_tokens ? step->tokens : step->samples;
	}
	sort_doubles(values, count);
	if (count && count == run->steps_count)
		compared_run_add_number(run, FACT_WORK, name, quantile(values, count, 0.5));
	free(values);
}

static void read_amounts(struct compared_run *run, struct report *report)
{
	const struct step_times *times = report_step_times(report);
	const struct table *devices = report_table(report, "device_busy"), *table = report_table(report, "run");
	const struct table_cell *hosts = table_get(table, 0, table_find_column(table, "host"));
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		ranks += times->spans[i].is_rank;
	if (ranks)
		compared_run_add_number(run, FACT_WORK, "ranks", ranks);
	read_amount(run, "tokens per step", true);
	read_amount(run, "samples per step", false);
	if (devices->row_count)
		compared_run_add_number(run, FACT_HARDWARE, "devices", devices->row_count);
	if (hosts->has_value)
		compared_run_add_fact(run, FACT_HARDWARE, "host", hosts->text);
}

/* ---- inputs of operators ---- */

/* Returns true for operators whose inputs show the size of batch and model. Other operators also prepare data or
 * inspect results. */
static bool is_computing(const char *name)
{
	static const char *const words[] = {"mm", "conv", "linear", "matmul", "attention", "embedding", "norm"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

/* Returns the number of elements of "[8, 64] [64, 64]", "8x64 64x64" and the like. Numbers with only ',', 'x' or blanks
 * between them are multiplied. */
static double shape_size(const char *shape)
{
	double size = 0, product = 0;

	for (const char *at = shape; *at;) {
		char *end;

		if (!isdigit((unsigned char)*at)) {
			if (*at != ',' && *at != 'x' && *at != ' ') {
				size += product;
				product = 0;
			}
			at++;
			continue;
		}
		product = (product > 0 ? product : 1) * strtod(at, &end);
		at = end;
	}
	return size + product;
}

struct compared_facts_inputs {
	const char *name, *shape;
	double size;
};

static void use_shape(struct compared_facts_inputs *inputs, int *count, const char *name, const char *shape)
{
	double size = shape_size(shape);
	int i = 0;

	while (i < *count && strcmp(inputs[i].name, name) != 0)
		i++;
	if (i == SHAPES)
		return;
	if (i == *count)
		inputs[(*count)++] = (struct compared_facts_inputs){name, shape, size};
	else if (size > inputs[i].size || (!(size < inputs[i].size) && strcmp(shape, inputs[i].shape) > 0))
		inputs[i] = (struct compared_facts_inputs){name, shape, size};
}

/* Reads the largest inputs of the costliest computing operators. Which inputs are the largest does not depend on their
 * time. */
static void read_shapes(struct compared_run *run, struct report *report)
{
	struct analysis_context *context = &report->context;
	unsigned by = context->options.by;
	enum status status;
	struct compared_facts_inputs inputs[SHAPES];
	struct table table;
	struct error err;
	int count = 0;

	if (!run->steps_count)
		return;
	/* if sizes change from step to step, other steps may have larger inputs */
	if (flop_likeness_varies(analysis_context_flop_likeness(context)))
		return;
	context->options.by = BY_SHAPE;
	status = analysis_find("ops")->run(context, &table, &err);
	context->options.by = by;
	if (status)
		return;
	for (int row = 0; row < table.row_count; row++) {
		const struct table_cell *name = table_get(&table, row, table_find_column(&table, "name"));
		const struct table_cell *shape = table_get(&table, row, table_find_column(&table, "shape"));

		if (name->has_value && shape->has_value && is_computing(name->text))
			use_shape(inputs, &count, name->text, shape->text);
	}
	for (int i = 0; i < count; i++)
		compared_run_add_fact(run, FACT_WORK, arena_printf(&run->arena, "inputs of %s", inputs[i].name),
		                      inputs[i].shape);
	table_release(&table);
}

/* ---- missing data ---- */

/* Adds a fact, so that a history keeps it: "events are missing (16722)", and the number of further ledger entries. */
static void read_damage(struct compared_run *run, const struct model *model)
{
	const char *first = NULL;
	uint64_t count = 0;
	int rows = 0;

	for (uint32_t i = 0; i < model->ledger_count; i++) {
		if (!ledger_is_loss(model->ledger[i].kind))
			continue;
		if (!rows++) {
			first = model_text(model, model->ledger[i].text);
			count = model->ledger[i].count;
		}
	}
	if (rows > 1)
		first = arena_printf(&run->arena, "%s (%" PRIu64 "), and %d more", first, count, rows - 1);
	else if (rows)
		first = arena_printf(&run->arena, "%s (%" PRIu64 ")", first, count);
	if (first)
		compared_run_add_fact(run, FACT_RECORDING, COMPARED_DAMAGE, first);
}

/* ---- clocks ---- */

/* Returns true for the words "clock" and "clocks", with or without a unit, but not for "clocks_event_reasons". */
static bool is_clock_word(const char *word, size_t length)
{
	static const char *const words[] = {"clock",     "clocks",    "clock_hz",   "clock_khz",  "clock_mhz",
	                                    "clock_ghz", "clocks_hz", "clocks_khz", "clocks_mhz", "clocks_ghz"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == length && !strncasecmp(word, words[i], length))
			return true;
	return false;
}

/* Returns true for a measured clock, such as clocks.sm or cpu0.clock_hz, also with a unit after a blank. Returns false
 * for permitted clocks, reasons for low clocks, and times of the program such as wall_clock_s. */
static bool is_clock(const char *name)
{
	static const char *const others[] = {"max", "reason", "throttl", "default", "application", "limit", "set"};
	bool has_word = false;

	for (const char *word = name;;) {
		size_t length = strcspn(word, ". ");

		has_word |= is_clock_word(word, length);
		word += length;
		if (*word++ != '.')
			break;
	}
	if (!has_word)
		return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcasestr(name, others[i]))
			return false;
	return true;
}

/* Adds means over the run, with the same weight for each value. */
static void read_clocks_of(struct compared_run *run, const struct table *table, int name, int owner)
{
	double mean;

	for (int row = 0; row < table->row_count; row++) {
		const char *text = table_get(table, row, name)->text;

		if (!is_clock(text) || !table_number(table, row, table_find_column(table, "mean"), &mean))
			continue;
		/* several processes may have several devices */
		if (compared_run_fact(run, text))
			text = arena_printf(&run->arena, "%s of %s", text, table_get(table, row, owner)->text);
		compared_run_add_number(run, FACT_CLOCK, text, mean);
	}
}

static void read_clocks(struct compared_run *run, struct report *report)
{
	const struct table *counters = report_table(report, "counters"), *telemetry = report_table(report, "telemetry");

	read_clocks_of(run, counters, table_find_column(counters, "name"), table_find_column(counters, "process"));
	read_clocks_of(run, telemetry, table_find_column(telemetry, "quantity"), table_find_column(telemetry, "of"));
}

static void read_end(struct compared_run *run, const struct model *model)
{
	const char *end = program_failure(model, &run->arena);

	if (end)
		compared_run_add_fact(run, FACT_RECORDING, COMPARED_END, end);
}

void compared_read_facts(struct compared_run *run, struct report *report)
{
	read_damage(run, report->model);
	read_end(run, report->model);
	read_amounts(run, report);
	compared_read_passes(run, report);
	read_noted(run, report->model);
	read_shapes(run, report);
	read_clocks(run, report);
}
