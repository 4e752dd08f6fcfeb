/* SPDX-License-Identifier: Apache-2.0
 *
 * copies.c: the table `copies`: copies to, from and within devices, and fills, by direction and kind of memory.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/shared/durations.h"
#include "base/clamped.h"
#include "base/storage.h"
#include "model/cell_words.h"
#include "model/device_names.h"
#include "model/launch_config.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <inttypes.h>
#include <string.h>

enum {
	COPY_NAME,
	COPY_DIRECTION,
	COPY_FROM,
	COPY_TO,
	COPY_COUNT,
	COPY_BYTES,
	COPY_TOTAL,
	COPY_RATIO,
	COPY_MEAN,
	COPY_MIN,
	COPY_MAX,
	COPY_INCOMPLETE,
	COPY_RATE,
	COPY_COLUMNS,
};

static const struct table_column columns[COPY_COLUMNS] = {
	[COPY_NAME] = {.name = "copy",
                       .type = TABLE_TEXT,
                       .role = ROLE_KEY,
                       .definition = "name of the copy or fill in the trace"},
	[COPY_DIRECTION] = {.name = "direction",
                            .type = TABLE_TEXT,
                            .definition = "host to device, device to host, device to device, peer to peer, or fill"},
	[COPY_FROM] =
		{.name = "from",
                 .type = TABLE_TEXT,
                 .definition =
                         "memory that the copy reads; Pageable: the driver copies through its own buffer, and the program "
                         "waits"},
	[COPY_TO] = {.name = "to", .type = TABLE_TEXT, .definition = "memory that the copy writes"},
	[COPY_COUNT] = {.name = "calls",
                        .type = TABLE_INT,
                        .unit = UNIT_COUNT,
                        .definition = "number of copies or fills",
                        .rules = RULE_NOT_NEGATIVE,
                        .more = MORE_SUM},
	[COPY_BYTES] = {.name = "total_bytes",
                        .title = "bytes",
                        .type = TABLE_INT,
                        .unit = UNIT_BYTES,
                        .definition = "total bytes",
                        .rules = RULE_NOT_NEGATIVE},
	[COPY_TOTAL] = {.name = "total_ns",
                        .title = "total",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "sum of the durations, including those that overlap",
                        .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                        .more = MORE_SUM},
	[COPY_RATIO] = {.name = "ratio",
                        .title = "%",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_RATIO,
                        .role = ROLE_SHARE,
                        .definition = "share of the time of copies and fills",
                        .denominator = "sum of the durations of all copies and fills",
                        .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                        .more = MORE_SUM},
	[COPY_MEAN] = {.name = "mean_ns",
                       .title = "mean",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean duration"},
	[COPY_MIN] = {.name = "min_ns",
                      .title = "min",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "shortest",
                      .more = MORE_LEAST},
	[COPY_MAX] = {.name = "max_ns",
                      .title = "max",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "longest",
                      .more = MORE_MOST},
	[COPY_INCOMPLETE] = DURATIONS_INCOMPLETE,
	[COPY_RATE] = {.name = "bytes_per_s",
                       .title = "bytes/s",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_BYTES_PER_SECOND,
                       .definition = "bytes per time, over the copies with known bytes"},
};

struct copy {
	uint32_t name;
	uint8_t kind;
	struct durations calls;
	int64_t sized; /* calls with known bytes */
	double bytes;
	int64_t rated_ns; /* of these, with known time */
	double rated_bytes;
	char direction[LAUNCH_TEXT_BYTES]; /* from the launch, "": unknown */
	bool has_directions;               /* copies of this name have different ones */
};

struct copies_fold {
	const struct model *model;
	struct number_map by_name; /* kind and name -> copy */
	struct copy *copies;
	uint32_t count, capacity;
	uint64_t outside;
	struct launch_configs configs;
};

static struct copy *copy_of(struct copies_fold *fold, uint32_t name, uint8_t kind)
{
	uint64_t key = (uint64_t)kind << 32 | name;
	uint32_t found = number_map_add(&fold->by_name, key, fold->count);

	if (found == fold->count) {
		STORAGE_GROW(fold->model->storage, fold->copies, fold->count, fold->capacity, 16);
		fold->copies[fold->count++] = (struct copy){.name = name, .kind = kind, .calls = DURATIONS_NONE};
	}
	return &fold->copies[found];
}

static void copies_add_copy(struct copies_fold *fold, const struct span_chunk *chunk, uint32_t i)
{
	struct copy *copy = copy_of(fold, chunk->name[i], chunk->kind[i]);
	int64_t dur_ns = chunk->dur_ns[i];
	bool is_timed = span_is_timed(chunk->flags[i]);
	const struct launch_config *config = launch_config_of(&fold->configs, fold->model, span_inputs(chunk, i));
	const char *direction;

	durations_add(&copy->calls, dur_ns, is_timed);
	if (!config)
		return;
	direction = launch_config_text(config, LAUNCH_COPY_KIND);
	if (direction) {
		copy->has_directions |= *copy->direction && strcmp(copy->direction, direction) != 0;
		memcpy(copy->direction, direction, strlen(direction) + 1);
	}
	if (!launch_config_has(config, LAUNCH_BYTES))
		return;
	copy->sized++;
	copy->bytes += config->numbers[LAUNCH_BYTES];
	if (!is_timed)
		return;
	clamped_add(&copy->rated_ns, dur_ns);
	copy->rated_bytes += config->numbers[LAUNCH_BYTES];
}

