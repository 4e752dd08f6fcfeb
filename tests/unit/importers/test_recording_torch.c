/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that a PyTorch program did not mark, from segments made by hand: whole ones, killed, with gaps, in several threads, and
 * what nobody would record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include "importers/recording/recording.h"
#include "segment_builder.h"

#define MAIN 1
#define OTHER 2
#define THREAD 9 /* PyTorch's number of MAIN */

enum names {
	AGENT = 20,
	KEY,
	OP,
	NODE,
	GRADIENT,
	ACCUMULATE,
	DATA,
	CALL,
	ZERO,
	RANGE,
	MODE,
	REGION,
	COMPILED_CALL,
	COMPILED,
	MODULE,
	NAMES_END, /* of those that events of any kind have */
	ADD = NAMES_END,
	ONES,
	FOO,
	COMPILE,
	GARBAGE,
	PROFILED, /* ... */
};

static struct model model;
static struct segment_builder segment;
static uint64_t now, sequence;

static void begin(void)
{
	segment_begin(&segment, 4242, 0);
	segment_stream(&segment, MAIN, 4242, "main");
	segment_stream(&segment, OTHER, 4243, "other");
	segment_symbol(&segment, AGENT, STEPSCOPE_SYMBOL_TEXT, "torch.agent");
	segment_symbol(&segment, KEY, STEPSCOPE_SYMBOL_TEXT, "torch.optimizer");
	segment_symbol(&segment, OP, STEPSCOPE_SYMBOL_OP, "aten::mm");
	segment_symbol(&segment, ADD, STEPSCOPE_SYMBOL_OP, "aten::add");
	segment_symbol(&segment, ONES, STEPSCOPE_SYMBOL_OP, "aten::ones_like");
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_OP, "autograd::engine::evaluate_function: MmBackward0");
	segment_symbol(&segment, GRADIENT, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	segment_symbol(&segment, ACCUMULATE, STEPSCOPE_SYMBOL_BACKWARD, "torch::autograd::AccumulateGrad");
	segment_symbol(&segment, DATA, STEPSCOPE_SYMBOL_ANNOTATION,
	               "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	segment_symbol(&segment, CALL, STEPSCOPE_SYMBOL_ANNOTATION, "Optimizer.step#SGD.step");
	segment_symbol(&segment, ZERO, STEPSCOPE_SYMBOL_ANNOTATION, "Optimizer.zero_grad#SGD.zero_grad");
	segment_symbol(&segment, RANGE, STEPSCOPE_SYMBOL_ANNOTATION, "mine");
	segment_symbol(&segment, MODE, STEPSCOPE_SYMBOL_OP, "PythonDispatchMode");
	segment_symbol(&segment, REGION, STEPSCOPE_SYMBOL_OP, "Torch-Compiled Region: 0/1");
	segment_symbol(&segment, COMPILED_CALL, STEPSCOPE_SYMBOL_OP, "Torch-Compiled Region: 2/1");
	segment_symbol(&segment, COMPILED, STEPSCOPE_SYMBOL_TEXT, "torch.compiled 12289 77"); /* 2/1, as a number */
	segment_symbol(&segment, MODULE, STEPSCOPE_SYMBOL_MODULE, "Net");
	segment_symbol(&segment, FOO, STEPSCOPE_SYMBOL_ANNOTATION, "ProfilerStep#foo");
	segment_symbol(&segment, COMPILE, STEPSCOPE_SYMBOL_RANGE, "torch.compile");
	segment_symbol(&segment, GARBAGE, STEPSCOPE_SYMBOL_RANGE, "garbage collection 2");
	for (uint32_t i = 0; i < 5; i++) {
		char name[32];
		snprintf(name, sizeof name, "ProfilerStep#%u", i);
		segment_symbol(&segment, PROFILED + i, STEPSCOPE_SYMBOL_ANNOTATION, name);
	}
	now = 1000;
	sequence = 0;
}

static void open_on(uint32_t stream, uint32_t name)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, name, 0);
}

static void close_on(uint32_t stream)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
}

static void forward_on(uint32_t stream)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, ++sequence);
	close_on(stream);
}

static void forward(void)
{
	forward_on(MAIN);
}

static void node_on(uint32_t stream, uint64_t number)
{
	open_on(stream, NODE);
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, GRADIENT, 1, number);
	close_on(stream);
	close_on(stream);
}

static void backward_on(uint32_t stream)
{
	node_on(stream, sequence);
	open_on(stream, NODE);
	open_on(stream, ACCUMULATE);
	close_on(stream);
	close_on(stream);
}

