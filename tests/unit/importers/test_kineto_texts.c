/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of Kineto's and other Chrome traces, as real writers wrote it: forms of files, texts and events that are broken, events of any
 * size, and files that are cut or changed at any byte.
 */
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void forms_of_files(void **state)
{
	static const struct test_case cases[] = {
		{"an object", HEAD A "," B TAIL, A_AND_B, NULL, 0},
		{"a list", "[" A "," B "]", A_AND_B, NULL, 0},
		{"J09 a list without an end", "[" A "," B, A_AND_B, "1 the list of events has no end", 0},
		{"J09 a comma at the end", "[" A "," B ",\n]", A_AND_B, "1 missing or surplus commas", 0},
		{"J09 a comma at the beginning", "[," A "," B "]", A_AND_B, "1 missing or surplus commas", 0},
		{"J09 no end behind a comma", "[" A "," B ",\n", A_AND_B, "1 the list of events has no end", 0},
		{"no comma between events", HEAD A "\n" B TAIL, A_AND_B, "1 missing or surplus commas", 0},
		{"a line each", A "\n" B "\n", A_AND_B, NULL, 0},
		{"J19 a byte order mark", "\xef\xbb\xbf" HEAD A "," B TAIL, A_AND_B, NULL, 0},
		{"J19 carriage returns", "{\r\n\"traceEvents\": [\r\n" A ",\r\n" B "\r\n]\r\n}\r\n", A_AND_B, NULL, 0},
		{"J16 twice traceEvents", "{\"traceEvents\":[" A "],\"x\":{},\"traceEvents\":[" B "]}", A_AND_B, NULL,
	         0},
		{"J23 two documents", HEAD A TAIL HEAD B TAIL, A_AND_B, "1 more than one document", 0},
		{"J23 two lists", "[" A "][" B "]", A_AND_B, "1 more than one document", 0},
		{"J23 a document in a list that has no end", HEAD A "," HEAD B TAIL, A_AND_B,
	         "1 more than one document", 0},
		{"J15 displayTimeUnit behind", "{\"traceEvents\":[" A "," B "],\"displayTimeUnit\":\"ns\"}", A_AND_B,
	         NULL, 0},
		{"J21 nothing", "", NULL, NULL, 0},
		{"J21 an object", "{}", NULL, NULL, 0},
		{"J21 a list", "[]", NULL, NULL, 0},
		{"J21 no events", "{\"traceEvents\":[]}", NULL, NULL, 0},
		{"J21 names only",
	         "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"x\"}}]", NULL, NULL,
	         0},
		{"another JSON", "{\"a\":[1,2,{\"ph\":1}]}", NULL, NULL, 0},
	};
	CHECK_CASES(cases);
}

