/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_snapshot.c: reads any bytes as a memory snapshot of PyTorch's CUDA allocator. What it gives is sound: what is used of a segment fits into
 * it, stacks lead to their roots, and it is the same a second time.
 */
#include "importers/importer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const struct importer importer_snapshot;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct summary {
	uint64_t status, memory, bytes, segments, stacks, spans, ledger; /* all as wide: compared as bytes */
};

static void check_segment(const struct model *model, const struct memory_segment *segment)
{
	if (segment->active_bytes > segment->bytes || segment->pending_bytes > segment->bytes - segment->active_bytes ||
	    segment->requested_bytes > segment->active_bytes ||
	    segment->largest_free_bytes > segment->bytes - segment->active_bytes - segment->pending_bytes)
		abort();
	if (segment->stack && segment->stack >= model->stacks_count)
		abort();
}

static void check_memory(const struct model *model, const struct memory_event *event, struct summary *summary)
{
	if ((event->stack && event->stack >= model->stacks_count) || event->track >= model->tracks_count ||
	    (event->row != MODEL_NONE && event->row >= model->tracks[event->track]->span_count))
		abort();
	summary->bytes += event->bytes ^ (uint64_t)event->time_ns;
}

static struct summary read_once(const char *path)
{
	struct model model;
	struct error err;
	struct summary summary = {0};
	model_init(&model, 0);
	summary.status = importer_snapshot.load(path, &(struct model_filter){0}, &model, &err);
	if (summary.status != STATUS_OK && summary.status != STATUS_INPUT)
		abort();
	if (summary.status == STATUS_OK)
		model_finish(&model);
	for (uint32_t i = 0; summary.status == STATUS_OK && i < model.segments_count; i++)
		check_segment(&model, &model.segments[i]);
	for (uint32_t i = 0; summary.status == STATUS_OK && i < model.memory_count; i++)
		check_memory(&model, &model.memory[i], &summary);
	for (uint32_t i = 1; i < model.stacks_count; i++)
		if (model.stacks[i].parent >= i)
			abort();
	for (uint32_t i = 0; i < model.tracks_count; i++)
		summary.spans += model.tracks[i]->span_count;
	summary.memory = model.memory_count;
	summary.segments = model.segments_count;
	summary.stacks = model.stacks_count;
	summary.ledger = model.ledger_count;
	model_release(&model);
	return summary;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct summary first = read_once(path), second = read_once(path);
	if (memcmp(&first, &second, sizeof first) != 0)
		abort();
	close(fd);
	return 0;
}
