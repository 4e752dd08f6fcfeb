/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_metrics.c: see the header. Unknown keys are skipped: their list grows with each version.
 */
#include "compare/canary_metrics.h"

#include "base/input_stream.h"
#include "base/json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((size_t)16 << 20) /* lists of at most 100 numbers: real files are a few KiB */
#define PROBE_BYTES 4096
#define MIB (1024.0 * 1024.0)
#define LARGEST 1e12        /* seconds, ms, MiB, tokens per second: larger values are not measurements */
#define MOST_OPERATIONS 100 /* per list: its writer keeps 10 */

struct operation { /* of one of the profiler's lists */
	const char *name;
	double ms, calls;
};

struct metrics_file {
	struct compared_run *run;
	struct buffer path; /* "perf.step_time.mean" */
	struct json_reader json;
	char damage[96];                              /* "perf.max_mem_mb is -1"; "" if there is none */
	double count, mean_s, median_s, std_s, p95_s; /* of steps; NaN if absent */
	double tokens_per_s, memory_mb, nan_steps, inf_steps, loss;
	double lost_losses, lost_norms; /* NaN or infinite values of steps, among those in the file */
	double diverged;                /* whether the loss diverged: 0 or 1 */
	double cuda_ms, cpu_ms;         /* of the profiled part */
	double utilization, wait;       /* in percent */
	struct operation operation;     /* the one being read */
	size_t operations;              /* number of those that were kept */
	bool is_loss_lost;              /* the last loss is NaN or infinite */
	const char *status, *error;     /* how the run ended; NULL if absent */
};

/* ---- facts ---- */

static const struct fact_key {
	const char *path;
	enum fact_kind kind;
} fact_keys[] = {
	{"env.gpu_name", FACT_HARDWARE},
	{"env.gpu_count", FACT_HARDWARE},
	{"env.platform", FACT_SOFTWARE},
	{"env.python_version", FACT_SOFTWARE},
	{"env.torch_version", FACT_SOFTWARE},
	{"env.cuda_version", FACT_SOFTWARE},
	{"env.transformers_version", FACT_SOFTWARE},
	{"env.trl_version", FACT_SOFTWARE},
	{"config.model_name", FACT_WORK},
	{"config.batch_size", FACT_WORK},
	{"config.gradient_accumulation_steps", FACT_WORK},
	{"config.max_length", FACT_WORK},
	{"config.max_steps", FACT_SETTINGS},
	{"config.learning_rate", FACT_SETTINGS},
	{"config.beta", FACT_SETTINGS},
	{"config.dataset_name", FACT_SETTINGS},
	{"config.dataset_size", FACT_SETTINGS},
	{"config.seed", FACT_SETTINGS},
	{COMPARED_STATUS, FACT_RECORDING},
};

static void keep_fact(struct metrics_file *file, const char *path, const char *value)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; i < sizeof(fact_keys) / sizeof(fact_keys[0]); i++) {
		if (!strcmp(fact_keys[i].path, path))
			compared_run_add_fact(file->run, fact_keys[i].kind, dot ? dot + 1 : path, value);
	}
}

/* ---- numbers ---- */

static double *number_at(struct metrics_file *file, const char *path)
{
	const struct {
		const char *path;
		double *number;
	} numbers[] = {
		{"perf.step_time.count", &file->count},
		{"perf.step_time.mean", &file->mean_s},
		{"perf.step_time.median", &file->median_s},
		{"perf.step_time.std", &file->std_s},
		{"perf.step_time.p95", &file->p95_s},
		{"perf.approx_tokens_per_sec", &file->tokens_per_s},
		{"perf.max_mem_mb", &file->memory_mb},
		{"stability.nan_steps", &file->nan_steps},
		{"stability.inf_steps", &file->inf_steps},
		{"stability.final_loss", &file->loss},
		{"perf.gpu_utilization_avg", &file->utilization},
		{"perf.dataloader_wait_pct", &file->wait},
		{"profiler.cuda_time_total_ms", &file->cuda_ms},
		{"profiler.cpu_time_total_ms", &file->cpu_ms},
		{"profiler.top_cuda_ops.self_cuda_time_ms", &file->operation.ms},
		{"profiler.top_cuda_ops.count", &file->operation.calls},
		{"profiler.top_cpu_ops.self_cpu_time_ms", &file->operation.ms},
		{"profiler.top_cpu_ops.count", &file->operation.calls},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!strcmp(numbers[i].path, path))
			return numbers[i].number;
	}
	return NULL;
}

static void canary_metrics_set_number(struct metrics_file *file, const char *path, double *number, double value)
{
	*number = value;
	if (number == &file->loss)
		file->is_loss_lost = !isfinite(value);
	else if (value < 0 || value > LARGEST)
		snprintf(file->damage, sizeof(file->damage), "%s is %.3g", path, value);
}

