/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of collapsed stacks and of speedscope's JSON: dialects of real writers, and broken files, each with the samples it must give
 * and what the ledger must say.
 */
#include "base/buffer.h"
#include "import_bytes.h"
#include "importers/importer.h"
#include "importers/stacks/stack_profile.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct test_case {
	const char *name;
	const char *text;
	const char *samples; /* "track: frame;frame weight what" of each; NULL: STATUS_INPUT */
	const char *ledger;  /* "count at offset: sentence" of each */
	size_t length;       /* 0: of the text */
};

static void describe_stack(const struct model *model, uint32_t stack, struct buffer *out)
{
	const struct stack_node *frame = &model->stacks[stack];
	if (!stack)
		return;
	describe_stack(model, frame->parent, out);
	buffer_printf(out, "%s%s", frame->parent ? ";" : "", model_text(model, frame->frame));
	if (frame->file)
		buffer_printf(out, "@%s:%u", model_text(model, frame->file), frame->line);
}

static void describe(const struct model *model, struct buffer *samples, struct buffer *ledger)
{
	for (uint32_t i = 0; i < model->samples_count; i++) {
		const struct sample *sample = &model->samples[i];
		const struct track *track = model->tracks[sample->track];
		if (model->processes[track->process].pid)
			buffer_printf(samples, "%" PRId64 " ", model->processes[track->process].pid);
		buffer_printf(samples, "%s", model_text(model, track->name));
		if (track->tid)
			buffer_printf(samples, " %" PRId64, track->tid);
		buffer_add_text(samples, ": ");
		describe_stack(model, sample->stack, samples);
		if (sample->time_ns)
			buffer_printf(samples, " at %" PRId64, sample->time_ns);
		buffer_printf(samples, " %" PRIu64 " %s\n", sample->weight, model_text(model, sample->name));
	}
	for (uint32_t i = 0; i < model->ledger_count; i++)
		buffer_printf(ledger, "%" PRIu64 " at %" PRIu64 ": %.20s\n", model->ledger[i].count,
		              model->ledger[i].first_offset, model_text(model, model->ledger[i].text));
	buffer_add_text(samples, "");
	buffer_add_text(ledger, "");
}

static void check(const struct test_case *tests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct test_case *test = &tests[i];
		struct model model;
		struct error err = {0};
		struct buffer samples, ledger;
		buffer_init(&samples, 1 << 20);
		buffer_init(&ledger, 1 << 20);
		enum status status = load(test->text, test->length ? test->length : strlen(test->text), &model, &err);
		print_message("%s\n", test->name);
		assert_int_equal(status, test->samples ? STATUS_OK : STATUS_INPUT);
		if (test->samples) {
			describe(&model, &samples, &ledger);
			assert_string_equal(samples.data ? samples.data : "", test->samples);
			assert_string_equal(ledger.data ? ledger.data : "", test->ledger ? test->ledger : "");
		}
		buffer_release(&samples);
		buffer_release(&ledger);
		model_release(&model);
	}
}

/* ---- collapsed stacks ---- */