/* Of the last three operators, all but the one in the middle, by the thread that has made them. */
static void backward_of(uint64_t thread)
{
	node_on(MAIN, sequence | thread << 48);
	node_on(MAIN, (sequence - 2) | thread << 48);
	open_on(MAIN, NODE);
	open_on(MAIN, ACCUMULATE);
	close_on(MAIN);
	close_on(MAIN);
}

static void call_on(uint32_t stream, uint64_t optimizer)
{
	open_on(stream, CALL);
	segment_put(&segment, stream, now, STEPSCOPE_EVENT_ARG, KEY, 2, (uint64_t)STEPSCOPE_ARG_U64, optimizer);
	close_on(stream);
}

static void call(uint64_t optimizer)
{
	call_on(MAIN, optimizer);
}

static void data(bool has_batch)
{
	open_on(MAIN, DATA);
	if (has_batch)
		open_on(MAIN, OP);
	if (has_batch)
		close_on(MAIN);
	close_on(MAIN);
}

static void step(void)
{
	data(true);
	forward();
	backward_on(MAIN);
	call(5);
}

static void finish_with(const char *reason, const struct model_filter *filter)
{
	const char *name = "node.7.4242.5242.0.ssr";
	struct error err = {.status = STATUS_OK};

	segment_end(&segment, reason);
	struct recording_bytes bytes = {segment.bytes.data, segment.bytes.length, name};
	model_init(&model, 0);
	enum status status = recording_load_memory(&bytes, 1, filter, &model, &err);
	assert_true(status == STATUS_OK || (filter && status == STATUS_INPUT));
	model_finish(&model);
	segment_release(&segment);
	for (uint32_t i = 0; i < model.steps_count; i++) {
		assert_int_equal(model.steps[i].number, i + (filter ? filter->first_step : 0));
		assert_true(model.steps[i].start_ns <= model.steps[i].end_ns);
		if (i)
			assert_true(model.steps[i].start_ns >= model.steps[i - 1].end_ns);
	}
}

/* `reason` NULL: killed. */
static void finish(const char *reason)
{
	finish_with(reason, NULL);
}

/* How often the span is there, of the main thread; `depth` -1: at any. */
static uint32_t span_count(const char *name, int depth)
{
	const struct track *track = model.tracks[model.steps[0].track];
	uint32_t count = 0;

	for (uint32_t row = 0; row < track->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);
		count += !strcmp(model_text(&model, chunk->name[i]), name) && (depth < 0 || chunk->depth[i] == depth);
	}
	return count;
}

static int64_t duration_of(const char *name)
{
	const struct track *track = model.tracks[model.steps[0].track];

	for (uint32_t row = 0; row < track->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);
		if (!strcmp(model_text(&model, chunk->name[i]), name))
			return chunk->dur_ns[i];
	}
	return -1;
}

static uint64_t ledger_count(enum ledger_kind kind)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < model.ledger_count; i++)
		count += model.ledger[i].kind == kind ? model.ledger[i].count : 0;
	return count;
}

static void steps_and_phases_are_put_in(void **state)
{
	begin();
	for (int i = 0; i < 3; i++)
		step();
	data(false);
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("step", 0), 3);
	assert_int_equal(span_count("forward", 1), 3);
	assert_int_equal(span_count("backward", 1), 3);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("data", -1), 4);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* A node that keeps a gradient, or adds it to the one that is there. */
static void accumulate(bool is_added)
{
	open_on(MAIN, NODE);
	open_on(MAIN, ACCUMULATE);
	if (is_added) {
		open_on(MAIN, ADD);
		close_on(MAIN);
	}
	close_on(MAIN);
	close_on(MAIN);
}

static void a_pause_is_no_phase(void **state)
{
	int64_t pause_ns = 6000000;

	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		now += pause_ns;
		forward();
		backward_on(MAIN);
		now += pause_ns;
		backward_on(MAIN);
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", 1), 6);
	assert_int_equal(span_count("backward", 1), 6);
	assert_true(model.steps[1].end_ns - model.steps[1].start_ns > 2 * pause_ns);
	for (uint32_t row = 0; row < model.tracks[model.steps[0].track]->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(model.tracks[model.steps[0].track], row, &i);
		assert_true(chunk->depth[i] != 1 || chunk->dur_ns[i] < pause_ns);
	}
	model_release(&model);
}

/* A call of the engine is one however long it waits for a processor. Of three gradients the second one adds to two: it is of the first one's step,
 * though it makes one anew at first. */
static void a_backward_with_a_pause_is_one(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		node_on(MAIN, sequence);
		accumulate(false);
		accumulate(false);
		forward();
		node_on(MAIN, sequence);
		accumulate(false);
		now += 2000000;
		accumulate(true);
		accumulate(true);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 1), 6);
	model_release(&model);
}

