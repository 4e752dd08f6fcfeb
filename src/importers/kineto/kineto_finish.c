/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_finish.c: delivers a staged file to the model: its processes, its tracks in a fixed order, and then rows that
 * refer to spans.
 */
#include "base/compare_numbers.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_deliver.h"
#include "importers/kineto/kineto_doubles.h"
#include "importers/kineto/kineto_frames.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_rows.h"
#include "model/launches.h"
#include "model/number_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define NO_PROCESS MODEL_NONE

struct finish {
	struct kineto_import *import;
	struct kineto_stage *stage;
	struct model *model;
	uint32_t *order; /* staged tracks that are delivered */
	uint32_t order_count;
	uint8_t *kinds;                             /* by staged track: enum track_kind */
	bool *has_content;                          /* by staged track */
	struct number_map by_pid, by_text, by_rank; /* the first process of each; by_text: if its id is not a number */
	struct number_map shared_ids;               /* of processes, and labelled as those of devices */
	uint32_t main_process;
	int64_t shift_ns;
};

/* Returns the track with the facts of a track's process; NULL: none. */
static const struct staged_track *process_facts(const struct finish *finish, const struct staged_track *track)
{
	return kineto_stage_find(finish->stage, track->pid, (struct staged_place){INT64_MIN, 0});
}

/* ---- kinds of tracks ---- */

#define HOST_KINDS                                                                                                     \
	(UINT64_C(1) << SPAN_OP | UINT64_C(1) << SPAN_PYTHON | UINT64_C(1) << SPAN_MODULE | UINT64_C(1) << SPAN_RUNTIME)

static uint32_t kineto_finish_count_of(const struct staged_track *track, uint64_t kinds)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < track->count; i++)
		count += kinds >> track->spans[i].kind & 1;
	return count;
}

static bool is_of_host(const struct staged_span *span)
{
	return HOST_KINDS >> span->kind & 1;
}

/* The same, on a row of a process that calls operators. */
static bool is_of_process(const struct staged_span *span)
{
	return is_of_host(span) || span->kind == SPAN_STEP || span->kind == SPAN_PHASE ||
	       (span->kind == SPAN_ANNOTATION && !(span->flags & STAGED_OF_DEVICE));
}

static bool has_device_work(const struct staged_track *track)
{
	for (uint32_t i = 0; i < track->count; i++)
		if (span_is_device_work(track->spans[i].kind))
			return true;
	return false;
}

static bool is_of_device(const struct finish *finish, const struct staged_track *track)
{
	const struct staged_track *facts = process_facts(finish, track);
	return track->is_device || (facts && facts->is_device);
}

/* Finds process ids that Kineto labels as those of devices and that call operators or Python. Kineto labels 8 or 16 ids,
 * also those of devices that do not exist. No process has the id 0: Kineto writes a thread that it does not know
 * as thread 0 of process 0. */
static void find_shared_ids(struct finish *finish)
{
	const uint64_t kinds = HOST_KINDS & ~(UINT64_C(1) << SPAN_RUNTIME);
	const struct kineto_stage *stage = finish->stage;
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		const struct staged_track *track = &stage->tracks[i];
		if (!track->pid.text && track->pid.number && is_of_device(finish, track) &&
		    kineto_finish_count_of(track, kinds))
			number_map_set(&finish->shared_ids, (uint64_t)track->pid.number, 1);
	}
}

static bool is_shared_id(const struct finish *finish, const struct staged_track *track)
{
	return !track->pid.text && number_map_find(&finish->shared_ids, (uint64_t)track->pid.number) != NUMBER_MAP_NONE;
}

/* Separates work of hosts from rows of devices. Devices are processes 0, 1, ... in a trace. A process in a container
 * may have the same number, and so may a thread that the profiler does not know. */
