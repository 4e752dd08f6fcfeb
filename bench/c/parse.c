/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c FILE ROUNDS: measures the time to read the events of a trace into eight columns, with one thread. The rounds
 * run in one process, so that memory and file are warm. Prints, for each round, the CPU seconds, the CPU seconds of
 * reading the text alone, and the number of events with a time.
 */
#include "base/intern.h"
#include "base/memory.h"
#include "importers/kineto/kineto_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct row {
	int64_t start_ns, dur_ns;
	uint64_t correlation, external_id;
	uint32_t name, kind, track, shape;
};

struct columns {
	struct row *rows;
	uint32_t count, capacity;
	struct intern texts; /* names, and shapes as in the file */
	struct places {
		int64_t pid, tid;
	} places[4096]; /* tracks, by a hash of both numbers */
};

static uint32_t text_of(struct columns *columns, const struct kineto_event *event, int value)
{
	const struct kineto_value *text = &event->values[value];
	return event->set >> value & 1 ? intern_add_n(&columns->texts, text->at, text->length) : 0;
}

static uint32_t track_of(struct columns *columns, const struct kineto_event *event)
{
	struct places place = {0, 0};
	kineto_integer(&event->fields[KINETO_EVENT_PID], &place.pid);
	kineto_integer(&event->fields[KINETO_EVENT_TID], &place.tid);
	uint32_t track = (uint32_t)(place.pid * 31 + place.tid) % 4096;
	columns->places[track] = place;
	return track;
}

static uint64_t number_of(const struct kineto_event *event, enum kineto_key key)
{
	uint64_t number = 0;
	if (event->set >> (KINETO_EVENT_FIELD_COUNT + key) & 1)
		kineto_unsigned(&event->known[key], &number);
	return number;
}

static void take_event(void *context, const struct kineto_event *event, uint64_t offset)
{
	struct columns *columns = context;
	struct row row = {0};
	if (!kineto_nanoseconds(&event->fields[KINETO_EVENT_TS], &row.start_ns))
		return;
	if (event->set >> KINETO_EVENT_DUR & 1)
		kineto_nanoseconds(&event->fields[KINETO_EVENT_DUR], &row.dur_ns);
	row.name = text_of(columns, event, KINETO_EVENT_NAME);
	row.kind = kineto_kind_of(event).kind;
	row.shape = text_of(columns, event, KINETO_EVENT_FIELD_COUNT + KINETO_ARG_INPUT_DIMS);
	row.track = track_of(columns, event);
	row.correlation = number_of(event, KINETO_ARG_CORRELATION);
	row.external_id = number_of(event, KINETO_ARG_EXTERNAL_ID);
	MEMORY_GROW(columns->rows, columns->count, columns->capacity, 1 << 16);
	columns->rows[columns->count++] = row;
}

static void take_fact(void *context, const struct kineto_value *key, const struct kineto_value *value) {}

static void progress(void *context) {}

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct input_stream *open_file(const char *path)
{
	struct input_stream *input;
	struct error err;
	if (input_open(path, &input, &err) == STATUS_OK)
		return input;
	fprintf(stderr, "parse: cannot read the trace\n");
	exit(1);
}

static double read_seconds(const char *path)
{
	struct input_stream *input = open_file(path);
	struct kineto_text text;
	double start = cpu_seconds();
	kineto_text_init(&text, input);
	while (kineto_text_more(&text))
		text.begin = text.end;
	double seconds = cpu_seconds() - start;
	kineto_text_release(&text);
	input_close(input);
	return seconds;
}

static double parse_seconds(struct columns *columns, const char *path)
{
	static struct kineto_file file;
	const struct kineto_visitor visitor = {take_event, take_fact, progress, columns};
	struct input_stream *input = open_file(path);
	double start = cpu_seconds();
	columns->count = 0;
	kineto_file_init(&file, input, &visitor);
	kineto_file_read(&file);
	double seconds = cpu_seconds() - start;
	kineto_file_release(&file);
	input_close(input);
	return seconds;
}

int main(int argc, char **argv)
{
	static struct columns columns;
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	intern_init(&columns.texts);
	for (long i = 0; i < rounds; i++) {
		double seconds = parse_seconds(&columns, argv[1]);
		printf("%.6f %.6f %u\n", seconds, read_seconds(argv[1]), columns.count);
	}
	free(columns.rows);
	intern_release(&columns.texts);
	return 0;
}
