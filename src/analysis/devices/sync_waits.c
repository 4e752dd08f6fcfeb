/* SPDX-License-Identifier: Apache-2.0
 *
 * sync_waits.c: the table `sync_waits`: calls in which a thread waits until a device is done
 * (torch.cuda.synchronize()), by the place of the call. It has how long the device is idle afterwards, because nothing
 * could be launched meanwhile. Waits for a copy to the host are in copy_waits.c.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/copy_waits.h"
#include "analysis/devices/device_parts.h"
#include "analysis/shared/span_places.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/lower_bound.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <stdlib.h>

enum {
	SYNC_CALL,
	SYNC_MODULE,
	SYNC_LINE,
	SYNC_COUNT,
	SYNC_TOTAL,
	SYNC_IDLE,
	SYNC_IDLE_RATIO,
	SYNC_COLUMNS,
};

static const struct table_column columns[SYNC_COLUMNS] = {
	[SYNC_CALL] = {.name = "call",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "call that waits, judged by name"},
	[SYNC_MODULE] = {.name = "module",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "innermost module around the call"},
	[SYNC_LINE] = {.name = "line",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "innermost line of the user's own program around the call"},
	[SYNC_COUNT] = {.name = "calls",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "calls during which a device became idle and stayed idle until the call returned",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[SYNC_TOTAL] = {.name = "wait_ns",
                        .title = "host waits",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "time in these calls",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[SYNC_IDLE] =
		{.name = "kept_idle_ns",
                 .title = "kept idle",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time from the end of the device's work to its next work, without waits for the next batch. It counts "
                         "at most the call's duration: without the call, the host would launch earlier by that time",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "wait_ns",
                 .more = MORE_SUM},
	[SYNC_IDLE_RATIO] = {.name = "kept_idle_ratio",
                             .title = "idle %",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .definition = "share of the devices' time in which they are idle after such a call",
                             .denominator = "time from first to last work, summed over all devices",
                             .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE,
                             .more = MORE_SUM},
};

struct sync_waits_place {
	uint32_t call, module, line;
	int64_t count, wait_ns, idle_ns;
};

struct sync_waits_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	const struct step_times *times;
	struct device_parts parts;
	struct span_places spans;
	struct name_classes names;
	struct launch_configs configs;
	struct number_map taken; /* set of ends of copies to the host, and of work that a call already waited for */
	struct number_map by_key;
	struct sync_waits_place *places;
	uint32_t count, capacity;
	int64_t all_ns; /* of all devices, from first to last work */
};

static uint8_t sync_waits_classify(const char *name)
{
	return is_synchronizing_call(name);
}

static struct sync_waits_place *sync_waits_place_of(struct sync_waits_fold *fold, uint32_t call, uint32_t track,
                                                    uint32_t row)
{
	uint32_t module = span_module_of(&fold->spans, track, row), line = span_line_of(&fold->spans, track, row);
	uint64_t key = hash_two((uint64_t)call << 32 | module, line);
	uint32_t found = number_map_add(&fold->by_key, key, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->places, fold->count, fold->capacity, 16);
		fold->places[fold->count++] = (struct sync_waits_place){.call = call, .module = module, .line = line};
	}
	return &fold->places[found];
}

/* Finds the device's last work in the call, if the device is idle when the call returns and works again later. */
static bool becomes_idle(const struct intervals *busy, int64_t start_ns, int64_t end_ns, int64_t *done_ns,
                         int64_t *next_ns)
{
	size_t next = LOWER_BOUND(busy->items, busy->count, item, item->end_ns <= end_ns);

	if (!next || next == busy->count || busy->items[next].start_ns <= end_ns ||
	    busy->items[next - 1].end_ns < start_ns)
		return false;
	*done_ns = busy->items[next - 1].end_ns;
	*next_ns = busy->items[next].start_ns;
	return true;
}

static void sync_waits_add_call(struct sync_waits_fold *fold, uint32_t track, uint32_t row,
                                const struct span_chunk *chunk, uint32_t i)
{
	int64_t start_ns = chunk->start_ns[i], dur_ns = chunk->dur_ns[i], done_ns, next_ns, idle_ns;
	struct sync_waits_place *place;

	if (!becomes_idle(&fold->parts.device.busy, start_ns, start_ns + dur_ns, &done_ns, &next_ns) ||
	    number_map_find(&fold->taken, (uint64_t)done_ns) != NUMBER_MAP_NONE)
		return;
	number_map_set(&fold->taken, (uint64_t)done_ns, 1);
	place = sync_waits_place_of(fold, chunk->name[i], track, row);
	idle_ns = next_ns - done_ns - intervals_within(&fold->parts.lists[PART_DATA], done_ns, next_ns);
	place->count++;
	clamped_add(&place->wait_ns, dur_ns);
	clamped_add(&place->idle_ns, idle_ns < dur_ns ? idle_ns : dur_ns);
}