static void part_hosts(struct finish *finish)
{
	struct kineto_stage *stage = finish->stage;
	uint32_t count = stage->tracks_count;
	find_shared_ids(finish);
	for (uint32_t i = 0; i < count; i++) {
		if (!is_of_device(finish, &stage->tracks[i]))
			continue;
		uint32_t hosts = kineto_finish_count_of(&stage->tracks[i], HOST_KINDS), of_host = i;
		bool takes_annotations = is_shared_id(finish, &stage->tracks[i]) &&
		                         (hosts || !has_device_work(&stage->tracks[i]));
		bool (*is_moved)(const struct staged_span *) = takes_annotations ? is_of_process : is_of_host;
		hosts = 0;
		for (uint32_t k = 0; k < stage->tracks[i].count; k++)
			hosts += is_moved(&stage->tracks[i].spans[k]);
		if (hosts && hosts < stage->tracks[i].count)
			of_host = kineto_stage_split(stage, i, is_moved);
		stage->tracks[of_host].is_host |= hosts > 0;
	}
}

static bool is_process(const struct finish *finish, const struct staged_track *track, const char *name)
{
	return track->pid.text && strcmp(model_text(finish->model, track->pid.text), name) == 0;
}

/* Returns true for rows where Kineto writes its own activity. */
static bool is_of_profiler(const struct finish *finish, const struct staged_track *track)
{
	return is_process(finish, track, "Spans") || is_process(finish, track, "Traces");
}

/* Returns the kinds of spans that do not make a row a thread. */
static uint64_t kinds_of_no_thread(const struct finish *finish, const struct staged_track *track)
{
	uint64_t kinds = UINT64_C(1) << SPAN_OVERHEAD;
	if (track->is_loose)
		return ~HOST_KINDS;
	if (is_of_profiler(finish, track))
		kinds |= UINT64_C(1) << SPAN_OTHER;
	/* PyTorch before Kineto: work of a device, without streams */
	if (is_process(finish, track, "CUDA functions"))
		kinds |= UINT64_C(1) << SPAN_RANGE;
	return kinds;
}

/* Returns true for a thread, by numeric ids like those of threads or by spans that only threads have. */
static bool is_thread(const struct finish *finish, const struct staged_track *track)
{
	if (track->is_other)
		return false;
	if (!track->pid.text && track->pid.number >= 0 && !track->tid.text)
		return true;
	return kineto_finish_count_of(track, kinds_of_no_thread(finish, track)) < track->count;
}

static enum track_kind kineto_finish_kind_of(const struct finish *finish, struct staged_track *track)
{
	if (track->is_host)
		return TRACK_THREAD;
	if (is_of_device(finish, track)) {
		if (track->device < 0)
			track->device = track->pid.number >= 0 && track->pid.number < INT16_MAX
			                        ? (int32_t)track->pid.number
			                        : 0;
		return TRACK_DEVICE;
	}
	return is_thread(finish, track) ? TRACK_THREAD : TRACK_OTHER;
}

static void find_content(struct finish *finish)
{
	const struct kineto_stage *stage = finish->stage;
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		finish->has_content[i] = stage->tracks[i].count > 0;
	for (uint32_t i = 0; i < stage->marks_count; i++)
		finish->has_content[stage->marks[i].track] = true;
	for (uint32_t i = 0; i < stage->memory_count; i++)
		finish->has_content[stage->memory[i].track] = true;
}

/* ---- processes ---- */

static uint32_t find_process(const struct finish *finish, struct staged_place pid)
{
	uint32_t found = pid.text ? number_map_find(&finish->by_text, pid.text)
	                          : number_map_find(&finish->by_pid, (uint64_t)pid.number);
	return found == NUMBER_MAP_NONE ? NO_PROCESS : found;
}

static void kineto_finish_remember(struct number_map *map, int64_t key, uint32_t process)
{
	if (number_map_find(map, (uint64_t)key) == NUMBER_MAP_NONE)
		number_map_set(map, (uint64_t)key, process);
}

/* Returns the rank in "rank 3: train.py", as our own exporter names processes of several ranks; -1: none. *name: the
 * rest. */