/* Two calls, of which the second works on what was made first; the first gradients are made for them. */
static void a_pause_between_two_calls_is_no_backward(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		forward();
		forward();
		for (int k = 0; k < 2; k++) {
			open_on(MAIN, ONES);
			close_on(MAIN);
			node_on(MAIN, sequence - (uint64_t)k);
			accumulate(k > 0);
			now += 2000000;
		}
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 1), 6);
	model_release(&model);
}

static void end_beneath(uint64_t above)
{
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 1, above);
}

/* As under modes of the dispatcher: each of them is called for the begin of a range, and for its end. */
static void open_in_modes(uint32_t name, unsigned modes)
{
	for (unsigned i = 0; i < modes; i++)
		open_on(MAIN, MODE);
	open_on(MAIN, name);
	for (unsigned i = 0; i < modes; i++)
		end_beneath(1);
}

static void close_in_modes(unsigned modes)
{
	for (unsigned i = 0; i < modes; i++)
		open_on(MAIN, MODE);
	if (modes)
		end_beneath(modes);
	else
		close_on(MAIN);
	for (unsigned i = 0; i < modes; i++)
		close_on(MAIN);
}

static void step_in_modes(unsigned modes, bool has_batch)
{
	open_in_modes(DATA, modes);
	if (has_batch) {
		open_on(MAIN, OP);
		close_on(MAIN);
	}
	close_in_modes(modes);
	if (!has_batch)
		return;
	forward();
	open_in_modes(ZERO, modes);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_in_modes(modes);
	backward_on(MAIN);
	open_in_modes(CALL, modes);
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_ARG, KEY, 2, (uint64_t)STEPSCOPE_ARG_U64, (uint64_t)5);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_in_modes(modes);
}

static void modes_hide_no_step(void **state)
{
	for (unsigned modes = 0; modes < 4; modes++) {
		begin();
		open_in_modes(RANGE, modes);
		for (int i = 0; i < 3; i++)
			step_in_modes(modes, true);
		step_in_modes(modes, false);
		close_in_modes(modes);
		finish("exit");
		assert_int_equal(model.steps_count, 3);
		assert_int_equal(span_count("step", 1), 3);
		assert_int_equal(span_count("forward", 2), 3);
		assert_int_equal(span_count("backward", 2), 3);
		assert_int_equal(span_count("optimizer", 2), 3);
		assert_int_equal(span_count("Optimizer.step#SGD.step", 3), 3);
		assert_int_equal(span_count("data", -1), 4);
		assert_int_equal(span_count("evaluation", -1), 0);
		assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END) +
		                         ledger_count(LEDGER_OTHER),
		                 0);
		/* from the range's begin to where the first mode is called for its end */
		assert_int_equal(duration_of("mine"), 690 + 410 * (int64_t)modes);
		model_release(&model);
	}
}

/* Two coroutines, each with ranges around what it waits for: those are cut, the steps between are right. */
static void ranges_that_overlap_hide_no_step(void **state)
{
	begin();
	open_on(MAIN, RANGE);
	for (int i = 0; i < 3; i++) {
		open_on(MAIN, RANGE);
		data(true);
		end_beneath(1); /* the one of the step before */
		forward();
		backward_on(MAIN);
		call(5);
	}
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("mine", -1), 4);
	assert_int_equal(span_count("forward", -1), 3);
	assert_int_equal(span_count("optimizer", -1), 3);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void an_evaluation_lies_between_steps(void **state)
{
	begin();
	step();
	for (int i = 0; i < 2; i++) {
		data(true);
		open_on(MAIN, OP);
		close_on(MAIN);
	}
	data(false); /* of the loop over the evaluation */
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("evaluation", 0), 1);
	assert_int_equal(span_count("data", -1), 2);
	model_release(&model);
}

static void a_kill_leaves_the_step_open(void **state)
{
	begin();
	step();
	data(true);
	forward();
	open_on(MAIN, NODE);
	finish(NULL);
	assert_int_equal(model.steps_count, 2);
	assert_false(model.steps[0].is_open);
	assert_true(model.steps[1].is_open);
	model_release(&model);
	begin();
	step();
	data(true);
	forward();
	finish("exit"); /* the same, but it wanted to end there */
	assert_int_equal(model.steps_count, 1);
	model_release(&model);
}

/* Of which no node is worked on: a policy that acts. */
static void a_forward_without_its_backward_is_none(void **state)
{
	begin();
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
	            (uint64_t)THREAD);
	for (int i = 0; i < 3; i++) {
		open_on(MAIN, MODULE);
		forward();
		close_on(MAIN);
		forward(); /* what is computed with it, and what the next one learns from */
		open_on(MAIN, MODULE);
		forward();
		forward();
		close_on(MAIN);
		forward();
		backward_of(THREAD);
		call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", -1), 3);
	assert_int_equal(duration_of("forward"), 70);
	model_release(&model);
}

