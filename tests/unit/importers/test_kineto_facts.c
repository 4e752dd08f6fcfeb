/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts that events of Kineto's traces carry: inputs, stacks, flows, launches, allocations, names and numbers of processes and threads,
 * and the facts of the document.
 */
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NAME_OF(name, ts)                                                                                              \
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"args\":{\"name\":\"" name "\"}}"

/* I10, R01: the last one by time, and of those at one time always the same. */
static void threads_with_two_names(void **state)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{"[" A "," NAME_OF("old", "0") "," NAME_OF("new", "5") "]", "new"},
		{"[" NAME_OF("new", "5") "," NAME_OF("old", "0") "," A "]", "new"},
		{"[" A "," NAME_OF("x", "5") "," NAME_OF("y", "5") "]", "y"},
		{"[" A "," NAME_OF("y", "5") "," NAME_OF("x", "5") "]", "y"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct model model;
		struct error err = {0};
		assert_int_equal(load(cases[i].text, strlen(cases[i].text), &model, &err), STATUS_OK);
		assert_string_equal(model_text(&model, model.tracks[0]->name), cases[i].name);
		model_release(&model);
	}
}

static void inputs_of_operators(void **state)
{
	static const char text[] = HEAD
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
		"\"Sequence number\":5,\"Fwd thread id\":2,\"Input Dims\":[[2, 3],\n[],[[4],[5]]],\"Input "
		"type\":[\"float\",\"\",\"TensorList\"],\"Input Strides\":[[3,1],[],[[1],[1]]],\"Concrete "
		"Inputs\":[\"\",\"0.5\",\"\"],\"Collective name\":\"allreduce\"}}" TAIL;
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	assert_string_equal(model_text(&model, chunk->shape[0]), "[2, 3] [] [[4], [5]]");
	assert_string_equal(model_text(&model, span_inputs(chunk, 0)),
	                    "[2, 3] [] [[4], [5]]\nt float;;TensorList\ns [3, 1] [] [[1], [1]]\nv ;0.5;");
	assert_true(span_sequence(chunk, 0) == (5 | UINT64_C(2) << 48));
	assert_int_equal(model.args_count, 1);
	assert_string_equal(model_text(&model, model.args[0].text), "allreduce");
	model_release(&model);
}

/* Equal bytes that are a text in one event and a list in the next. */
static void inputs_that_look_alike(void **state)
{
#define OP_WITH(strides)                                                                                               \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"Input "    \
	"Dims\":[[2,3]],\"Input Strides\":" strides "}}"
	static const char text[] = HEAD OP_WITH("\"[[3,1]]\"") "," OP_WITH("[[3,1]]") TAIL;
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	assert_string_equal(model_text(&model, span_inputs(chunk, 0)), "[2, 3]");
	assert_string_equal(model_text(&model, span_inputs(chunk, 1)), "[2, 3]\ns [3, 1]");
	model_release(&model);
}

/* Of every length: what is read in steps must not look behind the end (run under AddressSanitizer). */
static void facts_of_any_length(void **state)
{
	for (int blanks = 0; blanks < 600; blanks++) {
		struct buffer text;
		struct model model;
		struct error err = {0};
		buffer_init(&text, 1 << 20);
		buffer_add_text(&text, "{\"deviceProperties\":[{\"id\":0,\"name\":\"x\"}");
		for (int i = 0; i < blanks; i++)
			buffer_add_byte(&text, i % 2 ? '\n' : ' ');
		buffer_add_text(&text, "],\"traceEvents\":[" A "]}");
		assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
		assert_string_equal(model_meta(&model, 0, "device.0.name"), "x");
		buffer_release(&text);
		model_release(&model);
	}
}

