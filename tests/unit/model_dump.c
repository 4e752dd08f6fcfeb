/* SPDX-License-Identifier: Apache-2.0
 *
 * model_dump FILE: what an importer made of a file, as one JSON document, for tests that count the same in the file by themselves: spans
 * by kind and name with their number and the sum of their durations, and how much there is of everything else.
 */
#include "base/json_write.h"
#include "base/memory.h"
#include "importers/importer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sums {
	uint32_t name;
	uint8_t kind;
	int64_t count, dur_ns, self_ns, launched;
};

struct dump {
	const struct model *model;
	struct sums *rows; /* by kind and name */
	uint64_t clipped, lost_ends;
};

static bool add_span(void *context, const struct span_view *span)
{
	struct dump *dump = context;
	if ((span->kind == SPAN_STEP || span->kind == SPAN_PHASE) && span->flags & SPAN_IS_INFERRED)
		return true; /* no event of the trace */
	struct sums *sums = &dump->rows[(size_t)span->name * SPAN_KIND_COUNT + span->kind];
	sums->count++;
	sums->dur_ns += span->dur_ns;
	sums->self_ns += span->self_ns;
	dump->clipped += (span->flags & SPAN_IS_CLIPPED) != 0;
	dump->lost_ends += (span->flags & SPAN_END_IS_LOST) != 0;
	return true;
}

static void put(struct json_writer *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

static void put_spans(struct json_writer *json, struct dump *dump)
{
	const struct model *model = dump->model;
	dump->rows = memory_resize(NULL, (size_t)model->strings.count * SPAN_KIND_COUNT, sizeof *dump->rows);
	memset(dump->rows, 0, (size_t)model->strings.count * SPAN_KIND_COUNT * sizeof *dump->rows);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		model_visit_spans(model, i, add_span, dump);
	json_key(json, "spans");
	json_array_begin(json);
	for (size_t i = 0; i < (size_t)model->strings.count * SPAN_KIND_COUNT; i++) {
		if (!dump->rows[i].count)
			continue;
		json_object_begin(json);
		json_key(json, "kind"), json_string(json, span_kind_name((enum span_kind)(i % SPAN_KIND_COUNT)));
		json_key(json, "name"), json_string(json, model_text(model, (uint32_t)(i / SPAN_KIND_COUNT)));
		put(json, "count", dump->rows[i].count);
		put(json, "dur_ns", dump->rows[i].dur_ns);
		put(json, "self_ns", dump->rows[i].self_ns);
		json_object_end(json);
	}
	json_array_end(json);
	free(dump->rows);
}

static void put_ledger(struct json_writer *json, const struct model *model)
{
	json_key(json, "ledger");
	json_array_begin(json);
	for (uint32_t i = 0; i < model->ledger_count; i++) {
		json_object_begin(json);
		put(json, "kind", model->ledger[i].kind);
		put(json, "count", (int64_t)model->ledger[i].count);
		put(json, "first_offset",
		    model->ledger[i].has_first_offset ? (int64_t)model->ledger[i].first_offset : -1);
		json_key(json, "text"), json_string(json, model_text(model, model->ledger[i].text));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_steps(struct json_writer *json, const struct model *model)
{
	json_key(json, "steps");
	json_array_begin(json);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		json_object_begin(json);
		put(json, "process", model->steps[i].process);
		put(json, "number", model->steps[i].number);
		put(json, "dur_ns", model->steps[i].end_ns - model->steps[i].start_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_processes(struct json_writer *json, const struct model *model)
{
	json_key(json, "processes");
	json_array_begin(json);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		json_object_begin(json);
		put(json, "pid", model->processes[i].pid);
		put(json, "rank", model->processes[i].rank);
		put(json, "world_size", model->processes[i].world_size);
		put(json, "first_ns", model->processes[i].first_ns);
		put(json, "realtime_offset_ns", model->processes[i].realtime_offset_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static int64_t count_values(const struct model *model)
{
	int64_t count = 0;
	for (uint32_t i = 0; i < model->series_count; i++)
		count += model->series[i]->count;
	return count;
}

static int64_t sum_bytes(const struct model *model)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < model->memory_count; i++)
		if (!model->memory[i].is_free)
			bytes += (int64_t)model->memory[i].bytes;
	return bytes;
}

static void dump_model(const struct model *model)
{
	struct dump dump = {.model = model};
	struct json_writer json;
	struct buffer out;
	buffer_init(&out, (size_t)1 << 31);
	json_writer_init(&json, &out, JSON_PRETTY);
	json_object_begin(&json);
	put_spans(&json, &dump);
	put_processes(&json, model);
	put_steps(&json, model);
	put_ledger(&json, model);
	put(&json, "tracks", model->tracks_count);
	put(&json, "clipped", (int64_t)dump.clipped);
	put(&json, "lost_ends", (int64_t)dump.lost_ends);
	put(&json, "allocations", model->memory_count);
	put(&json, "allocated_bytes", sum_bytes(model));
	put(&json, "marks", model->marks_count);
	put(&json, "values", count_values(model));
	put(&json, "links", model->links_count);
	json_object_end(&json);
	fwrite(out.data, 1, out.length, stdout);
	buffer_release(&out);
}

int main(int argc, char **argv)
{
	struct model model;
	struct error err = {0};
	if (argc != 2)
		return 2;
	model_init(&model, 0);
	enum status status = import_path(argv[1], &(struct model_filter){0}, &model, &err);
	if (status == STATUS_OK)
		dump_model(&model);
	else
		fprintf(stderr, "model_dump: %s\n", err.text);
	model_release(&model);
	return status_exit(status);
}
