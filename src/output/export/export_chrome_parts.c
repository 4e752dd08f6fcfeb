/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome_parts.c: writes everything around the spans: the envelope, names of processes and threads, values,
 * marks and memory. The metadata comes first, because HTA stops reading at traceEvents. The markers that the
 * TensorBoard plugin expects come last.
 */
#include "analysis/operators/torch_trace.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "output/export/export_chrome.h"
#include "output/export/export_number.h"
#include "stepscope/stepscope.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_SORT_INDEX 5000000
#define SPANS_SORT_INDEX 0x20000000

/* ---- envelope ---- */

/* Returns the process that the file is about: the first written process with a rank, otherwise the first written
 * one. */
static const struct process *main_process(const struct chrome *chrome)
{
	const struct model *model = chrome->model;
	const struct process *best = NULL;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (!chrome_has_process(chrome, i))
			continue;
		if (!best || (best->rank < 0 && process->rank >= 0))
			best = process;
	}
	return best;
}

static void put_pair(struct chrome *chrome, uint32_t key, uint32_t value, bool is_first)
{
	writer_text(&chrome->w, is_first ? "\n  \"" : ",\n  \"");
	chrome_string(chrome, key);
	writer_text(&chrome->w, "\": \"");
	chrome_string(chrome, value);
	writer_text(&chrome->w, "\"");
}

/* Returns true if the fact belongs to an exported process. */
static bool has_fact(const struct chrome *chrome, const struct model_meta *meta)
{
	return meta->process == MODEL_NONE || chrome_has_process(chrome, meta->process);
}

/* Returns true if the fact is exported; if several processes have it, only the first is. */
static bool is_said(const struct chrome *chrome, uint32_t number)
{
	const struct model_meta *meta = chrome->model->meta;

	for (uint32_t i = 0; i < number; i++)
		if (meta[i].key == meta[number].key && has_fact(chrome, &meta[i]))
			return false;
	return has_fact(chrome, &meta[number]);
}

static void put_metadata(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	bool is_first = true;

	writer_text(&chrome->w, "\"metadata\": {");
	for (uint32_t i = 0; i < model->meta_count; i++) {
		if (!is_said(chrome, i))
			continue;
		put_pair(chrome, model->meta[i].key, model->meta[i].value, is_first);
		is_first = false;
	}
	writer_text(&chrome->w, "},\n");
}

static bool is_json(const char *text)
{
	struct json_reader reader;
	enum json_token token;

	json_reader_init(&reader, text, strlen(text));
	token = json_next(&reader);
	bool is_good = token != JSON_END && token != JSON_ERROR && json_skip(&reader, token) &&
	               json_next(&reader) == JSON_END;
	json_reader_release(&reader);
	return is_good;
}

static void put_quoted(struct chrome *chrome, const char *text)
{
	struct buffer quoted;

	buffer_init(&quoted, 1 << 16);
	json_quote(&quoted, text, strlen(text));
	writer_bytes(&chrome->w, quoted.data, quoted.length);
	buffer_release(&quoted);
}

/* Writes data that a script added with its profiler's add_metadata_json(): a top-level key each, as torch.profiler
 * does. */
static void put_profiler_facts(struct chrome *chrome)
{
	static const char prefix[] = "torch.profiler.";
	static const char *const ours[] = {"schemaVersion",
	                                   "distributedInfo",
	                                   "deviceProperties",
	                                   "record_shapes",
	                                   "profile_memory",
	                                   "with_stack",
	                                   "with_flops",
	                                   "with_modules",
	                                   "host_name",
	                                   "stepscope_version",
	                                   "stepscope_step_base",
	                                   "metadata",
	                                   "displayTimeUnit",
	                                   "baseTimeNanoseconds",
	                                   "traceEvents",
	                                   "traceName",
	                                   NULL};
	const struct model *model = chrome->model;

	for (uint32_t i = 0; i < model->meta_count; i++) {
		const char *key = model_text(model, model->meta[i].key),
			   *value = model_text(model, model->meta[i].value);
		int n = 0;

		if (strncmp(key, prefix, sizeof(prefix) - 1) != 0 || !is_said(chrome, i))
			continue;
		while (ours[n] && strcmp(ours[n], key + sizeof(prefix) - 1) != 0)
			n++;
		if (ours[n] || !is_json(value))
			continue;
		put_quoted(chrome, key + sizeof(prefix) - 1);
		writer_text(&chrome->w, ": ");
		writer_text(&chrome->w, value);
		writer_text(&chrome->w, ",\n");
	}
}