static void copies_fold_track(struct copies_fold *fold, struct analysis_context *context, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (chunk->kind[i] != SPAN_MEMCPY && chunk->kind[i] != SPAN_MEMSET)
				continue;
			if (device_work_is_selected(context, number, chunk->first_row + i))
				copies_add_copy(fold, chunk, i);
			else
				fold->outside++;
		}
		model_chunk_done(fold->model, chunk);
	}
}

/* ---- the table ---- */

static const char *direction_of(const struct copy *copy, const char *name)
{
	return copy->kind == SPAN_MEMSET
	               ? CELL_COPY_FILL
	               : copy_direction_name(copy_direction(name, copy->has_directions ? "" : copy->direction));
}

/* "Memcpy HtoD (Pageable -> Device)": takes the words before and after the arrow. */
static void set_memory(struct table *table, int row, const char *name)
{
	static const char reason[] = "not in the name";
	const char *open = strchr(name, '('), *arrow = open ? strstr(open, " -> ") : NULL;
	const char *close = arrow ? strchr(arrow, ')') : NULL;

	table_set_missing(table, row, COPY_FROM, reason);
	table_set_missing(table, row, COPY_TO, reason);
	if (!close)
		return;
	table_set_text(table, row, COPY_FROM, arena_printf(&table->arena, "%.*s", (int)(arrow - open - 1), open + 1));
	table_set_text(table, row, COPY_TO, arena_printf(&table->arena, "%.*s", (int)(close - arrow - 4), arrow + 4));
}

static void copies_set_bytes(struct table *table, int row, const struct copy *copy)
{
	static const char reason[] = "the trace does not give the bytes of every copy";

	if (copy->sized == copy->calls.count && copy->bytes < 0x1p63)
		table_set_int(table, row, COPY_BYTES, (int64_t)copy->bytes);
	else
		table_set_missing(table, row, COPY_BYTES, reason);
	if (copy->rated_ns > 0)
		table_set_double(table, row, COPY_RATE, copy->rated_bytes / ((double)copy->rated_ns / 1e9));
	else
		table_set_missing(table, row, COPY_RATE,
		                  copy->sized ? "these copies have no measurable duration" : reason);
}

static void set_times(struct table *table, int row, const struct copy *copy)
{
	table_set_int(table, row, COPY_COUNT, copy->calls.count);
	table_set_int(table, row, COPY_TOTAL, copy->calls.total_ns);
	table_set_int(table, row, COPY_INCOMPLETE, copy->calls.count - copy->calls.timed);
	if (copy->calls.timed) {
		table_set_double(table, row, COPY_MEAN, (double)copy->calls.timed_ns / (double)copy->calls.timed);
		table_set_int(table, row, COPY_MIN, copy->calls.min_ns);
		table_set_int(table, row, COPY_MAX, copy->calls.max_ns);
		return;
	}
	for (int column = COPY_MEAN; column <= COPY_MAX; column++)
		table_set_missing(table, row, column, "no call has a start and an end in the trace");
}

static void copies_add_row(struct table *table, const struct model *model, const struct copy *copy, int64_t total_ns)
{
	const char *name = model_text(model, copy->name), *direction = direction_of(copy, name);
	int row = table_row(table);

	table_set_text(table, row, COPY_NAME, name);
	if (direction)
		table_set_text(table, row, COPY_DIRECTION, direction);
	else
		table_set_missing(table, row, COPY_DIRECTION,
		                  copy->has_directions ? "copies with this name go in several directions"
		                                       : "not in the trace");
	set_memory(table, row, name);
	copies_set_bytes(table, row, copy);
	set_times(table, row, copy);
	if (total_ns > 0)
		table_set_double(table, row, COPY_RATIO, (double)copy->calls.total_ns / (double)total_ns);
	else
		table_set_missing(table, row, COPY_RATIO, "the copies and fills have no duration");
}

static void copies_fill(struct table *table, const struct copies_fold *fold)
{
	int64_t total_ns = 0;

	for (uint32_t i = 0; i < fold->count; i++)
		clamped_add(&total_ns, fold->copies[i].calls.total_ns);
	table_columns_of(table, columns, COPY_COLUMNS, (double)total_ns);
	table_bound(table, COPY_TOTAL);
	for (uint32_t i = 0; i < fold->count; i++)
		copies_add_row(table, fold->model, &fold->copies[i], total_ns);
	table_add_more(table, COPY_NAME);
	table_sort(table, COPY_DIRECTION, true); /* a copy and a fill may have the same name */
	table_sort(table, COPY_NAME, true);
	table_sort(table, COPY_TOTAL, false);
}

static enum status copies_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct copies_fold fold = {.model = model, .by_name = {.storage = model->storage}};

	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (model->tracks[track]->kind == TRACK_DEVICE)
			copies_fold_track(&fold, context, track);
	table_init(
		table, "copies", "Copies and fills",
		"copies to, from and within devices, and fills, by name; with --steps, those launched in these steps");
	copies_fill(table, &fold);
	if (fold.outside)
		table->note = arena_printf(&table->arena,
		                           "%" PRIu64 " were launched outside the selected steps and are not counted",
		                           fold.outside);
	if (!fold.count)
		table->empty = fold.outside ? "no copy or fill was launched in the selected steps"
		                            : "no device copies or fills were recorded";
	number_map_release(&fold.by_name);
	launch_configs_release(&fold.configs);
	storage_release(model->storage, fold.copies);
	return STATUS_OK;
}

const struct analysis analysis_copies = {
	.name = "copies",
	.row = "name of a copy or fill",
	.question = "which copies and fills run, and how long do they take?",
	.run = copies_run,
	.is_of_devices = true,
};
