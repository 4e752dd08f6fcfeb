/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_waits.c: the table `copy_waits`: copies to the host (.cpu(), .item(), .tolist()) by the place that asks for
 * them. It has how long the thread waits for them, and how long the device is idle afterwards, because nothing was
 * launched meanwhile. If a thread waits for the next batch then, that wait keeps the device idle, not the copy.
 */
#include "analysis/devices/copy_waits.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/device_parts.h"
#include "analysis/shared/span_places.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/lower_bound.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_AHEAD 16 /* rows after the launch among which the call that waits is searched */

enum {
	WAIT_OPERATION,
	WAIT_MODULE,
	WAIT_LINE,
	WAIT_COUNT,
	WAIT_WAITED,
	WAIT_PAGEABLE,
	WAIT_BYTES,
	WAIT_COPY,
	WAIT_HOST,
	WAIT_IDLE,
	WAIT_IDLE_RATIO,
	WAIT_COLUMNS,
};

static const struct table_column columns[WAIT_COLUMNS] = {
	[WAIT_OPERATION] = {.name = "operation",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "operator or range that requests the copy"},
	[WAIT_MODULE] = {.name = "module",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "innermost module around the call"},
	[WAIT_LINE] = {.name = "line",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "innermost line of the user's own program around the call"},
	[WAIT_COUNT] = {.name = "calls",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "copies from a device to the host",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[WAIT_WAITED] =
		{.name = "waited_count",
                 .title = "waited",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "copies that the thread waited for, in the call itself or in a later synchronizing call of the same "
                         "operator",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                 .other = "calls",
                 .more = MORE_SUM},
	[WAIT_PAGEABLE] = {.name = "pageable_count",
                           .title = "pageable",
                           .type = TABLE_INT,
                           .unit = UNIT_COUNT,
                           .definition = "copies into pageable memory; the thread waits for them even without asking to",
                           .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                           .other = "calls",
                           .more = MORE_SUM},
	[WAIT_BYTES] = {.name = "total_bytes",
                        .title = "bytes",
                        .type = TABLE_INT,
                        .unit = UNIT_BYTES,
                        .definition = "total bytes of the copies",
                        .rules = RULE_NOT_NEGATIVE},
	[WAIT_COPY] = {.name = "copy_ns",
                       .title = "copying",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "sum of the durations of the copies",
                       .rules = RULE_NOT_NEGATIVE,
                       .more = MORE_SUM},
	[WAIT_HOST] =
		{.name = "wait_ns",
                 .title = "host waits",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time from the start of the call that requests a copy to the end of the call that waits for it, "
                         "including earlier launched work",
                 .rules = RULE_NOT_NEGATIVE,
                 .more = MORE_SUM},
	[WAIT_IDLE] =
		{.name = "idle_after_ns",
                 .title = "idle after",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time from the end of a copy to the next work of the device, if no other work runs, without waits for "
                         "the next batch",
                 .rules = RULE_NOT_NEGATIVE,
                 .more = MORE_SUM},
	[WAIT_IDLE_RATIO] = {.name = "idle_after_ratio",
                             .title = "idle %",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .definition = "share of the devices' time in which they are idle after such a copy",
                             .denominator = "time from first to last work, summed over all devices",
                             .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE,
                             .more = MORE_SUM},
};

struct copy_waits_place {
	uint32_t operation, module, line;
	int64_t count, waited, pageable, sized, copy_ns, wait_ns, idle_ns;
	double bytes;
};

struct copy_waits_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct device_parts parts;
	struct span_places spans;
	struct number_map by_key;
	struct copy_waits_place *places;
	uint32_t count, capacity;
	struct launch_configs configs;
	int64_t all_ns; /* of all devices, from first to last work */
	size_t told;    /* of this device: stretches of work with the idle time after them already counted */
};

bool is_copy_to_host(const struct model *model, const struct span_chunk *chunk, uint32_t i,
                     const struct launch_config *config)
{
	const char *said = config ? launch_config_text(config, LAUNCH_COPY_KIND) : NULL;

	return copy_direction(model_text(model, chunk->name[i]), said ? said : "") == COPY_TO_HOST;
}