bool chrome_finds_shapes(const struct model *model)
{
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (model->steps[i].has_shapes)
			return true;
	for (uint32_t i = 0; i < model->tracks_count; i++) /* there may be no steps, or operators outside of steps */
		for (uint32_t c = 0; c < model->tracks[i]->chunk_count; c++)
			if (model->tracks[i]->chunks[c]->inputs)
				return true;
	return false;
}

static bool has_stacks(const struct model *model)
{
	for (uint32_t i = 0; i < model->tracks_count; i++)
		for (uint32_t c = 0; c < model->tracks[i]->chunk_count; c++)
			if (model->tracks[i]->chunks[c]->stack)
				return true;
	return false;
}

/* Returns true if the fact is that option of a profiler in the program, or of the profiler that wrote the trace. */
static bool is_option(const char *fact, const char *option)
{
	static const char *const places[] = {"torch.profiler.", "trace."};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t length = strlen(places[i]);

		if (!strncmp(fact, places[i], length) && !strcmp(fact + length, option))
			return true;
	}
	return false;
}

/* Returns true if such a profiler enabled the option ("with_flops"). Returns `otherwise` if there is no such
 * profiler. */
static bool is_asked_for(const struct chrome *chrome, const char *wanted, bool otherwise)
{
	const struct model *model = chrome->model;
	bool is_known = false, is_asked = false;

	for (uint32_t i = 0; i < model->meta_count; i++) {
		const struct model_meta *meta = &model->meta[i];

		if (!is_option(model_text(model, meta->key), wanted) || !has_fact(chrome, meta))
			continue;
		is_known = true;
		is_asked |= strcmp(model_text(model, meta->value), "1") == 0;
	}
	return is_known ? is_asked : otherwise;
}

static bool has_modules(const struct chrome *chrome)
{
	const struct model *model = chrome->model;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const char *said = chrome_has_process(chrome, i) ? model_meta(model, i, "torch.modules") : NULL;

		if (said && strcmp(said, "yes") == 0)
			return true;
	}
	return false;
}

/* Writes which data exists, under torch.profiler's names of the options for it. FLOPs are computed from shapes. */
static void put_options(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	bool is_with_shapes = chrome->has_shapes;

	if (is_with_shapes)
		writer_text(&chrome->w, "\"record_shapes\": 1,\n");
	if (model->memory_count)
		writer_text(&chrome->w, "\"profile_memory\": 1,\n");
	if (has_stacks(model) && (!model->tells_profiled || is_asked_for(chrome, "with_stack", true)))
		writer_text(&chrome->w, "\"with_stack\": 1,\n");
	if (is_asked_for(chrome, "with_flops", is_with_shapes && !torch_trace_is(model)))
		writer_text(&chrome->w, "\"with_flops\": 1,\n");
	if (is_asked_for(chrome, "with_modules", has_modules(chrome)))
		writer_text(&chrome->w, "\"with_modules\": 1,\n");
}

/* Returns the device property that a fact holds, "device.0.numSms", and the device's number; NULL for other facts. */
static const char *property_of(const char *fact, int32_t *device)
{
	static const char prefix[] = "device.";
	char *end;

	if (strncmp(fact, prefix, sizeof(prefix) - 1) != 0 || !isdigit((unsigned char)fact[sizeof(prefix) - 1]))
		return NULL;
	long number = strtol(fact + sizeof(prefix) - 1, &end, 10);
	if (*end != '.' || number >= INT32_MAX)
		return NULL;
	*device = (int32_t)number;
	return end + 1;
}

/* Returns the lowest number above `done` of a device that has a track or properties; INT32_MAX if there is none. */
static int32_t next_device(const struct chrome *chrome, int32_t done)
{
	const struct model *model = chrome->model;
	int32_t next = INT32_MAX, device;

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (export_is_device(track) && chrome_has_process(chrome, track->process) && track->device > done &&
		    track->device < next)
			next = track->device;
	}
	for (uint32_t i = 0; i < model->meta_count; i++)
		if (property_of(model_text(model, model->meta[i].key), &device) && device > done && device < next &&
		    has_fact(chrome, &model->meta[i]))
			next = device;
	return next;
}

