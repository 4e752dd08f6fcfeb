/* SPDX-License-Identifier: Apache-2.0
 *
 * mixed_sample DIR STEPS [KEY=VALUE ...]: writes a recording whose steps have operators or not, with durations that are known. STEPS: one letter a
 * step, 'o' operators, '.' none. In each step 1 ms of data, forward, 3 ms of optimizer; where operators are, a matmul of 4 ms.
 *
 *     step=100     ms of a step
 *     cost=10      ms that a step with operators takes longer
 *     slow=7:50    every 7th step takes 50 ms longer
 *     odd=0.03:40  so many of the steps, drawn, take 40 ms longer
 *     noise=2      as many ms to both sides, drawn
 *     seed=1       of the drawing
 *     first=500    ms that the first step takes longer
 *     rank=1       of two; none without
 *     wait=20      ms of communication in each step, which the step takes longer
 *     garbage=5    in every 5th step a collection of garbage of 2 ms, with operators or not
 *     save=5:20    in every 5th step a torch.save of 20 ms, with operators or not; evaluate=... an evaluation, compile=... a compilation
 *     grow=0.5     ms that each step takes longer than the one before
 *     delay=10     ms of each step, without its data, in which its thread waits for a processor; its readings say so
 *     seldom=9     in step 9 another operator, of 1 ms
 *     torch=2.13   the version of PyTorch that the program uses
 *     budget=3 %   what the recorder said of its budget, and every=8, range=4 to 8
 *     capture=...  its closing sentence; capture_steps="N of M": the numbers of that
 */
#include "segment_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define MAIN 1
#define MS 1e6

enum {
	OP_MATMUL = 20,
	OP_SELDOM,
	RANGE_GARBAGE,
	RANGE_SAVE,
	RANGE_COMPILE,
	METRIC_LOSS
};

struct run {
	struct segment_builder segment;
	const char *steps, *budget, *every, *range, *capture, *capture_steps, *torch;
	double step, cost, odd, odd_ms, noise, first, wait, grow, delay;
	struct rhythm {
		long every;
		double ms;
	} slow, save, evaluate, compile;
	long rank, garbage_every, seldom;
	uint64_t seed, now, delayed;
};

static void put(struct run *run, enum stepscope_event type, uint32_t id)
{
	segment_put(&run->segment, MAIN, run->now, type, id, 0);
}

static void spend(struct run *run, double ms)
{
	run->now += (uint64_t)(ms > 0 ? ms * MS : 0);
}

