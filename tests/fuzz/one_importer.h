/* SPDX-License-Identifier: Apache-2.0
 *
 * one_importer.h: any bytes as a file of one importer, whether it would recognise them or not, or of any. What it gives is sound: spans of a
 * track by start and inside of their parents, callers and parents of stacks with smaller numbers, what is used of a segment fits into it; no
 * table breaks what its columns promise, where tables are made; and the same comes out twice.
 */
#ifndef FUZZ_ONE_IMPORTER_H
#define FUZZ_ONE_IMPORTER_H

#include "analysis/report.h"
#include "importers/importer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct imported { /* all as wide: compared as bytes */
	uint64_t status, samples, stacks, tracks, values, spans, marks, memory, segments, links, ledger, sum;
};

static inline void make_tables(const struct model *model, const struct analysis_options *options)
{
	struct report report;
	report_init(&report, model, options, "fuzz");
	for (int i = 0; analyses[i]; i++)
		(void)report_table(&report, analyses[i]->name);
	for (int i = 0; i < report.defect_count; i++)
		fprintf(stderr, "%s\n", report.defects[i]);
	if (report.defect_count)
		abort();
	report_release(&report);
}

static inline void check_chunk(const struct track *track, const struct span_chunk *chunk, struct imported *imported)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
		if (chunk->dur_ns[i] < 0 || (i && chunk->start_ns[i] < chunk->start_ns[i - 1]))
			abort();
		imported->spans++;
		imported->sum += (uint64_t)chunk->dur_ns[i] ^ (uint64_t)chunk->start_ns[i] << 1;
		if (chunk->parent[i] == MODEL_NONE)
			continue;
		uint32_t k;
		const struct span_chunk *parent = track_chunk(track, chunk->parent[i], &k);
		if (chunk->start_ns[i] < parent->start_ns[k] || end_ns > parent->start_ns[k] + parent->dur_ns[k])
			abort();
	}
}

static inline void check_segment(const struct model *model, const struct memory_segment *segment)
{
	if (segment->active_bytes > segment->bytes || segment->pending_bytes > segment->bytes - segment->active_bytes ||
	    segment->requested_bytes > segment->active_bytes ||
	    segment->largest_free_bytes > segment->bytes - segment->active_bytes - segment->pending_bytes)
		abort();
	if (segment->stack && segment->stack >= model->stacks_count)
		abort();
}

static inline void check_memory(const struct model *model, const struct memory_event *event, struct imported *imported)
{
	if ((event->stack && event->stack >= model->stacks_count) || event->track >= model->tracks_count ||
	    (event->row != MODEL_NONE && event->row >= model->tracks[event->track]->span_count))
		abort();
	imported->sum += event->bytes ^ (uint64_t)event->time_ns;
}

static inline void check_model(const struct model *model, struct imported *imported)
{
	for (uint32_t t = 0; t < model->tracks_count; t++)
		for (uint32_t c = 0; c < model->tracks[t]->chunk_count; c++)
			check_chunk(model->tracks[t], model->tracks[t]->chunks[c], imported);
	for (uint32_t i = 0; i < model->segments_count; i++)
		check_segment(model, &model->segments[i]);
	for (uint32_t i = 0; i < model->memory_count; i++)
		check_memory(model, &model->memory[i], imported);
	for (uint32_t i = 1; i < model->stacks_count; i++)
		if (model->stacks[i].parent >= i)
			abort();
	for (uint32_t i = 0; i < model->samples_count; i++)
		imported->sum += model->samples[i].weight ^ (uint64_t)model->samples[i].time_ns << 1;
	for (uint32_t i = 0; i < model->series_count; i++)
		imported->values += model->series[i]->count;
}

/* importer: NULL: the one that recognises it. */
static inline struct imported import_once(const struct importer *importer, const char *path, bool has_tables)
{
	const struct model_filter filter = {0};
	struct model model;
	struct error err;
	struct imported imported = {0};
	model_init(&model, 0);
	imported.status = importer ? importer_load(importer, path, &filter, &model, &err)
	                           : import_path(path, &filter, &model, &err);
	if (imported.status != STATUS_OK && imported.status != STATUS_INPUT)
		abort();
	if (imported.status == STATUS_OK) {
		if (importer)
			model_finish(&model);
		check_model(&model, &imported);
		if (has_tables)
			make_tables(&model, &(struct analysis_options){.by = BY_THREAD});
	}
	imported.samples = model.samples_count;
	imported.stacks = model.stacks_count;
	imported.tracks = model.tracks_count;
	imported.marks = model.marks_count;
	imported.memory = model.memory_count;
	imported.segments = model.segments_count;
	imported.links = model.links_count;
	imported.ledger = model.ledger_count;
	model_release(&model);
	return imported;
}

static inline void import_twice(const struct importer *importer, const char *path, bool has_tables)
{
	struct imported first = import_once(importer, path, false), second = import_once(importer, path, has_tables);
	if (memcmp(&first, &second, sizeof first) != 0)
		abort();
}

static inline void import_bytes(const struct importer *importer, const uint8_t *data, size_t size, bool has_tables)
{
	char path[64];
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	import_twice(importer, path, has_tables);
	if (importer)
		(void)importer->recognises(path, false, (const char *)data, size < 4096 ? size : 4096);
	close(fd);
}

#endif