static const struct test_case folded[] = {
	{"flamegraph.pl", "main;f;g 3\nmain 2\n", "all threads: main;f;g 3 samples\nall threads: main 2 samples\n",
         NULL, 0},
	{"equal stacks are one", "a;b 3\na;b 4\n", "all threads: a;b 7 samples\n", NULL, 0},
	{"comments, blank lines, CRLF, blanks behind", "# x\r\n\r\na;b  3  \r\n", "all threads: a;b 3 samples\n", NULL,
         0},
	{"byte order mark, no last newline",
         "\xef\xbb\xbf"
         "a;b 3",
         "all threads: a;b 3 samples\n", NULL, 0},
	{"blanks in frames", "a b;operator new(unsigned long) 3\n",
         "all threads: a b;operator new(unsigned long) 3 samples\n", NULL, 0},
	{"fractions", "a;b 1.5\na;c 2.0\n", "all threads: a;b 2 samples\nall threads: a;c 2 samples\n",
         "1 at 0: numbers with a fract\n", 0},
	{"two numbers: differential", "a;b 1 2\na;c 3 4\n", "all threads: a;b 2 samples\nall threads: a;c 4 samples\n",
         "2 at 0: lines have two numbe\n", 0},
	{"a name that ends in a number", "a;b 2\na;c 3 4\n",
         "all threads: a;b 2 samples\nall threads: a;c 3 4 samples\n", NULL, 0},
	{"py-spy", "main (train.py:7);f (<string>:1);poll (libc.so.6) 5\n",
         "all threads: main@train.py:7;f@/site-packages/<string>:1;poll@libc.so.6:0 5 samples\n", NULL, 0},
	{"py-spy -t", "thread (12): MainThread;f (a.py:1) 5\nthread (0x1f);g (torch/x.py:2) 6\n 7\n",
         "MainThread 12: f@a.py:1 5 samples\nthread (0x1f) 31: g@/site-packages/torch/x.py:2 6 samples\n"
         "all threads:  7 samples\n",
         NULL, 0},
	{"py-spy -s", "process 5:\"python a.py\";thread (12): T;f (a.py:1) 5\n", "5 T 12: f@a.py:1 5 samples\n", NULL,
         0},
	{"austin", "P42;T0:43;/src/a.py:f:12;/src/a.py:g:3 1500\n",
         "42 T0:43 43: f@/src/a.py:12;g@/src/a.py:3 1500 samples\n", NULL, 0},
	{"export_stacks() counts microseconds", "a.py(3):_<module>;torch/nn.py(4):_f;<built-in_x> 12\n",
         "all threads: <module>@a.py:3;f@/site-packages/torch/nn.py:4;<built-in_x> 12000 time\n", NULL, 0},
	{"broken lines", "a;b 3\ngarbage\na;c 4\na;d four\na;e -1\na;b 1\n",
         "all threads: a;b 4 samples\nall threads: a;c 4 samples\n", "3 at 6: lines without a stac\n", 0},
	{"cut off", "a;b 3\na;c 4\na;d", "all threads: a;b 3 samples\nall threads: a;c 4 samples\n",
         "1 at 12: the last line is cut\n", 0},
	{"no UTF-8, NUL", "a;b\xff 3\na;c\0d 4\na;d 1\n",
         "all threads: a;b\xef\xbf\xbd 3 samples\nall threads: a;c\xef\xbf\xbd"
         "d 4 samples\nall threads: a;d 1 samples\n",
         NULL, 26 - 5},
	{"the first bytes are a bracket: no JSON", "[unknown];main;f 3\n[libc.so.6] 4\n",
         "all threads: [unknown];main;f 3 samples\nall threads: [libc.so.6] 4 samples\n", NULL, 0},
	{"the same with a brace", "{lambda};main 3\n", "all threads: {lambda};main 3 samples\n", NULL, 0},
	{"a word of JSON in brackets", "[true];main 3\n", "all threads: [true];main 3 samples\n", NULL, 0},
	{"few of many have callers, but all a number", "a 1\nb 1\nc 1\nd 1\ne 1\nf;g 1\n",
         "all threads: a 1 samples\nall threads: b 1 samples\nall threads: c 1 samples\nall threads: d 1 samples\n"
         "all threads: e 1 samples\nall threads: f;g 1 samples\n",
         NULL, 0},
	{"a number that is too large", "a;b 1\na;c 99999999999999999999999.7\na;d 9223372036854775807.5\n",
         "all threads: a;b 1 samples\nall threads: a;d 9223372036854775807 samples\n",
         "1 at 6: lines without a stac\n1 at 0: numbers with a fract\n", 0},
	{"a sum that does not fit", "a;b 9223372036854775807\na;b 9223372036854775807\n",
         "all threads: a;b 9223372036854775807 samples\nall threads: a;b 9223372036854775807 samples\n", NULL, 0},
	{"frames without a name", "a;b 1\n;;a;;b 3\n", "all threads: a;b 4 samples\n", "3 at 6: frames without a nam\n",
         0},
	{"no stacks", "hello\nworld\n", NULL, NULL, 0},
	{"no callers: any text with numbers", "alpha 1\nbeta 2\n", NULL, NULL, 0},
	{"empty", "\n", NULL, NULL, 0},
};

