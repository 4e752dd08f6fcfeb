/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys.c: the importer of SQLite exports of Nsight Systems (nsys export --type sqlite): kernels, copies, fills, runtime
 * calls and NVTX ranges of all processes. The ledger lists tables that are not read: calls of the operating system,
 * samples, device metrics.
 */
#include "importers/nsys/nsys.h"

#include "importers/importer.h"
#include "model/reasons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES ((size_t)64 << 20)

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static void nsys_add_fact(struct nsys *nsys, const char *key, const char *value)
{
	struct kineto_stage *stage = &nsys->import.stage;
	struct intern *strings = &nsys->import.model->strings;
	if (!value || !*value || stage->facts_count >= 512)
		return;
	STAGE_ARRAY_GROW(stage, facts);
	stage->facts[stage->facts_count++] = (struct staged_fact){intern_add(strings, key), intern_add(strings, value),
	                                                          FACT_OF_FILE};
}

static void read_versions(struct nsys *nsys)
{
	static const struct nsys_table table = {"META_DATA_EXPORT", {"name", "value"}};
	static const struct {
		const char *name, *key;
	} kept[] = {
		{"EXPORT_PRODUCT_VERSION", "nsys.version"},
		{"EXPORT_SCHEMA_VERSION", "nsys.schema_version"},
		{"EXPORT_PARAM_INPUT_FILE", "nsys.report"},
	};
	struct nsys_rows rows;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		const char *name = nsys_text(nsys, &rows, 0);
		for (size_t i = 0; name && i < sizeof kept / sizeof kept[0]; i++)
			if (strcmp(name, kept[i].name) == 0)
				nsys_add_fact(nsys, kept[i].key, nsys_text(nsys, &rows, 1));
	}
}

static void read_devices(struct nsys *nsys)
{
	static const struct nsys_table table = {"TARGET_INFO_GPU",
	                                        {"id", "?cuDevice", "?name", "?totalMemory", "?smCount"}};
	struct nsys_rows rows;
	int64_t device, sms;
	char key[64];
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if ((!nsys_integer(&rows, 1, &device) && !nsys_integer(&rows, 0, &device)) || device < 0 ||
		    device >= 64)
			continue;
		snprintf(key, sizeof key, "device.%" PRId64 ".name", device);
		nsys_add_fact(nsys, key, nsys_text(nsys, &rows, 2));
		snprintf(key, sizeof key, "device.%" PRId64 ".totalGlobalMem", device);
		nsys_add_fact(nsys, key, nsys_text(nsys, &rows, 3));
		/* before nsys_text(), which changes the type of the column */
		if (nsys_integer(&rows, 4, &sms) && sms > 0 && sms < 100000)
			nsys->sm_counts[device] = (uint32_t)sms;
		snprintf(key, sizeof key, "device.%" PRId64 ".numSms", device);
		nsys_add_fact(nsys, key, nsys_text(nsys, &rows, 4));
	}
}

/* Times of the export count from the start of the session. */
static void read_start(struct nsys *nsys)
{
	static const struct nsys_table table = {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}};
	struct nsys_rows rows;
	int64_t start_ns;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!nsys_integer(&rows, 0, &start_ns) || start_ns < 0 || start_ns > IMPORTED_BASE_MAX)
			continue;
		nsys->import.has_base = true;
		nsys->import.base_ns = start_ns;
	}
}

static void read_names(struct nsys *nsys)
{
	static const struct nsys_table processes = {"PROCESSES", {"globalPid", "name"}};
	static const struct nsys_table threads = {"ThreadNames", {"globalTid", "nameId"}};
	struct kineto_stage *stage = &nsys->import.stage;
	struct nsys_rows rows;
	int64_t global;
	if (nsys_begin(nsys, &processes, &rows))
		while (nsys_next(nsys, &rows)) {
			const char *name = nsys_text(nsys, &rows, 1);
			if (!nsys_integer(&rows, 0, &global) || !name)
				continue;
			uint32_t track = kineto_stage_track(stage, (struct staged_place){global >> 24 & 0xffffff, 0},
			                                    (struct staged_place){INT64_MIN, 0});
			stage->tracks[track].name = intern_add(&nsys->import.model->strings, name);
		}
	if (nsys_begin(nsys, &threads, &rows))
		while (nsys_next(nsys, &rows)) {
			if (!nsys_integer(&rows, 0, &global))
				continue;
			uint32_t track = kineto_stage_track(stage, (struct staged_place){global >> 24 & 0xffffff, 0},
			                                    (struct staged_place){global & 0xffffff, 0});
			stage->tracks[track].name = nsys_string(nsys, &rows, 1);
		}
}