static struct copy_waits_place *copy_waits_place_of(struct copy_waits_fold *fold, uint32_t operation, uint32_t module,
                                                    uint32_t line)
{
	uint64_t key = hash_two((uint64_t)operation << 32 | module, line);
	uint32_t found = number_map_add(&fold->by_key, key, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->places, fold->count, fold->capacity, 16);
		fold->places[fold->count++] = (struct copy_waits_place){
			.operation = operation, .module = module, .line = line};
	}
	return &fold->places[found];
}

static struct copy_waits_place *place_of_copy(struct copy_waits_fold *fold, const struct work *item)
{
	const struct launch *launch = launches_of(fold->launches, item->track, item->row);
	uint32_t operation = 0, i;

	if (!launch || launch->track == MODEL_NONE)
		return copy_waits_place_of(fold, 0, 0, 0);
	if (launch->operation != MODEL_NONE) {
		const struct span_chunk *chunk = track_chunk(fold->model->tracks[launch->track], launch->operation, &i);

		operation = chunk->name[i];
	}
	return copy_waits_place_of(fold, operation, span_module_of(&fold->spans, launch->track, launch->row),
	                           span_line_of(&fold->spans, launch->track, launch->row));
}

/* Finds when the thread went on after the copy that ended at copied_ns. Returns false if it did not wait for the
 * copy. */
static bool waits_until(const struct copy_waits_fold *fold, const struct launch *launch, int64_t copied_ns,
                        int64_t *until_ns)
{
	const struct track *track = fold->model->tracks[launch->track];
	uint32_t parent = MODEL_NONE;

	for (uint32_t row = launch->row; row < track->span_count && row - launch->row <= CALLS_AHEAD; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);

		if (row == launch->row)
			parent = chunk->parent[i];
		else if (chunk->parent[i] != parent || chunk->kind[i] != SPAN_RUNTIME ||
		         !is_synchronizing_call(model_text(fold->model, chunk->name[i])))
			continue;
		*until_ns = chunk->start_ns[i] + chunk->dur_ns[i];
		if (*until_ns >= copied_ns)
			return true;
	}
	return false;
}

/* Returns the time from the end of a copy to the next work, without waits for data. It is 0 if other work still runs,
 * no work follows, or the time was counted for another copy that ended at the same time. */
static int64_t idle_behind(struct copy_waits_fold *fold, int64_t end_ns)
{
	const struct device_parts *parts = &fold->parts;
	const struct intervals *busy = &parts->device.busy;
	size_t low = LOWER_BOUND(busy->items, busy->count, item, item->end_ns < end_ns);

	if (low + 1 >= busy->count || busy->items[low].end_ns != end_ns || low < fold->told)
		return 0;
	fold->told = low + 1; /* copies come in the order of their starts, so earlier stretches get no more */
	return busy->items[low + 1].start_ns - end_ns -
	       intervals_within(&parts->lists[PART_DATA], end_ns, busy->items[low + 1].start_ns);
}

static void copy_waits_add_copy(struct copy_waits_fold *fold, const struct work *item, const struct span_chunk *chunk,
                                uint32_t i, const struct launch_config *config)
{
	const struct launch *launch = launches_of(fold->launches, item->track, item->row);
	struct copy_waits_place *place = place_of_copy(fold, item);
	int64_t until_ns;

	place->count++;
	place->pageable += is_copy_to_pageable(model_text(fold->model, chunk->name[i]));
	clamped_add(&place->copy_ns, item->end_ns - item->start_ns);
	clamped_add(&place->idle_ns, idle_behind(fold, item->end_ns));
	if (config && launch_config_has(config, LAUNCH_BYTES)) {
		place->sized++;
		place->bytes += config->numbers[LAUNCH_BYTES];
	}
	if (launch && launch->track != MODEL_NONE && waits_until(fold, launch, item->end_ns, &until_ns)) {
		chunk = track_chunk(fold->model->tracks[launch->track], launch->row, &i);
		place->waited++;
		clamped_add(&place->wait_ns, intervals_length(chunk->start_ns[i], until_ns));
	}
}