static void test_folded(void **state)
{
	check(folded, sizeof folded / sizeof *folded);
}

static void test_deep_stack_keeps_its_weight(void **state)
{
	struct buffer text;
	struct model model;
	struct error err;
	buffer_init(&text, 1 << 20);
	for (int i = 0; i < 50000; i++)
		buffer_add_text(&text, i ? ";f" : "f");
	buffer_add_text(&text, " 9\n");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	assert_int_equal(model.samples_count, 1);
	assert_int_equal(model.samples[0].weight, 9);
	assert_string_equal(model_text(&model, model.stacks[model.samples[0].stack].frame), "");
	assert_int_equal(model.stacks_count, 1 + 4096 + 1);
	assert_int_equal(model.ledger_count, 1);
	model_release(&model);
	buffer_release(&text);
}

/* A stack beyond the maximum has no row that the next one like it could be added to. */
static void test_no_more_samples(void **state)
{
	struct stack_profile profile;
	struct model model;
	model_init(&model, 0);
	stack_profile_init(&profile, &model, "stacks");
	struct sample sample = {.track = stack_profile_track(&profile, stack_profile_process(&profile, 0, 0), 0, 0)};
	model.samples_count = STACK_PROFILE_SAMPLES;
	assert_false(stack_profile_add(&profile, &sample));
	assert_false(stack_profile_add(&profile, &sample));
	assert_int_equal(profile.left_out, 2);
	model.samples_count = 0;
	stack_profile_release(&profile);
	model_release(&model);
}

/* Beyond the maximum of threads and texts what is known is found, and what is not is counted. */
static void test_no_more_threads_and_texts(void **state)
{
	struct stack_profile profile;
	struct model model;
	model_init(&model, 0);
	stack_profile_init(&profile, &model, "stacks");
	uint32_t text = stack_profile_text(&profile, "main", 4), process = stack_profile_process(&profile, text, 1);
	uint32_t track = stack_profile_track(&profile, process, text, 2);
	profile.text_bytes = STACK_PROFILE_TEXTS;
	assert_int_equal(stack_profile_text(&profile, "main", 4), text);
	assert_int_equal(stack_profile_text(&profile, "another", 7), 0);
	assert_int_equal(stack_profile_text(&profile, "", 0), 0);
	assert_int_equal(profile.textless, 1);
	uint32_t count = model.tracks_count;
	model.tracks_count = STACK_PROFILE_TRACKS;
	assert_int_equal(stack_profile_process(&profile, text, 1), process);
	assert_int_equal(stack_profile_process(&profile, 77, 3), MODEL_NONE);
	assert_int_equal(stack_profile_track(&profile, process, text, 2), track);
	assert_int_equal(stack_profile_track(&profile, process, 77, 4), MODEL_NONE);
	assert_int_equal(stack_profile_track(&profile, MODEL_NONE, text, 4), MODEL_NONE);
	model.tracks_count = count;
	assert_false(stack_profile_add(&profile, &(struct sample){.track = MODEL_NONE}));
	assert_int_equal(profile.trackless, 1);
	stack_profile_finish(&profile, "folded", NULL);
	assert_int_equal(model.ledger_count, 2);
	stack_profile_release(&profile);
	model_release(&model);
}

/* ---- speedscope ---- */

#define SCHEMA "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
#define SHARED                                                                                                         \
	"\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.py\",\"line\":3},{\"name\":\"f\"},{\"name\":\"g\",\"col\":null}]}"
#define SAMPLED(unit, samples, weights)                                                                                \
	"{\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"" unit                                                        \
	"\",\"startValue\":0,\"endValue\":9,\"samples\":" samples ",\"weights\":" weights "}"
#define EVENTED(events)                                                                                                \
	SCHEMA SHARED                                                                                                  \
		",\"profiles\":[{\"type\":\"evented\",\"name\":\"p\",\"unit\":\"microseconds\",\"startValue\":0,"      \
		"\"endValue\":9,\"events\":[" events "]}]}"