/* Returns the level of a profiler's list if `path` is the path of that list followed by `end`; otherwise NULL. */
static const char *operations_level(const char *path, const char *end)
{
	static const struct {
		const char *path, *level;
	} lists[] = {{"profiler.top_cuda_ops", CANARY_CUDA_OPERATORS}, {"profiler.top_cpu_ops", CANARY_CPU_OPERATORS}};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t length = strlen(lists[i].path);

		if (!strncmp(path, lists[i].path, length) && !strcmp(path + length, end))
			return lists[i].level;
	}
	return NULL;
}

static void on_scalar(struct metrics_file *file, enum json_token token)
{
	const char *path = file->path.data, *text = file->json.text.data;
	double *number = token == JSON_NUMBER ? number_at(file, path) : NULL;

	if ((token == JSON_TRUE || token == JSON_FALSE) && !strcmp(path, "stability.loss_diverged"))
		file->diverged = token == JSON_TRUE;
	if (token != JSON_NUMBER && token != JSON_STRING)
		return;
	if (number)
		canary_metrics_set_number(file, path, number, strtod(text, NULL));
	else if (!strcmp(path, "run_id") && text[0])
		file->run->name = arena_dup(&file->run->arena, text);
	else if (!strcmp(path, "timestamp") && text[0])
		file->run->created = arena_dup(&file->run->arena, text);
	else if (operations_level(path, ".name") && text[0])
		file->operation.name = arena_dup(&file->run->arena, text);
	else if (!strcmp(path, "error") && text[0])
		file->error = arena_dup(&file->run->arena, text);
	else
		keep_fact(file, path, text);
	if (!strcmp(path, COMPARED_STATUS))
		file->status = arena_dup(&file->run->arena, text);
}

/* ---- the document ---- */

static bool canary_metrics_read_object(struct metrics_file *file);

static void keep_operation(struct metrics_file *file, const char *level)
{
	const struct operation *operation = &file->operation;
	struct compared_part part = {.level = level, .name = operation->name, .amount = operation->ms * 1e6};

	if (!operation->name || !(operation->ms >= 0) || file->operations++ >= MOST_OPERATIONS)
		return;
	part.has_calls = operation->calls > 0;
	part.calls = part.has_calls ? operation->calls : 0;
	compared_run_add_part(file->run, &part);
}

static double *lost_at(struct metrics_file *file)
{
	if (!strcmp(file->path.data, "stability.loss_values"))
		return &file->lost_losses;
	return strcmp(file->path.data, "stability.grad_norm_values") ? NULL : &file->lost_norms;
}

/* Reads a list with one value per step, and counts the lost ones. */
static bool canary_metrics_read_values(struct metrics_file *file, double *lost)
{
	enum json_token token;

	for (*lost = 0; (token = json_next(&file->json)) != JSON_ARRAY_END;) {
		*lost += token == JSON_NUMBER && !isfinite(strtod(file->json.text.data, NULL));
		if (!json_skip(&file->json, token))
			return false;
	}
	return true;
}

/* Reads a list whose path is file->path. Other lists hold nothing that is compared. */
static bool read_array(struct metrics_file *file)
{
	double *lost = lost_at(file);
	const char *level = operations_level(file->path.data, "");
	enum json_token token;

	if (lost)
		return canary_metrics_read_values(file, lost);
	if (!level)
		return json_skip(&file->json, JSON_ARRAY_BEGIN);
	while ((token = json_next(&file->json)) != JSON_ARRAY_END) {
		file->operation = (struct operation){.ms = NAN, .calls = NAN};
		if (token != JSON_OBJECT_BEGIN ? !json_skip(&file->json, token) : !canary_metrics_read_object(file))
			return false;
		keep_operation(file, level);
	}
	return true;
}

/* Reads the members of an object, each with its path. */
static bool canary_metrics_read_object(struct metrics_file *file)
{
	size_t length = file->path.length;
	enum json_token token = json_next(&file->json);

	for (; token == JSON_KEY; token = json_next(&file->json)) {
		if (length)
			buffer_add_byte(&file->path, '.');
		buffer_add(&file->path, file->json.text.data, file->json.text.length);
		token = json_next(&file->json);
		if (file->path.is_overflown || file->json.depth > 8 || token == JSON_ERROR)
			return false;
		if (token == JSON_OBJECT_BEGIN ? !canary_metrics_read_object(file)
		                               : token == JSON_ARRAY_BEGIN && !read_array(file))
			return false;
		if (token != JSON_OBJECT_BEGIN && token != JSON_ARRAY_BEGIN)
			on_scalar(file, token);
		file->path.length = length;
		file->path.data[length] = '\0';
	}
	return token == JSON_OBJECT_END;
}

