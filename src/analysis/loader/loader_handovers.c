/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_handovers.c: see the header. The spans have their facts as arguments (src/agents/python/handover.c).
 */
#include "analysis/loader/loader_handovers.h"

#include "analysis/loader/loader_batches.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "model/number_map.h"
#include "pytorch/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handover_search {
	struct loader_handovers *handovers;
	const struct model *model;
	uint32_t capacity;
	uint32_t names[HANDOVER_KINDS], keys[4]; /* strings, 0: not in the recording */
	struct number_map seeds;
};

/* The process notes the loop of each thread that pins. */
static bool handover_pinning(const struct model *model, const struct track *track, uint64_t *loop)
{
	char key[80];

	snprintf(key, sizeof(key), "data_loader.pinning.%" PRId64, track->tid);
	const char *text = model_meta(model, track->process, key);
	if (text)
		*loop = strtoull(text, NULL, 10);
	return text != NULL;
}

/* Returns false if the loop is unknown. */
static bool handover_place(const struct handover_search *search, struct loader_handover *handover,
                           const struct track *track, bool has_loop)
{
	handover->process = track->process;
	handover->worker = MODEL_NONE;
	if (handover->kind != HANDOVER_PICKLE)
		return has_loop || handover_pinning(search->model, track, &handover->loop);
	handover->worker = track->process;
	return loader_seeds_loop(&search->seeds, search->model, track->process, &handover->process, &handover->loop);
}

static void handover_add(struct handover_search *search, struct loader_handover *handover, uint32_t track_number,
                         uint32_t row, bool has_loop)
{
	const struct track *track = search->model->tracks[track_number];
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(track, row, &index);

	handover->kind = HANDOVER_KINDS;
	for (int kind = 0; kind < HANDOVER_KINDS; kind++)
		if (search->names[kind] && chunk->name[index] == search->names[kind])
			handover->kind = (enum loader_handover_kind)kind;
	if (handover->kind == HANDOVER_KINDS || !span_is_timed(chunk->flags[index]) ||
	    !handover_place(search, handover, track, has_loop))
		return;
	handover->start_ns = chunk->start_ns[index];
	handover->dur_ns = chunk->dur_ns[index];
	MEMORY_GROW(search->handovers->list, search->handovers->count, search->capacity, 256);
	search->handovers->list[search->handovers->count++] = *handover;
}

/* Reads the arguments of one span, from args[first] on. Returns the index after them. */
static uint32_t handover_read(struct handover_search *search, uint32_t first)
{
	const struct model *model = search->model;
	const struct span_arg *args = model->args;
	struct loader_handover handover = {.batch = -1, .worker_number = -1};
	bool has_any = false, has_loop = false;
	uint32_t i = first;

	for (; i < model->args_count && args[i].track == args[first].track && args[i].row == args[first].row; i++)
		for (int key = 0; key < 4; key++) {
			if (!search->keys[key] || args[i].key != search->keys[key])
				continue;
			has_any = true;
			has_loop |= key == PYTORCH_LOADER_KEY_LOOP;
			if (key == PYTORCH_LOADER_KEY_LOOP)
				handover.loop = args[i].u64;
			else
				*(key == PYTORCH_LOADER_KEY_BATCH    ? &handover.batch
				  : key == PYTORCH_LOADER_KEY_WORKER ? &handover.worker_number
				                                     : &handover.bytes) = args[i].i64;
		}
	if (has_any)
		handover_add(search, &handover, args[first].track, args[first].row, has_loop);
	return i;
}

void loader_handovers_find(struct loader_handovers *handovers, const struct model *model)
{
	struct handover_search search = {.handovers = handovers,
	                                 .model = model,
	                                 .names = {intern_find(&model->strings, PYTORCH_LOADER_DISPATCH),
	                                           intern_find(&model->strings, PYTORCH_LOADER_PICKLE),
	                                           intern_find(&model->strings, PYTORCH_LOADER_UNPICKLE)}};

	*handovers = (struct loader_handovers){0};
	for (int key = 0; key < 4; key++)
		search.keys[key] = intern_find(&model->strings, pytorch_loader_key((enum pytorch_loader_key)key));
	if (!search.keys[PYTORCH_LOADER_KEY_BATCH])
		return;
	loader_seeds_find(&search.seeds, model);
	for (uint32_t i = 0; i < model->args_count;)
		i = handover_read(&search, i);
	number_map_release(&search.seeds);
}

void loader_handovers_release(struct loader_handovers *handovers)
{
	free(handovers->list);
	*handovers = (struct loader_handovers){0};
}

/* Gets the loop of the worker from a batch that it pickled. Returns false if there is none. */
static bool handover_loop_of(const struct loader_handovers *handovers, uint32_t worker, uint64_t *loop)
{
	for (uint32_t i = 0; i < handovers->count; i++)
		if (handovers->list[i].worker == worker) {
			*loop = handovers->list[i].loop;
			return true;
		}
	return false;
}

struct loader_handover_sums loader_handovers_sum(const struct loader_handovers *handovers, const struct model *model,
                                                 uint32_t process, uint32_t loader, uint32_t worker)
{
	struct loader_handover_sums sums = {0};
	uint64_t loop = 0;
	int64_t number = -1;

	if (worker != MODEL_NONE &&
	    !(loader_worker_number(model, worker, &number) && handover_loop_of(handovers, worker, &loop)))
		return sums;
	for (uint32_t i = 0; i < handovers->count; i++) {
		const struct loader_handover *handover = &handovers->list[i];
		bool is_of_worker = handover->worker == worker ||
		                    (handover->kind == HANDOVER_DISPATCH && handover->loop == loop &&
		                     handover->worker_number == number);

		if (handover->process != process || handover->loop >> 32 != loader ||
		    (worker != MODEL_NONE && !is_of_worker) || handover->batch < 0)
			continue;
		sums.of[handover->kind].count++;
		clamped_add(&sums.of[handover->kind].dur_ns, handover->dur_ns);
		if (handover->kind == HANDOVER_PICKLE)
			clamped_add(&sums.bytes, handover->bytes);
	}
	return sums;
}