static void copy_waits_fold_device(struct copy_waits_fold *fold, const struct device *device)
{
	const struct device_work *work = &fold->parts.work;
	struct interval extent;

	fold->told = 0;
	device_parts_find_data(&fold->parts, fold->context, device->process, device->device);
	extent = device_work_extent(&fold->parts.work);
	clamped_add(&fold->all_ns, intervals_length(extent.start_ns, extent.end_ns));
	for (size_t n = 0; n < work->count; n++) {
		const struct work *item = &work->items[n];
		const struct launch_config *config;
		uint32_t i;
		const struct span_chunk *chunk;

		if (item->class != WORK_COPY || !device_work_is_selected(fold->context, item->track, item->row))
			continue;
		chunk = track_chunk(fold->model->tracks[item->track], item->row, &i);
		config = launch_config_of(&fold->configs, fold->model, span_inputs(chunk, i));
		if (is_copy_to_host(fold->model, chunk, i, config))
			copy_waits_add_copy(fold, item, chunk, i, config);
	}
}

/* ---- the table ---- */

static void copy_waits_add_row(struct table *table, struct copy_waits_fold *fold, const struct copy_waits_place *place)
{
	const struct model *model = fold->model;
	int row = table_row(table);

	table_set_text_or(table, row, WAIT_OPERATION, place->operation ? model_text(model, place->operation) : NULL,
	                  "the trace lacks its launch, or the launch is outside every operator and range");
	span_places_set(&fold->spans, table, row, WAIT_MODULE, place->module, WAIT_LINE, place->line);
	table_set_int(table, row, WAIT_COUNT, place->count);
	table_set_int(table, row, WAIT_WAITED, place->waited);
	table_set_int(table, row, WAIT_PAGEABLE, place->pageable);
	if (place->sized == place->count && place->bytes < 0x1p63)
		table_set_int(table, row, WAIT_BYTES, (int64_t)place->bytes);
	else
		table_set_missing(table, row, WAIT_BYTES, "the trace does not give the bytes of every copy");
	table_set_int(table, row, WAIT_COPY, place->copy_ns);
	table_set_int(table, row, WAIT_HOST, place->wait_ns);
	table_set_int(table, row, WAIT_IDLE, place->idle_ns);
	if (fold->all_ns > 0)
		table_set_double(table, row, WAIT_IDLE_RATIO, (double)place->idle_ns / (double)fold->all_ns);
	else
		table_set_missing(table, row, WAIT_IDLE_RATIO, "no work has a duration");
}

static void copy_waits_fold_release(struct copy_waits_fold *fold)
{
	span_places_release(&fold->spans);
	device_parts_release(&fold->parts);
	number_map_release(&fold->by_key);
	launch_configs_release(&fold->configs);
	storage_release(fold->model->storage, fold->places);
}

static enum status copy_waits_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct copy_waits_fold fold = {.context = context, .model = model, .by_key = {.storage = model->storage}};
	struct device *devices;
	size_t count = devices_find(&devices, model);

	fold.launches = analysis_context_launches(context);
	span_places_init(&fold.spans, model);
	table_init(table, "copy_waits", "Copies to the host",
	           "copies from a device to the host, by the place that requests them; with --steps, those launched in "
	           "these steps");
	table_columns(table, columns, WAIT_COLUMNS);
	for (size_t i = 0; i < count; i++)
		copy_waits_fold_device(&fold, &devices[i]);
	table_bound(table, WAIT_IDLE);
	for (uint32_t i = 0; i < fold.count; i++)
		copy_waits_add_row(table, &fold, &fold.places[i]);
	table_add_more(table, WAIT_OPERATION);
	table_sort(table, WAIT_HOST, false);
	table_sort(table, WAIT_IDLE, false);
	if (!table->row_count)
		table->empty = count ? "no copy from a device to the host was recorded" : DEVICE_NOTHING;
	free(devices);
	copy_waits_fold_release(&fold);
	return STATUS_OK;
}

const struct analysis analysis_copy_waits = {
	.name = "copy_waits",
	.row = "operator, module and line",
	.question = "where does the program wait for values from a device (.cpu(), .item())?",
	.run = copy_waits_run,
	.is_of_devices = true,
};
