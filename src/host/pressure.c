/* SPDX-License-Identifier: Apache-2.0
 *
 * pressure.c: pressure stall information: the share of time in which some (or all) threads of the machine waited for
 * CPU, disk or memory. The ratios cover the last second; avg10 is the kernel's own mean over ten seconds.
 */
#include "host/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pressure_line { /* "some" or "full" */
	uint32_t ratio, average;
	struct host_rate rate;
};

struct resource {
	struct host_file file;
	bool has_counters;
	struct pressure_line some, full;
};

struct pressure {
	struct resource cpu, io, memory;
};

/* Parses "some avg10=0.12 avg60=0.00 avg300=0.00 total=1234", total in microseconds. */
static void pressure_sample_line(struct host *host, struct pressure_line *line, const char *text, const char *word)
{
	const char *found = strstr(text, word);
	const char *average, *total;

	if (!found || (found != text && found[-1] != '\n'))
		return;
	average = strstr(found, "avg10=");
	total = strstr(found, "total=");
	if (!average || !total)
		return;
	host_value(host, line->average, strtod(average + 6, NULL) / 100);
	host_rate_value(host, &line->rate, line->ratio, strtoull(total + 6, NULL, 10), 1e-6);
}

static void sample_resource(struct host *host, struct resource *resource, const char *name)
{
	char path[64];
	const char *text;

	snprintf(path, sizeof(path), "/proc/pressure/%s", name);
	text = host_file_read(host, &resource->file, path);
	if (!text)
		return;
	if (!resource->has_counters) {
		resource->some.ratio = host_counter(host, "pressure.%s.some_ratio", name);
		resource->some.average = host_counter(host, "pressure.%s.some_avg10_ratio", name);
		resource->full.ratio = host_counter(host, "pressure.%s.full_ratio", name);
		resource->full.average = host_counter(host, "pressure.%s.full_avg10_ratio", name);
		resource->has_counters = true;
	}
	pressure_sample_line(host, &resource->some, text, "some ");
	pressure_sample_line(host, &resource->full, text, "full ");
}

static void pressure_sample(struct host *host, void *state)
{
	struct pressure *pressure = state;

	sample_resource(host, &pressure->cpu, "cpu");
	sample_resource(host, &pressure->io, "io");
	sample_resource(host, &pressure->memory, "memory");
}

static void pressure_close_files(void *state)
{
	struct pressure *pressure = state;

	host_file_close(&pressure->cpu.file);
	host_file_close(&pressure->io.file);
	host_file_close(&pressure->memory.file);
}

const struct host_source host_pressure = {"pressure", sizeof(struct pressure), NULL, pressure_sample,
                                          pressure_close_files};
