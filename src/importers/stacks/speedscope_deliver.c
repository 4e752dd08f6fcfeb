/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope_deliver.c: delivers a profile as samples of the model: times and weights in the model's units, with
 * process and thread. See speedscope.h.
 */
#include "importers/stacks/speedscope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct measure {
	const char *unit, *name;
	long double factor;
};

static struct measure measure_of(const struct speedscope_profile *one)
{
	static const struct measure measures[] = {
		{"nanoseconds", "time", 1}, {"microseconds", "time", 1e3L}, {"milliseconds", "time", 1e6L},
		{"seconds", "time", 1e9L},  {"bytes", "bytes", 1},
	};
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
		if (strcmp(one->unit, measures[i].unit) == 0)
			return measures[i];
	if (!*one->unit || strcmp(one->unit, "none") == 0 || strcmp(one->unit, "time") == 0)
		return (struct measure){"none", "samples", 1};
	return (struct measure){one->unit, one->unit, 1};
}

static int64_t scaled(struct speedscope *scope, long double value, const struct measure *measure)
{
	long double result = roundl(value * measure->factor);
	if (fabsl(result) > SPEEDSCOPE_NUMBER_MAX)
		speedscope_note(scope, SPEEDSCOPE_LARGE);
	return result > SPEEDSCOPE_NUMBER_MAX    ? (int64_t)SPEEDSCOPE_NUMBER_MAX
	       : result < -SPEEDSCOPE_NUMBER_MAX ? (int64_t)-SPEEDSCOPE_NUMBER_MAX
	                                         : (int64_t)result;
}

/* Parses `Process 12 Thread 34 "loader"`, as py-spy and our own exporter write it; the text after the numbers is the
 * thread's name. */
static uint32_t speedscope_deliver_track_of(struct speedscope *scope, uint32_t name)
{
	struct stack_profile *profile = &scope->profile;
	const char *text = model_text(profile->model, name), *rest = text;
	long long pid = 0, tid = 0;
	int length = 0;
	if (sscanf(rest, "Process %lld %n", &pid, &length) == 1)
		rest += length;
	length = 0;
	if (sscanf(rest, "Thread %lld %n", &tid, &length) == 1 && length)
		rest += length;
	size_t bytes = strlen(rest);
	bool is_quoted = bytes > 2 && *rest == '"' && rest[bytes - 1] == '"';
	char process_name[32] = "";
	if (pid)
		snprintf(process_name, sizeof process_name, "Process %lld", pid);
	uint32_t process = stack_profile_process(profile, intern_add(&profile->model->strings, process_name), pid);
	if (tid)
		number_map_set(&scope->threads, (uint64_t)tid, 1);
	if (tid && bytes)
		name = intern_add_n(&profile->model->strings, rest + is_quoted, bytes - 2 * (size_t)is_quoted);
	return stack_profile_new_track(profile, process, name ? name : intern_add(&profile->model->strings, "profile"),
	                               tid);
}

static void speedscope_deliver_widen(struct process *process, int64_t first_ns, int64_t last_ns)
{
	bool has_any = process->first_ns || process->last_ns;
	process->first_ns = has_any && process->first_ns < first_ns ? process->first_ns : first_ns;
	process->last_ns = has_any && process->last_ns > last_ns ? process->last_ns : last_ns;
}

/* Sets the weight: the time that the stack was open from sample->time_ns on, or the weight in the file. Returns false
 * if there is none. */
static bool weigh(struct speedscope *scope, const struct speedscope_profile *one, const struct measure *measure,
                  uint32_t i, struct sample *sample)
{
	if (!one->is_evented) {
		sample->weight = one->values[i] >= 0 ? (uint64_t)scaled(scope, one->values[i], measure) : 0;
		return one->values[i] >= 0;
	}
	bool is_last = i + 1 == one->value_count;
	long double end = !is_last ? one->values[i + 1] : one->has_end ? one->end : one->values[i];
	sample->time_ns = scaled(scope, one->values[i], measure);
	sample->weight = end > one->values[i] ? (uint64_t)(scaled(scope, end, measure) - sample->time_ns) : 0;
	return sample->stack && sample->weight;
}

void speedscope_deliver(struct speedscope *scope, const struct speedscope_profile *one, uint32_t name)
{
	const struct measure measure = measure_of(one);
	struct model *model = scope->profile.model;
	uint32_t count = one->stack_count < one->value_count ? one->stack_count : one->value_count;
	for (uint32_t i = count; i < one->value_count; i++)
		repair_note(&scope->repairs[SPEEDSCOPE_SURPLUS], one->offset);
	for (uint32_t i = count; i < one->stack_count; i++)
		repair_note(&scope->repairs[SPEEDSCOPE_WEIGHT], one->offset);
	if (one->is_evented && one->open)
		repair_note(&scope->repairs[SPEEDSCOPE_OPEN], one->offset);
	if (!count)
		return;
	uint32_t track = speedscope_deliver_track_of(scope, name);
	if (track == MODEL_NONE) {
		scope->profile.trackless += count;
		return;
	}
	scope->unknown_units += measure.name == one->unit;
	struct sample sample = {.track = track,
	                        .name = stack_profile_text(&scope->profile, measure.name, strlen(measure.name))};
	int64_t begin_ns = scaled(scope, one->is_evented ? one->values[0] : one->start, &measure);
	sample.time_ns = begin_ns;
	for (uint32_t i = 0; i < count; i++) {
		sample.stack = one->stacks[i];
		if (weigh(scope, one, &measure, i, &sample))
			stack_profile_sample(&scope->profile, &sample);
		if (sample.time_ns < (int64_t)SPEEDSCOPE_NUMBER_MAX - (int64_t)sample.weight)
			sample.time_ns += (int64_t)sample.weight;
	}
	if (strcmp(measure.name, "time") == 0)
		speedscope_deliver_widen(&model->processes[model->tracks[track]->process], begin_ns, sample.time_ns);
}
