/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto.c: the importer of traces of PyTorch's Kineto and of other Chrome traces (JSON, plain, gzip or zstd).
 */
#include "base/archive_reader.h"
#include "base/input_stream.h"
#include "base/memory.h"
#include "importers/find_importer.h"
#include "importers/importer.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_set.h"
#include "importers/kineto/kineto_utf16.h"
#include "importers/stacks/speedscope.h"
#include "model/reasons.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES ((size_t)64 << 20)

/* Returns true if the text after the bracket may be JSON, however broken the rest is. Stacks may also begin with
 * "[unknown]" or "{lambda}". */
static bool begins_value(const char *head, size_t length)
{
	size_t at = 1;
	while (at < length && (!head[at] || strchr(" \t\r\n", head[at])))
		at++;
	if (at == length)
		return true;
	if (*head == '{')
		return strchr("\"},", head[at]) != NULL;
	if (strchr("{[]\",-", head[at]) || (head[at] >= '0' && head[at] <= '9'))
		return true;
	static const char *const words[] = {"null", "true", "false"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (length - at > strlen(words[i]) && memcmp(head + at, words[i], strlen(words[i])) == 0)
			return strchr(", \t\r\n", head[at + strlen(words[i])]) != NULL;
	return false;
}

bool kineto_begins_like_json(const char *head, size_t length)
{
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	bool is_wide = kineto_encoding_of(head, length) != KINETO_UTF8; /* with NULs in between and a mark first */
	while (at < length &&
	       (head[at] ? strchr(" \t\r\n", head[at]) || (is_wide && (unsigned char)head[at] >= 0xfe) : is_wide))
		at++;
	return at < length && (head[at] == '{' || head[at] == '[') && begins_value(head + at, length - at);
}

bool kineto_is_trace_here(struct input_stream *input)
{
	struct error ignored;
	const char *bytes;
	size_t length;
	return input_peek(input, &bytes, &length, &ignored) == STATUS_OK && kineto_begins_like_json(bytes, length) &&
	       !memmem(bytes, length, "\"stepscope.", 11) /* our own summary, run.json */ &&
	       !speedscope_begins(bytes, length);
}

/* Checks the first bytes of the file, decompressed if needed. */
bool kineto_is_trace(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	bool is_trace = kineto_is_trace_here(input);
	input_close(input);
	return is_trace;
}

/* Returns true if the text has a key that other JSON does not have near its start, whatever the file's name. UTF-16 has
 * NULs between letters, so any UTF-16 text counts. */
static bool has_sign(const char *head, size_t length)
{
	static const char *const signs[] = {"\"traceEvents\"", "\"ph\"", "\"baseTimeNanoseconds\"",
	                                    "\"deviceProperties\"", "\"distributedInfo\""};
	bool is_found = kineto_encoding_of(head, length) != KINETO_UTF8;
	for (size_t i = 0; i < sizeof signs / sizeof *signs && !is_found; i++)
		is_found = memmem(head, length, signs[i], strlen(signs[i])) != NULL;
	return is_found;
}

bool kineto_is_sure(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	const char *head;
	size_t length;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	bool is_sure = kineto_is_trace_here(input) && input_peek_long(input, &head, &length, &ignored) == STATUS_OK &&
	               has_sign(head, length);
	input_close(input);
	return is_sure;
}

static bool kineto_begins(const char *name, const char *head, size_t length)
{
	return kineto_begins_like_json(head, length);
}

static bool kineto_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	return is_directory ? kineto_has_traces(path)
	                    : kineto_begins_like_json(head, length) || kineto_is_trace(path) || kineto_is_archive(path);
}

struct kineto_loading {
	struct kineto_import *import;
	struct kineto_file file;
	struct input_stream *input;
	uint64_t done_bytes, total_bytes; /* totals over all files */
};

static void kineto_stage_event(void *context, const struct kineto_event *event, uint64_t offset)
{
	kineto_take_event(((struct kineto_loading *)context)->import, event, offset);
}

static void kineto_read_fact(void *context, const struct kineto_value *key, const struct kineto_value *value)
{
	kineto_take_fact(((struct kineto_loading *)context)->import, key, value);
}

static void progress(void *context)
{
	struct kineto_loading *loading = context;
	const struct model *model = loading->import->model;
	if (model->on_progress)
		model->on_progress(model->progress_context,
		                   loading->done_bytes + kineto_text_file_bytes(&loading->file.text),
		                   loading->total_bytes);
}

static bool kineto_is_whole(const struct kineto_file *file)
{
	for (int i = 0; i < REPAIR_COUNT; i++)
		if (file->repairs.count[i])
			return false;
	return true;
}

