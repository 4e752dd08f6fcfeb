/* SPDX-License-Identifier: Apache-2.0
 *
 * report_sample KIND DIR: writes recordings with round numbers, for the golden tests of `report` and `info`.
 *
 *     train    one process, steps 0 to 9: data 10 ms, forward 20 (matmul 8 with 8 MFLOP, in range layer 12), backward 30,
 *              optimizer 10, other 10 + the number of the step; 1000 tokens; checkpoint of 40 ms in step 5; 5 ms between
 *              steps; loss 10 - number, NaN in step 7; memory: 1 MiB of parameters, 4 MiB of activations per step, of
 *              which 64 KiB stay
 *     killed   the same, cut off in the forward phase of step 6
 *     ranks    two processes; rank 1 waits 20 ms longer for data, rank 0 20 ms longer in communication
 *     wait     the same as train, with operations in steps 4 and 5 only
 *     faults   the same as train; the thread of steps 1 to 9 used 60 ms of a processor and waited once, with 20000 + number page faults
 *     silent   only what `stepscope run` noted about a program that recorded nothing
 */
#include "segment_builder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define MAIN 1
#define MS UINT64_C(1000000)

enum {
	OP_MATMUL = 20,
	RANGE_LAYER,
	METRIC_LOSS,
	TEXT_SHAPE,
	COUNTER_QUEUE,
	MARK_SAVED,
	COUNTER_CPU,
	COUNTER_RSS
};

enum kind {
	TRAIN,
	KILLED,
	RANKS,
	WAIT,
	SILENT,
	STEPLESS,
	FAULTS,
	KINDS
};
static const char *const kinds[KINDS] = {"train", "killed", "ranks", "wait", "silent", "stepless", "faults"};

struct sample {
	struct segment_builder segment;
	enum kind kind;
	uint64_t now;
	bool has_detail;
};

static void put(struct sample *sample, enum stepscope_event type, uint32_t id)
{
	segment_put(&sample->segment, MAIN, sample->now, type, id, 0);
}

static void put_value(struct sample *sample, uint32_t id, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_VALUE, id, 1, bits);
}

static void phase(struct sample *sample, enum stepscope_phase which, uint64_t ms)
{
	put(sample, STEPSCOPE_EVENT_BEGIN, which);
	sample->now += ms * MS;
	put(sample, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
}

static void put_arg(struct sample *sample, uint32_t key, enum stepscope_arg type, uint64_t value)
{
	segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_ARG, key, 2, (uint64_t)type, value);
}

static void put_matmul(struct sample *sample)
{
	double flops = 8e6;
	uint64_t bits;

	memcpy(&bits, &flops, sizeof(bits));
	put(sample, STEPSCOPE_EVENT_BEGIN, RANGE_LAYER);
	sample->now += 2 * MS;
	put(sample, STEPSCOPE_EVENT_BEGIN, OP_MATMUL);
	put_arg(sample, STEPSCOPE_BUILTIN_KEY_SHAPE, STEPSCOPE_ARG_SYMBOL, TEXT_SHAPE);
	put_arg(sample, STEPSCOPE_BUILTIN_KEY_FLOPS, STEPSCOPE_ARG_F64, bits);
	sample->now += 8 * MS;
	put(sample, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	sample->now += 2 * MS;
	put(sample, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
}

/* 20 ms; a killed sample stops in the middle of it. */
static void put_forward(struct sample *sample, bool is_last)
{
	uint64_t begin = sample->now;

	put(sample, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD);
	sample->now += 4 * MS;
	if (is_last) {
		put(sample, STEPSCOPE_EVENT_BEGIN, OP_MATMUL);
		sample->now += 3 * MS;
		put_value(sample, COUNTER_QUEUE, 0);
		return;
	}
	if (sample->has_detail)
		put_matmul(sample);
	sample->now = begin + 20 * MS;
	put(sample, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
}

static void put_memory(struct sample *sample, uint64_t address, uint64_t bytes, enum stepscope_memory category)
{
	segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_ALLOC, STEPSCOPE_MEMORY_ID(category, -1), 2,
	            address, bytes);
}

static void put_free(struct sample *sample, uint64_t address)
{
	segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, -1), 1, address);
}

static void mark_step(struct sample *sample, enum stepscope_step_event what, int64_t number)
{
	if (sample->kind != STEPLESS)
		segment_step(&sample->segment, MAIN, sample->now, what, number);
}

static void end_step(struct sample *sample, int64_t number)
{
	if (sample->kind == FAULTS && number > 0)
		segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_END, 5,
		            (uint64_t)number, (uint64_t)0, 60 * MS, (uint64_t)1, (uint64_t)(20000 + number));
	else
		mark_step(sample, STEPSCOPE_STEP_END, number);
}

static void put_step(struct sample *sample, int rank, int64_t number, bool is_last)
{
	bool has_memory = sample->kind == TRAIN || sample->kind == KILLED;

	mark_step(sample, STEPSCOPE_STEP_BEGIN, number);
	phase(sample, STEPSCOPE_PHASE_DATA, rank == 1 ? 30 : 10);
	put_value(sample, COUNTER_QUEUE, (double)(number % 3));
	if (has_memory && number == 0)
		put_memory(sample, 0x1000, 1 << 20, STEPSCOPE_MEMORY_PARAMETER);
	if (has_memory) {
		put_memory(sample, 0x2000, 4032 << 10, STEPSCOPE_MEMORY_ACTIVATION);
		put_memory(sample, 0x10000 + (uint64_t)number, 64 << 10, STEPSCOPE_MEMORY_ACTIVATION);
	}
	put_forward(sample, is_last);
	if (is_last)
		return;
	phase(sample, STEPSCOPE_PHASE_BACKWARD, 30);
	if (has_memory)
		put_free(sample, 0x2000);
	if (sample->kind == RANKS)
		phase(sample, STEPSCOPE_PHASE_COMMUNICATION, rank == 0 ? 25 : 5);
	phase(sample, STEPSCOPE_PHASE_OPTIMIZER, 10);
	if (number == 5) {
		phase(sample, STEPSCOPE_PHASE_CHECKPOINT, 40);
		put(sample, STEPSCOPE_EVENT_MARK, MARK_SAVED);
	}
	put_value(sample, METRIC_LOSS, number == 7 ? NAN : 10.0 - (double)number);
	mark_step(sample, STEPSCOPE_STEP_TOKENS, 1000);
	sample->now += (10 + (uint64_t)number) * MS;
	end_step(sample, number);
	sample->now += 5 * MS;
}

