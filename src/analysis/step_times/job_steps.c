/* SPDX-License-Identifier: Apache-2.0
 *
 * job_steps.c: see the header.
 */
#include "analysis/step_times/job_steps.h"

#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "base/merge_sort.h"
#include "base/storage.h"

#include <assert.h>
#include <stepscope/format.h>
#include <string.h>

/* ---- ranks ---- */

/* Returns true if a rank started the process, by fork and exec: then it has the rank in its environment and is not a
 * rank itself. A process that ended before the rank's first event has another parent with the same process id: a shell
 * that became the rank afterwards (`sh -c "train; train"`). */
static bool job_is_started_by_rank(const struct step_times *times, const struct model *model,
                                   const struct process *process)
{
	for (uint32_t i = 0; i < times->span_count; i++) {
		const struct process *parent = &model->processes[times->spans[i].process];

		if (parent != process && process->parent_pid && parent->pid == process->parent_pid &&
		    share_process_ids(parent, process) && parent->rank == process->rank &&
		    parent->first_ns < process->last_ns)
			return true;
	}
	return false;
}

void job_steps_find_ranks(struct step_times *times, const struct model *model)
{
	bool has_ranks = false;

	for (uint32_t i = 0; i < times->span_count; i++) {
		const struct process *process = &model->processes[times->spans[i].process];
		bool is_trainer = process->role == STEPSCOPE_ROLE_TRAINER || process->role == STEPSCOPE_ROLE_IMPORTED;

		times->spans[i].is_rank = is_trainer && !job_is_started_by_rank(times, model, process);
		has_ranks |= times->spans[i].is_rank;
	}
	for (uint32_t i = 0; i < times->span_count && !has_ranks; i++)
		times->spans[i].is_rank = true;
}

/* ---- steps ---- */

struct numbered_step {
	int64_t number;
	uint32_t occurrence; /* of this number in its rank, because numbers may start again */
	int64_t rank;
	uint32_t step;
};

static int job_compare_ranks(const void *left, const void *right)
{
	const struct numbered_step *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

static int job_compare_numbers(const void *left, const void *right)
{
	const struct numbered_step *a = left, *b = right;

	if (a->occurrence != b->occurrence)
		return a->occurrence < b->occurrence ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

/* Numbers the selected steps of ranks. The steps that form one step of the job are adjacent. */
static uint32_t job_number_steps(const struct step_times *times, const struct model *model,
                                 struct numbered_step *numbered)
{
	const struct step_span *span = times->spans;
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];
		int32_t rank = model->processes[step->process].rank;

		if (!times->steps[i].is_selected)
			continue;
		while (span->process != step->process) { /* both are in the order of the model */
			span++;
			assert(span < times->spans + times->span_count);
		}
		if (span->is_rank)
			numbered[count++] = (struct numbered_step){step->number, 0,
			                                           rank >= 0 ? rank : -1 - (int64_t)step->process, i};
	}
	merge_sort_in(model->storage, numbered, count, sizeof(*numbered), job_compare_ranks);
	for (uint32_t i = 1; i < count; i++) {
		if (numbered[i].rank == numbered[i - 1].rank && numbered[i].number == numbered[i - 1].number)
			numbered[i].occurrence = numbered[i - 1].occurrence + 1;
	}
	merge_sort_in(model->storage, numbered, count, sizeof(*numbered), job_compare_numbers);
	return count;
}

static void job_step_add(struct job_step *job, const struct model_step *step, const struct step_time *time)
{
	job->number = step->number;
	job->processes++;
	job->with_phases += time->has_phases;
	job->with_calls += time->has_phases || time->has_calls;
	job->measured += time->is_measured;
	job->plain += step_is_plain(step);
	job->early += time->is_early;
	job->lost += step->has_lost_phases;
	job->dur_ns += (double)time->dur_ns;
	job->length_ns += (double)time->length_ns;
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		job->phase_ns[phase] += (double)time->phase_ns[phase];
	if (step->has_tokens)
		job->tokens += (double)step->tokens, job->has_tokens = true;
	if (step->has_samples)
		job->samples += (double)step->samples, job->has_samples = true;
	if (!step->has_cpu)
		return;
	job->with_cpu++;
	job->cpu_ns += (double)step->cpu_ns;
	job->running_ns += (double)step_running_ns(step, time->dur_ns);
}

static void job_step_divide(struct job_step *job)
{
	assert(job->processes > 0 && job->with_cpu <= job->processes);
	job->has_phases = job->with_phases == job->processes;
	job->has_calls = !job->has_phases && job->with_calls == job->processes;
	job->dur_ns /= job->processes;
	job->length_ns /= job->processes;
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		job->phase_ns[phase] /= job->processes;
	if (job->with_cpu)
		job->cpu_ns /= job->with_cpu, job->running_ns /= job->with_cpu;
}

void job_steps_fill(struct step_times *times, const struct model *model)
{
	struct numbered_step *numbered = storage_resize(model->storage, NULL, (size_t)times->count + 1,
	                                                sizeof(*numbered));
	uint32_t count = job_number_steps(times, model, numbered);

	times->job = storage_resize(model->storage, NULL, (size_t)count + 1, sizeof(*times->job));
	memset(times->job, 0, count * sizeof(*times->job));
	for (uint32_t first = 0, end; first < count; first = end) {
		struct job_step *job = &times->job[times->job_count];
		bool has_detail = false, is_open = false;

		for (end = first; end < count && numbered[end].number == numbered[first].number &&
		                  numbered[end].occurrence == numbered[first].occurrence;
		     end++) {
			uint32_t step = numbered[end].step;

			has_detail |= model->steps[step].has_detail;
			is_open |= !times->steps[step].is_complete;
			if (!times->steps[step].is_complete)
				continue;
			job_step_add(job, &model->steps[step], &times->steps[step]);
			times->steps[step].job = times->job_count;
		}
		if (!times->job_selected || numbered[first].number < times->job_first)
			times->job_first = numbered[first].number;
		if (!times->job_selected || numbered[first].number > times->job_last)
			times->job_last = numbered[first].number;
		times->job_selected++;
		times->job_detailed += has_detail;
		times->job_incomplete += is_open;
		times->job_count += job->processes > 0;
		if (job->processes)
			job_step_divide(job);
	}
	storage_release(model->storage, numbered);
}