/* ---- the run ---- */

static void keep_value(struct compared_run *run, const char *name, double value)
{
	if (isfinite(value))
		compared_run_add_value(run, name, value);
	else
		compared_run_add_missing(run, name, "the file has no such value");
}

/* The writer divided the tokens of a step by the mean step to get tokens per second. This multiplies again. */
static void keep_tokens(struct metrics_file *file)
{
	double tokens = round(file->tokens_per_s * file->mean_s);
	char text[32];

	if (!(tokens >= 1) || !(tokens < 1e15))
		return;
	file->run->summary.tokens = tokens;
	snprintf(text, sizeof(text), "%.0f", tokens);
	compared_run_add_fact(file->run, FACT_WORK, "tokens per step", text);
}

/* If the steps were not counted, a last loss that is NaN or infinite counts as one value that is not finite. */
static void keep_loss(const struct metrics_file *file)
{
	double not_finite = fmax(file->nan_steps + file->inf_steps, fmax(file->lost_losses, file->lost_norms));

	if (file->is_loss_lost)
		compared_run_add_missing(file->run, "final_loss", "the loss is NaN or infinite");
	else
		keep_value(file->run, "final_loss", file->loss);
	keep_value(file->run, COMPARED_DIVERGED, file->diverged);
	keep_value(file->run, "not_finite", file->is_loss_lost && !(not_finite >= 1) ? 1 : not_finite);
}

/* The writer stores 0 for missing times: without CUPTI, or from a PyTorch whose attributes have other names. */
static void keep_profile(struct metrics_file *file)
{
	const struct {
		const char *name;
		double value;
	} values[] = {{"utilization", file->utilization / 100},
	              {"wait_ratio", file->wait / 100},
	              {"profiled_device_time", file->cuda_ms > 0 ? file->cuda_ms * 1e6 : NAN},
	              {"profiled_host_time", file->cpu_ms > 0 ? file->cpu_ms * 1e6 : NAN}};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (isfinite(values[i].value))
			compared_run_add_value(file->run, values[i].name, values[i].value);
}

/* The numbers of a failed run are from the part before it failed, which may have had the easier steps. */
static void keep_end(const struct metrics_file *file)
{
	struct compared_run *run = file->run;

	if (!file->status || !strcmp(file->status, COMPARED_COMPLETED))
		return;
	compared_run_add_fact(run, FACT_RECORDING, COMPARED_DAMAGE,
	                      arena_printf(&run->arena, "the run did not complete: its status is '%.40s'%s%.200s",
	                                   file->status, file->error ? ": " : "", file->error ? file->error : ""));
}

/* Converts to ns, rounded to the picosecond, so that a division gives 0.40788 s again. */
static double nanoseconds(double seconds)
{
	return round(seconds * 1e12) / 1e3;
}

static enum status keep_numbers(struct metrics_file *file, const char *path, struct error *err)
{
	struct compared_run *run = file->run;

	if (file->damage[0])
		return error_set(err, STATUS_INPUT, "'%s' is damaged: %s", path, file->damage);
	if (isnan(file->median_s) || isnan(file->count))
		return error_set(err, STATUS_INPUT, "'%s' has no step times: perf.step_time.median and count", path);
	if (file->median_s < 1e-9 || file->median_s > 1e9 || file->count < 1 || file->count != floor(file->count))
		return error_set(err, STATUS_INPUT, "'%s' is damaged: %g steps of %.3g s", path, file->count,
		                 file->median_s);
	if (file->p95_s < file->median_s)
		return error_set(err, STATUS_INPUT,
		                 "'%s' is damaged: its 95th percentile, %.6g s, is less than its median, %.6g s", path,
		                 file->p95_s, file->median_s);
	run->summary = (struct compared_summary){
		.steps = (int64_t)file->count,
		.median_ns = nanoseconds(file->median_s),
		/* standard error of the median of normal values: sqrt(pi / 2) deviations over the root of their
		 * number */
		.error = file->std_s > 0 ? 1.2533 * file->std_s / file->median_s / sqrt(file->count) : 0,
	};
	keep_tokens(file);
	keep_value(run, "step_time_mean", nanoseconds(file->mean_s));
	keep_value(run, "step_time_p95", nanoseconds(file->p95_s));
	keep_value(run, "tokens_per_s", file->tokens_per_s);
	keep_value(run, "device_memory", file->memory_mb > 0 ? file->memory_mb * MIB : NAN); /* 0: no device */
	keep_profile(file);
	keep_loss(file);
	keep_end(file);
	return STATUS_OK;
}

