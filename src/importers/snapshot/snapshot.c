/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.c: the importer of memory snapshots of PyTorch's CUDA allocator: pickles of
 * torch.cuda.memory._dump_snapshot(), plain, gzip or zstd. The pickle is read as data; nothing in it is executed.
 */
#include "importers/snapshot/snapshot.h"

#include "importers/importer.h"
#include "importers/text_lines.h"
#include "model/reasons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <sys/stat.h>

#define SNAPSHOT_FORMAT "cuda memory snapshot"

static const struct {
	enum ledger_kind kind;
	const char *sentence;
} repair_rows[SNAPSHOT_REPAIRS] = {
	[SNAPSHOT_CUT] = {LEDGER_REPAIRED, "the file is cut off; its complete part is read"},
	[SNAPSHOT_MALFORMED] = {LEDGER_REPAIRED, "the pickle is invalid from here on; the part before is read"},
	[SNAPSHOT_DAMAGED] = {LEDGER_DAMAGED, "the compressed data is cut off or damaged; the data before is read"},
	[SNAPSHOT_EVENTS] = {LEDGER_REPAIRED, "events without a readable address or size were left out"},
	[SNAPSHOT_ACTIONS] = {LEDGER_OTHER, "events of an unknown kind were not read"},
	[SNAPSHOT_BLOCKS] = {LEDGER_REPAIRED, "blocks without a readable size count as empty"},
	[SNAPSHOT_SEGMENTS] = {LEDGER_REPAIRED, "segments without a readable size or device were left out"},
	[SNAPSHOT_TILES] = {LEDGER_REPAIRED,
                            "segments differ in size from the sum of their blocks: blocks after the "
                            "segment's end were left out, and missing parts are neither used nor free"},
	[SNAPSHOT_ITEMS] = {LEDGER_REPAIRED, "unexpected or duplicate values in lists or dictionaries were left out"},
	[SNAPSHOT_TEXTS] = {LEDGER_REPAIRED, "texts longer than 1 MiB were cut"},
	[SNAPSHOT_ODD_TEXTS] = {LEDGER_REPAIRED, "texts that are not UTF-8"},
	[SNAPSHOT_ORDER] = {LEDGER_CLOCK, "events are earlier than the event before: they get its time"},
	[SNAPSHOT_NOTES] = {LEDGER_REPAIRED, "annotations without a start, a name or a time were left out"},
};

void snapshot_repair(struct snapshot *snapshot, enum snapshot_repair repair, uint64_t count)
{
	if (!snapshot->repairs[repair])
		snapshot->first_offset[repair] = snapshot->pickle.offset;
	snapshot->repairs[repair] += count;
}

uint32_t snapshot_string(struct snapshot *snapshot, const struct pickle_value *value)
{
	const char *text = pickle_text(&snapshot->pickle, value);
	if (!text || !*text)
		return 0;
	uint32_t found = number_map_find(&snapshot->strings, value->number);
	if (found == NUMBER_MAP_NONE) {
		found = intern_add_n(&snapshot->model->strings, text,
		                     intern_length(&snapshot->pickle.texts, value->number));
		number_map_set(&snapshot->strings, value->number, found);
	}
	return found;
}

uint32_t snapshot_track(struct snapshot *snapshot, uint32_t device)
{
	struct model *model = snapshot->model;
	char name[64];
	if (snapshot->tracks[device])
		return snapshot->tracks[device] - 1;
	uint32_t number = model_add_track(model, snapshot->process, TRACK_OTHER);
	snprintf(name, sizeof name, "allocator of device %" PRIu32, device);
	model->tracks[number]->name = intern_add(&model->strings, name);
	model->tracks[number]->device = (int32_t)device;
	snapshot->tracks[device] = number + 1;
	return number;
}

static void report_repairs(struct snapshot *snapshot)
{
	for (int i = 0; i < SNAPSHOT_REPAIRS; i++) {
		if (!snapshot->repairs[i])
			continue;
		struct ledger_entry *entry = model_add_ledger(snapshot->model, repair_rows[i].kind, snapshot->process,
		                                              file_name_of(snapshot->path), snapshot->repairs[i],
		                                              repair_rows[i].sentence);
		entry->has_first_offset = true;
		entry->first_offset = snapshot->first_offset[i];
	}
}