/* What is made before the first step: numbers are peeked at, no node is made. */
static void preparing_is_no_forward(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, sequence + 1);
		close_on(MAIN);
	}
	int64_t made = (int64_t)now;
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[0].start_ns > made);
	assert_int_equal(span_count("forward", -1), 2);
	model_release(&model);
}

static void a_kill_in_the_optimizer(void **state)
{
	begin();
	step();
	data(true);
	forward();
	backward_on(MAIN);
	open_on(MAIN, CALL);
	finish(NULL);
	assert_int_equal(model.steps_count, 2);
	assert_true(model.steps[1].is_open);
	model_release(&model);
}

static void steps_can_be_chosen(void **state)
{
	const struct model_filter some = {.has_steps = true, .first_step = 3, .last_step = 5},
				  last = {.has_steps = true, .first_step = 9, .last_step = 12};

	begin();
	for (int i = 0; i < 10; i++)
		step();
	finish_with("exit", &some);
	assert_int_equal(model.steps_count, 3);
	for (int i = 0; i < 3; i++)
		assert_false(model.steps[i].is_open);
	assert_int_equal(span_count("forward", 1), 3);
	assert_int_equal(span_count("aten::mm", -1), 6);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("Optimizer.step#SGD.step", 2), 3);
	model_release(&model);
	begin();
	for (int i = 0; i < 9; i++)
		step();
	data(true);
	forward();
	finish_with(NULL, &last);
	assert_int_equal(model.steps_count, 1);
	assert_true(model.steps[0].is_open);
	model_release(&model);
}

static void mark_step(enum stepscope_step_event what, int64_t number)
{
	segment_step(&segment, MAIN, now += 10, what, number);
}

static void marked_steps_are_left_alone(void **state)
{
	begin();
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	for (uint32_t i = 0; i < 2; i++) {
		open_on(MAIN, PROFILED + i); /* nor does a profiler make others */
		step();
		close_on(MAIN);
	}
	mark_step(STEPSCOPE_STEP_END, 0);
	finish("exit");
	assert_int_equal(model.steps_count, 1);
	assert_int_equal(span_count("ProfilerStep#1", 1), 1);
	assert_int_equal(span_count("forward", 2), 2);
	assert_int_equal(span_count("optimizer", 2), 2);
	model_release(&model);
}

/* Where a step begins or ends no phase goes on; outside of steps they are phases, too. */
static void phases_end_with_marked_steps(void **state)
{
	begin();
	data(true);
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	forward();
	mark_step(STEPSCOPE_STEP_END, 0);
	mark_step(STEPSCOPE_STEP_BEGIN, 1);
	forward();
	backward_on(MAIN);
	call(5);
	mark_step(STEPSCOPE_STEP_END, 1);
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("data", 0), 1);
	assert_int_equal(span_count("forward", 1), 2);
	assert_int_equal(span_count("backward", 1), 1);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Two updates in each of torch.profiler's steps, as far as it is there, and an evaluation between two of them. */
static void steps_of_a_profiler_in_the_program(void **state)
{
	begin();
	step();
	for (uint32_t i = 0; i < 3; i++) {
		open_on(MAIN, PROFILED + i);
		step();
		step();
		close_on(MAIN);
		forward();
	}
	open_on(MAIN, PROFILED + 3); /* which stop() ends */
	data(false);
	close_on(MAIN);
	open_on(MAIN, FOO);
	step();
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].is_inferred, i == 0 || i == 4);
	assert_int_equal(span_count("step", 0), 5);
	assert_int_equal(span_count("backward", 1), 7); /* not in a range in the step */
	assert_int_equal(span_count("backward", 2), 1);
	assert_int_equal(span_count("ProfilerStep#1", -1), 0);
	assert_int_equal(span_count("ProfilerStep#3", -1), 1);
	assert_int_equal(span_count("ProfilerStep#foo", -1), 1);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	assert_int_equal(ledger_count(LEDGER_OTHER), 2); /* of 5 steps 2 are inferred */
	model_release(&model);
}

