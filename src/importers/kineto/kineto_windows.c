/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_windows.c: see kineto_windows.h.
 */
#include "importers/kineto/kineto_windows.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/text_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct kineto_window { /* the trainer of a file */
	uint32_t process;
	bool has_rank;
	int64_t pid;
	int32_t rank, world_size;
	const char *name, *host;
	size_t worker;          /* length of the worker's name at its start; 0: none */
	bool has_times;         /* of start_ns and end_ns */
	uint32_t steps, marked; /* marked: steps that were not inferred */
	int64_t first, last;    /* step numbers */
	int64_t start_ns, end_ns;
};

/* tensorboard_trace_handler writes WORKER.NANOSECONDS.pt.trace.json, possibly with .gz appended. */
static size_t worker_length(const char *name)
{
	const char *end = strstr(name, ".pt.trace.json");
	const char *at = end;
	while (at > name && isdigit((unsigned char)at[-1]))
		at--;
	return end && at < end && at > name && at[-1] == '.' ? (size_t)(at - 1 - name) : 0;
}

static void kineto_windows_add_step(struct kineto_window *window, const struct model_step *step)
{
	if (!window->steps++) {
		window->first = window->last = step->number;
		window->start_ns = step->start_ns;
		window->end_ns = step->end_ns;
	}
	window->marked += !step->is_inferred;
	window->first = step->number < window->first ? step->number : window->first;
	window->last = step->number > window->last ? step->number : window->last;
	window->start_ns = step->start_ns < window->start_ns ? step->start_ns : window->start_ns;
	window->end_ns = step->end_ns > window->end_ns ? step->end_ns : window->end_ns;
}

/* Finds the steps of each window by process. Steps of an unfinished model are in no order. */
static void find_steps(struct kineto_window *windows, uint32_t count, const struct model *model)
{
	struct kineto_window **of = memory_resize(NULL, (size_t)model->processes_count + 1,
	                                          sizeof(struct kineto_window *));
	memset(of, 0, ((size_t)model->processes_count + 1) * sizeof(struct kineto_window *));
	for (uint32_t i = 0; i < count; i++)
		of[windows[i].process] = &windows[i];
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (of[model->steps[i].process])
			kineto_windows_add_step(of[model->steps[i].process], &model->steps[i]);
	free(of);
}

static int kineto_windows_compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Puts windows of one process together, in order of time. */
static int compare_windows(const void *left, const void *right)
{
	const struct kineto_window *a = left, *b = right;
	int order = kineto_windows_compare(a->pid, b->pid);
	order = order ? order : kineto_windows_compare(a->rank, b->rank);
	order = order ? order : kineto_windows_compare(a->world_size, b->world_size);
	order = order ? order : strcmp(a->host, b->host);
	order = order ? order : kineto_windows_compare((int64_t)a->worker, (int64_t)b->worker);
	order = order ? order : strncmp(a->name, b->name, a->worker);
	order = order ? order : kineto_windows_compare(a->start_ns, b->start_ns);
	return order ? order : kineto_windows_compare(a->process, b->process);
}

static bool are_of_one(const struct kineto_window *a, const struct kineto_window *b)
{
	return a->pid && a->pid == b->pid && a->has_rank == b->has_rank && a->rank == b->rank &&
	       a->world_size == b->world_size && strcmp(a->host, b->host) == 0 && a->worker == b->worker &&
	       strncmp(a->name, b->name, a->worker) == 0 && (a->has_rank || a->worker);
}

/* Marked steps go on where those of the earlier window ended: a program that was started again counts from 0. Where no
 * step() was called, the times alone tell. */
static bool kineto_windows_goes_on(const struct kineto_window *earlier, const struct kineto_window *later)
{
	if (later->start_ns < earlier->end_ns || !earlier->has_times || !later->has_times)
		return false;
	return !earlier->marked && !later->marked ? true
	                                          : earlier->marked && later->marked && later->first > earlier->last;
}

/* Windows without steps begin with their first span. */
static void find_extents(struct kineto_window *windows, uint32_t count, const struct model *model)
{
	for (uint32_t i = 0; i < count; i++) {
		struct kineto_window *window = &windows[i];
		window->has_times = window->marked ||
		                    model_process_extent(model, window->process, &window->start_ns, &window->end_ns);
	}
}

/* Inferred steps are numbered in each file from 0. offsets: by process. */
static void number_steps(struct model *model, const int64_t *offsets)
{
	for (uint32_t i = 0; i < model->steps_count; i++)
		model->steps[i].number += offsets[model->steps[i].process];
}

uint32_t kineto_windows_find(const struct kineto_set *set, struct process_join **joins)
{
	struct model *model = set->model;
	struct kineto_window *windows = memory_resize(NULL, (size_t)set->order.count + 1, sizeof *windows);
	uint32_t count = 0, found = 0;
	for (uint32_t i = 0; i < set->order.count; i++) {
		uint32_t number = kineto_set_process(set, i);
		if (number == MODEL_NONE)
			continue;
		const struct ordered_file *file = &set->order.files[i];
		const struct process *process = &model->processes[number];
		const char *name = file_name_of(file->name);
		windows[count++] = (struct kineto_window){.process = number,
		                                          .has_rank = set->files[file->number].has_rank,
		                                          .pid = process->pid,
		                                          .rank = process->rank,
		                                          .world_size = process->world_size,
		                                          .name = name,
		                                          .host = model_text(model, process->host),
		                                          .worker = worker_length(name)};
	}
	find_steps(windows, count, model);
	find_extents(windows, count, model);
	merge_sort(windows, count, sizeof *windows, compare_windows);
	*joins = memory_resize(NULL, (size_t)count + 1, sizeof **joins);
	int64_t *offsets = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *offsets);
	memset(offsets, 0, ((size_t)model->processes_count + 1) * sizeof *offsets);
	for (uint32_t i = 1, first = 0; i < count; i++) {
		const struct kineto_window *before = &windows[i - 1], *window = &windows[i];
		if (!are_of_one(before, window) || !kineto_windows_goes_on(before, window)) {
			first = i;
			continue;
		}
		(*joins)[found++] = (struct process_join){window->process, windows[first].process};
		if (!window->marked)
			offsets[window->process] = offsets[before->process] + (before->steps ? before->last + 1 : 0);
	}
	number_steps(set->model, offsets);
	free(offsets);
	free(windows);
	return found;
}