#define O(frame, at) "{\"type\":\"O\",\"frame\":" frame ",\"at\":" at "}"
#define C(frame, at) "{\"type\":\"C\",\"frame\":" frame ",\"at\":" at "}"
#define ONE(profile) SCHEMA SHARED ",\"profiles\":[" profile "]}"

static const struct test_case speedscope[] = {
	{"sampled", ONE(SAMPLED("milliseconds", "[[0,1],[0]]", "[1.5,2]")),
         "p: main@a.py:3;f 1500000 time\np: main@a.py:3 at 1500000 2000000 time\n", NULL, 0},
	{"names last, as py-spy", SCHEMA "\"profiles\":[" SAMPLED("seconds", "[[0,1]]", "[0.01]") "]," SHARED "}",
         "p: main@a.py:3;f 10000000 time\n", NULL, 0},
	{"weights first, the unit last, strange keys",
         ONE("{\"weights\":[1,2],\"x\":{\"y\":[1,{}]},\"samples\":[[1],[2]],\"name\":\"\\u0070\",\"unit\":\"bytes\"}"),
         "p: f 1 bytes\np: g at 1 2 bytes\n", NULL, 0},
	{"several profiles, threads of py-spy",
         ONE("{\"name\":\"Process 5 Thread 7 \\\"a b\\\"\",\"unit\":\"none\",\"samples\":[[0]],\"weights\":[3]},"
             "{\"name\":\"Thread 8 \\\"c\\\"\",\"unit\":\"none\",\"samples\":[[1]],\"weights\":[4]}"),
         "5 a b 7: main@a.py:3 3 samples\nc 8: f 4 samples\n", NULL, 0},
	{"times beyond a double",
         ONE("{\"name\":\"p\",\"unit\":\"microseconds\",\"startValue\":1732107141551429.079,\"samples\":[[1],[2]],"
             "\"weights\":[0.049,0.001]}"),
         "p: f at 1732107141551429079 49 time\np: g at 1732107141551429128 1 time\n", NULL, 0},
	{"evented",
         EVENTED(O("0", "1") "," O("1", "2") "," C("1", "4") "," C("0", "5") "," O("2", "7") "," C("2", "8")),
         "p: main@a.py:3 at 1000 1000 time\np: main@a.py:3;f at 2000 2000 time\np: main@a.py:3 at 4000 1000 time\n"
         "p: g at 7000 1000 time\n",
         NULL, 0},
	{"recursion", EVENTED(O("1", "0") "," O("1", "1") "," C("1", "2") "," C("1", "3")),
         "p: f 1000 time\np: f;f at 1000 1000 time\np: f at 2000 1000 time\n", NULL, 0},
	{"never closes", EVENTED(O("0", "0")), "p: main@a.py:3 9000 time\n", "1 at 174: frames that never cl\n", 0},
	{"closes another", EVENTED(O("0", "0") "," O("1", "1") "," C("0", "2") "," C("2", "3")),
         "p: main@a.py:3 1000 time\np: main@a.py:3;f at 1000 1000 time\n", "2 at 351: closed frames that a\n", 0},
	{"time goes back", EVENTED(O("0", "5") "," C("0", "3") "," O("1", "5") "," C("1", "6")),
         "p: f at 5000 1000 time\n", "1 at 321: events without a tim\n", 0},
	{"bad weights", ONE(SAMPLED("none", "[[0],[1],[2]]", "[-1,\"x\"]")), NULL, NULL, 0},
	{"a weight is missing", ONE(SAMPLED("none", "[[0],[1],[2]]", "[1,NaN]")), "p: main@a.py:3 1 samples\n",
         "2 at 282: samples with an unre\n", 0},
	{"frames without a name", ONE(SAMPLED("none", "[[0,9]]", "[1]")), "p: main@a.py:3;(frame 9) 1 samples\n",
         "1 at 0: frames without a nam\n", 0},
	{"cut off", SCHEMA SHARED ",\"profiles\":[" SAMPLED("none", "[[0]]", "[1]") ",{\"samples\":[[0],[1",
         "p: main@a.py:3 1 samples\n", "1 at 294: the file is cut off;\n1 at 276: samples with an unre\n", 0},
	{"no JSON any more", SCHEMA SHARED ",\"profiles\":[" SAMPLED("none", "[[0]]", "[1]") ",,]}",
         "p: main@a.py:3 1 samples\n", "1 at 276: the file is not JSON\n", 0},
	{"byte order mark", "\xef\xbb\xbf" ONE(SAMPLED("none", "[[0]]", "[1]")), "p: main@a.py:3 1 samples\n", NULL, 0},
	{"weights, then events", ONE("{\"weights\":[1],\"events\":[" O("0", "0") "," C("0", "2") "]}"),
         "profile: main@a.py:3 2 samples\n", "1 at 198: samples or weights o\n", 0},
	{"events, then samples",
         ONE("{\"events\":[" O("0", "0") "," C("0", "2") "],\"samples\":[[1]],\"weights\":[1]}"),
         "profile: main@a.py:3 2 samples\n", "2 at 256: samples or weights o\n", 0},
	{"units that we do not know are kept apart",
         SCHEMA SHARED ",\"profiles\":[" SAMPLED("none", "[[0]]", "[5]") "," SAMPLED("furlongs", "[[0]]", "[5]") "]}",
         "p: main@a.py:3 5 samples\np: main@a.py:3 5 furlongs\n", "1 at 0: profiles have an unk\n", 0},
	{"times that do not fit", ONE(SAMPLED("seconds", "[[0],[1]]", "[3e9,1]")),
         "p: main@a.py:3 2000000000000000000 time\np: f 1000000000 time\n", "1 at 285: numbers above 2e18 (\n", 0},
	{"halves of frames, what is no sample", ONE(SAMPLED("none", "[[0],[1.5],null,[0]]", "[1,2,3,4]")),
         "p: main@a.py:3 1 samples\np:  at 1 2 samples\np:  at 3 3 samples\np: main@a.py:3 at 6 4 samples\n",
         "2 at 261: frames without a nam\n", 0},
	{"weights without a sample", ONE(SAMPLED("none", "[[0]]", "[1,2,3]")), "p: main@a.py:3 1 samples\n",
         "2 at 174: weights without a sa\n", 0},
	{"no profiles", SCHEMA SHARED "}", NULL, NULL, 0},
	{"nothing in them", ONE(SAMPLED("none", "[]", "[]")), NULL, NULL, 0},
};

