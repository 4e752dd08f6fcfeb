/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_groups.c: assigns gloo's collectives to process groups. A group has its own threads, which the recording
 * names (process_group_thread.TID). Collectives on these threads get the arguments that torch.profiler gives to
 * collectives.
 */
#include "importers/recording/recording_groups.h"

#include "importers/recording/recording.h"
#include "pytorch/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_BYTES 300 /* longer names of groups are not looked up */

struct recorded_group {
	const char *name; /* NULL: the thread belongs to no group */
	struct span_arg args[4];
	uint32_t arg_count;
};

static const char *recording_groups_fact_of(const struct model *model, uint32_t process, const char *name,
                                            const char *fact)
{
	char key[KEY_BYTES];
	int length = snprintf(key, sizeof key, "process_group.%s.%s", name, fact);
	return length < (int)sizeof key ? model_meta(model, process, key) : NULL;
}

static void recording_groups_add_text(struct recorded_group *group, struct model *model, const char *key,
                                      const char *text)
{
	if (text)
		group->args[group->arg_count++] = (struct span_arg){.key = intern_add(&model->strings, key),
		                                                    .type = STEPSCOPE_ARG_SYMBOL,
		                                                    .text = intern_add(&model->strings, text)};
}

/* Returns the group of the thread with this track. */
static struct recorded_group recording_groups_find_group(struct model *model, const struct track *track)
{
	char key[KEY_BYTES];
	snprintf(key, sizeof key, "process_group_thread.%" PRId64, track->tid);
	struct recorded_group group = {.name = track->kind == TRACK_THREAD ? model_meta(model, track->process, key)
	                                                                   : NULL};
	if (!group.name)
		return group;
	const char *ranks = recording_groups_fact_of(model, track->process, group.name, "ranks");
	const char *description = recording_groups_fact_of(model, track->process, group.name, "description");
	const char *size = recording_groups_fact_of(model, track->process, group.name, "size");
	recording_groups_add_text(&group, model, PYTORCH_GROUP_NAME, group.name);
	recording_groups_add_text(&group, model, PYTORCH_GROUP_DESCRIPTION, description);
	recording_groups_add_text(&group, model, PYTORCH_GROUP_RANKS, ranks);
	if (size)
		group.args[group.arg_count++] = (struct span_arg){
			.key = intern_add(&model->strings, PYTORCH_GROUP_SIZE), .i64 = strtoll(size, NULL, 10)};
	return group;
}

static void describe_span(struct model *model, struct recorded_group *group, uint32_t track, uint32_t row)
{
	for (uint32_t i = 0; i < group->arg_count; i++) {
		group->args[i].track = track;
		group->args[i].row = row;
		model_span_arg(model, &group->args[i]);
	}
}

static void describe_track(struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];
	struct recorded_group group = recording_groups_find_group(model, track);
	for (uint32_t c = 0; c < track->chunk_count && group.name; c++) {
		const struct span_chunk *chunk = track->chunks[c];
		for (uint32_t i = 0; i < chunk->count; i++)
			if (pytorch_begins(model_text(model, chunk->name[i]), PYTORCH_GLOO))
				describe_span(model, &group, number, chunk->first_row + i);
		model_chunk_done(model, chunk);
	}
}

void recording_add_groups(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->model->tracks_count; i++)
		describe_track(recording->model, i);
}