static void texts_that_are_not_escaped(void **state)
{
	static const struct test_case cases[] = {
		{"J01 quotes in a name",
	         HEAD "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\": \"{\"device\": \"cpu\", \"dtype\": "
	              "\"float32\"}(12): run\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1}," B TAIL,
	         "{\"device\": \"cpu\", \"dtype\": \"float32\"}(12): run 1000+1000\nb 3000+1000\n",
	         "1 events with unescaped quotes", 0},
		{"J02 quotes and a line's end",
	         HEAD "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"Library(\"_x\", \"IMPL\")\n(1): "
	              "<module>\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}," B TAIL,
	         "Library(\"_x\", \"IMPL\")\n(1): <module> 1000+1000\nb 3000+1000\n", "1 events with unescaped quotes",
	         0},
		{"J03 backslashes of Windows", HEAD OP("torch\\cuda\\__init__.py\\utils", "1", "1") "," B TAIL,
	         "torch\\cuda\\__init__.py\\utils 1000+1000\nb 3000+1000\n", "1 texts that are not UTF-8", 0},
		{"J04 control characters", HEAD OP("|S\x01(1)", "1", "1") "," B TAIL,
	         "|S\x01(1) 1000+1000\nb 3000+1000\n", "1 events with control characters", 0},
		{"J04 a NUL", HEAD OP("a\0b", "1", "1") "," B TAIL,
	         "a\xef\xbf\xbd"
	         "b 1000+1000\nb 3000+1000\n",
	         "1 events with control characters", sizeof(HEAD OP("a\0b", "1", "1") "," B TAIL) - 1},
		{"J05 no UTF-8", HEAD OP("a\xb9\xc0", "1", "1") "," B TAIL,
	         "a\xef\xbf\xbd\xef\xbf\xbd 1000+1000\nb 3000+1000\n", "1 texts that are not UTF-8", 0},
		{"J05 halves of characters", HEAD OP("a\\ud800b\\ude00", "1", "1") TAIL,
	         "a\xef\xbf\xbd"
	         "b\xef\xbf\xbd 1000+1000\n",
	         "1 texts that are not UTF-8", 0},
		{"escapes", HEAD OP("\\u0061\\ud83d\\ude00\\\"\\\\\\/\\n", "1", "1") TAIL,
	         "a\xf0\x9f\x98\x80\"\\/\n 1000+1000\n", NULL, 0},
		{"J14 a backslash at the end", HEAD OP("C:\\\\", "1", "1") "," B TAIL, "C:\\ 1000+1000\nb 3000+1000\n",
	         NULL, 0},
		{"a path that ends in a backslash", HEAD OP("C:\\dir\\", "1", "1") "," B TAIL,
	         "C:\\dir\\ 1000+1000\nb 3000+1000\n", "1 texts that are not UTF-8", 0},
		{"J24 entities", HEAD OP("&quot;x&quot;", "1", "1") TAIL, "&quot;x&quot; 1000+1000\n", NULL, 0},
		{"J22 quotes of a shell", "{\"cmd\":\"print(\\'Hello\\')\",\"traceEvents\":[" A "," B "]}", A_AND_B,
	         NULL, 0},
		{"quotes in a value beside the events", "{\"cmd\":\"echo \"hi\" there\",\"traceEvents\":[" A "," B "]}",
	         A_AND_B, "1 unreadable values outside the events", 0},
		{"a bracket in a broken value beside the events",
	         "{\"cmd\":{\"a\":\"x\"y\"},\"traceEvents\":[" A "," B "]}", A_AND_B,
	         "1 unreadable values outside the events", 0},
	};
	CHECK_CASES(cases);
}

static void events_that_are_broken(void **state)
{
	static const struct test_case cases[] = {
		{"J06 words in place of numbers",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
	         "\"memory bandwidth (GB/s)\":inf,\"x\":-nan,\"y\":N/A}}," B TAIL,
	         "b 3000+1000\na 1000+1000\n", "1 events with inf, NaN", 0},
		{"J06 words of other languages, and no value at all",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
	         "\"x\":undefined,\"y\":.5,\"z\":+5,\"l\":[1, nil],\"m\": }}," B TAIL,
	         A_AND_B, "1 events with inf, NaN", 0},
		{"J01 quotes in a list of args",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
	         "\"Concrete Inputs\": [\"\", \"say \"hi\" to\"], \"y\": {\"z\": \"a\"b\"}}}," B TAIL,
	         A_AND_B, "1 events with unescaped quotes", 0},
		{"J07 numbers beyond 64 bits",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{"
	         "\"Comms Id\":18446744073709551615,\"x\":123456789012345678901234567890}}," B TAIL,
	         A_AND_B, NULL, 0},
		{"J08 cut in an event", HEAD A "," B ",{\"ph\":\"X\",\"na", A_AND_B, "1 the file is cut off", 0},
		{"J10 torn lines of two processes",
	         HEAD A ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"tor" OP("b", "3", "1") "\n]}", A_AND_B,
	         "1 unreadable events", 0},
		{"J11 a key without a quote",
	         HEAD "{\"ph\":\"X\",\"name\":\"c\",\"pid\":1,\ttid\": 0,\"ts\":1,\"dur\":1}," A "," B TAIL, A_AND_B,
	         "1 unreadable events", 0},
		{"J12 times as texts", HEAD OP("a", "\"1\"", "\"1.000\"") "," B TAIL, A_AND_B, NULL, 0},
		{"J12 no times", HEAD OP("c", "null", "1") "," OP("c", "true", "1") "," A "," B TAIL, A_AND_B,
	         "2 events without a readable time", 0},
		{"times that are too far from each other",
	         HEAD OP("c", "-4.6e15", "1") "," OP("c", "4.6e15", "1") "," A "," B TAIL, A_AND_B,
	         "2 events without a readable time", 0},
		{"J13 times with exponents",
	         HEAD OP("a", "1.6921085481321545e+15", "1") "," OP("b", "1692108548132160.5", "1") TAIL,
	         "a 1692108548132154500+1000\nb 1692108548132160500+1000\n", NULL, 0},
		{"T09 nanoseconds that a double has not", HEAD OP("a", "1732107141551429.079", "0.049") TAIL,
	         "a 1732107141551429079+49\n", NULL, 0},
		{"halves of a nanosecond", HEAD OP("a", "1.0005", "0.0004999") TAIL, "a 1001+0\n", NULL, 0},
		{"J20 a key twice, and ph at the end",
	         HEAD
	         "{\"name\":\"x\",\"name\":\"a\",\"dur\":1,\"ts\":1,\"tid\":1,\"pid\":1,\"cat\":\"cpu_op\",\"ph\":\"X\"}," B
	                 TAIL,
	         A_AND_B, NULL, 0},
		{"a comma too many in an event",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"x\":1,},}"
	         "," B TAIL,
	         A_AND_B, "1 missing or surplus commas", 0},
		{"no args",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":null}"
	         "," B TAIL,
	         A_AND_B, NULL, 0},
		{"garbage between events", HEAD A ", %%% \"x\" 12 ] [ garbage " B TAIL, A_AND_B,
	         "invalid text between events", 0},
		{"T18 kinds that are not read",
	         HEAD "{\"ph\":\"Z\"},{\"ph\":\"\"},{\"ph\":\"\",\"ts\":1}," A "," B TAIL, A_AND_B,
	         "3 events of an unknown kind", 0},
		{"I01 to I03 numbers of threads",
	         HEAD "{\"ph\":\"X\",\"name\":\"a\",\"pid\":0,\"tid\":140339968804608,\"ts\":1,\"dur\":1},"
	              "{\"ph\":\"X\",\"name\":\"b\",\"pid\":0,\"tid\":\"140339968804609\",\"ts\":1,\"dur\":1},"
	              "{\"ph\":\"X\",\"name\":\"c\",\"pid\":0,\"tid\":-5,\"ts\":1,\"dur\":1}" TAIL,
	         "c 1000+1000\na 1000+1000\nb 1000+1000\n", NULL, 0},
	};
	CHECK_CASES(cases);
}

/* J10: where operators change their process in the middle of what is broken, two processes wrote one file; those of a merged trace change
 * where nothing is. */
static void processes_that_wrote_one_file(void **state)
{
#define BY(pid, name, ts)                                                                                              \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":1,\"ts\":" ts ",\"dur\":1}"
#define TORN "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"tor"
#define WRITERS "places where one of several processes wrote into the text of another"
#define OF_RANK(rank) "{\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":" rank ",\"world_size\":2},\"traceEvents\":["
	static const struct test_case cases[] = {
		{"J10 in turns", HEAD BY("1", "a", "1") "," TORN BY("2", "b", "3") "," TORN BY("1", "c", "5") TAIL,
	         "a 1000+1000\nc 5000+1000\nb 3000+1000\n", "2 " WRITERS, 0},
		{"J10 the rest of a longer one", HEAD BY("1", "a", "1") "]}\"tid\":1}," BY("2", "b", "3") TAIL, A_AND_B,
	         "1 " WRITERS, 0},
		{"J10 two ranks of one number", OF_RANK("0") A "," OF_RANK("1") B TAIL, A_AND_B, "1 " WRITERS, 0},
	};
	CHECK_CASES(cases);
}

static void files_of_one_writer(void **state)
{
	static const char *const texts[] = {
		/* a merged trace that is damaged somewhere */
		HEAD BY("1", "a", "1") "," BY("2", "b", "3") "," BY("1", "c", "5") "," TORN BY("2", "d", "7") TAIL,
		/* one process behind the other, damaged before that */
		HEAD BY("1", "a", "1") "," TORN BY("1", "c", "5") "," BY("2", "b", "3") TAIL,
		HEAD BY("1", "a", "1") "," BY("2", "b", "3") TAIL,
		HEAD BY("1", "a", "1") "," TORN
				       "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"ts\":3,\"dur\":1}" TAIL,
		OF_RANK("1") A "]}" OF_RANK("1") B TAIL,
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct model model;
		struct error err = {0};
		assert_int_equal(load(texts[i], strlen(texts[i]), &model, &err), STATUS_OK);
		for (uint32_t entry = 0; entry < model.ledger_count; entry++)
			if (strstr(model_text(&model, model.ledger[entry].text), WRITERS))
				fail_msg("several processes are said to have written %s", texts[i]);
		model_release(&model);
	}
}

static const char
	whole[] = "\xef\xbb\xbf" HEAD A
		  ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"\\u00e4\\ud83d\\ude00\",\"pid\":1,"
		  "\"tid\":1,\"ts\":2.5e0,\"dur\":0.25,\"args\":{\"Input Dims\":[[2,3],[]],\"x\":{\"y\":[1]}}}," B TAIL;

/* J08: every event that is complete is there. */
static void a_trace_cut_at_any_byte(void **state)
{
	for (size_t length = 1; length < sizeof whole; length++) {
		struct model model;
		struct error err = {0};
		struct buffer spans;
		size_t complete = 0;
		for (size_t i = 0; i < length; i++)
			complete += whole[i] == '}' && (whole[i + 1] == ',' || whole[i + 1] == ']') &&
			            whole[i - 1] != ']';
		enum status status = load(whole, length, &model, &err);
		if (status == STATUS_OK) {
			describe(&model, &spans);
			size_t lines = 0;
			for (size_t i = 0; i < spans.length; i++)
				lines += spans.data[i] == '\n';
			assert_int_equal(lines, complete);
			buffer_release(&spans);
		} else {
			assert_int_equal(status, STATUS_INPUT);
			assert_int_equal(complete, 0);
		}
		model_release(&model);
	}
}

/* Every byte replaced by every one of a few: never a crash, and the events that are not touched stay. */
static void a_trace_with_any_byte_changed(void **state)
{
	static const char bytes[] = "\"{}[],:\\\0 x0\xff\n";
	char copy[sizeof whole];
	for (size_t at = 0; at + 1 < sizeof whole; at++) {
		for (size_t b = 0; b + 1 < sizeof bytes; b++) {
			struct model model;
			struct error err = {0};
			memcpy(copy, whole, sizeof whole);
			copy[at] = bytes[b];
			enum status status = load(copy, sizeof whole - 1, &model, &err);
			assert_true(status == STATUS_OK || status == STATUS_INPUT);
			model_release(&model);
		}
	}
}

/* A hole of NULs, as a file system leaves after a crash: whatever it covers, something is said. */
static void a_hole_anywhere_is_said(void **state)
{
	char copy[sizeof whole];
	for (size_t at = 0; at + 1 < sizeof whole; at++) {
		for (size_t length = 1; at + length < sizeof whole; length += length / 2 + 1) {
			struct model model;
			struct error err = {0};
			memcpy(copy, whole, sizeof whole);
			memset(copy + at, 0, length);
			if (load(copy, sizeof whole - 1, &model, &err) == STATUS_OK && !model.ledger_count)
				fail_msg("%zu NULs from byte %zu on: nothing is said", length, at);
			model_release(&model);
		}
	}
}

/* J17, J18: values of any size and depth are passed over. */
static void large_values(void **state)
{
	static const struct test_case expected = {"large", "", A_AND_B, "args longer than 4 KiB were cut", 0};
	struct buffer text;
	buffer_init(&text, (size_t)64 << 20);
	buffer_add_text(&text, "{\"big\":\"");
	for (int i = 0; i < 3 << 20; i++)
		buffer_add_text(&text, "x");
	buffer_add_text(
		&text,
		"\",\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,"
		"\"dur\":1,\"args\":{\"deep\":");
	for (int i = 0; i < 100000; i++)
		buffer_add_text(&text, "[");
	for (int i = 0; i < 100000; i++)
		buffer_add_text(&text, "]");
	buffer_add_text(&text, ",\"Input Dims\":[");
	for (int i = 0; i < 300000; i++)
		buffer_add_text(&text, "[1,2],");
	buffer_add_text(&text, "[3]]");
	for (int i = 0; i < 100; i++)
		buffer_printf(&text, ",\"key %d\":%d", i, i);
	buffer_add_text(&text, "}}," B TAIL);
	check_case(&expected, text.data, text.length);
	buffer_release(&text);
}

/* Sound events that are larger than what is read at once are read as they are. */
static void large_events(void **state)
{
	static const char *const values[] = {"{\\\"a\\\": {\\\"b\\\": \\\"c\\\"}, \\\"d\\\": 1}", "say \\\"hi\\\" now"};
	static const struct test_case expected = {"a large event", "", A_AND_B, "args longer than 4 KiB were cut", 0};
	for (size_t i = 0; i < 2; i++) {
		struct buffer text;
		buffer_init(&text, 1 << 20);
		buffer_add_text(&text, HEAD "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
		                            "\"ts\":1,\"dur\":1,\"args\":{\"big\":\"");
		for (int n = 0; n < 20000; n++)
			buffer_add_byte(&text, 'x');
		buffer_printf(&text, "\",\"config\":\"%s\"}}," B TAIL, values[i]);
		check_case(&expected, text.data, text.length);
		buffer_release(&text);
	}
}

/* An event's args may hold what looks like events: they are none. Where the list does not end they are. */
static void events_in_args(void **state)
{
	static const struct test_case inside = {"events in args", "", A_AND_B, "1 args longer than 4 KiB were cut", 0};
	static const struct test_case cut = {"a list that does not end", "", "b 3000+1000\n", "1 unreadable events", 0};
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		struct buffer text;
		buffer_init(&text, 1 << 20);
		buffer_add_text(&text, HEAD "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
		                            "\"ts\":1,\"dur\":1,\"args\":{\"list\":[0");
		for (int n = 0; n < 1000 && !is_cut; n++)
			buffer_printf(&text, ",{\"ph\":\"X\",\"name\":\"inside %d\",\"ts\":5,\"dur\":1}", n);
		for (int n = 0; n < 20000 && is_cut; n++)
			buffer_add_text(&text, ",0");
		buffer_add_text(&text, is_cut ? "," B TAIL : "]}}," B TAIL);
		check_case(is_cut ? &cut : &inside, text.data, text.length);
		buffer_release(&text);
	}
}

/* Larger than the window: texts are cut, where no character or escape is, lists are left out; what follows is read. */
static void events_beyond_the_window(void **state)
{
	static const char *const fills[] = {"[1,[2,\"]\"]],", "0,", "\\u00e9\xc3\xa9", "\\\\\\\""};
	static const struct test_case expected = {"beyond the window", "", A_AND_B,
	                                          "1 events larger than 32 MiB; texts are cut to 1 MiB", 0};
	for (size_t i = 0; i < 4; i++) {
		struct buffer text;
		buffer_init(&text, (size_t)64 << 20);
		buffer_add_text(&text, HEAD "{\"ph\":\"X\",\"args\":{\"first\":1,\"big\":");
		buffer_add_text(&text, i < 2 ? "[" : "\"");
		while (text.length < (size_t)33 << 20)
			buffer_add_text(&text, fills[i]);
		buffer_add_text(&text, i < 2 ? "0]" : "\"");
		buffer_add_text(&text,
		                ",\"External id\":7,\"x\":{}},\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
		                "\"ts\":1,\"dur\":1}," B TAIL);
		check_case(&expected, text.data, text.length);
		buffer_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_of_files),
		cmocka_unit_test(texts_that_are_not_escaped),
		cmocka_unit_test(events_that_are_broken),
		cmocka_unit_test(processes_that_wrote_one_file),
		cmocka_unit_test(files_of_one_writer),
		cmocka_unit_test(a_trace_cut_at_any_byte),
		cmocka_unit_test(a_trace_with_any_byte_changed),
		cmocka_unit_test(a_hole_anywhere_is_said),
		cmocka_unit_test(large_values),
		cmocka_unit_test(large_events),
		cmocka_unit_test(events_in_args),
		cmocka_unit_test(events_beyond_the_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