/* ---- missing parts ---------------------------------------------------------------------------------------------- */

static void tell_unread(struct nsys *nsys)
{
	static const char *const unread[] = {"OSRT_API",
	                                     "SCHED_EVENTS",
	                                     "COMPOSITE_EVENTS",
	                                     "GPU_METRICS",
	                                     "CUDA_GPU_MEMORY_USAGE_EVENTS",
	                                     "CUDNN_EVENTS",
	                                     "CUBLAS_EVENTS",
	                                     "MPI_P2P_EVENTS",
	                                     "MPI_COLLECTIVES_EVENTS",
	                                     NULL};
	for (int i = 0; unread[i]; i++)
		if (nsys_has_table(nsys, unread[i]))
			model_add_ledger(nsys->import.model, LEDGER_OTHER, MODEL_NONE, unread[i], 1,
			                 "this table was not read");
}

static void tell_absent(struct nsys *nsys)
{
	static const struct {
		const char *table, *sentence;
		enum ledger_kind kind;
	} wanted[] = {
		{"CUPTI_ACTIVITY_KIND_KERNEL",
	         "the export has no kernels: nsys did not trace CUDA (-t cuda), or no kernel ran", LEDGER_OTHER},
		{"CUPTI_ACTIVITY_KIND_RUNTIME", "the export has no runtime calls: the launches of kernels are unknown",
	         LEDGER_OTHER},
		{"NVTX_EVENTS",
	         "the export has no NVTX ranges: steps and operators are unknown (use torch.autograd.profiler.emit_nvtx(), "
	         "or NVTX ranges named 'step 1', ...)",
	         LEDGER_OTHER},
		{"StringIds", "the export has no names (StringIds)", LEDGER_DAMAGED},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (!nsys->is_cut && !nsys_has_table(nsys, wanted[i].table))
			model_add_ledger(nsys->import.model, wanted[i].kind, MODEL_NONE, wanted[i].table, 1,
			                 wanted[i].sentence);
}

/* Adds problems that nsys itself found to the ledger. */
static void read_diagnostics(struct nsys *nsys)
{
	static const struct nsys_table table = {"DIAGNOSTIC_EVENT", {"severity", "text"}};
	struct nsys_rows rows;
	int64_t severity;
	int told = 0;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		const char *text = nsys_text(nsys, &rows, 1);
		if (!nsys_integer(&rows, 0, &severity) || (severity != 2 && severity != 3) || !text || told++ >= 20)
			continue;
		/* ... "events were collected", or events of one kind */
		bool is_loss = strncmp(text, "Not all ", 8) == 0;
		model_add_ledger(nsys->import.model, is_loss ? LEDGER_DAMAGED : LEDGER_OTHER, MODEL_NONE,
		                 severity == 2 ? "nsys warns" : "nsys", 1, text);
	}
}

