/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_order.c: see the header.
 */
#include "importers/recording/recording_order.h"

#include "base/memory.h"
#include "base/merge_sort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int role_order(uint32_t role)
{
	static const uint8_t places[] = {[STEPSCOPE_ROLE_TRAINER] = 0,
	                                 [STEPSCOPE_ROLE_IMPORTED] = 1,
	                                 [STEPSCOPE_ROLE_WORKER] = 2,
	                                 [STEPSCOPE_ROLE_LAUNCHER] = 3,
	                                 [STEPSCOPE_ROLE_HOST] = 4};
	return role < sizeof places ? places[role] : 5;
}

static int order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Trainers come first, by rank, so that process numbers are meaningful to people. */
static int compare_processes(const void *left, const void *right)
{
	const struct recorded_process *a = *(struct recorded_process *const *)left,
				      *b = *(struct recorded_process *const *)right;
	int result = order(role_order(a->header.role), role_order(b->header.role));
	if (!result)
		result = order((uint32_t)a->header.rank, (uint32_t)b->header.rank); /* -1 sorts last */
	if (!result)
		result = strcmp(a->host, b->host);
	if (!result)
		result = order(a->header.pid, b->header.pid);
	return result ? result
	              : (a->header.start_time > b->header.start_time) - (a->header.start_time < b->header.start_time);
}

static int compare_recorded_files(const void *left, const void *right, void *context)
{
	const struct recorded_file *a = left, *b = right;
	const struct recording *recording = context;
	if (a->is_usable != b->is_usable)
		return a->is_usable ? -1 : 1;
	const struct recorded_session *s = recording->sessions[a->session], *t = recording->sessions[b->session];
	int result = a->is_usable ? order(recording->processes[s->process]->process,
	                                  recording->processes[t->process]->process)
	                          : 0;
	if (!result && a->is_usable)
		result = order(s->first_segment, t->first_segment);
	if (!result && a->is_usable)
		result = order(a->session, b->session);
	if (!result)
		result = order(!(a->header.flags & STEPSCOPE_SEGMENT_COARSE),
		               !(b->header.flags & STEPSCOPE_SEGMENT_COARSE));
	if (!result)
		result = order(a->header.segment, b->header.segment);
	return result ? result : strcmp(a->name, b->name);
}

/* Formats the boot id as the kernel does: 36 characters. */
static uint32_t machine_of(struct model *model, const uint8_t boot_id[16])
{
	static const uint8_t none[16];
	char text[40];
	size_t length = 0;
	if (!memcmp(boot_id, none, sizeof(none)))
		return 0;
	for (int i = 0; i < 16; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%02x",
		                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", boot_id[i]);
	return intern_add(&model->strings, text);
}

void recording_add_processes(struct recording *recording)
{
	struct recorded_process **sorted = memory_resize(NULL, recording->process_count + 1,
	                                                 sizeof(struct recorded_process *));
	memcpy(sorted, recording->processes, recording->process_count * sizeof(struct recorded_process *));
	merge_sort(sorted, recording->process_count, sizeof(struct recorded_process *), compare_processes);
	for (uint32_t i = 0; i < recording->process_count; i++) {
		const struct stepscope_segment_header *header = &sorted[i]->header;
		sorted[i]->process = model_add_process(recording->model);
		struct process *process = &recording->model->processes[sorted[i]->process];
		process->host = intern_add(&recording->model->strings, sorted[i]->host);
		process->machine = machine_of(recording->model, header->boot_id);
		process->pid = header->pid;
		process->parent_pid = header->parent_pid;
		process->start_time = header->start_time;
		process->pid_namespace = header->pid_namespace;
		process->role = (uint8_t)header->role;
		process->rank = header->rank;
		process->world_size = header->world_size;
	}
	struct clock_line *first = NULL;
	for (uint32_t i = 0; i < recording->process_count && !first; i++)
		for (uint32_t l = 0; l < sorted[i]->line_count && !first; l++)
			first = sorted[i]->lines[l]->anchor_count ? sorted[i]->lines[l] : NULL;
	clock_set_finish(&recording->clocks, first);
	free(sorted);
}

void recording_sort_files(struct recording *recording)
{
	qsort_r(recording->files, recording->file_count, sizeof *recording->files, compare_recorded_files, recording);
}

void recording_find_detail_since(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->session_count; i++) {
		struct recorded_session *session = recording->sessions[i];
		const struct recorded_process *process = recording->processes[session->process];
		struct clock_cursor clock = {process->lines[0], 0};
		if (session->has_removed)
			session->detail_since_ns = clock_ns(&clock, session->oldest_tick);
	}
}