static void put_capture(struct sample *sample, int64_t number)
{
	bool has_detail = sample->kind != WAIT || number == 4 || number == 5;
	uint64_t bits = STEPSCOPE_ACTIVE_STEPS;

	if (has_detail)
		bits |= STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_SHAPES;
	if (has_detail && sample->kind != WAIT && sample->kind != RANKS)
		bits |= STEPSCOPE_ACTIVE_MEMORY;
	if (number > 0 && has_detail == sample->has_detail)
		return;
	sample->has_detail = has_detail;
	segment_put(&sample->segment, MAIN, sample->now, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, 2,
	            (uint64_t)(has_detail ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_NONE), bits);
}

static void begin(struct sample *sample, uint32_t pid, int rank, enum stepscope_role role)
{
	segment_begin_sample(&sample->segment, pid, rank, role);
	sample->now = SEGMENT_SAMPLE_START;
	segment_stream(&sample->segment, MAIN, pid, "main");
}

static void name_symbols(struct sample *sample)
{
	segment_symbol(&sample->segment, OP_MATMUL, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(&sample->segment, RANGE_LAYER, STEPSCOPE_SYMBOL_RANGE, "layer");
	segment_symbol(&sample->segment, METRIC_LOSS, STEPSCOPE_SYMBOL_METRIC, "loss");
	segment_symbol(&sample->segment, TEXT_SHAPE, STEPSCOPE_SYMBOL_TEXT, "[8, 16] x [16, 4]");
	segment_symbol(&sample->segment, COUNTER_QUEUE, STEPSCOPE_SYMBOL_COUNTER, "queue");
	segment_symbol(&sample->segment, MARK_SAVED, STEPSCOPE_SYMBOL_MARK, "saved");
	segment_symbol(&sample->segment, COUNTER_CPU, STEPSCOPE_SYMBOL_COUNTER, "process.cpu_ns");
	segment_symbol(&sample->segment, COUNTER_RSS, STEPSCOPE_SYMBOL_COUNTER, "process.rss_peak_bytes");
}

static bool write_trainer(enum kind kind, int rank, const char *directory)
{
	struct sample sample = {.kind = kind};
	int64_t last = kind == KILLED ? 6 : 9;

	begin(&sample, rank == 1 ? 4243 : 4242, kind == RANKS ? rank : -1, STEPSCOPE_ROLE_TRAINER);
	name_symbols(&sample);
	segment_meta(&sample.segment, "program", "train");
	segment_meta(&sample.segment, "cost.event_ns", "25.000");
	sample.now += 50 * MS;
	for (int64_t number = 0; number <= last; number++) {
		put_capture(&sample, number);
		put_step(&sample, rank, number, kind == KILLED && number == last);
	}
	put_value(&sample, COUNTER_CPU, 9e8);
	put_value(&sample, COUNTER_RSS, 64 << 20);
	if (kind != KILLED)
		segment_meta(&sample.segment, "capture", "captured what the sample wanted");
	segment_end(&sample.segment, kind == KILLED ? NULL : "exit");
	return segment_save_sample(&sample.segment, directory);
}

static bool write_host(const char *directory)
{
	static const char *const facts[][2] = {
		{"program", "sleep"},
		{"argv", "sleep 3"},
		{"child", "4242"},
		{"child.4242.status", "0"},
		{"child.4242.wall_ns", "3000000000"},
		{"child.4242.user_ns", "1500000"},
		{"child.4242.system_ns", "500000"},
		{"child.4242.max_rss_bytes", "1679360"},
		{"child.4242.read_bytes", "4096"},
		{"child.4242.write_bytes", "0"},
	};
	struct sample sample = {.kind = SILENT};

	begin(&sample, 4200, -1, STEPSCOPE_ROLE_HOST);
	segment_symbol(&sample.segment, COUNTER_QUEUE, STEPSCOPE_SYMBOL_COUNTER, "host.cpu_busy_ratio");
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		segment_meta(&sample.segment, facts[i][0], facts[i][1]);
	put_value(&sample, COUNTER_QUEUE, 0.25);
	sample.now += 3000 * MS;
	put_value(&sample, COUNTER_QUEUE, 0.5);
	segment_end(&sample.segment, "exit");
	return segment_save_sample(&sample.segment, directory);
}

int main(int argc, char **argv)
{
	int kind = 0;

	while (argc == 3 && kind < KINDS && strcmp(argv[1], kinds[kind]) != 0)
		kind++;
	if (argc != 3 || kind == KINDS) {
		fprintf(stderr, "usage: report_sample train|killed|ranks|wait|silent|stepless|faults DIR\n");
		return 2;
	}
	if (kind == SILENT)
		return !write_host(argv[2]);
	if (!write_trainer(kind, 0, argv[2]))
		return 1;
	return kind == RANKS && !write_trainer(kind, 1, argv[2]);
}