static void note_reading(struct snapshot *snapshot)
{
	const struct pickle *pickle = &snapshot->pickle;
	if (pickle->input_error.status != STATUS_OK)
		snapshot_repair(snapshot, SNAPSHOT_DAMAGED, 1);
	else if (pickle->end == PICKLE_CUT)
		snapshot_repair(snapshot, SNAPSHOT_CUT, 1);
	else if (pickle->end == PICKLE_MALFORMED)
		snapshot_repair(snapshot, SNAPSHOT_MALFORMED, 1);
	if (pickle->cut_texts)
		snapshot_repair(snapshot, SNAPSHOT_TEXTS, pickle->cut_texts);
	if (pickle->odd_texts)
		snapshot_repair(snapshot, SNAPSHOT_ODD_TEXTS, pickle->odd_texts);
	if (pickle->refused_items)
		snapshot_repair(snapshot, SNAPSHOT_ITEMS, pickle->refused_items);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static void write_value(const struct pickle *pickle, const struct pickle_value *value, char *out, size_t capacity)
{
	switch (value->type) {
	case PICKLE_BOOL:
		snprintf(out, capacity, "%s", value->i64 ? "True" : "False");
		break;
	case PICKLE_INT:
		snprintf(out, capacity, "%" PRId64, value->i64);
		break;
	case PICKLE_FLOAT:
		snprintf(out, capacity, "%g", value->f64);
		break;
	case PICKLE_TEXT:
		snprintf(out, capacity, "%s", pickle_text(pickle, value));
		break;
	default:
		out[0] = 0; /* None, or a nested dictionary */
	}
}

static void add_settings(struct snapshot *snapshot, const struct pickle_value *settings)
{
	const struct pickle *pickle = &snapshot->pickle;
	const struct pickle_object *dictionary = pickle_object(pickle, settings, PICKLE_DICTIONARY);
	for (uint32_t i = 0; dictionary && i + 1 < dictionary->count && i < 256; i += 2) {
		const char *name = pickle_text(pickle, &dictionary->items[i]);
		char key[128], value[256];
		write_value(pickle, &dictionary->items[i + 1], value, sizeof value);
		if (!name || !value[0])
			continue;
		snprintf(key, sizeof key, "allocator.%s", name);
		model_add_meta(snapshot->model, snapshot->process, key, value);
	}
}

/* ---- delivery --------------------------------------------------------------------------------------------------- */

static void snapshot_add_process(struct snapshot *snapshot)
{
	snapshot->process = model_add_process(snapshot->model);
	struct process *process = &snapshot->model->processes[snapshot->process];
	process->role = STEPSCOPE_ROLE_IMPORTED;
	process->name = intern_add(&snapshot->model->strings, file_name_of(snapshot->path));
	process->is_closed = true;
	process->event_count = snapshot->events_count;
	if (!snapshot->has_times)
		return;
	process->first_ns = snapshot->first_ns;
	process->last_ns = snapshot->last_ns;
}

static void tell_what_is_missing(struct snapshot *snapshot)
{
	struct model *model = snapshot->model;
	if (!snapshot->events_count)
		model_add_ledger(
			model, LEDGER_OTHER, snapshot->process, file_name_of(snapshot->path), 1,
			"the snapshot has no events, because torch.cuda.memory._record_memory_history() was not called "
			"before: live memory is known, but not its age nor the memory alive at the peak")
			->code = LEDGER_CODE_NO_EVENTS;
	else if (!snapshot->has_times)
		model_add_ledger(
			model, LEDGER_OTHER, snapshot->process, file_name_of(snapshot->path), snapshot->events_count,
			"events have an order but no times (PyTorch before 2.2): times and ages of allocations are "
			"unknown");
}

static void deliver(struct snapshot *snapshot, const struct pickle_object *top, const struct pickle_object *traces)
{
	const struct pickle *pickle = &snapshot->pickle;
	struct snapshot_notes notes = {0};
	const struct pickle_object *list = pickle_object(pickle, pickle_find(pickle, top, "external_annotations"),
	                                                 PICKLE_LIST);
	snapshot_find_times(snapshot);
	snapshot_read_notes(snapshot, list, &notes);
	snapshot_add_process(snapshot);
	snapshot_deliver_notes(snapshot, &notes);
	snapshot_deliver_segments(snapshot);
	snapshot_deliver_events(snapshot, traces, &notes);
	add_settings(snapshot, pickle_find(pickle, top, "allocator_settings"));
	free(notes.list);
	tell_what_is_missing(snapshot);
	report_repairs(snapshot);
	model_add_meta(snapshot->model, MODEL_NONE, "trace.format", SNAPSHOT_FORMAT);
}

static enum status snapshot_check(const struct snapshot *snapshot, const struct pickle_object *top,
                                  const struct pickle_object *traces, struct error *err)
{
	const struct pickle *pickle = &snapshot->pickle;
	if (snapshot->segments_count || snapshot->events_count)
		return STATUS_OK;
	if (top && traces)
		return error_set(err, STATUS_INPUT,
		                 "'%s' is empty: the allocator had no memory and recorded no "
		                 "events",
		                 snapshot->path);
	if (pickle->input_error.status != STATUS_OK) {
		*err = pickle->input_error;
		return STATUS_INPUT;
	}
	error_set(err, STATUS_INPUT,
	          "'%s' is a pickle, but not a memory snapshot: it has no segments and no device_traces%s",
	          snapshot->path, pickle->end == PICKLE_COMPLETE ? "" : " in its readable part");
	error_hint(err, "torch.cuda.memory._dump_snapshot('snapshot.pickle') writes a snapshot");
	return STATUS_INPUT;
}

static enum status snapshot_read_input(struct snapshot *snapshot, struct input_stream *input, struct error *err)
{
	struct pickle *pickle = &snapshot->pickle;
	enum status status = pickle_read(pickle, input, snapshot->path, err);
	if (status != STATUS_OK)
		return status;
	const struct pickle_object *top = pickle_object(pickle, &pickle->result, PICKLE_DICTIONARY);
	const struct pickle_object *traces = pickle_object(pickle, pickle_find(pickle, top, "device_traces"),
	                                                   PICKLE_LIST);
	status = snapshot_check(snapshot, top, traces, err);
	if (status != STATUS_OK)
		return status;
	note_reading(snapshot);
	deliver(snapshot, top, traces);
	return STATUS_OK;
}

/* ---- the importer ----------------------------------------------------------------------------------------------- */

static void progress(void *context)
{
	struct snapshot *snapshot = context;
	const struct model *model = snapshot->model;
	if (model->on_progress)
		model->on_progress(model->progress_context, input_file_bytes(snapshot->pickle.input),
		                   snapshot->file_bytes);
}

static bool snapshot_take_object(void *context, struct pickle *pickle, uint32_t object,
                                 const struct pickle_value *items, uint32_t count)
{
	return snapshot_take(context, pickle, object, items, count);
}

static void snapshot_release(struct snapshot *snapshot)
{
	pickle_release(&snapshot->pickle);
	free(snapshot->frames);
	free(snapshot->events);
	free(snapshot->blocks);
	free(snapshot->segments);
	number_map_release(&snapshot->strings);
	number_map_release(&snapshot->frame_texts);
	number_map_release(&snapshot->frame_numbers);
	number_map_release(&snapshot->stack_nodes);
}

static enum status snapshot_load_input(struct input_stream *input, const char *path, const struct model_filter *filter,
                                       struct model *model, struct error *err)
{
	struct snapshot snapshot = {.model = model, .path = path};
	struct stat info;
	(void)filter;
	snapshot.file_bytes = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
	pickle_init(&snapshot.pickle, (struct pickle_client){snapshot_take_object, progress, &snapshot});
	snapshot_add_keys(&snapshot.pickle);
	enum status status = snapshot_read_input(&snapshot, input, err);
	snapshot_release(&snapshot);
	return status;
}

static bool snapshot_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	struct input_stream *input;
	struct error ignored;
	const char *bytes;
	size_t count;
	if (is_directory || pickle_begins(head, length) || input_open(path, &input, &ignored) != STATUS_OK)
		return !is_directory && pickle_begins(head, length);
	bool is_pickle = input_peek(input, &bytes, &count, &ignored) == STATUS_OK && pickle_begins(bytes, count);
	input_close(input);
	return is_pickle;
}