static void tell_rows(struct nsys *nsys)
{
	struct model *model = nsys->import.model;
	const struct {
		uint64_t count;
		enum ledger_kind kind;
		const char *where, *sentence;
	} lines[] = {
		{nsys->without_time, LEDGER_REPAIRED, "start", "rows without a readable time were left out"},
		{nsys->without_duration, LEDGER_REPAIRED, "end",
	         "rows without an end, or with an end before their start; they end with the enclosing span"},
		{nsys->odd_texts, LEDGER_REPAIRED, "texts", "texts that are not UTF-8"},
		{nsys->unknown_copies, LEDGER_OTHER, "copyKind", "copies of an unknown direction"},
		{nsys->graphs, LEDGER_OTHER, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	         "launches of CUDA graphs; each is one span with unknown kernels: nsys profile "
	         "--cuda-graph-trace=node records them"},
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (lines[i].count)
			model_add_ledger(model, lines[i].kind, nsys->import.main_process, lines[i].where,
			                 lines[i].count, lines[i].sentence);
	if (nsys->import.stage.duplicates)
		model_add_ledger(model, LEDGER_REPAIRED, nsys->import.main_process, "rows",
		                 nsys->import.stage.duplicates, "duplicate spans in the file were left out");
}

/* ---- the importer ----------------------------------------------------------------------------------------------- */

static enum status nsys_check(struct nsys *nsys, struct error *err)
{
	static const char *const tables[] = {"StringIds",
	                                     "META_DATA_EXPORT",
	                                     "CUPTI_ACTIVITY_KIND_KERNEL",
	                                     "NVTX_EVENTS",
	                                     "CUPTI_ACTIVITY_KIND_RUNTIME",
	                                     NULL};
	for (int i = 0; tables[i]; i++)
		if (nsys_has_table(nsys, tables[i]))
			return STATUS_OK;
	error_set(err, STATUS_INPUT, "'%s' is an SQLite database, but not an nsys export: it has no nsys tables",
	          nsys->import.path);
	error_hint(err, "'nsys export --type sqlite report.nsys-rep' creates an export");
	return STATUS_INPUT;
}

static enum status nsys_read_all(struct nsys *nsys, struct error *err)
{
	struct model *model = nsys->import.model;
	enum status status = nsys_check(nsys, err);
	if (status != STATUS_OK)
		return status;
	nsys_read_strings(nsys);
	read_versions(nsys);
	read_devices(nsys);
	read_start(nsys);
	nsys_read_events(nsys);
	if (!nsys->import.event_count)
		return error_set(err, STATUS_INPUT,
		                 "'%s' has no usable data: no kernels, copies, runtime calls or NVTX ranges",
		                 nsys->import.path);
	read_names(nsys);
	kineto_finish(&nsys->import);
	tell_absent(nsys);
	tell_unread(nsys);
	read_diagnostics(nsys);
	tell_rows(nsys);
	kineto_report_repairs(&nsys->import, &nsys->import.repairs);
	model_add_meta(model, MODEL_NONE, "trace.format", "nsys");
	return STATUS_OK;
}

static void nsys_release(struct nsys *nsys)
{
	kineto_clock_release(&nsys->import);
	kineto_stage_release(&nsys->import.stage);
	buffer_release(&nsys->import.text);
	buffer_release(&nsys->import.inputs);
	kineto_memo_release(&nsys->import);
	number_map_release(&nsys->string_ids);
	intern_release(&nsys->texts);
	free(nsys->text_of);
	free(nsys->string_of);
	nsys_close(nsys);
}

static enum status nsys_load(const char *path, const struct model_filter *filter, struct model *model,
                             struct error *err)
{
	struct nsys nsys = {.import = {.model = model, .path = path}};
	struct stat info;
	if (stat(path, &info) != 0)
		return error_set(err, STATUS_INPUT, "cannot read '%s'", path);
	nsys.file_bytes = (uint64_t)info.st_size;
	buffer_init(&nsys.import.text, TEXT_BYTES);
	buffer_init(&nsys.import.inputs, TEXT_BYTES);
	kineto_memo_init(&nsys.import);
	nsys.import.stage.storage = model->storage;
	intern_init(&nsys.texts);
	enum status status = nsys_open(&nsys, path, err);
	if (status == STATUS_OK)
		status = nsys_read_all(&nsys, err);
	nsys_release(&nsys);
	return status;
}

static bool nsys_begins(const char *name, const char *head, size_t length)
{
	static const char magic[] = "SQLite format 3";
	return length >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

static bool nsys_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	return !is_directory && nsys_begins(path, head, length);
}

static const char *const nsys_reasons[REASON_COUNT] = {
	[REASON_NO_STEPS] = ("no NVTX range is a step: name the ranges of steps 'step N', "
                             "torch.cuda.nvtx.range(f\"step {n}\")"),
	[REASON_NO_PHASES] = "the export names no phases",
	[REASON_NO_OPERATORS] = "an nsys export has no operators",
	[REASON_NO_MODULES] = "an nsys export has no module calls",
	[REASON_NO_ALLOCATIONS] = "an nsys export has no allocations",
	[REASON_NO_TOTALS] = "an nsys export has no allocator totals",
	[REASON_NO_SHAPES] = "an nsys export has no input sizes",
	[REASON_NO_FORMULA] = "an nsys export has no FLOP or byte counts",
	[REASON_NO_FLOPS] = "an nsys export has no FLOP or byte counts",
	[REASON_NO_BYTES] = "an nsys export has no FLOP or byte counts",
	[REASON_NO_LINES] = "an nsys export has no Python lines",
	[REASON_NO_METRICS] = "an nsys export has no metrics",
	[REASON_NO_MARKS] = "an nsys export has no marks",
	[REASON_NO_THREAD_USE] = "an nsys export does not contain the CPU time, waits and page faults of a step",
	[REASON_NO_READINGS] = "an nsys export does not contain readings of a thread's CPU time",
	[REASON_NO_COST] = "another tool recorded this",
	[REASON_NO_CAPTURE] = "another tool recorded this",
};

const struct importer importer_nsys = {
	.name = "nsys",
	.kind = "an nsys export (SQLite)",
	.looked_for = "an nsys export (SQLite)",
	.begins = nsys_begins,
	.has_steps = true,
	.reasons = nsys_reasons,
	.recognises = nsys_recognises,
	.load = nsys_load,
};
