/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_memory.c: memory as parts of a run: allocations alive at the peak of the fullest device of a process, by
 * purpose and by the operation that allocated them. For a memory snapshot the memory reserved by the allocator is
 * added. Each level sums to the peak, or to the reserved memory. Without a device it is the host memory of the fullest
 * process, at separate levels, because the two are not comparable.
 */
#include "compare/compared.h"
#include "model/cell_words.h"

#include <string.h>

struct compared_memory_pool { /* cells of its row in the table `memory`; NULL: there is no pool */
	const char *process, *device;
	double peak;
};

static bool is_host(const char *device)
{
	return !strncmp(device, "host", 4);
}

/* Finds the pool with the largest peak. If one peak is unknown, it finds none. */
static struct compared_memory_pool find_fullest(const struct table *memory, bool of_host)
{
	struct compared_memory_pool fullest = {0};
	int column = table_find_column(memory, "peak_bytes");

	for (int row = 0; row < memory->row_count; row++) {
		const char *device = compared_text_at(memory, row, "device");
		double peak = compared_number_at(memory, row, "peak_bytes");

		if (strcmp(compared_text_at(memory, row, "category"), "all") != 0 || is_host(device) != of_host)
			continue;
		if (!table_get(memory, row, column)->has_value)
			return (struct compared_memory_pool){0};
		if (peak <= fullest.peak)
			continue;
		fullest = (struct compared_memory_pool){compared_text_at(memory, row, "process"), device, peak};
	}
	return fullest;
}

static bool is_of_pool(const struct table *table, int row, const struct compared_memory_pool *pool)
{
	return !strcmp(compared_text_at(table, row, "process"), pool->process) &&
	       !strcmp(compared_text_at(table, row, "device"), pool->device);
}

/* A level that is read from a table. */
struct memory_source {
	const char *level, *host_level, *table, *name, *bytes;
	const char *unknown; /* name for rows without one */
};

static const struct memory_source sources[] = {
	{COMPARED_MEMORY "category", COMPARED_MEMORY "category of the host", "memory", "category", "at_peak_bytes",
         NULL},
	{COMPARED_MEMORY "operation", COMPARED_MEMORY "operation of the host", "memory_peak", "allocated_by",
         "alive_bytes", "(nothing was open)"},
	{COMPARED_MEMORY "module", COMPARED_MEMORY "module of the host", "memory_modules", "module", "alive_bytes",
         "(outside of modules)"},
	{COMPARED_MEMORY "line", COMPARED_MEMORY "line of the host", "memory_lines", "line", "alive_bytes",
         "(no line of the program)"},
};

static void read_source(struct compared_run *run, struct report *report, const struct memory_source *source,
                        const struct compared_memory_pool *pool)
{
	const struct table *table = report_table(report, source->table);
	bool is_peak = strcmp(source->table, "memory") !=
	               0; /* the table `memory` counts all allocations, not those alive */

	for (int row = 0; row < table->row_count; row++) {
		const char *name = compared_text_at(table, row, source->name);
		struct compared_part part = {.level = is_host(pool->device) ? source->host_level : source->level,
		                             .name = name ? name : source->unknown,
		                             .amount = compared_number_at(table, row, source->bytes),
		                             .has_calls = is_peak,
		                             .calls = is_peak ? compared_number_at(table, row, "live_allocations") : 0};

		if (is_of_pool(table, row, pool) && part.amount > 0 && strcmp(part.name, CELL_ALL) != 0)
			compared_run_add_part(run, &part);
	}
}

/* Free memory is listed by its largest block and the rest, because only contiguous memory is useful. */
static void read_reserved(struct compared_run *run, struct report *report, const struct compared_memory_pool *pool)
{
	static const char *const parts[][2] = {{"used_bytes", "allocated"},
	                                       {"rounding_bytes", "rounding of blocks"},
	                                       {"pending_bytes", "given back, still in use by a stream"},
	                                       {"largest_free_bytes", "free, in the largest block"}};
	const struct table *table = report_table(report, "memory_segments");

	for (int row = 0; row < table->row_count; row++) {
		struct compared_part part = {.level = COMPARED_MEMORY "reserved"};
		double rest = compared_number_at(table, row, "free_bytes") -
		              compared_number_at(table, row, "largest_free_bytes");

		if (!is_of_pool(table, row, pool) || strcmp(compared_text_at(table, row, "pool"), "all") != 0)
			continue;
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			part.name = parts[i][1];
			part.amount = compared_number_at(table, row, parts[i][0]);
			compared_run_add_part(run, &part);
		}
		part.name = "free, in smaller blocks";
		part.amount = rest;
		compared_run_add_part(run, &part);
	}
}

void compared_read_memory(struct compared_run *run, struct report *report)
{
	const struct table *memory = report_table(report, "memory");
	struct compared_memory_pool pool = find_fullest(memory, false);

	if (!pool.device)
		pool = find_fullest(memory, true);
	if (!pool.device)
		return;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		read_source(run, report, &sources[i], &pool);
	read_reserved(run, report, &pool);
}
