/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_links.c: keeps, per thread, a table of its newest operators by sequence number. Tables grow as needed up to
 * a maximum per thread and one for all threads: a program that never runs a backward must not fill the memory. Streams
 * are read block by block, so a node may come before an operator of another thread. Nodes therefore wait until many
 * have come.
 */
#include "importers/recording/recording_links.h"

#include "base/memory.h"
#include "importers/recording/recording_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OPERATORS_MIN 64u
#define OPERATORS_MAX (1u << 18) /* per thread, between an operator and its node */
#define OPERATORS_ALL (1u << 22) /* maximum for all threads of a session together: 32 MiB */
#define WAITING_MAX (1u << 16)
#define SEQUENCE_BITS 48

struct forward {
	uint32_t row; /* MODEL_NONE: free */
	uint32_t sequence;
};

struct forwards { /* operators of a thread */
	struct forward *slots;
	uint32_t capacity; /* a power of two, or 0 */
	bool is_full;      /* operators were forgotten */
	uint32_t track;
};

struct waiting {
	uint64_t sequence;
	uint32_t track, row;
};

struct torch_links {
	struct number_map threads; /* PyTorch's number -> index of forwards */
	struct forwards *forwards;
	uint32_t count, capacity;
	struct waiting *waiting;
	uint32_t waiting_count;
	uint32_t slots;  /* total capacity of all forwards */
	uint64_t number; /* number of the newest link */
	uint64_t lost;
};

static struct torch_links *links_of(struct recorded_session *session)
{
	if (!session->links) {
		session->links = memory_resize(NULL, 1, sizeof *session->links);
		*session->links = (struct torch_links){0};
	}
	return session->links;
}

void links_thread(struct recording *recording, struct stream *stream, uint64_t number)
{
	struct torch_links *links = links_of(recording->session);
	uint32_t track = recording_stream_track(recording, stream);
	recording->model->tracks[track]->torch_thread = number < UINT16_MAX ? (uint32_t)number : 0;
	if (number_map_find(&links->threads, number) != NUMBER_MAP_NONE || links->count >= UINT16_MAX)
		return;
	MEMORY_GROW(links->forwards, links->count, links->capacity, 8);
	number_map_set(&links->threads, number, links->count);
	links->forwards[links->count++] = (struct forwards){.track = track};
	stream->forwards = links->count;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static struct forward *recording_links_slot_of(const struct forwards *forwards, uint32_t sequence)
{
	assert(forwards->capacity && !(forwards->capacity & (forwards->capacity - 1)));
	return &forwards->slots[sequence & (forwards->capacity - 1)];
}

/* Returns false if the maximum is reached. */
static bool recording_links_grow(struct torch_links *links, struct forwards *forwards)
{
	struct forwards grown = *forwards;
	grown.capacity = forwards->capacity ? 2 * forwards->capacity : OPERATORS_MIN;
	if (grown.capacity > OPERATORS_MAX || links->slots + grown.capacity > OPERATORS_ALL)
		return false;
	links->slots += grown.capacity - forwards->capacity;
	grown.slots = memory_resize(NULL, grown.capacity, sizeof *grown.slots);
	memset(grown.slots, 0xff, grown.capacity * sizeof *grown.slots);
	for (uint32_t i = 0; i < forwards->capacity; i++)
		if (forwards->slots[i].row != MODEL_NONE)
			*recording_links_slot_of(&grown, forwards->slots[i].sequence) = forwards->slots[i];
	free(forwards->slots);
	*forwards = grown;
	return true;
}

void links_forward(struct recording *recording, const struct stream *stream, uint64_t sequence, uint32_t row)
{
	if (!stream->forwards)
		return;
	struct torch_links *links = recording->session->links;
	assert(links && stream->forwards <= links->count);
	struct forwards *forwards = &links->forwards[stream->forwards - 1];
	uint32_t wanted = (uint32_t)sequence;
	if (!forwards->capacity && !recording_links_grow(links, forwards)) {
		forwards->is_full = true;
		return;
	}
	struct forward *slot = recording_links_slot_of(forwards, wanted);
	while (slot->row != MODEL_NONE && slot->sequence != wanted && recording_links_grow(links, forwards))
		slot = recording_links_slot_of(forwards, wanted);
	forwards->is_full |= slot->row != MODEL_NONE && slot->sequence != wanted;
	*slot = (struct forward){row, wanted};
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void link_node(struct model *model, struct torch_links *links, const struct waiting *node)
{
	uint32_t found = number_map_find(&links->threads, node->sequence >> SEQUENCE_BITS);
	const struct forwards *forwards = found == NUMBER_MAP_NONE ? NULL : &links->forwards[found];
	if (!forwards || !forwards->capacity) {
		links->lost += forwards && forwards->is_full;
		return;
	}
	const struct forward *slot = recording_links_slot_of(forwards, (uint32_t)node->sequence);
	if (slot->row == MODEL_NONE || slot->sequence != (uint32_t)node->sequence) {
		links->lost += slot->row != MODEL_NONE && forwards->is_full;
		return;
	}
	const struct model_link link = {.kind = STEPSCOPE_LINK_BACKWARD,
	                                .number = ++links->number,
	                                .from_track = forwards->track,
	                                .from_row = slot->row,
	                                .to_track = node->track,
	                                .to_row = node->row};
	model_add_link(model, &link);
}

static void link_waiting(struct model *model, struct torch_links *links, uint32_t count)
{
	assert(count <= links->waiting_count);
	for (uint32_t i = 0; i < count; i++)
		link_node(model, links, &links->waiting[i]);
	links->waiting_count -= count;
	if (links->waiting_count)
		memmove(links->waiting, links->waiting + count, links->waiting_count * sizeof *links->waiting);
}

void links_backward(struct recording *recording, uint64_t sequence, uint32_t track, uint32_t row)
{
	struct torch_links *links = links_of(recording->session);
	const struct waiting node = {sequence, track, row};
	uint32_t found = number_map_find(&links->threads, sequence >> SEQUENCE_BITS);
	if (found < links->count && links->forwards && links->forwards[found].track == track) {
		link_node(recording->model, links, &node);
		return;
	}
	if (!links->waiting)
		links->waiting = memory_resize(NULL, WAITING_MAX, sizeof *links->waiting);
	if (links->waiting_count == WAITING_MAX)
		link_waiting(recording->model, links, WAITING_MAX / 2);
	links->waiting[links->waiting_count++] = node;
}

void links_finish(struct recording *recording, struct recorded_session *session)
{
	struct torch_links *links = session->links;
	if (!links)
		return;
	link_waiting(recording->model, links, links->waiting_count);
	if (links->lost)
		model_add_ledger(
			recording->model, LEDGER_OTHER, recording->process->process, "links", links->lost,
			"operations of a backward have no link: too many operations are between them and their "
			"forward");
	for (uint32_t i = 0; i < links->count; i++)
		free(links->forwards[i].slots);
	free(links->forwards);
	free(links->waiting);
	number_map_release(&links->threads);
	free(links);
	session->links = NULL;
}