/* It steps in a range of the program's, which begins in the first one of its steps and ends in the last. */
static void steps_of_a_profiler_overlap_a_range(void **state)
{
	begin();
	open_on(MAIN, PROFILED);
	open_on(MAIN, RANGE);
	step();
	end_beneath(1); /* the profiler's */
	for (uint32_t i = 1; i < 4; i++) {
		open_on(MAIN, PROFILED + i);
		step();
		close_on(MAIN);
	}
	open_on(MAIN, PROFILED + 4);
	end_beneath(1); /* the program's */
	step();
	close_on(MAIN);
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].is_inferred, i == 0); /* it is cut there */
	assert_int_equal(span_count("optimizer", -1), 5);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void a_profilers_step_that_a_kill_cuts_off(void **state)
{
	begin();
	for (uint32_t i = 0; i < 3; i++) {
		open_on(MAIN, PROFILED + (i ? i - 1 : 0)); /* as PyTorch 1.13 numbers them */
		step();
		if (i < 2)
			close_on(MAIN);
	}
	finish(NULL);
	assert_int_equal(model.steps_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(model.steps[i].is_open, i == 2);
	assert_int_equal(span_count("optimizer", 1), 3);
	model_release(&model);
}

/* Nothing trains. */
static void steps_of_a_profiler_without_training(void **state)
{
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		open_on(MAIN, PROFILED + i);
		if (i < 3)
			data(true);
		if (i < 3)
			forward();
		close_on(MAIN);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("data", 1), 3);
	model_release(&model);
}

static void marked_phases_are_left_alone(void **state)
{
	begin();
	mark_step(STEPSCOPE_STEP_BEGIN, 0);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_PHASE_DATA, 0);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE, 0);
	step();
	mark_step(STEPSCOPE_STEP_END, 0);
	finish("exit");
	assert_int_equal(span_count("forward", -1), 0);
	assert_int_equal(span_count("data", 1), 1);
	model_release(&model);
}

/* As with a GPU: micro-batches whose gradients another thread computes are no evaluations. */
static void another_threads_backward_is_put_in(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		data(true);
		forward();
		open_on(MAIN, RANGE);
		backward_on(OTHER);
		backward_on(OTHER);
		close_on(MAIN);
		if (i % 2)
			call(5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("backward", 2), 6);
	assert_int_equal(span_count("evaluation", -1), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* A thread that trains a model of its own: what it does is none of the other's backward, and that its steps are not shown is said. */
static void another_thread_that_trains_is_told_of(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		step();
		backward_on(OTHER);
		if (i < 3)
			call_on(OTHER, 6);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(span_count("backward", -1), 6);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

static void step_on(uint32_t stream, uint64_t optimizer)
{
	forward_on(stream);
	backward_on(stream);
	call_on(stream, optimizer);
}

static uint32_t steps_on(const char *thread)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < model.steps_count; i++)
		count += !strcmp(model_text(&model, model.tracks[model.steps[i].track]->name), thread);
	return count;
}

/* One after the other, each with optimizers of its own: the steps are where they were made, and no end is missing. */
static void training_goes_on_in_another_thread(void **state)
{
	begin();
	for (int i = 0; i < 3; i++)
		step_on(MAIN, 5);
	data(true); /* an evaluation, while the other one trains */
	for (int i = 0; i < 4; i++)
		step_on(OTHER, 6);
	data(true);
	finish(NULL);
	assert_int_equal(model.steps_count, 7);
	assert_int_equal(steps_on("main"), 3);
	assert_int_equal(steps_on("other"), 4);
	assert_int_equal(span_count("backward", 1), 3); /* of the first step's thread */
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Two threads that take turns with one optimizer; a range lasts as long as the second lives. */
static void threads_take_turns(void **state)
{
	begin();
	open_on(OTHER, RANGE);
	for (int i = 0; i < 6; i++)
		step_on(i % 2 ? OTHER : MAIN, 5);
	close_on(OTHER);
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(steps_on("main"), 3);
	assert_int_equal(steps_on("other"), 3);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* With one optimizer, but not one at a time. */
static void threads_that_train_at_once_are_not_one(void **state)
{
	begin();
	for (int i = 0; i < 4; i++) {
		backward_on(MAIN);
		if (i < 3)
			backward_on(OTHER);
		call(5);
		if (i < 3)
			call_on(OTHER, 5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 4);
	assert_int_equal(steps_on("main"), 4);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

static void compiled_call(void)
{
	open_on(MAIN, COMPILED_CALL);
	open_on(MAIN, REGION);
	open_on(MAIN, OP);
	close_on(MAIN);
	close_on(MAIN);
	close_on(MAIN);
}

/* From the third step on its code is compiled. */
static void a_call_that_is_compiled(void **state)
{
	begin();
	for (int i = 0; i < 6; i++) {
		open_on(MAIN, REGION);
		forward();
		close_on(MAIN);
		backward_on(MAIN);
		if (i < 2)
			call(77);
		else
			compiled_call();
	}
	finish("exit");
	assert_int_equal(model.steps_count, 6);
	assert_int_equal(span_count("optimizer", 1), 6);
	assert_int_equal(span_count("forward", 1), 6);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

static void a_whole_step_that_is_compiled(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		data(true);
		open_on(MAIN, REGION);
		forward();
		open_on(MAIN, REGION);
		forward();
		backward_on(MAIN);
		open_on(MAIN, REGION);
		compiled_call();
		close_on(MAIN);
		close_on(MAIN);
		close_on(MAIN);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("optimizer", -1), 3);
	assert_int_equal(span_count("backward", -1), 3);
	assert_int_equal(span_count("evaluation", -1), 0);
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* Without a record in it code is work all the same: these batches are evaluated. */
static void code_that_calls_nothing_is_work(void **state)
{
	begin();
	step();
	for (int i = 0; i < 2; i++) {
		data(true);
		open_on(MAIN, REGION);
		close_on(MAIN);
	}
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(span_count("evaluation", 0), 1);
	model_release(&model);
}

static void gap(int32_t net, int32_t lowest)
{
	now += 10;
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)9,
	            (uint64_t)(uint32_t)net << 32 | (uint32_t)lowest, now - 5);
}

static void a_gap_does_not_lose_the_levels(void **state)
{
	for (int32_t lost = 0; lost < 3; lost++) {
		begin();
		step();
		open_on(MAIN, RANGE);
		uint64_t begin_ns = now;
		data(true);
		segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)7);
		gap(-lost, -lost);
		uint64_t end_ns = now - 5; /* when the first event was dropped */
		for (int32_t i = lost; i < 2; i++)
			close_on(MAIN);
		if (lost < 2)
			end_ns = now;
		forward();
		backward_on(MAIN);
		call(5);
		step();
		finish("exit");
		assert_int_equal(model.steps_count, 3);
		assert_int_equal(span_count("step", -1), 3);
		assert_int_equal(duration_of("mine"), end_ns - begin_ns);
		assert_int_equal(ledger_count(LEDGER_OPEN_SPANS) + ledger_count(LEDGER_UNMATCHED_END), 0);
		model_release(&model);
	}
	begin();
	step();
	gap(2, -1);
	close_on(MAIN);
	close_on(MAIN);
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 2);
	model_release(&model);
}

/* ---- what nobody would record ----------------------------------------------------------------------------------------------- */

static void very_deep_nesting(void **state)
{
	static const uint32_t names[] = {RANGE, OP, NODE, CALL, STEPSCOPE_PHASE_FORWARD};

	for (unsigned kind = 0; kind < sizeof names / sizeof *names; kind++) {
		begin();
		for (int i = 0; i < 300000; i++)
			open_on(MAIN, names[kind]);
		for (int i = 0; i < 1000; i++)
			step();
		for (int i = 0; i < 300000; i++)
			segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END,
			            kind % 2 ? STEPSCOPE_END_PHASE : STEPSCOPE_END_DETAIL, 0);
		finish(NULL);
		model_release(&model);
	}
}