static void put_device_properties(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	const char *comma = "";

	writer_text(&chrome->w, "\"deviceProperties\": [");
	for (int32_t id = next_device(chrome, -1), device; id < INT32_MAX; id = next_device(chrome, id)) {
		writer_printf(&chrome->w, "%s{\"id\": %d", comma, id);
		for (uint32_t i = 0; i < model->meta_count; i++) {
			const char *property = property_of(model_text(model, model->meta[i].key), &device);
			const char *value = model_text(model, model->meta[i].value);

			if (!property || device != id || !is_said(chrome, i))
				continue;
			writer_text(&chrome->w, ", ");
			put_quoted(chrome, property);
			writer_text(&chrome->w, ": ");
			if (is_json(value)) /* a number, a list */
				writer_text(&chrome->w, value);
			else
				put_quoted(chrome, value);
		}
		writer_text(&chrome->w, "}");
		comma = ", ";
	}
	writer_text(&chrome->w, "],\n");
}

static void put_one_metadata(struct chrome *chrome, const char *name, struct track_ids ids)
{
	writer_printf(&chrome->w, "{\"ph\": \"M\", \"name\": \"%s\"", name);
	chrome_place(chrome, ids, chrome->window.first_ns);
	writer_text(&chrome->w, ", \"args\": {");
}

static void put_sort_index(struct chrome *chrome, const char *name, struct track_ids ids, int64_t index)
{
	put_one_metadata(chrome, name, ids);
	writer_printf(&chrome->w, "\"sort_index\": %" PRId64 "}},\n", index);
}

static const char *role_label(const struct process *process)
{
	static const char *const labels[] = {"", "worker", "launcher", "host", "imported"};

	return process->role < sizeof(labels) / sizeof(labels[0]) ? labels[process->role] : "";
}

/* Writes the process id if it differs from the one in the file. If no steps are selected, also writes the recorded
 * extent, which is longer than that of the spans, and the number of events. In that number the start and end of a span
 * are two events, while the file has one. importers/kineto/kineto_facts.c reads these. */
static void put_extent(struct chrome *chrome, const struct process *process, struct track_ids ids)
{
	if (ids.pid != process->pid)
		writer_printf(&chrome->w, ", \"stepscope pid\": %" PRId64, process->pid);
	if (process->has_times && !chrome->selection.intervals)
		writer_printf(&chrome->w, ", \"stepscope begin_ns\": %" PRId64 ", \"stepscope length_ns\": %" PRId64,
		              process->first_ns - chrome->window.first_ns, process->last_ns - process->first_ns);
	if (!chrome->selection.intervals && process->role != STEPSCOPE_ROLE_HOST &&
	    process->role != STEPSCOPE_ROLE_LAUNCHER)
		writer_printf(&chrome->w, ", \"stepscope events\": %" PRIu64, process->event_count);
}

/* Writes from when on live memory is unknown, in ns after this event's own time; -1: earlier, or the time is
 * unknown. */
static void put_memory_losses(struct chrome *chrome, const struct process *process)
{
	int64_t since_ns = process->lost_memory_ns < chrome->window.first_ns
	                           ? -1
	                           : process->lost_memory_ns - chrome->window.first_ns;

	if (process->has_lost_memory) {
		writer_printf(&chrome->w, ", \"stepscope lost_memory_ns\": %" PRId64 ", \"stepscope lost_memory\": \"",
		              since_ns);
		chrome_string(chrome, process->lost_memory);
		writer_text(&chrome->w, "\"");
	}
	if (process->removed_memory) {
		writer_text(&chrome->w, ", \"stepscope removed_memory\": \"");
		chrome_string(chrome, process->removed_memory);
		writer_text(&chrome->w, "\"");
	}
}