static int32_t rank_of_name(const struct finish *finish, const struct staged_track *facts, const char **name)
{
	*name = facts ? model_text(finish->model, facts->name) : "";
	char *end;
	if (!finish->import->is_ours || strncmp(*name, "rank ", 5) != 0)
		return -1;
	long rank = strtol(*name + 5, &end, 10);
	if (end == *name + 5 || strncmp(end, ": ", 2) != 0 || rank < 0 || rank > INT32_MAX)
		return -1;
	*name = end + 2;
	return (int32_t)rank;
}

/* Our own exporter has to name all processes; this recognises its placeholder. */
static bool is_nameless(const struct finish *finish, const char *name, int64_t pid)
{
	char text[32];
	snprintf(text, sizeof text, "process %lld", (long long)pid);
	return !*name || (finish->import->is_ours && strcmp(name, text) == 0);
}

/* Applies facts that our own exporter writes beside the events. */
static void set_own_facts(const struct finish *finish, struct process *process, const struct staged_track *facts)
{
	if (!facts)
		return;
	if (facts->has_own_pid)
		process->pid = facts->own_pid;
	if (facts->has_events && !finish->import->is_repaired)
		process->event_count = facts->events;
	process->has_lost_memory = facts->has_lost_memory;
	process->lost_memory = facts->lost_memory;
	process->removed_memory = facts->removed_memory;
	process->lost_memory_ns = facts->lost_memory_ns;
	if (facts->lost_memory_ns > INT64_MIN)
		process->lost_memory_ns += finish->shift_ns;
	if (facts->has_extent) {
		process->first_ns = facts->begin_ns + finish->shift_ns;
		process->last_ns = facts->end_ns + finish->shift_ns;
	}
}

static uint32_t kineto_finish_add_process(struct finish *finish, const struct staged_track *track)
{
	const struct kineto_import *import = finish->import;
	uint32_t number = model_add_process(finish->model);
	struct process *process = &finish->model->processes[number];
	const struct staged_track *facts = track ? process_facts(finish, track) : NULL;
	int64_t pid = track && !track->pid.text ? track->pid.number : 0;
	process->pid = pid;
	set_own_facts(finish, process, facts);
	process->role = STEPSCOPE_ROLE_IMPORTED;
	process->host = import->host;
	const char *name;
	process->rank = rank_of_name(finish, facts, &name);
	process->name = track && track->pid.text                   ? track->pid.text /* a name may be shared */
	                : !is_nameless(finish, name, process->pid) ? intern_add(&finish->model->strings, name)
	                                                           : 0;
	process->is_closed = true;
	process->realtime_offset_ns = import->has_origin ? import->origin_base_ns : 0;
	if (track && track->pid.text)
		kineto_finish_remember(&finish->by_text, track->pid.text, number);
	else
		kineto_finish_remember(&finish->by_pid, pid, number);
	if (process->rank >= 0)
		kineto_finish_remember(&finish->by_rank, process->rank, number);
	return number;
}

/* Returns the owner that the file or the name of the device's row states; NO_PROCESS: there is none. */
static uint32_t owner_of_device(const struct finish *finish, const struct staged_track *track)
{
	const char *name;
	const struct staged_track *facts = process_facts(finish, track);
	const struct staged_track *owned = track->has_owner ? track : facts;
	uint32_t owner = owned && owned->has_owner ? find_process(finish, (struct staged_place){owned->owner_pid, 0})
	                                           : NO_PROCESS;
	if (owner != NO_PROCESS)
		return owner;
	int32_t rank = rank_of_name(finish, facts, &name);
	uint32_t found = rank < 0 ? NUMBER_MAP_NONE : number_map_find(&finish->by_rank, (uint64_t)rank);
	return found == NUMBER_MAP_NONE ? NO_PROCESS : found;
}

struct order_key {
	const struct finish *finish;
	uint32_t track;
};

/* Orders by process id, so that the order of the file does not matter. */
static int compare_pids(const void *left, const void *right)
{
	const struct order_key *a = left, *b = right;
	const struct staged_place *x = &a->finish->stage->tracks[a->track].pid;
	const struct staged_place *y = &b->finish->stage->tracks[b->track].pid;
	if (x->text && y->text)
		return strcmp(model_text(a->finish->model, x->text), model_text(a->finish->model, y->text));
	int64_t m = x->text ? 0 : x->number, n = y->text ? 0 : y->number;
	return m != n ? (m > n) - (m < n) : !!x->text - !!y->text;
}