static void millions_of_ranges(void **state)
{
	begin();
	for (int i = 0; i < 1000000; i++) {
		open_on(MAIN, RANGE);
		close_on(MAIN);
	}
	for (int i = 0; i < 100000; i++) {
		open_on(MAIN, RANGE);
		backward_on(i % 2 ? OTHER : MAIN);
		call((uint64_t)i % 3);
		close_on(MAIN);
	}
	finish("exit");
	assert_true(model.steps_count > 30000);
	model_release(&model);
}

static void gaps_of_nonsense(void **state)
{
	begin();
	for (int i = 0; i < 1000; i++) {
		gap(INT32_MAX, i % 2 ? 0 : INT32_MIN);
		step();
		gap(i, i + 1);
		gap(-1, INT32_MIN);
	}
	finish(NULL);
	model_release(&model);
}

/* Some with equal times, some of them under a filter. */
static void random_event(uint64_t *seed, bool has_all_types, uint32_t below)
{
	static const uint8_t types[] = {STEPSCOPE_EVENT_BEGIN, STEPSCOPE_EVENT_BEGIN,  STEPSCOPE_EVENT_END,
	                                STEPSCOPE_EVENT_END,   STEPSCOPE_EVENT_SWITCH, STEPSCOPE_EVENT_ARG,
	                                STEPSCOPE_EVENT_GAP,   STEPSCOPE_EVENT_STEP};
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	uint32_t r = (uint32_t)(*seed >> 32);
	uint8_t type = types[r % (has_all_types ? sizeof types : 4)];
	uint32_t stream = r / 4096 % 8 ? MAIN : OTHER, id = AGENT + r / 64 % (NAMES_END - AGENT);

	now += r / 32768 % below;
	if (type == STEPSCOPE_EVENT_BEGIN && r / 8 % 4 == 0)
		id = PROFILED + r / 64 % 5;
	if (type == STEPSCOPE_EVENT_END)
		id = r / 64 % 8 > 2 ? STEPSCOPE_END_DETAIL : r / 64 % 8 ? STEPSCOPE_END_BENEATH : STEPSCOPE_END_PHASE;
	if (type == STEPSCOPE_EVENT_SWITCH && r / 64 % 2)
		id = STEPSCOPE_PHASE_FORWARD;
	if (type == STEPSCOPE_EVENT_GAP)
		gap((int32_t)(r / 64 % 5) - 2, -(int32_t)(r / 1024 % 4));
	else if (type == STEPSCOPE_EVENT_STEP && r / 1024 % 2)
		segment_put(&segment, stream, now, type, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)r / 64 % 12 | (uint64_t)(r / 256 % 8) << 8, now - r / 64 % 50, now + r / 2048 % 3,
		            (uint64_t)r / 128 % 5);
	else if (type == STEPSCOPE_EVENT_STEP)
		segment_put(&segment, stream, now, type, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0, (uint64_t)r / 64 % 4);
	else if (type == STEPSCOPE_EVENT_END && id == STEPSCOPE_END_BENEATH)
		segment_put(&segment, stream, now, type, id, r / 64 % 8, (uint64_t)(r / 1024 % 4), now - r / 2048 % 9);
	else
		segment_put(&segment, stream, now, type, id, type == STEPSCOPE_EVENT_ARG ? 2 : id == OP || id == NODE,
		            type == STEPSCOPE_EVENT_ARG ? (uint64_t)STEPSCOPE_ARG_U64 : r / 64 % 9,
		            (uint64_t)r / 64 % 3);
}