static void sync_waits_fold_track(struct sync_waits_fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];

	for (uint32_t c = 0, row = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++, row++)
			if (chunk->kind[i] == SPAN_RUNTIME && name_class(&fold->names, fold->model, chunk->name[i]) &&
			    (!fold->context->options.filter.has_steps ||
			     (chunk->step[i] >= 0 && fold->times->steps[chunk->step[i]].is_selected)))
				sync_waits_add_call(fold, number, row, chunk, i);
		model_chunk_done(fold->model, chunk);
	}
}

static void take_copies(struct sync_waits_fold *fold)
{
	const struct device_work *work = &fold->parts.work;

	number_map_release(&fold->taken);
	fold->taken.storage = fold->model->storage;
	for (size_t n = 0; n < work->count; n++) {
		const struct work *item = &work->items[n];
		const struct span_chunk *chunk;
		uint32_t i;

		if (item->class != WORK_COPY)
			continue;
		chunk = track_chunk(fold->model->tracks[item->track], item->row, &i);
		if (is_copy_to_host(fold->model, chunk, i,
		                    launch_config_of(&fold->configs, fold->model, span_inputs(chunk, i))))
			number_map_set(&fold->taken, (uint64_t)item->end_ns, 1);
	}
}

static void sync_waits_fold_device(struct sync_waits_fold *fold, const struct device *device)
{
	struct interval extent;

	device_parts_find_data(&fold->parts, fold->context, device->process, device->device);
	extent = device_work_extent(&fold->parts.work);
	clamped_add(&fold->all_ns, intervals_length(extent.start_ns, extent.end_ns));
	take_copies(fold);
	for (uint32_t track = 0; track < fold->model->tracks_count; track++)
		if (fold->model->tracks[track]->process == device->process)
			sync_waits_fold_track(fold, track);
}

/* ---- the table ---- */

static void sync_waits_add_row(struct table *table, struct sync_waits_fold *fold, const struct sync_waits_place *place)
{
	const struct model *model = fold->model;
	int row = table_row(table);

	table_set_text(table, row, SYNC_CALL, model_text(model, place->call));
	span_places_set(&fold->spans, table, row, SYNC_MODULE, place->module, SYNC_LINE, place->line);
	table_set_int(table, row, SYNC_COUNT, place->count);
	table_set_int(table, row, SYNC_TOTAL, place->wait_ns);
	table_set_int(table, row, SYNC_IDLE, place->idle_ns);
	if (fold->all_ns > 0)
		table_set_double(table, row, SYNC_IDLE_RATIO, (double)place->idle_ns / (double)fold->all_ns);
	else
		table_set_missing(table, row, SYNC_IDLE_RATIO, "no work has a duration");
}

static void sync_waits_fold_release(struct sync_waits_fold *fold)
{
	span_places_release(&fold->spans);
	device_parts_release(&fold->parts);
	name_classes_release(&fold->names);
	number_map_release(&fold->taken);
	number_map_release(&fold->by_key);
	launch_configs_release(&fold->configs);
	storage_release(fold->model->storage, fold->places);
}

static enum status sync_waits_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct sync_waits_fold fold = {.context = context,
	                               .model = model,
	                               .names = {.classify = sync_waits_classify},
	                               .by_key = {.storage = model->storage}};
	struct device *devices;
	size_t count = devices_find(&devices, model);

	fold.launches = analysis_context_launches(context);
	fold.times = analysis_context_step_times(context);
	span_places_init(&fold.spans, model);
	table_init(
		table, "sync_waits", "Waits for devices",
		"calls in which a thread waits until a device is done while nothing is launched for it, by place. "
		"Calls that wait for a copy to the host are excluded. With --steps, only calls in these steps count");
	table_columns(table, columns, SYNC_COLUMNS);
	for (size_t i = 0; i < count; i++)
		sync_waits_fold_device(&fold, &devices[i]);
	table_bound(table, SYNC_IDLE);
	for (uint32_t i = 0; i < fold.count; i++)
		sync_waits_add_row(table, &fold, &fold.places[i]);
	table_add_more(table, SYNC_CALL);
	table_sort(table, SYNC_TOTAL, false);
	table_sort(table, SYNC_IDLE, false);
	if (!table->row_count)
		table->empty = count ? "no thread waited in a call for a device to finish" : DEVICE_NOTHING;
	free(devices);
	sync_waits_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_sync_waits = {
	.name = "sync_waits",
	.row = "call, module and line",
	.question = "where does the program wait for a device to finish (torch.cuda.synchronize())?",
	.run = sync_waits_run,
	.is_of_devices = true,
};