/* Finds the processes, which threads determine. The main process is the one with steps or, without steps, with the most
 * spans; it also gets rows without another owner. */
static void find_processes(struct finish *finish)
{
	struct kineto_stage *stage = finish->stage;
	uint64_t *weights = memory_resize(NULL, stage->tracks_count + 1, sizeof *weights); /* by process */
	memset(weights, 0, (stage->tracks_count + 1) * sizeof *weights);
	uint32_t first = finish->import->first_process, count = 0;
	struct order_key *keys = memory_resize(NULL, stage->tracks_count + 1, sizeof *keys);
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		stage->tracks[i].process = NO_PROCESS;
		const struct staged_track *facts = process_facts(finish, &stage->tracks[i]);
		bool is_unknown = stage->tracks[i].is_host && facts && facts->is_device &&
		                  !is_shared_id(finish, &stage->tracks[i]);
		bool is_told = finish->kinds[i] == TRACK_THREAD && !is_unknown;
		if (finish->has_content[i] && (is_told || stage->tracks[i].is_other))
			keys[count++] = (struct order_key){finish, i};
	}
	merge_sort(keys, count, sizeof *keys, compare_pids);
	for (uint32_t i = 0; i < count; i++) {
		struct staged_track *track = &stage->tracks[keys[i].track];
		track->process = find_process(finish, track->pid);
		if (track->process == NO_PROCESS)
			track->process = kineto_finish_add_process(finish, track);
		weights[track->process - first] += track->count + (track->has_steps ? UINT64_C(1) << 48 : 0);
	}
	free(keys);
	finish->main_process = first;
	for (uint32_t i = first; i < finish->model->processes_count; i++)
		if (weights[i - first] > weights[finish->main_process - first])
			finish->main_process = i;
	if (finish->model->processes_count == first)
		kineto_finish_add_process(finish, NULL);
	free(weights);
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		struct staged_track *track = &stage->tracks[i];
		if (track->process == NO_PROCESS && finish->kinds[i] != TRACK_DEVICE)
			track->process = find_process(finish, track->pid); /* asynchronous spans, counters */
		if (track->process == NO_PROCESS)
			track->process = owner_of_device(finish, track);
	}
	uint32_t *launchers = kineto_find_owners(finish->import, finish->kinds);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		if (stage->tracks[i].process == NO_PROCESS)
			stage->tracks[i].process = launchers[i] == NO_PROCESS ? finish->main_process : launchers[i];
	free(launchers);
}

static void describe_main(struct finish *finish)
{
	const struct kineto_import *import = finish->import;
	struct process *process = &finish->model->processes[finish->main_process];
	if (import->has_rank && process->rank < 0)
		process->rank = (int32_t)import->rank;
	process->world_size = import->world_size > 0 ? (int32_t)import->world_size : -1;
	if (!import->has_counts || import->is_repaired)
		process->event_count = import->event_count;
	for (uint32_t i = 0; i < finish->stage->facts_count; i++)
		model_add_meta(finish->model, finish->main_process,
		               model_text(finish->model, finish->stage->facts[i].key),
		               model_text(finish->model, finish->stage->facts[i].value));
}

/* ---- tracks ---- */

/* Returns true for a thread that marks steps, or whose number is the process's. */
static bool is_main(const struct finish *finish, const struct staged_track *track)
{
	const struct process *process = &finish->model->processes[track->process];
	return track->has_steps || (!track->pid.text && track->tid.number == process->pid && process->pid);
}