static void capture(unsigned mask, int64_t counted)
{
	segment_put(&segment, MAIN, now += 1, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, counted < 0 ? 2 : 3,
	            (uint64_t)0, (uint64_t)mask, (uint64_t)counted);
}

/* A stretch of 50 ticks. */
static void note(uint64_t token, uint64_t optimizer)
{
	now += 60;
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, optimizer ? 4 : 3, token,
	            now - 50, now, optimizer);
}

static void noted_step(void)
{
	note(STEPSCOPE_TRAINING_DATA, 0);
	note(STEPSCOPE_TRAINING_FORWARD, 0);
	note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING, 0);
	note(STEPSCOPE_TRAINING_OPTIMIZER, 5);
}

/* Collections and a compilation among them change neither steps nor phases: what is noted in a compilation is what that traces, but for
 * what was over before it. */
static void rare_ranges_among_notes_say_nothing(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_RARE, -1);
	noted_step();
	note(STEPSCOPE_TRAINING_DATA, 0);
	now += 60;
	uint64_t before = now - 50;
	open_on(MAIN, COMPILE);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 3,
	            (uint64_t)STEPSCOPE_TRAINING_FORWARD, before, before + 20, (uint64_t)0);
	note(STEPSCOPE_TRAINING_BACKWARD, 0);
	uint64_t traced = now - 20;
	close_on(MAIN);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 3,
	            (uint64_t)STEPSCOPE_TRAINING_BACKWARD, traced, traced + 10, (uint64_t)0);
	open_on(MAIN, GARBAGE);
	close_on(MAIN);
	note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING, 0);
	note(STEPSCOPE_TRAINING_OPTIMIZER, 5);
	open_on(MAIN, GARBAGE); /* and what is counted behind it began with the optimizer's end */
	close_on(MAIN);
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 2);
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 4);
	assert_int_equal(span_count("forward", 1), 4);
	assert_int_equal(span_count("backward", 1), 4);
	assert_int_equal(span_count("data", 1), 4);
	assert_int_equal(span_count("garbage collection 2", -1), 2);
	assert_int_equal(span_count("torch.compile", -1), 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(model.steps[i].has_rare);
		assert_int_equal(model.steps[i].has_detail, i > 1);
		assert_int_equal(model.steps[i].has_any_detail, i > 1);
	}
	model_release(&model);
}

/* Two steps without detail, two with it, one without. */
static void steps_that_were_noted(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	noted_step();
	noted_step();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 2);
	step();
	step();
	capture(STEPSCOPE_ACTIVE_STEPS, 4);
	noted_step();
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(model.steps[i].has_detail, i == 2 || i == 3);
	assert_int_equal(span_count("backward", 1), 5);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	model_release(&model);
}

/* Of two steps in each of torch.profiler's, without detail and with it. */
static void steps_of_a_profiler_that_were_noted(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t start = now;
		noted_step();
		noted_step();
		now += 10;
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)STEPSCOPE_TRAINING_PROFILER_STEP, start, now, i + 1);
	}
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 3);
	open_on(MAIN, PROFILED + 3);
	step();
	step();
	close_on(MAIN);
	capture(STEPSCOPE_ACTIVE_STEPS, 4);
	noted_step();
	finish("exit");
	assert_int_equal(model.steps_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(model.steps[i].has_detail, i == 3);
		assert_int_equal(model.steps[i].is_inferred, i == 4);
	}
	assert_int_equal(span_count("backward", 1), 9);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1); /* of the one that is inferred */
	model_release(&model);
}

