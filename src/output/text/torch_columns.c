/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_columns.c: see the header.
 */
#include "output/text/torch_columns.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define TORCH_WIDTH 12 /* of columns with numbers */

size_t torch_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((uint8_t)*text & 0xc0) != 0x80;
	return count;
}

static void torch_add_column(struct torch_columns *columns, const char *header, int64_t width)
{
	columns->headers[columns->count] = header;
	columns->widths[columns->count++] = width;
}

static int64_t torch_least(int64_t width, int64_t maximum)
{
	return maximum == TORCH_TABLE_NO_LIMIT || width < maximum ? width : maximum;
}

static void torch_name_device(struct torch_columns *columns, const struct torch_table *table)
{
	const char *device = table->device ? table->device : "None";
	size_t i;

	for (i = 0; device[i] && i + 1 < sizeof(columns->device); i++)
		columns->device[i] = table->device ? (char)toupper((unsigned char)device[i]) : device[i];
	columns->device[i] = '\0';
}

static void torch_add_device_times(struct torch_columns *columns, const struct torch_ops *ops,
                                   const struct torch_table *table)
{
	static const char *const titles[] = {"Self %s", "Self %s %%", "%s total", "%s time avg"};

	for (uint32_t row = 0; row < ops->row_count; row++)
		columns->has_device_time |= table->device && ops->rows[row].self_device_us > 0;
	for (int i = 0; columns->has_device_time && i < 4; i++) {
		const char *place = strstr(titles[i], "%s");

		snprintf(columns->titles[3 + i], sizeof(columns->titles[0]), "%.*s%s%s", (int)(place - titles[i]),
		         titles[i], columns->device, i == 1 ? " %" : place + 2);
		torch_add_column(columns, columns->titles[3 + i], TORCH_WIDTH);
	}
}

static void torch_add_device_memory(struct torch_columns *columns, const struct torch_ops *ops,
                                    const struct torch_table *table)
{
	for (uint32_t row = 0; row < ops->row_count; row++)
		columns->has_device_bytes |= table->device && ops->rows[row].self_bytes[1] > 0;
	if (!columns->has_device_bytes)
		return;
	snprintf(columns->titles[0], sizeof(columns->titles[0]), "%s Mem", columns->device);
	snprintf(columns->titles[1], sizeof(columns->titles[1]), "Self %s Mem", columns->device);
	torch_add_column(columns, columns->titles[0], TORCH_WIDTH);
	torch_add_column(columns, columns->titles[1], TORCH_WIDTH);
}

static void torch_add_source(struct torch_columns *columns, const struct torch_ops *ops,
                             const struct torch_table *table)
{
	size_t longest = 0;

	for (uint32_t i = 0; i < ops->row_count; i++) {
		for (const char *at = ops->rows[i].first->source; *at; at += strcspn(at, "\n"), at += *at == '\n') {
			char line[4096];

			snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
			size_t length = torch_characters(line);

			longest = length > longest ? length : longest;
		}
	}
	columns->has_source = longest > 0;
	columns->source_column = columns->count;
	if (columns->has_source)
		torch_add_column(columns, "Source Location", torch_least((int64_t)longest + 4, table->source_width));
}

/* The unit depends on the smallest number. */
static void torch_add_flops(struct torch_columns *columns, const struct torch_ops *ops, const struct torch_table *table)
{
	static const char *const units[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
	double smallest = 0;

	for (uint32_t i = 0; i < ops->row_count; i++) {
		double flops = ops->rows[i].flops;

		if (flops > 0 && (smallest <= 0 || flops < smallest))
			smallest = flops;
	}
	columns->has_flops = table->has_flops && smallest > 0;
	if (!columns->has_flops)
		return;
	double power = floor(fmax(0, fmin(log10(smallest) / 3, 5)));

	columns->flops_scale = pow(10, -3 * power);
	snprintf(columns->titles[2], sizeof(columns->titles[2]), "Total %s", units[(int)power]);
	torch_add_column(columns, columns->titles[2], TORCH_WIDTH);
}

void torch_columns_find(struct torch_columns *columns, const struct torch_ops *ops, const struct torch_table *table)
{
	static const char *const times[] = {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"};
	size_t longest_name = 0, longest_shapes = 0;

	*columns = (struct torch_columns){.count = 0};
	for (uint32_t i = 0; i < ops->row_count; i++) {
		size_t name = torch_characters(ops->rows[i].first->name),
		       shapes = torch_characters(ops->rows[i].first->shapes);

		longest_name = name > longest_name ? name : longest_name;
		longest_shapes = shapes > longest_shapes ? shapes : longest_shapes;
		columns->has_shapes |= table->has_shapes && ops->rows[i].first->shapes[1] != ']';
	}
	torch_add_column(columns, "Name", torch_least((int64_t)longest_name + 4, table->name_width));
	for (int i = 0; i < 5; i++)
		torch_add_column(columns, times[i], TORCH_WIDTH);
	torch_name_device(columns, table);
	torch_add_device_times(columns, ops, table);
	if (table->has_memory) {
		torch_add_column(columns, "CPU Mem", TORCH_WIDTH);
		torch_add_column(columns, "Self CPU Mem", TORCH_WIDTH);
		torch_add_device_memory(columns, ops, table);
	}
	torch_add_column(columns, "# of Calls", TORCH_WIDTH);
	if (columns->has_shapes)
		torch_add_column(columns, "Input Shapes",
		                 torch_least((int64_t)longest_shapes + 4, table->shapes_width));
	torch_add_source(columns, ops, table);
	torch_add_flops(columns, ops, table);
}
