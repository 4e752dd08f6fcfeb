/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_segments.c: the table `memory_segments`: the memory that the allocator had taken from devices at a memory
 * snapshot. It has how much was used, and how the free part is fragmented.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "base/compare_numbers.h"
#include "base/memory.h"
#include "model/cell_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENTS_PROCESS,
	SEGMENTS_DEVICE,
	SEGMENTS_POOL,
	SEGMENTS_STREAM,
	SEGMENTS_TYPE,
	SEGMENTS_COUNT,
	SEGMENTS_RESERVED,
	SEGMENTS_REQUESTED,
	SEGMENTS_ROUNDING,
	SEGMENTS_PENDING,
	SEGMENTS_FREE,
	SEGMENTS_UNUSED_RATIO,
	SEGMENTS_LARGEST,
	SEGMENTS_RELEASABLE,
	SEGMENTS_COLUMNS,
};

static const struct table_column columns[SEGMENTS_COLUMNS] = {
	[SEGMENTS_PROCESS] = PROCESS_COLUMN,
	[SEGMENTS_DEVICE] = {.name = "device",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "device and its number"},
	[SEGMENTS_POOL] =
		{.name = "pool",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "common; the two numbers of a graph's or MemPool's private pool; or all for the whole device"},
	[SEGMENTS_STREAM] = {.name = "stream",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "only work on this stream gets the blocks; 0 is the default stream"},
	[SEGMENTS_TYPE] = {.name = "type",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "small (blocks up to 1 MiB), large, or expandable (grows and shrinks)"},
	[SEGMENTS_COUNT] = {.name = "segments",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "number of segments that the allocator had taken from the device"},
	[SEGMENTS_RESERVED] = {.name = "reserved_bytes",
                               .title = "reserved",
                               .type = TABLE_INT,
                               .unit = UNIT_BYTES,
                               .definition = "bytes that the allocator had taken from the device",
                               .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_REQUESTED] = {.name = "used_bytes",
                                .title = "allocated",
                                .type = TABLE_INT,
                                .unit = UNIT_BYTES,
                                .definition = "part of reserved_bytes that the program had requested and not freed",
                                .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_ROUNDING] = {.name = "rounding_bytes",
                               .title = "rounding",
                               .type = TABLE_INT,
                               .unit = UNIT_BYTES,
                               .definition = "part of reserved_bytes by which the blocks exceed the requests",
                               .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_PENDING] = {.name = "pending_bytes",
                              .title = "pending",
                              .type = TABLE_INT,
                              .unit = UNIT_BYTES,
                              .definition = "part of reserved_bytes that was freed while a stream may still use it",
                              .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_FREE] = {.name = "free_bytes",
                           .title = "free",
                           .type = TABLE_INT,
                           .unit = UNIT_BYTES,
                           .definition = "rest of reserved_bytes",
                           .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_UNUSED_RATIO] = {.name = "free_ratio",
                                   .title = "free %",
                                   .type = TABLE_DOUBLE,
                                   .unit = UNIT_RATIO,
                                   .role = ROLE_SHARE,
                                   .definition = "free share of the reserved bytes",
                                   .denominator = "reserved_bytes",
                                   .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[SEGMENTS_LARGEST] =
		{.name = "largest_free_bytes",
                 .title = "largest free",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "largest free block; a larger allocation needs new device memory, however much is free",
                 .rules = RULE_NOT_NEGATIVE},
	[SEGMENTS_RELEASABLE] =
		{.name = "releasable_bytes",
                 .title = "releasable",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition =
                         "bytes of segments without blocks in use; torch.cuda.empty_cache() would return them to the device",
                 .rules = RULE_NOT_NEGATIVE},
};

struct pile { /* segments of the same kind */
	const struct memory_segment *first;
	wide_bytes reserved, active, requested, pending, releasable;
	uint64_t largest_free;
	int64_t count;
};

/* Returns "" for unknown types; expandable segments have a separate type. */
static const char *memory_segments_type_of(const struct model *model, const struct memory_segment *segment)
{
	return segment->is_expandable ? "expandable" : model_text(model, segment->type);
}

struct segments_sorted {
	const struct model *model;
	const struct memory_segment *segment;
};

static int compare_alike(const struct segments_sorted *a, const struct segments_sorted *b)
{
	int result = COMPARE_NUMBERS(a->segment->process, b->segment->process);

	result = result ? result : a->segment->device - b->segment->device;
	result = result ? result : COMPARE_NUMBERS(a->segment->pool, b->segment->pool);
	result = result ? result : COMPARE_NUMBERS(a->segment->stream, b->segment->stream);
	return result ? result
	              : strcmp(memory_segments_type_of(a->model, a->segment),
	                       memory_segments_type_of(b->model, b->segment));
}

static int compare_segments(const void *left, const void *right)
{
	const struct segments_sorted *a = left, *b = right;
	int result = compare_alike(a, b);

	return result ? result : (a->segment > b->segment) - (a->segment < b->segment);
}

static void add_segment(struct pile *pile, const struct memory_segment *segment)
{
	pile->first = pile->first ? pile->first : segment;
	pile->reserved += (wide_bytes)segment->bytes;
	pile->active += (wide_bytes)segment->active_bytes;
	pile->requested += (wide_bytes)segment->requested_bytes;
	pile->pending += (wide_bytes)segment->pending_bytes;
	pile->releasable += segment->active_blocks || segment->pending_bytes ? 0 : (wide_bytes)segment->bytes;
	pile->largest_free = segment->largest_free_bytes > pile->largest_free ? segment->largest_free_bytes
	                                                                      : pile->largest_free;
	pile->count++;
}

static void memory_segments_add_row(struct table *table, const struct model *model, const struct pile *pile,
                                    bool is_all)
{
	struct arena *arena = &table->arena;
	const struct memory_segment *first = pile->first;
	wide_bytes unused = pile->reserved - pile->active - pile->pending;
	int row = table_row(table);

	table_set_text(table, row, SEGMENTS_PROCESS, process_label(model, first->process, arena));
	table_set_text(table, row, SEGMENTS_DEVICE, memory_device_name(arena, first->device));
	table_set_text(table, row, SEGMENTS_POOL,
	               is_all        ? CELL_ALL
	               : first->pool ? arena_printf(arena, "%" PRIu64 ", %" PRIu64, first->pool >> 32,
	                                            first->pool & UINT32_MAX)
	                             : "common");
	table_set_text(table, row, SEGMENTS_STREAM, is_all ? CELL_ALL : arena_printf(arena, "%" PRIu64, first->stream));
	if (is_all || *memory_segments_type_of(model, first))
		table_set_text(table, row, SEGMENTS_TYPE, is_all ? CELL_ALL : memory_segments_type_of(model, first));
	else
		table_set_missing(table, row, SEGMENTS_TYPE, "not in the snapshot");
	table_set_int(table, row, SEGMENTS_COUNT, pile->count);
	table_set_int(table, row, SEGMENTS_RESERVED, bytes_that_fit(pile->reserved));
	table_set_int(table, row, SEGMENTS_REQUESTED, bytes_that_fit(pile->requested));
	table_set_int(table, row, SEGMENTS_ROUNDING, bytes_that_fit(pile->active - pile->requested));
	table_set_int(table, row, SEGMENTS_PENDING, bytes_that_fit(pile->pending));
	table_set_int(table, row, SEGMENTS_FREE, bytes_that_fit(unused));
	table_set_int(table, row, SEGMENTS_LARGEST, bytes_that_fit((wide_bytes)pile->largest_free));
	table_set_int(table, row, SEGMENTS_RELEASABLE, bytes_that_fit(pile->releasable));
	if (pile->reserved > 0)
		table_set_double(table, row, SEGMENTS_UNUSED_RATIO, (double)unused / (double)pile->reserved);
	else
		table_set_missing(table, row, SEGMENTS_UNUSED_RATIO, "no memory is reserved");
}

/* Adds the rows of one device, whose segments start at `first`. Returns the end of its segments. */
static uint32_t add_device(struct table *table, const struct segments_sorted *segments, uint32_t first, uint32_t count)
{
	struct pile all = {0}, alike = {0};
	uint32_t end = first;

	for (; end < count && segments[end].segment->process == segments[first].segment->process &&
	       segments[end].segment->device == segments[first].segment->device;
	     end++)
		add_segment(&all, segments[end].segment);
	memory_segments_add_row(table, segments[first].model, &all, true);
	for (uint32_t i = first; i < end; i++) {
		add_segment(&alike, segments[i].segment);
		if (i + 1 < end && compare_alike(&segments[i], &segments[i + 1]) == 0)
			continue;
		memory_segments_add_row(table, segments[i].model, &alike, false);
		alike = (struct pile){0};
	}
	return end;
}

static enum status memory_segments_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct segments_sorted *segments = memory_resize(NULL, (size_t)model->segments_count + 1, sizeof(*segments));

	table_init(table, "memory_segments", "Memory reserved by the allocator",
	           "use and fragmentation of the reserved memory when the snapshot was made");
	table_columns(table, columns, SEGMENTS_COLUMNS);
	for (uint32_t i = 0; i < model->segments_count; i++)
		segments[i] = (struct segments_sorted){model, &model->segments[i]};
	qsort(segments, model->segments_count, sizeof(*segments), compare_segments);
	for (uint32_t i = 0; i < model->segments_count;)
		i = add_device(table, segments, i, model->segments_count);
	free(segments);
	if (!table->row_count)
		table->empty = "only memory snapshots have segments: torch.cuda.memory._dump_snapshot()";
	return STATUS_OK;
}

const struct analysis analysis_memory_segments = {
	.name = "memory_segments",
	.row = "device, pool, stream and type of segment",
	.question = "how much of the memory that the allocator reserved is in use?",
	.run = memory_segments_run,
};
