/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_converted.c: one converted recording -> model, with all checksums put right first. What it gives is sound: spans by start within
 * their parents, references to what is there.
 */
#include "importers/importer.h"
#include "sealed.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_chunk(const struct model *model, const struct track *track, const struct span_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		uint32_t k;
		if (chunk->dur_ns[i] < 0 || (i && chunk->start_ns[i] < chunk->start_ns[i - 1]) ||
		    chunk->name[i] >= model->strings.count || chunk->kind[i] >= SPAN_KIND_COUNT)
			abort();
		if (chunk->parent[i] == MODEL_NONE)
			continue;
		const struct span_chunk *parent = track_chunk(track, chunk->parent[i], &k);
		if (chunk->start_ns[i] < parent->start_ns[k] ||
		    chunk->start_ns[i] + chunk->dur_ns[i] > parent->start_ns[k] + parent->dur_ns[k])
			abort();
	}
}

static void load(const void *bytes, size_t size)
{
	char path[64];
	struct model model;
	struct error err;
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	model_init(&model, 1 << 20);
	enum status status = import_path(path, &(struct model_filter){0}, &model, &err);
	for (uint32_t t = 0; status == STATUS_OK && t < model.tracks_count; t++)
		for (uint32_t c = 0; c < model.tracks[t]->chunk_count; c++)
			check_chunk(&model, model.tracks[t], model.tracks[t]->chunks[c]);
	model_release(&model);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = sealed_copy(data, size);
	struct stepscope_segment_header header;
	if (size >= sizeof header) { /* whatever it was, now it is one of these */
		memcpy(&header, bytes, sizeof header);
		memcpy(header.magic, STEPSCOPE_SEGMENT_MAGIC, sizeof header.magic);
		header.header_bytes = sizeof header;
		header.flags = STEPSCOPE_SEGMENT_CONVERTED;
		segment_header_seal(&header);
		memcpy(bytes, &header, sizeof header);
	}
	load(bytes, size);
	free(bytes);
	return 0;
}