/* The order does not depend on the order of the file. */
static int kineto_finish_compare_keys(const void *left, const void *right)
{
	const struct order_key *a = left, *b = right;
	const struct finish *finish = a->finish;
	const struct staged_track *x = &finish->stage->tracks[a->track], *y = &finish->stage->tracks[b->track];
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (finish->kinds[a->track] != finish->kinds[b->track])
		return finish->kinds[a->track] < finish->kinds[b->track] ? -1 : 1;
	if (finish->kinds[a->track] == TRACK_THREAD && is_main(finish, x) != is_main(finish, y))
		return is_main(finish, x) ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	int result = COMPARE_NUMBERS(x->pid.number, y->pid.number);
	result = result ? result : COMPARE_NUMBERS(staged_tid(x), staged_tid(y));
	result = result ? result : COMPARE_NUMBERS(x->tid.number, y->tid.number);
	result = result ? result
	                : strcmp(model_text(finish->model, x->pid.text), model_text(finish->model, y->pid.text));
	return result ? result : strcmp(model_text(finish->model, x->tid.text), model_text(finish->model, y->tid.text));
}

static void kineto_finish_put_in_order(struct finish *finish)
{
	struct order_key *keys = memory_resize(NULL, finish->stage->tracks_count + 1, sizeof *keys);
	for (uint32_t i = 0; i < finish->stage->tracks_count; i++)
		if (finish->has_content[i])
			keys[finish->order_count++] = (struct order_key){finish, i};
	merge_sort(keys, finish->order_count, sizeof *keys, kineto_finish_compare_keys);
	finish->order = memory_resize(NULL, finish->order_count + 1, sizeof *finish->order);
	for (uint32_t i = 0; i < finish->order_count; i++)
		finish->order[i] = keys[i].track;
	free(keys);
}

/* Each crossing span is correct alone, but it is unknown which calls one made inside the other. */
static void report_crossings(const struct finish *finish)
{
	const struct staged_crossings *crossings = &finish->stage->crossings;
	char where[256];
	if (!crossings->count)
		return;
	int64_t start_ns = crossings->start_ns; /* with full precision: people search the file for it */
	snprintf(where, sizeof where, "%.90s in %.90s, ts %s%lld.%03lld", model_text(finish->model, crossings->name),
	         model_text(finish->model, crossings->around), start_ns < 0 ? "-" : "", llabs(start_ns / 1000),
	         llabs(start_ns % 1000));
	model_add_ledger(
		finish->model, LEDGER_OTHER, crossings->process, where, crossings->count,
		"spans of a thread end later than the span in which they start: each keeps its duration and moves to "
		"another track of the thread, as if it were not nested");
}

static void deliver_tracks(struct finish *finish)
{
	for (uint32_t i = 0; i < finish->order_count; i++) {
		struct staged_track *track = &finish->stage->tracks[finish->order[i]];
		enum track_kind kind = (enum track_kind)finish->kinds[finish->order[i]];
		if (!track->name && track->tid.text)
			track->name = track->tid.text;
		if (!track->name && kind == TRACK_OTHER && track->pid.text)
			track->name = track->pid.text;
		kineto_deliver(finish->stage, finish->order[i], kind, finish->shift_ns, finish->model);
		finish->model->tracks[track->first_track]->is_main = kind == TRACK_THREAD && is_main(finish, track);
	}
}

/* Skips rows that our own exporter marks as no thread: they were reported when the original was read. */
static void report_of_no_thread(const struct finish *finish)
{
	uint64_t count = 0, first_offset = UINT64_MAX;
	for (uint32_t i = 0; i < finish->order_count; i++) {
		const struct staged_track *track = &finish->stage->tracks[finish->order[i]];
		if (finish->kinds[finish->order[i]] != TRACK_OTHER || track->is_other ||
		    is_of_profiler(finish, track) || !kineto_finish_count_of(track, ~(UINT64_C(1) << SPAN_OVERHEAD)))
			continue;
		count += track->count;
		first_offset = track->offset && track->offset < first_offset ? track->offset : first_offset;
	}
	if (!count)
		return;
	struct ledger_entry *entry = model_add_ledger(
		finish->model, LEDGER_OTHER, finish->main_process, "pid, tid", count,
		"spans in rows that are neither a thread nor a stream appear only in the spans, not in tables of "
		"operators");
	entry->has_first_offset = first_offset != UINT64_MAX;
	entry->first_offset = entry->has_first_offset ? first_offset : 0;
}

