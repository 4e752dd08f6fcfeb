/* SPDX-License-Identifier: Apache-2.0
 *
 * labels.c: see the header.
 */
#include "analysis/shared/labels.h"

#include "base/memory.h"
#include "model/cell_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stepscope/format.h>

/* Returns true if another process has the same rank. Host observers do not count: under srun each rank has its own
 * `stepscope run`, which observes the host with the rank in its environment. */
static bool is_rank_shared(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *other = &model->processes[i];

		if (i != process && other->rank == model->processes[process].rank && other->role != STEPSCOPE_ROLE_HOST)
			return true;
	}
	return false;
}

/* Returns " on nodeB" or " #2" to distinguish processes with the same pid, as in containers; "" if the pid is
 * unique. */
static const char *apart(const struct model *model, const struct process *process, struct arena *arena)
{
	if (!process->twin)
		return "";
	return process->host && !process->is_twin_of_host
	               ? arena_printf(arena, " on %s", model_text(model, process->host))
	               : arena_printf(arena, " #%u", process->twin);
}

const char *process_label(const struct model *model, uint32_t process, struct arena *arena)
{
	const struct process *which;

	if (process >= model->processes_count)
		return CELL_ALL;
	which = &model->processes[process];
	if (which->rank < 0 && !which->pid)
		return which->name ? model_text(model, which->name) : "(not known)";
	if (which->rank < 0)
		return arena_printf(arena, "pid %" PRId64 "%s", which->pid, apart(model, which, arena));
	if (is_rank_shared(model, process))
		return arena_printf(arena, "rank %d, pid %" PRId64 "%s", which->rank, which->pid,
		                    apart(model, which, arena));
	return arena_printf(arena, "rank %d", which->rank);
}

const char *ranks_apart(const struct model *model, const bool *is_counted)
{
	int32_t last = -1; /* processes are sorted by rank */
	bool has_others = false, has_lost_numbers = false;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (!is_counted[i] || process->role != STEPSCOPE_ROLE_TRAINER || process->rank < 0)
			continue;
		if (process->rank == last)
			return "several processes have the same rank: restarted or concurrent jobs are not compared";
		has_others |= last >= 0;
		has_lost_numbers |= process->has_lost_numbers;
		last = process->rank;
	}
	return has_others && has_lost_numbers
	               ? "a rank's steps are numbered from the first one that was not removed, so they cannot "
	                 "be matched with steps of other ranks"
	               : NULL;
}

const char *track_label(const struct model *model, uint32_t track, struct arena *arena)
{
	const struct track *which = model->tracks[track];
	const char *word = which->kind == TRACK_DEVICE ? "stream" : "tid";

	if (which->name && which->kind != TRACK_DEVICE && !which->tid) /* it has a name but no number */
		return model_text(model, which->name);
	if (which->name)
		return arena_printf(arena, "%s (%s %" PRId64 ")", model_text(model, which->name), word, which->tid);
	return arena_printf(arena, "%s %" PRId64, word, which->tid);
}

static const char **no_texts(size_t count)
{
	const char **texts = memory_resize(NULL, count + 1, sizeof(const char *));

	for (size_t i = 0; i <= count; i++)
		texts[i] = NULL;
	return texts;
}

void labels_init(struct labels *labels, const struct model *model, struct arena *arena)
{
	*labels = (struct labels){.model = model,
	                          .arena = arena,
	                          .processes = no_texts(model->processes_count),
	                          .tracks = no_texts(model->tracks_count)};
}

void labels_release(struct labels *labels)
{
	free(labels->processes);
	free(labels->tracks);
}

const char *labels_process(struct labels *labels, uint32_t process)
{
	if (!labels->processes[process])
		labels->processes[process] = process_label(labels->model, process, labels->arena);
	return labels->processes[process];
}

const char *labels_track(struct labels *labels, uint32_t track)
{
	if (!labels->tracks[track])
		labels->tracks[track] = track_label(labels->model, track, labels->arena);
	return labels->tracks[track];
}

const char *role_name(int role)
{
	static const char *const names[] = {CELL_ROLE_TRAINER, "worker", "launcher", "host", "imported"};

	return role >= 0 && role < (int)(sizeof(names) / sizeof(names[0])) ? names[role] : "unknown";
}

const char *counted(struct arena *arena, uint64_t count, const char *thing)
{
	return arena_printf(arena, "%" PRIu64 " %s%s", count, thing, count == 1 ? "" : "s");
}
