/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table_sort.c: see the header.
 */
#include "output/text/torch_table_sort.h"

#include "base/merge_sort.h"
#include "base/options.h"

#include <string.h>

enum torch_sort {
	SORT_CPU_TIME,
	SORT_CPU_TOTAL,
	SORT_SELF_CPU,
	SORT_CPU_MEMORY,
	SORT_SELF_CPU_MEMORY,
	SORT_DEVICE_MEMORY,
	SORT_SELF_DEVICE_MEMORY,
	SORT_DEVICE_TIME,
	SORT_DEVICE_TOTAL,
	SORT_SELF_DEVICE,
	SORT_COUNT,
	SORT_FLOPS,
	SORT_KEY,
	SORT_NOTHING,
};

static const struct {
	const char *name;
	enum torch_sort by;
} sort_names[] = {
	{"cpu_time", SORT_CPU_TIME},
	{"cpu_time_total", SORT_CPU_TOTAL},
	{"self_cpu_time_total", SORT_SELF_CPU},
	{"cpu_memory_usage", SORT_CPU_MEMORY},
	{"self_cpu_memory_usage", SORT_SELF_CPU_MEMORY},
	{"device_memory_usage", SORT_DEVICE_MEMORY},
	{"self_device_memory_usage", SORT_SELF_DEVICE_MEMORY},
	{"device_time", SORT_DEVICE_TIME},
	{"device_time_total", SORT_DEVICE_TOTAL},
	{"self_device_time_total", SORT_SELF_DEVICE},
	{"count", SORT_COUNT},
	{"flops", SORT_FLOPS},
	{"key", SORT_KEY},
	{"node_id", SORT_NOTHING},
};
#define SORT_NAMES (sizeof(sort_names) / sizeof(sort_names[0]))

static int torch_compare_values(const void *left, const void *right)
{
	const struct torch_sorted_row *a = left, *b = right;

	return (a->value < b->value) - (a->value > b->value);
}

static int torch_compare_names(const void *left, const void *right)
{
	const struct torch_sorted_row *a = left, *b = right;

	return strcmp(b->row->first->name, a->row->first->name);
}

static double torch_sort_value(const struct torch_row *row, enum torch_sort by)
{
	switch (by) {
	case SORT_CPU_TIME:
		return row->total_us / (double)row->count;
	case SORT_CPU_TOTAL:
		return row->total_us;
	case SORT_SELF_CPU:
		return row->self_us;
	case SORT_DEVICE_TIME:
		return row->device_us / (double)row->count;
	case SORT_DEVICE_TOTAL:
		return row->device_us;
	case SORT_SELF_DEVICE:
		return row->self_device_us;
	case SORT_CPU_MEMORY:
	case SORT_DEVICE_MEMORY:
		return (double)row->bytes[by == SORT_DEVICE_MEMORY];
	case SORT_SELF_CPU_MEMORY:
	case SORT_SELF_DEVICE_MEMORY:
		return (double)row->self_bytes[by == SORT_SELF_DEVICE_MEMORY];
	case SORT_COUNT:
		return (double)row->count;
	case SORT_FLOPS:
		return row->flops;
	default:
		return 0;
	}
}

/* Writes "self_device_time_total" for "self_cuda_time_total", as torch does. */
static void torch_generic_name(char *out, size_t bytes, const char *name)
{
	static const char *const devices[] = {"cuda", "xpu", "privateuse1"};

	snprintf(out, bytes, "%s", name);
	for (int i = 0; i < 3; i++) {
		const char *found = strstr(name, devices[i]);

		if (found)
			snprintf(out, bytes, "%.*sdevice%s", (int)(found - name), name, found + strlen(devices[i]));
	}
}

static enum status torch_find_sort(const char *name, enum torch_sort *by, struct error *err)
{
	const char *names[SORT_NAMES + 1];
	const char *nearest;
	char wanted[64];

	torch_generic_name(wanted, sizeof(wanted), name);
	for (size_t i = 0; i < SORT_NAMES; i++) {
		names[i] = sort_names[i].name;
		*by = sort_names[i].by;
		if (!strcmp(names[i], wanted))
			return STATUS_OK;
	}
	names[SORT_NAMES] = NULL;
	nearest = nearest_name(wanted, names);
	error_set(err, STATUS_USAGE, "torch.profiler's table cannot be sorted by '%s'", name);
	error_hint(err, "did you mean '%s'?", nearest ? nearest : "self_cpu_time_total");
	return STATUS_USAGE;
}

enum status torch_table_sort(const struct torch_ops *ops, const char *name, struct torch_sorted_row *rows,
                             struct error *err)
{
	enum torch_sort by = SORT_NOTHING;

	if (name && torch_find_sort(name, &by, err))
		return err->status;
	for (uint32_t i = 0; i < ops->row_count; i++)
		rows[i] = (struct torch_sorted_row){&ops->rows[i], torch_sort_value(&ops->rows[i], by)};
	merge_sort(rows, ops->row_count, sizeof(*rows), by == SORT_KEY ? torch_compare_names : torch_compare_values);
	return STATUS_OK;
}