static void put_process(struct chrome *chrome, uint32_t number)
{
	const struct process *process = &chrome->model->processes[number];
	struct track_ids ids = {chrome->ids.process_pid[number], 0};
	struct writer *w = &chrome->w;

	put_one_metadata(chrome, "process_name", ids);
	writer_text(w, "\"name\": \"");
	if (process->rank >= 0 && chrome->is_flow_by_index)
		writer_printf(w, "rank %d: ", process->rank);
	if (process->name)
		chrome_string(chrome, process->name);
	else
		writer_printf(w, "process %" PRId64, process->pid);
	writer_text(w, "\"");
	put_extent(chrome, process, ids);
	put_memory_losses(chrome, process);
	writer_text(w, "}},\n");
	put_one_metadata(chrome, "process_labels", ids);
	writer_printf(w, "\"labels\": \"CPU%s%s\"}},\n", *role_label(process) ? ", " : "", role_label(process));
	put_sort_index(chrome, "process_sort_index", ids, number);
}

static void put_device(struct chrome *chrome, uint32_t number)
{
	const struct track *track = chrome->model->tracks[number];
	const struct process *process = &chrome->model->processes[track->process];
	struct track_ids ids = {chrome->ids.tracks[number].pid, 0};
	struct writer *w = &chrome->w;

	for (uint32_t i = 0; i < number; i++)
		if (chrome->ids.tracks[i].pid == ids.pid)
			return;
	put_one_metadata(chrome, "process_name", ids);
	writer_text(w, "\"name\": \"");
	if (process->rank >= 0 && chrome->is_flow_by_index)
		writer_printf(w, "rank %d: ", process->rank);
	chrome_string(chrome, process->name);
	writer_printf(w, "\", \"stepscope owner\": %" PRId64 "}},\n", chrome->ids.process_pid[track->process]);
	put_one_metadata(chrome, "process_labels", ids);
	writer_printf(w, "\"labels\": \"GPU %d\"}},\n", track->device);
	put_sort_index(chrome, "process_sort_index", ids, DEVICE_SORT_INDEX + track->device);
}

/* Writes facts that Chrome's thread numbers do not hold; importers/kineto/kineto_facts.c reads them. */
static void put_track_facts(struct chrome *chrome, const struct track *track, struct track_ids ids)
{
	if (track->kind == TRACK_OTHER)
		writer_text(&chrome->w, ", \"stepscope kind\": \"other\"");
	if (ids.tid != track->tid)
		writer_printf(&chrome->w, ", \"stepscope tid\": %" PRId64, track->tid);
}

void chrome_lane_name(struct chrome *chrome, uint32_t number, struct track_ids ids, unsigned lane)
{
	const struct track *track = chrome->model->tracks[number];
	struct writer *w = &chrome->w;

	put_one_metadata(chrome, "thread_name", ids);
	if (export_is_device(track))
		writer_printf(w, "\"name\": \"stream %" PRId64 " ", chrome->ids.tracks[number].tid);
	else
		writer_printf(w, "\"name\": \"thread %" PRId64 " ", track->tid);
	if (track->name) {
		writer_text(w, "(");
		chrome_string(chrome, track->name);
		writer_text(w, ")");
	}
	if (track->kind == TRACK_SIGNAL)
		writer_text(w, " (signal handlers)");
	if (lane > 1)
		writer_printf(w, " (lane %u)", lane);
	writer_text(w, "\"");
	put_track_facts(chrome, track, ids);
	writer_text(w, "}},\n");
	put_sort_index(chrome, "thread_sort_index", ids, export_is_device(track) ? ids.tid : track->sort);
}

/* Returns the backend. Readers require a rank in every file, so "none" marks a single process that has no rank. */
static const char *backend_of(const struct model *model, const struct process *process)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:,";
	const char *known = process ? model_meta(model, (uint32_t)(process - model->processes), "distributed.backend")
	                            : NULL;

	if (!process || process->rank < 0)
		return "none";
	if (known && *known && strcmp(known, "none") != 0 && !known[strspn(known, letters)])
		return known;
	return process->world_size > 1 ? "none" : "unknown";
}