/* ---- rows that refer to spans ---- */

static void deliver_memory(struct finish *finish)
{
	const struct kineto_stage *stage = finish->stage;
	uint32_t count = stage->memory_count;
	struct kineto_spot *spots = storage_resize(stage->storage, NULL, (size_t)count + 1, sizeof *spots);
	for (uint32_t i = 0; i < count; i++)
		spots[i] = (struct kineto_spot){.time_ns = stage->memory[i].time_ns + finish->shift_ns,
		                                .staged = stage->memory[i].track};
	kineto_find_rows(stage, finish->model, spots, count);
	for (uint32_t i = 0; i < count; i++) {
		struct memory_event event = stage->memory[i];
		event.process = stage->tracks[event.track].process;
		event.time_ns = spots[i].time_ns;
		event.track = spots[i].track;
		event.row = spots[i].row;
		event.partner = 0;
		model_add_memory(finish->model, &event);
	}
	storage_release(stage->storage, spots);
}

static void deliver_marks(struct finish *finish)
{
	for (uint32_t i = 0; i < finish->stage->marks_count; i++) {
		const struct staged_mark *mark = &finish->stage->marks[i];
		model_add_mark(finish->model, finish->stage->tracks[mark->track].first_track,
		               mark->time_ns + finish->shift_ns, mark->name);
	}
	for (uint32_t i = 0; i < finish->stage->values_count; i++) {
		const struct staged_value *value = &finish->stage->values[i];
		model_add_value(finish->model, finish->stage->tracks[value->track].process, value->name,
		                value->is_metric, value->time_ns + finish->shift_ns, value->value);
	}
}

void kineto_finish(struct kineto_import *import)
{
	struct finish finish = {.import = import, .stage = &import->stage, .model = import->model};
	struct staged_halves halves = kineto_stage_pair(&import->stage);
	kineto_know_own(import);
	kineto_repair_note(&import->repairs, REPAIR_END, halves.ends, halves.first_end);
	kineto_repair_note(&import->repairs, REPAIR_BEGIN, halves.begins, KINETO_NO_PLACE);
	kineto_pair_asyncs(import);
	kineto_leave_out_doubles(&import->stage);
	part_hosts(&finish);
	uint32_t count = import->stage.tracks_count, first_track = import->model->tracks_count;
	if (import->has_base && !import->has_origin) {
		import->has_origin = true;
		import->origin_base_ns = import->base_ns;
	}
	if (import->has_base)
		finish.shift_ns = import->base_ns - import->origin_base_ns;
	finish.kinds = memory_resize(NULL, count + 1, sizeof *finish.kinds);
	finish.has_content = memory_resize(NULL, count + 1, sizeof *finish.has_content);
	find_content(&finish);
	for (uint32_t i = 0; i < count; i++)
		finish.kinds[i] = (uint8_t)kineto_finish_kind_of(&finish, &import->stage.tracks[i]);
	find_processes(&finish);
	import->main_process = finish.main_process;
	describe_main(&finish);
	kineto_correct_clocks(import);
	for (uint32_t i = 0; i < count; i++) {
		kineto_cut_steps(import, &import->stage.tracks[i]);
		if (import->has_python && finish.kinds[i] == TRACK_THREAD)
			kineto_cut_frames(&import->stage, &import->stage.tracks[i], import->model);
	}
	kineto_infer(import, finish.kinds);
	kineto_finish_put_in_order(&finish);
	report_of_no_thread(&finish);
	deliver_tracks(&finish);
	report_crossings(&finish);
	kineto_sort_memory(&import->stage);
	kineto_find_addresses(import);
	deliver_memory(&finish);
	kineto_deliver_totals(import);
	deliver_marks(&finish);
	kineto_deliver_flows(import, finish.shift_ns);
	kineto_add_steps(import, first_track);
	number_map_release(&finish.shared_ids);
	number_map_release(&finish.by_pid);
	number_map_release(&finish.by_text);
	number_map_release(&finish.by_rank);
	free(finish.order);
	free(finish.kinds);
	free(finish.has_content);
}
