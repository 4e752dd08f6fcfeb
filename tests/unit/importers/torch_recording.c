/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a PyTorch training loop, the way from them into `model`, and look-ups among its spans.
 */
#include "torch_recording.h"

#include "importers/recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct segment_builder segment;
uint64_t now, sequence;

void begin(void)
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

void open_on(uint32_t stream, uint32_t name)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, name, 0);
}

void close_on(uint32_t stream)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
}

void forward_on(uint32_t stream)
{
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, OP, 1, ++sequence);
	close_on(stream);
}

void forward(void)
{
	forward_on(MAIN);
}

void node_on(uint32_t stream, uint64_t number)
{
	open_on(stream, NODE);
	segment_put(&segment, stream, now += 10, STEPSCOPE_EVENT_BEGIN, GRADIENT, 1, number);
	close_on(stream);
	close_on(stream);
}

void backward_on(uint32_t stream)
{
	node_on(stream, sequence);
	open_on(stream, NODE);
	open_on(stream, ACCUMULATE);
	close_on(stream);
	close_on(stream);
}

void call_on(uint32_t stream, uint64_t optimizer)
{
	open_on(stream, CALL);
	segment_put(&segment, stream, now, STEPSCOPE_EVENT_ARG, KEY, 2, (uint64_t)STEPSCOPE_ARG_U64, optimizer);
	close_on(stream);
}

void call(uint64_t optimizer)
{
	call_on(MAIN, optimizer);
}

void data(bool has_batch)
{
	open_on(MAIN, DATA);
	if (has_batch)
		open_on(MAIN, OP);
	if (has_batch)
		close_on(MAIN);
	close_on(MAIN);
}

void step(void)
{
	data(true);
	forward();
	backward_on(MAIN);
	call(5);
}

void gap(int32_t net, int32_t lowest)
{
	now += 10;
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_GAP, 0, 3, (uint64_t)9,
	            (uint64_t)(uint32_t)net << 32 | (uint32_t)lowest, now - 5);
}

void finish_with(const char *reason, const struct model_filter *filter)
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

void finish(const char *reason)
{
	finish_with(reason, NULL);
}

uint32_t span_count(const char *name, int depth)
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

int64_t duration_of(const char *name)
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