void chrome_head(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	const struct process *process = main_process(chrome);
	struct writer *w = &chrome->w;

	/* first of all the file's origin: stepscope's reader then ignores keys that exist only for other readers */
	writer_text(w, "{\"schemaVersion\": 1,\n\"stepscope_version\": \"" STEPSCOPE_VERSION "\",\n");
	/* HTA's regular expression requires the blank after "rank": and takes the first match in the file */
	writer_printf(w, "\"distributedInfo\": {\"backend\": \"%s\", \"rank\": %d, \"world_size\": %d},\n",
	              backend_of(model, process), process && process->rank >= 0 ? process->rank : 0,
	              process && process->world_size > 0 ? process->world_size : 1);
	put_device_properties(chrome);
	put_options(chrome);
	if (process && process->host) {
		writer_text(w, "\"host_name\": \"");
		chrome_string(chrome, process->host);
		writer_text(w, "\",\n");
	}
	if (model->steps_count)
		writer_printf(w, "\"stepscope_step_base\": %" PRId64 ",\n", model->steps[0].number);
	put_metadata(chrome);
	put_profiler_facts(chrome);
	writer_printf(w, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRId64 ",\n\"traceEvents\": [\n",
	              chrome->base_ns);
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (chrome_has_process(chrome, i))
			put_process(chrome, i);
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		if (!chrome_has_process(chrome, model->tracks[i]->process))
			continue;
		if (export_is_device(model->tracks[i]))
			put_device(chrome, i);
		chrome_lane_name(chrome, i, chrome->ids.tracks[i], 1);
	}
}

/* ---- values, marks, memory ---- */

/* Counts the bytes written since `before` for the step at that time. */
static void account(struct chrome *chrome, uint32_t process, int64_t time_ns, uint64_t before)
{
	if (chrome->account)
		step_bytes_add(chrome->account, process, time_ns, writer_count(&chrome->w) - before);
}

static void chrome_parts_put_series(struct chrome *chrome, const struct value_series *series)
{
	struct track_ids ids = {chrome->ids.process_pid[series->process], 0};
	struct writer *w = &chrome->w;

	for (uint32_t i = 0; i < series->count; i++) {
		uint64_t before = writer_count(w);

		/* JSON has no NaN, and a counter track has no gaps, so such a value is left out */
		if (!isfinite(series->value[i]) ||
		    !selection_has(&chrome->selection, series->process, series->time_ns[i]))
			continue;
		writer_text(w, series->is_metric ? "{\"ph\": \"C\", \"cat\": \"metric\", \"name\": \""
		                                 : "{\"ph\": \"C\", \"cat\": \"counter\", \"name\": \"");
		if (series->subject) { /* otherwise the counters of two GPUs would merge */
			chrome_string(chrome, series->subject);
			writer_text(w, ": ");
		}
		chrome_string(chrome, series->name);
		writer_text(w, "\"");
		chrome_place(chrome, ids, series->time_ns[i]);
		writer_text(w, ", \"args\": {\"value\": ");
		chrome_number(chrome, series->value[i]);
		writer_text(w, "}},\n");
		chrome->result->counters++;
		account(chrome, series->process, series->time_ns[i], before);
	}
}

void chrome_values(struct chrome *chrome)
{
	for (uint32_t i = 0; i < chrome->model->series_count; i++)
		if (chrome_has_process(chrome, chrome->model->series[i]->process))
			chrome_parts_put_series(chrome, chrome->model->series[i]);
}

void chrome_marks(struct chrome *chrome)
{
	const struct model *model = chrome->model;

	for (uint32_t i = 0; i < model->marks_count; i++) {
		const struct mark *mark = &model->marks[i];
		uint32_t process = model->tracks[mark->track]->process;
		uint64_t before = writer_count(&chrome->w);

		if (!chrome_has_process(chrome, process) || !selection_has(&chrome->selection, process, mark->time_ns))
			continue;
		writer_text(&chrome->w, "{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"mark\", \"name\": \"");
		chrome_string(chrome, mark->name);
		writer_text(&chrome->w, "\"");
		chrome_place(chrome, chrome->ids.tracks[mark->track], mark->time_ns);
		writer_text(&chrome->w, "},\n");
		chrome->result->instants++;
		account(chrome, process, mark->time_ns, before);
	}
}

