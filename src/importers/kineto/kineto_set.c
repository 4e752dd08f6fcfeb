/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_set.c: see kineto_set.h.
 */
#include "importers/kineto/kineto_set.h"

#include "base/memory.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_windows.h"
#include "importers/text_lines.h"
#include "model/drop_inferred.h"
#include "model/number_map.h"

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

uint32_t kineto_set_process(const struct kineto_set *set, uint32_t i)
{
	const struct ordered_file *file = &set->order.files[i];
	uint32_t process = set->files[file->number].process;
	return process == MODEL_NONE ? MODEL_NONE : file->place.processes + process;
}

static bool is_rank_taken(const struct model *model, const struct kineto_set *set, uint32_t before, int32_t rank)
{
	for (uint32_t i = 0; i < set->order.count; i++)
		if (i != before && kineto_set_process(set, i) != MODEL_NONE &&
		    model->processes[kineto_set_process(set, i)].rank == rank)
			return true;
	return false;
}

static void settle_ranks(struct model *model, const struct kineto_set *set)
{
	for (uint32_t i = 0; i < set->order.count; i++) {
		const struct ordered_file *file = &set->order.files[i];
		bool has_rank = set->files[file->number].has_rank;
		int64_t rank = kineto_rank_of_name(file->name);
		uint32_t number = kineto_set_process(set, i);
		if (number == MODEL_NONE)
			continue;
		struct process *process = &model->processes[number];
		if (has_rank && is_rank_taken(model, set, i, process->rank)) {
			model_add_ledger(model, LEDGER_OTHER, number, file_name_of(file->name), 1,
			                 "another file has the same rank");
		} else if (!has_rank && rank >= 0 && rank <= INT32_MAX &&
		           !is_rank_taken(model, set, i, (int32_t)rank)) {
			process->rank = (int32_t)rank;
			model_add_ledger(model, LEDGER_OTHER, number, file_name_of(file->name), 1,
			                 "the file does not contain its rank; the rank is from the file's name");
		}
	}
}

/* ---- windows ---- */

static void kineto_set_leave_out(struct kineto_set *set, uint32_t process)
{
	for (uint32_t i = 0; i < set->order.count; i++)
		if (kineto_set_process(set, i) == process) {
			const struct ordered_file *file = &set->order.files[i];
			set->files[file->number].process = MODEL_NONE;
			model_add_ledger(set->model, LEDGER_OTHER, process, file_name_of(file->name), 1,
			                 "a later window of a process in another file; both are read as one process");
		}
}

/* Before ranks are settled, since a process has only one. */
static uint32_t find_windows(struct kineto_set *set, struct process_join **joins)
{
	uint32_t count = kineto_windows_find(set, joins);
	for (uint32_t i = 0; i < count; i++)
		kineto_set_leave_out(set, (*joins)[i].from);
	return count;
}

/* ---- steps ---- */

/* Returns, by string, the names of files that our own exporter wrote. */
static struct number_map find_ours(const struct kineto_set *set)
{
	struct number_map ours = {0};
	for (uint32_t i = 0; i < set->order.count; i++)
		if (set->files[i].is_ours)
			number_map_set(&ours, set->files[i].name, 1);
	return ours;
}

/* kineto_infer() sees one file only. */
static void leave_out_inferred(const struct kineto_set *set)
{
	struct model *model = set->model;
	struct number_map ours = find_ours(set);
	bool *keeps = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *keeps);
	for (uint32_t i = 0; i < model->processes_count; i++)
		keeps[i] = number_map_find(&ours, model->processes[i].file) != NUMBER_MAP_NONE;
	model_drop_inferred(model, keeps);
	number_map_release(&ours);
	free(keeps);
}

static void settle(struct kineto_set *set)
{
	struct process_join *joins;
	uint32_t count = find_windows(set, &joins);
	settle_ranks(set->model, set);
	if (count)
		model_join_processes(set->model, joins, count);
	free(joins);
	leave_out_inferred(set);
}