static enum status kineto_check(const struct kineto_loading *loading, struct error *err)
{
	struct kineto_import *import = loading->import;
	if (import->event_count)
		return STATUS_OK;
	if (!loading->file.event_count && loading->file.text.error.status != STATUS_OK) {
		*err = loading->file.text.error;
		return STATUS_INPUT;
	}
	if (!loading->file.has_list) {
		import->is_other_json = kineto_is_whole(&loading->file);
		return error_set(err, STATUS_INPUT,
		                 strcmp(import->path, "-") == 0
		                         ? "standard input is not a trace: it has no list of events (traceEvents)"
		                         : "'%s' is JSON, but not a trace: it has no list of events (traceEvents)",
		                 import->path);
	}
	if (!loading->file.event_count)
		return error_set(err, STATUS_INPUT, "'%s' has no events: %s", import->path,
		                 loading->file.repairs.count[REPAIR_GARBAGE] ? "its list contains no object"
		                                                             : "its list is empty");
	return error_set(err, STATUS_INPUT, "'%s' has no events to show: all %llu events are names or unreadable",
	                 import->path, (unsigned long long)loading->file.event_count);
}

/* Events are in no order, so losses may be of any time. */
static void note_lost_memory(struct kineto_import *import, const struct kineto_repairs *repairs, uint32_t first)
{
	static const uint8_t losses[] = {REPAIR_TIME, REPAIR_UNREADABLE, REPAIR_GARBAGE, REPAIR_LIST_END,
	                                 REPAIR_CUT,  REPAIR_DAMAGED,    REPAIR_MEMBER};
	struct model *model = import->model;
	bool is_whole = true;
	for (size_t i = 0; i < sizeof losses; i++)
		is_whole &= !repairs->count[losses[i]] && !import->repairs.count[losses[i]];
	for (uint32_t i = first; i < model->memory_count && !is_whole; i++)
		if (i == first || model->memory[i].process != model->memory[i - 1].process)
			model_lose_memory(model, model->memory[i].process, INT64_MIN,
			                  "the trace is damaged or cut off: its allocations and frees are incomplete");
}

static void note_rest(struct kineto_import *import)
{
	struct model *model = import->model;
	if (import->stage.duplicates)
		model_add_ledger(model, LEDGER_REPAIRED, import->main_process, "Ev Idx, External id",
		                 import->stage.duplicates, "duplicate events in the file were left out");
	if (import->rare_count)
		model_add_ledger(model, LEDGER_OTHER, import->main_process, "ph N, O, V, ...", import->rare_count,
		                 "objects, samples and other rare events were not read");
	if (import->unknown_count)
		model_add_ledger(model, LEDGER_OTHER, import->main_process, "ph", import->unknown_count,
		                 "events of an unknown kind were not read");
	if (import->args_left_out)
		model_add_ledger(model, LEDGER_OTHER, import->main_process, "args", import->args_left_out,
		                 "args after the first 128 of an event were not read");
	if (import->args_cut)
		model_add_ledger(model, LEDGER_OTHER, import->main_process, "args", import->args_cut,
		                 "args longer than 4 KiB were cut; inputs longer than 64 KiB were left out");
}

/* Returns true if an earlier file had the same text, compressed or not. */
static bool is_copy(const struct kineto_loading *loading)
{
	struct kineto_set *set = loading->import->set;
	return set && file_order_has_text(&set->order, input_summed(loading->input), -1);
}

static enum status kineto_load_stream(struct kineto_loading *loading, struct error *err)
{
	struct kineto_import *import = loading->import;
	const struct kineto_visitor visitor = {kineto_stage_event, kineto_read_fact, progress, loading};
	if (import->set)
		input_sum(loading->input);
	kineto_file_init(&loading->file, loading->input, &visitor);
	import->of_file = &loading->file.repairs;
	kineto_file_read(&loading->file);
	enum status status = kineto_check(loading, err);
	for (int i = 0; i < REPAIR_COUNT; i++)
		import->is_repaired |= loading->file.repairs.count[i] || import->repairs.count[i];
	import->is_copy = status == STATUS_OK && is_copy(loading);
	if (status == STATUS_OK && !import->is_copy) {
		uint32_t first = import->model->memory_count;
		kineto_finish(import);
		note_lost_memory(import, &loading->file.repairs, first);
		kineto_report_writers(import);
		kineto_report_repairs(import, &loading->file.repairs);
		kineto_report_repairs(import, &import->repairs);
		note_rest(import);
		model_add_meta(import->model, MODEL_NONE, "trace.format", "kineto");
		if (import->has_python && !import->is_ours) /* our own traces have the lines of the calls */
			model_add_meta(import->model, MODEL_NONE, "trace.python_lines", "of functions");
	}
	kineto_file_release(&loading->file);
	return status;
}