static bool snapshot_begins(const char *name, const char *head, size_t length)
{
	return pickle_begins(head, length);
}

static const char *const snapshot_reasons[REASON_COUNT] = {
	[REASON_NO_STEPS] = "the snapshot has no steps: annotations ProfilerStep#N mark them",
	[REASON_NO_PHASES] = "the snapshot names no phases",
	[REASON_NO_OPERATORS] = "a memory snapshot has no operators",
	[REASON_NO_MODULES] = "a memory snapshot has no module calls",
	[REASON_NO_ALLOCATIONS] =
		"the snapshot has no allocations: torch.cuda.memory._record_memory_history() records them",
	[REASON_NO_TOTALS] = "a memory snapshot has no allocator totals",
	[REASON_NO_SHAPES] = "a memory snapshot has no input sizes",
	[REASON_NO_FORMULA] = "a memory snapshot has no FLOP or byte counts",
	[REASON_NO_FLOPS] = "a memory snapshot has no FLOP or byte counts",
	[REASON_NO_BYTES] = "a memory snapshot has no FLOP or byte counts",
	[REASON_NO_LINES] = "a memory snapshot has no Python lines",
	[REASON_NO_METRICS] = "a memory snapshot has no metrics",
	[REASON_NO_MARKS] = "a memory snapshot has no marks",
	[REASON_NO_THREAD_USE] = "a memory snapshot does not contain the CPU time, waits and page faults of a step",
	[REASON_NO_READINGS] = "a memory snapshot does not contain readings of a thread's CPU time",
	[REASON_NO_COST] = "another tool recorded this",
	[REASON_NO_CAPTURE] = "another tool recorded this",
};

const struct importer importer_snapshot = {
	.name = "snapshot",
	.format = SNAPSHOT_FORMAT,
	.kind = "a pickle, like CUDA memory snapshots",
	.looked_for = "a CUDA memory snapshot (pickle)",
	.has_steps = true,
	.reasons = snapshot_reasons,
	.recognises = snapshot_recognises,
	.begins = snapshot_begins,
	.load_input = snapshot_load_input,
	.is_rank = true,
};