/* ---- the set ---- */

void kineto_set_init(struct kineto_set *set, struct model *model)
{
	*set = (struct kineto_set){.model = model};
}

void kineto_set_begin(struct kineto_set *set, const char *name)
{
	MEMORY_GROW(set->files, set->order.count, set->capacity, 16);
	set->files[set->order.count] = (struct set_file){.process = MODEL_NONE};
	file_order_begin(&set->order, set->model, name);
}

static void add_problem(struct kineto_set *set, const char *name, enum ledger_kind kind, const struct error *problem)
{
	model_add_ledger(set->model, kind, MODEL_NONE, file_name_of(name), 1, problem->text);
	if (!set->problems++ || file_order_is_before(&set->order, set->first_file)) {
		set->first = *problem;
		set->first_file = set->order.count - 1;
	}
}

void kineto_set_problem(struct kineto_set *set, const char *name, const struct error *problem)
{
	add_problem(set, name, LEDGER_DAMAGED, problem);
}

void kineto_set_other(struct kineto_set *set, const char *name, const char *kind)
{
	char text[256];
	snprintf(text, sizeof text, "%s among the traces was not read: pass it separately", kind);
	model_add_ledger(set->model, LEDGER_OTHER, MODEL_NONE, file_name_of(name), 1, text);
	if (*set->other && !file_order_is_before(&set->order, set->other_file))
		return;
	snprintf(set->other, sizeof set->other, "'%.100s' is %s", file_name_of(name), kind);
	set->other_file = set->order.count - 1;
}

void kineto_set_load(struct kineto_set *set, const char *name, struct input_stream *input)
{
	struct error err;
	struct kineto_import import = {.model = set->model,
	                               .path = name,
	                               .first_process = set->model->processes_count,
	                               .set = set,
	                               .has_origin = set->has_origin,
	                               .origin_base_ns = set->origin_base_ns};
	struct set_file *file = &set->files[set->order.count - 1];
	if (kineto_load_input(&import, input, set->done_bytes, set->total_bytes, &err) != STATUS_OK) {
		/* a model's config.json beside its traces is not a loss */
		add_problem(set, name, import.is_other_json ? LEDGER_OTHER : LEDGER_DAMAGED, &err);
		return;
	}
	if (import.is_copy) {
		file_order_note_copy(&set->order, set->model);
		return;
	}
	for (uint32_t i = import.first_process; i < set->model->processes_count; i++)
		set->model->processes[i].file = intern_add(&set->model->strings, name);
	set->has_origin = import.has_origin;
	set->origin_base_ns = import.origin_base_ns;
	file->process = import.main_process - import.first_process;
	file->has_rank = import.has_rank;
	file->name = intern_add(&set->model->strings, name);
	file->is_ours = import.is_ours;
	set->loaded++;
}

/* Returns the first problem as the error. */
static enum status nothing_loaded(const struct kineto_set *set, const char *path, struct error *err)
{
	if (!set->problems) {
		error_set(err, STATUS_INPUT, "'%s' has no readable trace: none of its files is a trace", path);
		if (*set->other)
			error_hint(err, "%s: pass that file by path", set->other);
		return STATUS_INPUT;
	}
	if (set->problems == 1)
		return error_set(err, STATUS_INPUT, "'%s' has no readable trace: %s", path, set->first.text);
	return error_set(err, STATUS_INPUT, "'%s' has no readable trace: %s (%u problems in total)", path,
	                 set->first.text, set->problems);
}

enum status kineto_set_finish(struct kineto_set *set, const char *path, struct error *err)
{
	file_order_settle(&set->order, set->model);
	if (set->loaded > 1)
		settle(set);
	file_order_release(&set->order);
	free(set->files);
	set->files = NULL;
	return set->loaded ? STATUS_OK : nothing_loaded(set, path, err);
}