static void facts_of_a_trace(void **state)
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#7\",\"pid\":5,\"tid\":5,"
		"\"ts\":1,\"dur\":9},{\"ph\":\"C\",\"name\":\"loss\",\"pid\":5,\"tid\":5,\"ts\":2,\"args\":{\"value\":0.5,\"x\":2}},"
		"{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":5,\"tid\":5,\"ts\":3,\"args\":{\"Bytes\":64,\"Addr\":4096,\"Device "
		"Id\":-1,\"Device Type\":0}},{\"ph\":\"i\",\"s\":\"t\",\"name\":\"here\",\"pid\":5,\"tid\":5,\"ts\":4}],"
		"\"distributedInfo\":{\"rank\":3,\"world_size\":8},\"baseTimeNanoseconds\":1000000000}";
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.processes_count, 1);
	assert_int_equal(model.processes[0].rank, 3);
	assert_int_equal(model.processes[0].world_size, 8);
	assert_true(model.processes[0].realtime_offset_ns == 1000000000);
	assert_int_equal(model.steps_count, 1);
	assert_true(model.steps[0].number == 7 && model.steps[0].end_ns == 10000);
	assert_int_equal(model.series_count, 2);
	assert_string_equal(model_text(&model, model.series[1]->name), "loss x");
	assert_int_equal(model.memory_count, 1);
	assert_true(model.memory[0].bytes == 64 && model.memory[0].row == 0 && model.memory[0].device == -1);
	assert_int_equal(model.marks_count, 1);
	model_release(&model);
}

/* Of our own exporter: that times were put together out of stacks is kept, so that it is said again. */
static void calls_that_were_put_together(void **state)
{
	static const char text[] = HEAD
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"f\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
		"\"Python id\":1,\"stepscope reconstructed\":true}}" TAIL;
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.args_count, 1);
	assert_string_equal(model_text(&model, model.args[0].key), "stepscope reconstructed");
	model_release(&model);
}

static void stacks_of_python(void **state)
{
#define CALL(name, ts, dur)                                                                                            \
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts               \
	",\"dur\":" dur "}"
	static const char text[] = HEAD CALL("train.py(12): main", "0", "100") "," CALL(
		"torch/nn/x.py(3): f(a)", "1",
		"50") "," OP("a", "2", "1") "," CALL("<built-in function g>", "4",
	                                             "2") "," OP("b", "5", "1") "," OP("c", "60", "1") TAIL;
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	const struct stack_node *f = &model.stacks[span_stack(chunk, 2)], *main = &model.stacks[f->parent];
	assert_string_equal(model_text(&model, f->frame), "f(a)");
	assert_string_equal(model_text(&model, f->file), "/site-packages/torch/nn/x.py");
	assert_int_equal(main->line, 12);
	assert_string_equal(model_text(&model, main->file), "train.py");
	assert_int_equal(main->parent, 0);
	assert_int_equal(model.stacks[span_stack(chunk, 4)].parent, span_stack(chunk, 2));
	assert_true(span_stack(chunk, 5) == f->parent);
	model_release(&model);
}

#define FLOW(ph, pid, ts)                                                                                              \
	"{\"ph\":\"" ph "\",\"cat\":\"fwdbwd\",\"name\":\"x\",\"id\":7,\"pid\":" pid ",\"tid\":1,\"ts\":" ts "}"

#define OP_OF(pid, name, ts)                                                                                           \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":1,\"ts\":" ts ",\"dur\":1}"

static const char *name_of(const struct model *model, uint32_t track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);
	return model_text(model, chunk->name[i]);
}

/* An end belongs to the newest begin of its number and process, wherever it is in the file. */
static void flows_whose_number_comes_again(void **state)
{
	static const char text[] = HEAD
		OP_OF("1", "f0", "1") "," OP_OF("1", "b0", "3") "," OP_OF("1", "f1", "5") "," OP_OF("1", "b1", "7") "," OP_OF(
			"2", "g0",
			"2") "," OP_OF("2", "h0",
	                               "4") "," FLOW("s", "1",
	                                             "1") "," FLOW("s", "1",
	                                                           "5") "," FLOW("s", "2",
	                                                                         "2") "," FLOW("f", "1",
	                                                                                       "7") "," FLOW("f", "2",
	                                                                                                     "4") "," FLOW("f",
	                                                                                                                   "1",
	                                                                                                                   "3")
			TAIL;
	static const char *const expected[][2] = {{"f0", "b0"}, {"f1", "b1"}, {"g0", "h0"}};
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.links_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct model_link *link = &model.links[i];
		assert_string_equal(name_of(&model, link->from_track, link->from_row), expected[i][0]);
		assert_string_equal(name_of(&model, link->to_track, link->to_row), expected[i][1]);
	}
	model_release(&model);
}

#define AC2G(ph, pid, ts)                                                                                              \
	"{\"ph\":\"" ph "\",\"cat\":\"ac2g\",\"name\":\"x\",\"id\":7,\"pid\":" pid ",\"tid\":1,\"ts\":" ts "}"

#define LAUNCHED                                                                                                       \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":1,\"ts\":3,\"dur\":1,\"args\":{\"correlation\":7}}"