static enum status parse(struct compared_run *run, const char *text, size_t length, const char *path, struct error *err)
{
	struct metrics_file file = {.run = run};
	enum status status = STATUS_OK;

	file.count = file.mean_s = file.median_s = file.std_s = file.p95_s = NAN;
	file.tokens_per_s = file.memory_mb = file.nan_steps = file.inf_steps = file.loss = NAN;
	file.lost_losses = file.lost_norms = file.diverged = NAN;
	file.cuda_ms = file.cpu_ms = file.utilization = file.wait = NAN;
	buffer_init(&file.path, 1 << 16);
	buffer_add_text(&file.path, "");
	json_reader_init(&file.json, text, length);
	file.json.takes_nan = true; /* a diverged loss may be NaN, and such a run matters most */
	if (json_next(&file.json) != JSON_OBJECT_BEGIN || !canary_metrics_read_object(&file) ||
	    json_next(&file.json) != JSON_END)
		status = error_set(err, STATUS_INPUT, "'%s' is not a complete metrics.json: %s at byte %zu", path,
		                   file.json.problem ? file.json.problem : "unexpected content", file.json.offset);
	if (!status)
		status = keep_numbers(&file, path, err);
	json_reader_release(&file.json);
	buffer_release(&file.path);
	return status;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

enum status canary_metrics_parse(struct compared_run *run, const char *text, size_t length, const char *path,
                                 struct error *err)
{
	enum status status;

	*run = (struct compared_run){0};
	arena_init(&run->arena, 0);
	run->path = arena_dup(&run->arena, path);
	run->name = arena_dup(&run->arena, file_name(path));
	status = parse(run, text, length, path, err);
	if (status)
		compared_run_release(run);
	return status;
}

bool canary_metrics_probe(const char *path)
{
	char head[PROBE_BYTES + 1];
	struct error ignored;
	struct input_stream *input;
	struct stat info;
	const char *bytes;
	size_t length;
	bool is_one;

	if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) /* reading from a pipe would consume its bytes */
		return false;
	if (input_open(path, &input, &ignored))
		return false;
	is_one = !input_peek_long(input, &bytes, &length, &ignored) && length && bytes[0] == '{';
	if (is_one) {
		length = length < PROBE_BYTES ? length : PROBE_BYTES;
		memcpy(head, bytes, length);
		head[length] = '\0';
		is_one = strlen(head) == length && strstr(head, "\"run_id\"") && strstr(head, "\"duration_seconds\"") &&
		         !strstr(head, "\"traceEvents\"");
	}
	input_close(input);
	return is_one;
}

/* Reads the file, decompressed. */
static enum status canary_metrics_read_text(struct buffer *text, const char *path, struct error *err)
{
	struct input_stream *input;
	enum status status = input_open(path, &input, err);
	char bytes[16384];
	size_t length = 1;

	if (status)
		return status;
	while (!status && length) {
		status = input_read(input, bytes, sizeof(bytes), &length, err);
		if (!status && length && !buffer_add(text, bytes, length))
			status = error_set(err, STATUS_INPUT, "'%s' is not a metrics.json: it is larger than %zu MiB",
			                   path, MOST_BYTES >> 20);
	}
	input_close(input);
	return status;
}

enum status canary_metrics_read(struct compared_run *run, const char *path, struct error *err)
{
	struct buffer text;
	enum status status;

	buffer_init(&text, MOST_BYTES);
	status = canary_metrics_read_text(&text, path, err);
	if (!status)
		status = canary_metrics_parse(run, text.data ? text.data : "", text.length, path, err);
	buffer_release(&text);
	return status;
}

/* Removes "_<number>_<hexadecimal>" from the end of the name. */
const char *canary_metrics_series(struct compared_run *run)
{
	size_t length = strlen(run->name), tail = length;

	while (tail && isxdigit((unsigned char)run->name[tail - 1]))
		tail--;
	if (tail == length || !tail || run->name[tail - 1] != '_')
		return run->name;
	length = --tail;
	while (tail && isdigit((unsigned char)run->name[tail - 1]))
		tail--;
	if (tail == length || tail < 2 || run->name[tail - 1] != '_')
		return run->name;
	return arena_dup_n(&run->arena, run->name, tail - 1);
}

const char *canary_metrics_identity(struct compared_run *run)
{
	bool has_id = strcmp(run->name, file_name(run->path)) != 0;
	const char *identity;
	char *path;

	if (has_id && run->created)
		return arena_printf(&run->arena, "metrics.json|%s|%s", run->name, run->created);
	path = realpath(run->path, NULL);
	identity = arena_printf(&run->arena, "metrics.json|%s|%s|%s", run->name, run->created ? run->created : "",
	                        path ? path : run->path);
	free(path);
	return identity;
}
