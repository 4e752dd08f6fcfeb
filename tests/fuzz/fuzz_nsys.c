/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_nsys.c: reads any bytes as an SQLite export of nsys. What it gives is sound: spans of a track by start, inside of their parents; and the
 * same a second time.
 */
#include "importers/importer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct importer importer_nsys;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct summary {
	uint64_t status, spans, sum_ns, marks, memory, links, ledger; /* all as wide: compared as bytes */
};

static void check_chunk(const struct track *track, const struct span_chunk *chunk, struct summary *summary)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
		if (chunk->dur_ns[i] < 0 || (i && chunk->start_ns[i] < chunk->start_ns[i - 1]))
			abort();
		summary->spans++;
		summary->sum_ns += (uint64_t)chunk->dur_ns[i] ^ (uint64_t)chunk->start_ns[i] << 1;
		if (chunk->parent[i] == MODEL_NONE)
			continue;
		uint32_t k;
		const struct span_chunk *parent = track_chunk(track, chunk->parent[i], &k);
		if (chunk->start_ns[i] < parent->start_ns[k] || end_ns > parent->start_ns[k] + parent->dur_ns[k])
			abort();
	}
}

static struct summary read_once(const char *path)
{
	struct model model;
	struct error err;
	struct summary summary = {0};
	model_init(&model, 0);
	summary.status = importer_nsys.load(path, &(struct model_filter){0}, &model, &err);
	if (summary.status == STATUS_OK)
		model_finish(&model);
	if (summary.status != STATUS_OK && summary.status != STATUS_INPUT)
		abort();
	for (uint32_t t = 0; summary.status == STATUS_OK && t < model.tracks_count; t++)
		for (uint32_t c = 0; c < model.tracks[t]->chunk_count; c++)
			check_chunk(model.tracks[t], model.tracks[t]->chunks[c], &summary);
	summary.marks = model.marks_count;
	summary.memory = model.memory_count;
	summary.links = model.links_count;
	summary.ledger = model.ledger_count;
	model_release(&model);
	return summary;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/fuzz_nsys_XXXXXX"; /* SQLite opens no file that has no name */
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	struct summary first = read_once(path), second = read_once(path);
	if (memcmp(&first, &second, sizeof first) != 0)
		abort();
	close(fd);
	unlink(path);
	return 0;
}