static void a_count_that_differs_is_said(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	noted_step();
	noted_step();
	capture(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL, 3);
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
}

/* A closure's backward lies in the call, and is noted before it. */
static void a_call_with_a_closure(void **state)
{
	begin();
	capture(STEPSCOPE_ACTIVE_STEPS, -1);
	for (int i = 0; i < 3; i++) {
		uint64_t start;

		note(STEPSCOPE_TRAINING_DATA, 0);
		start = now += 5;
		note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING | STEPSCOPE_TRAINING_IS_INSIDE, 0);
		note(STEPSCOPE_TRAINING_BACKWARD | STEPSCOPE_TRAINING_IS_TRAINING | STEPSCOPE_TRAINING_IS_INSIDE, 0);
		now += 5;
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)STEPSCOPE_TRAINING_OPTIMIZER, start, now, (uint64_t)5);
	}
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("optimizer", 1), 3);
	assert_int_equal(span_count("backward", 1), 0);
	model_release(&model);
}

static void any_events(void **state)
{
	const struct model_filter filter = {.has_steps = true, .first_step = 0, .last_step = 1};
	uint64_t seed = 3;

	for (int round = 0; round < 6000; round++) {
		begin();
		for (int i = 0; i < 100; i++)
			random_event(&seed, round % 4 == 0, round % 3 ? 20 : 2);
		if (round % 5 == 0) /* now there are two of them */
			step();
		if (round % 5 == 0)
			step();
		finish_with(round % 2 ? "exit" : NULL, round % 5 == 0 ? &filter : NULL);
		model_release(&model);
	}
}

static void no_detail_for_a_while(void **state)
{
	begin();
	step();
	open_on(MAIN, NODE);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0,
	            (uint64_t)STEPSCOPE_ACTIVE_STEPS);
	segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0,
	            (uint64_t)STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL);
	step();
	step();
	finish("exit");
	assert_int_equal(model.steps_count, 3);
	assert_int_equal(span_count("forward", 1), 3);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_phases_are_put_in),
		cmocka_unit_test(rare_ranges_among_notes_say_nothing),
		cmocka_unit_test(a_pause_is_no_phase),
		cmocka_unit_test(a_backward_with_a_pause_is_one),
		cmocka_unit_test(a_pause_between_two_calls_is_no_backward),
		cmocka_unit_test(modes_hide_no_step),
		cmocka_unit_test(ranges_that_overlap_hide_no_step),
		cmocka_unit_test(an_evaluation_lies_between_steps),
		cmocka_unit_test(a_kill_leaves_the_step_open),
		cmocka_unit_test(a_forward_without_its_backward_is_none),
		cmocka_unit_test(preparing_is_no_forward),
		cmocka_unit_test(a_kill_in_the_optimizer),
		cmocka_unit_test(steps_can_be_chosen),
		cmocka_unit_test(marked_steps_are_left_alone),
		cmocka_unit_test(phases_end_with_marked_steps),
		cmocka_unit_test(steps_of_a_profiler_in_the_program),
		cmocka_unit_test(steps_of_a_profiler_overlap_a_range),
		cmocka_unit_test(a_profilers_step_that_a_kill_cuts_off),
		cmocka_unit_test(steps_of_a_profiler_without_training),
		cmocka_unit_test(marked_phases_are_left_alone),
		cmocka_unit_test(another_threads_backward_is_put_in),
		cmocka_unit_test(training_goes_on_in_another_thread),
		cmocka_unit_test(threads_take_turns),
		cmocka_unit_test(threads_that_train_at_once_are_not_one),
		cmocka_unit_test(a_call_that_is_compiled),
		cmocka_unit_test(a_whole_step_that_is_compiled),
		cmocka_unit_test(code_that_calls_nothing_is_work),
		cmocka_unit_test(another_thread_that_trains_is_told_of),
		cmocka_unit_test(a_gap_does_not_lose_the_levels),
		cmocka_unit_test(no_detail_for_a_while),
		cmocka_unit_test(very_deep_nesting),
		cmocka_unit_test(millions_of_ranges),
		cmocka_unit_test(gaps_of_nonsense),
		cmocka_unit_test(steps_that_were_noted),
		cmocka_unit_test(steps_of_a_profiler_that_were_noted),
		cmocka_unit_test(a_count_that_differs_is_said),
		cmocka_unit_test(a_call_with_a_closure),
		cmocka_unit_test(any_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