static void phase(struct run *run, enum stepscope_phase which, double ms)
{
	put(run, STEPSCOPE_EVENT_BEGIN, which);
	spend(run, ms);
	put(run, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
}

static void forward(struct run *run, double ms, bool has_operators)
{
	put(run, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD);
	if (has_operators) {
		put(run, STEPSCOPE_EVENT_BEGIN, OP_MATMUL);
		spend(run, 4);
		put(run, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
		ms -= 4;
	}
	spend(run, ms);
	put(run, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
}

static void range(struct run *run, uint32_t name, double ms)
{
	put(run, STEPSCOPE_EVENT_BEGIN, name);
	spend(run, ms);
	put(run, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
}

static bool is_due(const struct rhythm *rhythm, int64_t number)
{
	return rhythm->every && number % rhythm->every == rhythm->every - 1;
}

/* What is recorded in all steps. */
static void put_rare(struct run *run, int64_t number)
{
	if (run->garbage_every && number % run->garbage_every == run->garbage_every - 1)
		range(run, RANGE_GARBAGE, 2);
	if (is_due(&run->save, number))
		range(run, RANGE_SAVE, run->save.ms);
	if (is_due(&run->compile, number))
		range(run, RANGE_COMPILE, run->compile.ms);
	if (is_due(&run->evaluate, number))
		phase(run, STEPSCOPE_PHASE_EVALUATION, run->evaluate.ms);
}

/* The thread worked, or waited for a processor, since the recording began. */
static void put_reading(struct run *run)
{
	uint64_t ran = run->now - SEGMENT_SAMPLE_START - run->delayed;

	if (run->delay > 0)
		segment_put(&run->segment, MAIN, run->now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_USE, 2, ran,
		            run->delayed);
}

static double drawn(struct run *run)
{
	run->seed = run->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(run->seed >> 11) * 0x1p-52 - 1;
}

static bool has_rare(const struct run *run)
{
	return run->garbage_every || run->save.every || run->compile.every;
}

static void put_capture(struct run *run, bool has_operators)
{
	uint64_t bits = STEPSCOPE_ACTIVE_STEPS | (has_operators   ? STEPSCOPE_ACTIVE_DETAIL
	                                          : has_rare(run) ? STEPSCOPE_ACTIVE_RARE
	                                                          : 0);

	segment_put(&run->segment, MAIN, run->now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)STEPSCOPE_CAPTURE_RECORD, bits);
}

static void put_step(struct run *run, int64_t number)
{
	bool has_operators = run->steps[number] == 'o';
	double ms = run->step + (has_operators ? run->cost : 0) + run->noise * drawn(run) + (number ? 0 : run->first) +
	            (is_due(&run->slow, number) ? run->slow.ms : 0) + run->grow * (double)number;
	if (run->odd > 0 && (drawn(run) + 1) / 2 < run->odd)
		ms += run->odd_ms;
	double loss = 10.0 / (double)(number + 1);
	uint64_t bits;

	memcpy(&bits, &loss, sizeof(bits));
	if (!number || has_operators != (run->steps[number - 1] == 'o'))
		put_capture(run, has_operators);
	segment_step(&run->segment, MAIN, run->now, STEPSCOPE_STEP_BEGIN, number);
	put_reading(run);
	phase(run, STEPSCOPE_PHASE_DATA, 1);
	put_rare(run, number);
	if (number == run->seldom)
		range(run, OP_SELDOM, 1);
	forward(run, ms - 4, has_operators);
	if (run->wait > 0)
		phase(run, STEPSCOPE_PHASE_COMMUNICATION, run->wait);
	phase(run, STEPSCOPE_PHASE_OPTIMIZER, 3);
	segment_put(&run->segment, MAIN, run->now, STEPSCOPE_EVENT_VALUE, METRIC_LOSS, 1, bits);
	run->delayed += (uint64_t)(run->delay * MS);
	put_reading(run);
	segment_step(&run->segment, MAIN, run->now, STEPSCOPE_STEP_TOKENS, 1000);
	segment_step(&run->segment, MAIN, run->now, STEPSCOPE_STEP_END, number);
	run->now += 10000;
}

static bool take_option(struct run *run, const char *option)
{
	const char *value = strchr(option, '=');
	const struct {
		const char *key;
		double *number;
	} numbers[] = {{"step", &run->step}, {"cost", &run->cost}, {"noise", &run->noise}, {"first", &run->first},
	               {"wait", &run->wait}, {"grow", &run->grow}, {"delay", &run->delay}};
	const struct {
		const char *key;
		struct rhythm *rhythm;
	} rhythms[] = {
		{"slow", &run->slow}, {"save", &run->save}, {"evaluate", &run->evaluate}, {"compile", &run->compile}};

	if (!value++)
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strncmp(option, numbers[i].key, (size_t)(value - option) - 1)) {
			*numbers[i].number = strtod(value, NULL);
			return true;
		}
	for (size_t i = 0; i < sizeof(rhythms) / sizeof(rhythms[0]); i++)
		if (!strncmp(option, rhythms[i].key, (size_t)(value - option) - 1)) {
			char *end;

			rhythms[i].rhythm->every = strtol(value, &end, 10);
			rhythms[i].rhythm->ms = *end == ':' ? strtod(end + 1, NULL) : 0;
			return true;
		}
	if (!strncmp(option, "odd=", 4)) {
		char *end;

		run->odd = strtod(value, &end);
		run->odd_ms = *end == ':' ? strtod(end + 1, NULL) : 0;
	} else if (!strncmp(option, "garbage=", 8)) {
		run->garbage_every = strtol(value, NULL, 10);
	} else if (!strncmp(option, "seldom=", 7)) {
		run->seldom = strtol(value, NULL, 10);
	} else if (!strncmp(option, "seed=", 5)) {
		run->seed = strtoull(value, NULL, 10);
	} else if (!strncmp(option, "rank=", 5)) {
		run->rank = strtol(value, NULL, 10);
	} else if (!strncmp(option, "budget=", 7)) {
		run->budget = value;
	} else if (!strncmp(option, "torch=", 6)) {
		run->torch = value;
	} else if (!strncmp(option, "every=", 6)) {
		run->every = value;
	} else if (!strncmp(option, "range=", 6)) {
		run->range = value;
	} else if (!strncmp(option, "capture=", 8)) {
		run->capture = value;
	} else if (!strncmp(option, "capture_steps=", 14)) {
		run->capture_steps = value;
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct run run = {
		.steps = argc > 2 ? argv[2] : "", .step = 100, .cost = 10, .rank = -1, .seed = 1, .seldom = -1};
	bool is_right = argc > 2;

	for (int i = 3; i < argc; i++)
		is_right &= take_option(&run, argv[i]);
	if (!is_right) {
		fprintf(stderr, "usage: mixed_sample DIR STEPS [KEY=VALUE ...]\n");
		return 2;
	}
	segment_begin_sample(&run.segment, run.rank == 1 ? 4243 : 4242, (int)run.rank, STEPSCOPE_ROLE_TRAINER);
	run.now = SEGMENT_SAMPLE_START;
	segment_stream(&run.segment, MAIN, run.rank == 1 ? 4243 : 4242, "main");
	segment_symbol(&run.segment, OP_MATMUL, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(&run.segment, OP_SELDOM, STEPSCOPE_SYMBOL_OP, "seldom");
	segment_symbol(&run.segment, RANGE_GARBAGE, STEPSCOPE_SYMBOL_RANGE, "garbage collection 2");
	segment_symbol(&run.segment, RANGE_SAVE, STEPSCOPE_SYMBOL_RANGE, "torch.save");
	segment_symbol(&run.segment, RANGE_COMPILE, STEPSCOPE_SYMBOL_RANGE, "torch.compile");
	segment_symbol(&run.segment, METRIC_LOSS, STEPSCOPE_SYMBOL_METRIC, "loss");
	segment_meta(&run.segment, "program", "train");
	segment_meta(&run.segment, "cost.event_ns", "25.000");
	if (run.budget)
		segment_meta(&run.segment, "budget", run.budget);
	if (run.torch)
		segment_meta(&run.segment, "torch.version", run.torch);
	if (run.every)
		segment_meta(&run.segment, "budget.every", run.every);
	if (run.range)
		segment_meta(&run.segment, "budget.range", run.range);
	if (run.capture)
		segment_meta(&run.segment, "capture", run.capture);
	if (run.capture_steps)
		segment_meta(&run.segment, "capture.steps", run.capture_steps);
	for (int64_t number = 0; run.steps[number]; number++)
		put_step(&run, number);
	segment_end(&run.segment, "exit");
	return !segment_save_sample(&run.segment, argv[1]);
}
