/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_set.c: see kineto_set.h.
 */
#include "importers/kineto_set.h"

#include "base/memory.h"
#include "importers/kineto_import.h"
#include "importers/text_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

int64_t kineto_rank_of_name(const char *path)
{
	static const char *const words[] = {"rank", "worker"};
	const char *name = file_name_of(path);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *at = strcasestr(name, words[i]);
		at = at ? at + strlen(words[i]) : "";
		at += *at == '-' || *at == '_';
		if (isdigit((unsigned char)*at))
			return strtoll(at, NULL, 10);
	}
	return -1;
}

static bool is_rank_taken(const struct model *model, const struct kineto_set *set, uint32_t before, int32_t rank)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (i != before && set->files[i].process != MODEL_NONE &&
		    model->processes[set->files[i].process].rank == rank)
			return true;
	return false;
}

static void settle_ranks(struct model *model, const struct kineto_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct set_file *file = &set->files[i];
		int64_t rank = kineto_rank_of_name(file->name);
		if (file->process == MODEL_NONE)
			continue;
		struct process *process = &model->processes[file->process];
		if (file->has_rank && is_rank_taken(model, set, i, process->rank)) {
			model_add_ledger(model, LEDGER_OTHER, file->process, file_name_of(file->name), 1,
			                 "another file says that it is of the same rank");
		} else if (!file->has_rank && rank >= 0 && rank <= INT32_MAX &&
		           !is_rank_taken(model, set, i, (int32_t)rank)) {
			process->rank = (int32_t)rank;
			model_add_ledger(model, LEDGER_OTHER, file->process, file_name_of(file->name), 1,
			                 "the rank is not in the file: it is taken from the file's name");
		}
	}
}

/* ---- all of them ---- */

void kineto_set_init(struct kineto_set *set, struct model *model)
{
	*set = (struct kineto_set){.model = model};
}

static struct set_file *add_file(struct kineto_set *set, const char *name)
{
	if (set->count == set->capacity) {
		set->capacity = set->capacity ? 2 * set->capacity : 16;
		set->files = memory_resize(set->files, set->capacity, sizeof *set->files);
	}
	set->files[set->count] = (struct set_file){.name = strdup(name), .process = MODEL_NONE};
	if (!set->files[set->count].name)
		memory_exhausted(strlen(name) + 1);
	return &set->files[set->count++];
}

void kineto_set_problem(struct kineto_set *set, const char *name, const struct error *problem)
{
	model_add_ledger(set->model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(name), 1, problem->text);
	if (!set->problems++)
		set->first = *problem;
}

void kineto_set_other(struct kineto_set *set, const char *name, const char *kind)
{
	char text[256];
	snprintf(text, sizeof text, "%s among the traces was not read: give it by itself", kind);
	model_add_ledger(set->model, LEDGER_OTHER, MODEL_NONE, file_name_of(name), 1, text);
	if (!*set->other)
		snprintf(set->other, sizeof set->other, "'%.100s' is %s", file_name_of(name), kind);
}

void kineto_set_load(struct kineto_set *set, const char *name, struct input_stream *input)
{
	struct error err;
	struct kineto_import import = {.model = set->model,
	                               .path = name,
	                               .first_process = set->model->processes_count,
	                               .has_origin = set->has_origin,
	                               .origin_base_ns = set->origin_base_ns};
	struct set_file *file = add_file(set, name);
	if (kineto_load_input(&import, input, set->done_bytes, set->total_bytes, &err) != STATUS_OK) {
		kineto_set_problem(set, name, &err);
		return;
	}
	set->has_origin = import.has_origin;
	set->origin_base_ns = import.origin_base_ns;
	file->process = import.main_process;
	file->has_rank = import.has_rank;
	set->loaded++;
}

/* Why nothing was loaded: the first reason there was. */
static enum status nothing_loaded(const struct kineto_set *set, const char *path, struct error *err)
{
	if (!set->problems) {
		error_set(err, STATUS_INPUT, "'%s' has no trace that can be read: none of its files is one", path);
		if (*set->other)
			error_hint(err, "%s: give that file itself", set->other);
		return STATUS_INPUT;
	}
	if (set->problems == 1)
		return error_set(err, STATUS_INPUT, "'%s' has no trace that can be read: %s", path, set->first.text);
	return error_set(err, STATUS_INPUT, "'%s' has no trace that can be read: %s (%u problems in all)", path,
	                 set->first.text, set->problems);
}

enum status kineto_set_finish(struct kineto_set *set, const char *path, struct error *err)
{
	if (set->loaded > 1)
		settle_ranks(set->model, set);
	for (uint32_t i = 0; i < set->count; i++)
		free(set->files[i].name);
	free(set->files);
	set->files = NULL;
	return set->loaded ? STATUS_OK : nothing_loaded(set, path, err);
}