enum status kineto_load_input(struct kineto_import *import, struct input_stream *input, uint64_t done_bytes,
                              uint64_t total_bytes, struct error *err)
{
	struct kineto_loading *loading = memory_resize(NULL, 1, sizeof *loading);
	*loading = (struct kineto_loading){
		.import = import, .input = input, .done_bytes = done_bytes, .total_bytes = total_bytes};
	buffer_init(&import->text, TEXT_BYTES);
	buffer_init(&import->inputs, TEXT_BYTES);
	kineto_memo_init(import);
	import->stage.storage = import->model->storage;
	enum status status = kineto_load_stream(loading, err);
	kineto_clock_release(import);
	kineto_stage_release(&import->stage);
	buffer_release(&import->text);
	buffer_release(&import->inputs);
	kineto_memo_release(import);
	free(loading);
	return status;
}

/* A pipe can be read only once, so no importer has looked at it. */
static enum status load_stream_of(const char *path, struct kineto_import *import, struct input_stream *input,
                                  struct error *err)
{
	const char *head;
	size_t length;
	enum status status = input_peek_long(input, &head, &length, err);
	if (status != STATUS_OK)
		return status;
	const char *kind = other_kind(head, length);
	if (kind) {
		error_set(err, STATUS_INPUT, "'%s' is %s, which cannot be read through a pipe", path, kind);
		error_hint(err, "pass it by path");
		return STATUS_INPUT;
	}
	if (archive_is_here(head, length))
		return kineto_load_archive(path, input, import->model, err);
	if (kineto_begins_like_json(head, length))
		return kineto_load_input(import, input, 0, 0, err);
	if (!length)
		return error_set(err, STATUS_INPUT, "'%s' is empty", path);
	error_set(err, STATUS_INPUT, "'%s' is not a trace: it starts neither like JSON nor like a zip or tar", path);
	error_hint(err, "a pipe must contain a trace; pass recordings and other formats by path");
	return STATUS_INPUT;
}

static enum status load_file(const char *path, const struct stat *info, struct model *model, struct error *err)
{
	struct kineto_import import = {.model = model, .path = path};
	struct input_stream *input;
	enum status status = input_open(path, &input, err);
	if (status != STATUS_OK)
		return status;
	status = info ? kineto_load_input(&import, input, 0, (uint64_t)info->st_size, err)
	              : load_stream_of(path, &import, input, err);
	input_close(input);
	return status;
}

static enum status kineto_load(const char *path, const struct model_filter *filter, struct model *model,
                               struct error *err)
{
	struct stat info;
	bool is_known = stat(path, &info) == 0;
	bool is_file = is_known && S_ISREG(info.st_mode);
	enum status status;
	if (is_known && S_ISDIR(info.st_mode))
		status = kineto_load_directory(path, model, err);
	else if (is_file && kineto_is_archive(path))
		status = kineto_load_archive(path, NULL, model, err);
	else
		status = load_file(path, is_file ? &info : NULL, model, err);
	return status;
}

static enum status load_set(const char *const *paths, uint32_t count, const struct model_filter *filter,
                            struct model *model, struct error *err)
{
	return kineto_load_files(paths, count, model, err);
}

static const char *const kineto_reasons[REASON_COUNT] = {
	[REASON_NO_STEPS] = "the trace has no steps: torch.profiler writes them with a schedule and step()",
	[REASON_NO_PHASES] = "the trace names no phases",
	[REASON_NO_OPERATORS] = "the trace has no operators and no ranges",
	[REASON_NO_MODULES] = "the trace has no module calls: torch.profiler writes them with with_stack=True",
	[REASON_NO_ALLOCATIONS] = "the trace has no allocations: torch.profiler writes them with profile_memory=True",
	[REASON_NO_TOTALS] = "the trace has no allocator totals: torch.profiler writes them with profile_memory=True",
	[REASON_NO_SHAPES] = "the trace has no input sizes: torch.profiler writes them with record_shapes=True",
	[REASON_NO_FORMULA] = "the trace has no FLOP count, and the operator has no formula",
	[REASON_NO_FLOPS] =
		("the trace has no input sizes (torch.profiler writes them with record_shapes=True), or no operator "
                 "has a formula"),
	[REASON_NO_BYTES] = "traces do not contain the bytes of an operator",
	[REASON_NO_LINES] = "the trace has no Python stacks: torch.profiler writes them with with_stack=True",
	[REASON_NO_METRICS] = "the trace has no metrics",
	[REASON_NO_MARKS] = "the trace has no marks",
	[REASON_NO_THREAD_USE] = "traces do not contain the CPU time, waits and page faults of a step",
	[REASON_NO_READINGS] = "traces do not contain readings of a thread's CPU time",
	[REASON_NO_COST] = "another tool recorded this",
	[REASON_NO_CAPTURE] = "another tool recorded this",
};

const struct importer importer_kineto = {
	.name = "kineto",
	.looked_for = "traces of torch.profiler (JSON, also in a zip or tar)",
	.begins = kineto_begins,
	.is_archive = kineto_is_archive,
	.has_steps = true,
	.reasons = kineto_reasons,
	.has_telemetry_beside = true,
	.recognises = kineto_recognises,
	.load = kineto_load,
	.load_set = load_set,
};