static const char *category_name(uint8_t category)
{
	static const char *const names[] = {
		[STEPSCOPE_MEMORY_OTHER] = "other",           [STEPSCOPE_MEMORY_PARAMETER] = "parameter",
		[STEPSCOPE_MEMORY_GRADIENT] = "gradient",     [STEPSCOPE_MEMORY_OPTIMIZER] = "optimizer_state",
		[STEPSCOPE_MEMORY_ACTIVATION] = "activation", [STEPSCOPE_MEMORY_INPUT] = "input",
		[STEPSCOPE_MEMORY_TEMPORARY] = "temporary",   [STEPSCOPE_MEMORY_AUTOGRAD] = "autograd_detail",
		[STEPSCOPE_MEMORY_BUFFER] = "buffer",
	};

	return category < sizeof(names) / sizeof(names[0]) ? names[category] : "other";
}

static void put_memory_event(struct chrome *chrome, const struct memory_event *event, int64_t total, uint64_t number)
{
	struct writer *w = &chrome->w;
	int64_t bytes = bytes_that_fit(event->is_free ? -(wide_bytes)event->bytes : (wide_bytes)event->bytes);

	writer_text(w, "{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\"");
	chrome_place(chrome, chrome->ids.tracks[event->track], event->time_ns);
	writer_text(w, ", \"args\": {");
	if (export_knows_total(chrome->model, event))
		writer_printf(w, "\"Total Allocated\": %" PRId64 ", ", total);
	if (event->device < 0) /* as torch writes it: host memory is never reserved */
		writer_text(w, "\"Total Reserved\": 0, ");
	writer_printf(w,
	              "\"Bytes\": %" PRId64 ", \"Addr\": %" PRIu64
	              ", \"Device Id\": %d, \"Device Type\": %d, \"Ev Idx\": %" PRIu64 ", "
	              "\"Category\": \"%s\"}},\n",
	              bytes, event->address, event->device, event->device >= 0, number, category_name(event->category));
	chrome->result->instants++;
}

void chrome_memory(struct chrome *chrome)
{
	const struct model *model = chrome->model;
	struct memory_totals totals = {0};
	uint64_t first_number = chrome_last_id(chrome); /* "Ev Idx" is one lower */

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		int64_t total = memory_totals_add(&totals, model, event);
		uint64_t before = writer_count(&chrome->w);

		/* a free of an allocation from before the recording, of unknown size, is left out as in
		 * torch.profiler */
		if (event->is_found || !event->has_bytes || event->track >= model->tracks_count ||
		    !chrome_has_process(chrome, event->process) ||
		    !selection_has(&chrome->selection, event->process, event->time_ns))
			continue;
		put_memory_event(chrome, event, total, first_number + i);
		account(chrome, event->process, event->time_ns, before);
	}
	memory_totals_release(&totals);
}

/* ---- end ---- */

void chrome_tail(struct chrome *chrome)
{
	char first[NUMBER_BYTES + 4], last[NUMBER_BYTES + 4], dur[NUMBER_BYTES + 4];
	struct writer *w = &chrome->w;

	*put_us(first, chrome->window.first_ns + chrome->shift_ns) = '\0';
	*put_us(last, chrome->window.last_ns + chrome->shift_ns) = '\0';
	*put_us(dur, chrome->window.last_ns - chrome->window.first_ns) = '\0';
	writer_printf(w,
	              "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": \"Spans\", \"tid\": 0, \"ts\": %s, "
	              "\"args\": {\"sort_index\": %d}},\n",
	              first, SPANS_SORT_INDEX);
	writer_printf(w,
	              "{\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"PyTorch Profiler (0)\", \"pid\": \"Spans\", "
	              "\"tid\": \"PyTorch Profiler\", \"ts\": %s, \"dur\": %s, \"args\": {\"Op count\": %" PRIu64
	              "}},\n",
	              first, dur, chrome->result->slices);
	writer_printf(
		w,
		"{\"ph\": \"i\", \"s\": \"g\", \"name\": \"Iteration Start: PyTorch Profiler\", \"pid\": \"Traces\", "
		"\"tid\": \"Trace PyTorch Profiler\", \"ts\": %s},\n",
		first);
	writer_printf(w,
	              "{\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", "
	              "\"ts\": %s}\n],\n\"traceName\": \"stepscope\"}\n",
	              last);
}