/* Wherever the flows are in the file. */
static void launches_are_known_by_correlations(void **state)
{
	static const char *const texts[] = {HEAD A "," LAUNCHED "," AC2G("s", "1", "1") "," AC2G("f", "0", "3") TAIL,
	                                    HEAD A "," AC2G("s", "1", "1") "," AC2G("f", "0", "3") "," LAUNCHED TAIL};
	for (int i = 0; i < 2; i++) {
		struct model model;
		struct error err = {0};
		assert_int_equal(load(texts[i], strlen(texts[i]), &model, &err), STATUS_OK);
		assert_int_equal(model.links_count, 0);
		model_release(&model);
	}
}

#define MEMORY(ts, bytes)                                                                                              \
	"{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":5,\"tid\":5,\"ts\":" ts ",\"args\":{\"Bytes\":" bytes             \
	",\"Device Id\":-1,\"Device Type\":0}}"

/* Processes are told apart by their numbers, however many, and threads of one are together. */
static void many_processes(void **state)
{
	struct buffer text;
	struct model model;
	struct error err = {0};
	buffer_init(&text, 1 << 20);
	buffer_add_text(&text, "[");
	for (int i = 0; i < 1000; i++)
		buffer_printf(&text, "%s{\"ph\":\"X\",\"name\":\"a\",\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":1}",
		              i ? "," : "", 1 + i * 7 % 500, i, i);
	buffer_add_text(&text, "]");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	assert_int_equal(model.processes_count, 500);
	assert_int_equal(model.tracks_count, 1000);
	for (uint32_t i = 0; i < model.tracks_count; i++) {
		const struct track *track = model.tracks[i];
		assert_int_equal(model.processes[track->process].pid, 1 + (int)track->tid * 7 % 500);
	}
	buffer_release(&text);
	model_release(&model);
}

/* Around, at the edges of and between spans that nest or cross, in any order. */
static void spans_around_allocations(void **state)
{
#define ON_5(name, ts, dur)                                                                                            \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":5,\"tid\":5,\"ts\":" ts ",\"dur\":" dur "}"
	static const char text[] = HEAD
		ON_5("out", "10", "20") "," ON_5("in", "12", "2") "," ON_5("none", "16", "0") "," ON_5("crosses", "25", "20") "," MEMORY("5", "1") "," MEMORY(
			"40",
			"2") "," MEMORY("14",
	                                "3") "," MEMORY("13",
	                                                "4") "," MEMORY("12",
	                                                                "5") "," MEMORY("16",
	                                                                                "6") "," MEMORY("17",
	                                                                                                "7") "," MEMORY("29",
	                                                                                                                "8") "," MEMORY("45",
	                                                                                                                                "9") "," MEMORY("10",
	                                                                                                                                                "10")
			TAIL;
	static const char *const expected[] = {"", "crosses", "out", "in", "in", "none", "out", "out", "", "out"};
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.memory_count, 10);
	for (uint32_t i = 0; i < 10; i++) {
		const struct memory_event *event = &model.memory[i];
		const char *name = event->row == MODEL_NONE ? "" : name_of(&model, event->track, event->row);
		assert_string_equal(name, expected[event->bytes - 1]);
	}
	model_release(&model);
}

/* M01, and traces of 2021: a release belongs to the newest allocation of its size. */
static void allocations_without_addresses(void **state)
{
	static const char text[] = HEAD MEMORY("1", "64") "," MEMORY("2", "8") "," MEMORY("3", "64") "," MEMORY(
		"4", "-64") "," MEMORY("5", "-16") TAIL;
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.memory_count, 5);
	assert_int_equal(model.memory[3].partner, 2);
	assert_int_equal(model.memory[4].partner, MODEL_NONE);
	assert_int_equal(model.memory[0].ends, MODEL_NONE);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_with_two_names),
		cmocka_unit_test(inputs_of_operators),
		cmocka_unit_test(inputs_that_look_alike),
		cmocka_unit_test(stacks_of_python),
		cmocka_unit_test(calls_that_were_put_together),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(spans_around_allocations),
		cmocka_unit_test(allocations_without_addresses),
		cmocka_unit_test(flows_whose_number_comes_again),
		cmocka_unit_test(launches_are_known_by_correlations),
		cmocka_unit_test(facts_of_a_trace),
		cmocka_unit_test(facts_of_any_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