static void test_speedscope(void **state)
{
	check(speedscope, sizeof speedscope / sizeof *speedscope);
}

static void test_processes_of_speedscope(void **state)
{
	static const char text[] = ONE("{\"name\":\"Process 5 Thread 7\",\"samples\":[[0]],\"weights\":[3]},"
	                               "{\"name\":\"Process 4294967301 Thread 7\",\"samples\":[[0]],\"weights\":[3]}");
	struct model model;
	struct error err;
	assert_int_equal(load(text, strlen(text), &model, &err), STATUS_OK);
	assert_int_equal(model.processes_count, 2);
	assert_string_equal(model_text(&model, model.processes[0].name), "Process 5");
	assert_string_equal(model_text(&model, model.processes[1].name), "Process 4294967301");
	model_release(&model);
}

/* What was read before the end is the same, wherever the file ends. */
static void test_cut_anywhere(void **state)
{
	const char *texts[] = {speedscope[3].text, speedscope[5].text, folded[9].text};
	for (size_t t = 0; t < 3; t++) {
		for (size_t length = 1; length <= strlen(texts[t]); length++) {
			struct model model;
			struct error err;
			enum status status = load(texts[t], length, &model, &err);
			assert_true(status == STATUS_OK || status == STATUS_INPUT);
			model_release(&model);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),          cmocka_unit_test(test_deep_stack_keeps_its_weight),
		cmocka_unit_test(test_no_more_samples), cmocka_unit_test(test_no_more_threads_and_texts),
		cmocka_unit_test(test_speedscope),      cmocka_unit_test(test_processes_of_speedscope),
		cmocka_unit_test(test_cut_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
