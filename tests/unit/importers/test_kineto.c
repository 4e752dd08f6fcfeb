/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of Kineto's and other Chrome traces: what real writers wrote, each case with the spans it must give and what the ledger
 * must say about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/input_stream.h"
#include "import_bytes.h"
#include "importers/importer.h"
#include "importers/kineto/kineto_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define OP(name, ts, dur)                                                                                              \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur "}"
#define A OP("a", "1", "1")
#define B OP("b", "3", "1")
#define A_AND_B "a 1000+1000\nb 3000+1000\n"
#define HEAD "{\"schemaVersion\":1,\"traceEvents\":["
#define TAIL "]}"

struct test_case {
	const char *name;
	const char *text;
	const char *spans;  /* "name start+duration flags" of all tracks; NULL: STATUS_INPUT */
	const char *ledger; /* "count sentence..." parts, one each; NULL: nothing must be said */
	size_t length;      /* 0: of the text */
};

/* ---- reading ---- */

static bool describe_span(void *context, const struct span_view *span)
{
	struct buffer *out = context;
	buffer_printf(out, "%s %lld+%lld", model_text(span->model, span->name), (long long)span->start_ns,
	              (long long)span->dur_ns);
	buffer_add_text(out, span->flags & SPAN_IS_CLIPPED ? " clipped" : "");
	buffer_add_text(out, span->flags & SPAN_END_IS_LOST ? " lost" : "");
	buffer_add_text(out, "\n");
	return true;
}

static void describe(const struct model *model, struct buffer *out)
{
	buffer_init(out, 1 << 20);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		model_visit_spans(model, i, describe_span, out);
	buffer_add_text(out, "");
}

static void check_ledger(const struct test_case *test, const struct model *model)
{
	char said[4096] = "";
	for (uint32_t i = 0; i < model->ledger_count; i++) {
		size_t used = strlen(said);
		snprintf(said + used, sizeof said - used, "%llu %s\n", (unsigned long long)model->ledger[i].count,
		         model_text(model, model->ledger[i].text));
	}
	if (test->ledger ? !strstr(said, test->ledger) : said[0])
		fail_msg("%s: the ledger says\n%sinstead of\n%s", test->name, said,
		         test->ledger ? test->ledger : "nothing");
}

static void check_case(const struct test_case *test, const void *bytes, size_t length)
{
	struct model model;
	struct error err = {0};
	struct buffer spans;
	enum status status = load(bytes, length, &model, &err);
	if (!test->spans) {
		if (status != STATUS_INPUT)
			fail_msg("%s: should not be read", test->name);
		model_release(&model);
		return;
	}
	if (status != STATUS_OK)
		fail_msg("%s: %s", test->name, err.text);
	describe(&model, &spans);
	if (strcmp(spans.data ? spans.data : "", test->spans) != 0)
		fail_msg("%s: got\n%sinstead of\n%s", test->name, spans.data, test->spans);
	check_ledger(test, &model);
	buffer_release(&spans);
	model_release(&model);
}

static void check_cases(const struct test_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_case(&cases[i], cases[i].text, cases[i].length ? cases[i].length : strlen(cases[i].text));
}
#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof *(cases))

/* ---- forms ---- */

static void forms_of_files(void **state)
{
	static const struct test_case cases[] = {
		{"an object", HEAD A "," B TAIL, A_AND_B, NULL, 0},
		{"a list", "[" A "," B "]", A_AND_B, NULL, 0},
		{"J09 a list without an end", "[" A "," B, A_AND_B, "1 the list of events has no end", 0},
		{"J09 a comma at the end", "[" A "," B ",\n]", A_AND_B, "1 commas", 0},
		{"J09 a comma at the beginning", "[," A "," B "]", A_AND_B, "1 commas", 0},
		{"J09 no end behind a comma", "[" A "," B ",\n", A_AND_B, "1 the list of events has no end", 0},
		{"no comma between events", HEAD A "\n" B TAIL, A_AND_B, "1 commas", 0},
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

/* ---- texts ---- */

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
	         "torch\\cuda\\__init__.py\\utils 1000+1000\nb 3000+1000\n", "1 texts that are no UTF-8", 0},
		{"J04 control characters", HEAD OP("|S\x01(1)", "1", "1") "," B TAIL,
	         "|S\x01(1) 1000+1000\nb 3000+1000\n", "1 events with control characters", 0},
		{"J04 a NUL", HEAD OP("a\0b", "1", "1") "," B TAIL,
	         "a\xef\xbf\xbd"
	         "b 1000+1000\nb 3000+1000\n",
	         "1 events with control characters", sizeof(HEAD OP("a\0b", "1", "1") "," B TAIL) - 1},
		{"J05 no UTF-8", HEAD OP("a\xb9\xc0", "1", "1") "," B TAIL,
	         "a\xef\xbf\xbd\xef\xbf\xbd 1000+1000\nb 3000+1000\n", "1 texts that are no UTF-8", 0},
		{"J05 halves of characters", HEAD OP("a\\ud800b\\ude00", "1", "1") TAIL,
	         "a\xef\xbf\xbd"
	         "b\xef\xbf\xbd 1000+1000\n",
	         "1 texts that are no UTF-8", 0},
		{"escapes", HEAD OP("\\u0061\\ud83d\\ude00\\\"\\\\\\/\\n", "1", "1") TAIL,
	         "a\xf0\x9f\x98\x80\"\\/\n 1000+1000\n", NULL, 0},
		{"J14 a backslash at the end", HEAD OP("C:\\\\", "1", "1") "," B TAIL, "C:\\ 1000+1000\nb 3000+1000\n",
	         NULL, 0},
		{"a path that ends in a backslash", HEAD OP("C:\\dir\\", "1", "1") "," B TAIL,
	         "C:\\dir\\ 1000+1000\nb 3000+1000\n", "1 texts that are no UTF-8", 0},
		{"J24 entities", HEAD OP("&quot;x&quot;", "1", "1") TAIL, "&quot;x&quot; 1000+1000\n", NULL, 0},
		{"J22 quotes of a shell", "{\"cmd\":\"print(\\'Hello\\')\",\"traceEvents\":[" A "," B "]}", A_AND_B,
	         NULL, 0},
		{"quotes in a value beside the events", "{\"cmd\":\"echo \"hi\" there\",\"traceEvents\":[" A "," B "]}",
	         A_AND_B, "1 values beside the events", 0},
		{"a bracket in a broken value beside the events",
	         "{\"cmd\":{\"a\":\"x\"y\"},\"traceEvents\":[" A "," B "]}", A_AND_B, "1 values beside the events", 0},
	};
	CHECK_CASES(cases);
}

/* ---- events ---- */

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
	         "1 events that cannot be read", 0},
		{"J11 a key without a quote",
	         HEAD "{\"ph\":\"X\",\"name\":\"c\",\"pid\":1,\ttid\": 0,\"ts\":1,\"dur\":1}," A "," B TAIL, A_AND_B,
	         "1 events that cannot be read", 0},
		{"J12 times as texts", HEAD OP("a", "\"1\"", "\"1.000\"") "," B TAIL, A_AND_B, NULL, 0},
		{"J12 no times", HEAD OP("c", "null", "1") "," OP("c", "true", "1") "," A "," B TAIL, A_AND_B,
	         "2 events without a time", 0},
		{"times that are too far from each other",
	         HEAD OP("c", "-4.6e15", "1") "," OP("c", "4.6e15", "1") "," A "," B TAIL, A_AND_B,
	         "2 events without a time", 0},
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
	         A_AND_B, "1 commas", 0},
		{"no args",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":null}"
	         "," B TAIL,
	         A_AND_B, NULL, 0},
		{"garbage between events", HEAD A ", %%% \"x\" 12 ] [ garbage " B TAIL, A_AND_B,
	         "places between events", 0},
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
#define WRITERS "file written by several processes"
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

/* ---- nesting ---- */

#define KERNEL(name, ts, dur)                                                                                          \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts ",\"dur\":" dur "}"

static void kernels_without_an_end(void **state)
{
#define EIGHT_KERNELS                                                                                                  \
	KERNEL("k", "2", "1")                                                                                          \
	"," KERNEL("k", "4", "1") "," KERNEL("k", "6", "1") "," KERNEL("k", "8", "1") "," KERNEL(                      \
		"k", "10", "1") "," KERNEL("k", "12", "1") "," KERNEL("k", "14", "1") "," KERNEL("k", "16", "1")
#define EIGHT_SPANS                                                                                                    \
	"k 2000+1000\nk 4000+1000\nk 6000+1000\nk 8000+1000\nk 10000+1000\nk 12000+1000\nk 14000+1000\nk 16000+1000\n"
	static const struct test_case cases[] = {
		{"T03 a kernel without a duration, others after it",
	         HEAD KERNEL("k", "1", "-1") "," KERNEL("k", "2", "1e300") "," KERNEL("k", "3", "2") TAIL,
	         "k 1000+1000 lost\nk 2000+1000 lost\nk 3000+2000\n",
	         "2 kernels, copies or fills without a duration, or with one that cannot be", 0},
		{"T06 a kernel beyond all later ones, far longer than others of its name",
	         HEAD KERNEL("k", "1", "1600000") "," EIGHT_KERNELS TAIL, "k 1000+1000 clipped lost\n" EIGHT_SPANS,
	         "1 kernels, copies or fills that last beyond all later work of their stream", 0},
		{"T06 the only one of its name", HEAD KERNEL("long", "1", "1600000") "," EIGHT_KERNELS TAIL,
	         "long 1000+1600000000\n" EIGHT_SPANS, "their ends may be wrong, and are left as they are", 0},
		{"T06 the last one may be long", HEAD EIGHT_KERNELS "," KERNEL("k", "18", "1600000") TAIL,
	         EIGHT_SPANS "k 18000+1600000000\n", NULL, 0},
	};
	CHECK_CASES(cases);
}

static void spans_that_do_not_nest(void **state)
{
#define BOUND(ph, name, ts) "{\"ph\":\"" ph "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts "}"
	static const struct test_case cases[] = {
		{"T01 a device's work without a time",
	         HEAD KERNEL("k", "0", "0") "," KERNEL("k", "1600000000000000", "1") TAIL,
	         "k 1600000000000000000+1000\n", "1 events of a device without a time", 0},
		{"I03 process 0 and device 0",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":9}," KERNEL(
			 "k", "2", "3") TAIL,
	         "op 1000+9000\nk 2000+3000\n", NULL, 0},
		{"T03 no duration",
	         HEAD OP("out", "1", "5") "," OP(
			 "a", "2",
			 "-1") ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":3}" TAIL,
	         "out 1000+5000\na 2000+4000 lost\nb 3000+3000 lost\n", "2 spans without a duration", 0},
		{"T03 begin and end",
	         HEAD
	         "{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1},{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,"
	         "\"tid\":1,\"ts\":2},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4}"
	         ",{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5}" TAIL,
	         "a 1000+3000\nb 2000+1000\n", "1 ends without a begin", 0},
		{"T08 begins and ends in any order",
	         HEAD BOUND("E", "a", "4") "," BOUND("B", "b", "2") "," BOUND("E", "b", "3") "," BOUND("B", "a", "1")
	                 TAIL,
	         "a 1000+3000\nb 2000+1000\n", NULL, 0},
		{"T08 neighbours in any order",
	         HEAD BOUND("B", "b", "2") "," BOUND("E", "b", "3") "," BOUND("B", "a", "1") "," BOUND("E", "a", "2")
	                 TAIL,
	         "a 1000+1000\nb 2000+1000\n", NULL, 0},
		{"a span without a length in another",
	         HEAD BOUND("B", "a", "1") "," BOUND("B", "b", "2") "," BOUND("E", "b", "2") "," BOUND("E", "a", "3")
	                 TAIL,
	         "a 1000+2000\nb 2000+0\n", NULL, 0},
		{"without a length, its end in front of its begin",
	         HEAD BOUND("B", "a", "1") "," BOUND("E", "b", "2") "," BOUND("B", "b", "2") "," BOUND("E", "a", "3")
	                 TAIL,
	         "a 1000+2000\nb 2000+0\n", NULL, 0},
		{"the same with nothing around it", HEAD BOUND("E", "b", "2") "," BOUND("B", "b", "2") TAIL,
	         "b 2000+0\n", NULL, 0},
		{"the same twice, in any order of the file",
	         HEAD BOUND("E", "a", "3") "," BOUND("E", "b", "2") "," BOUND("E", "b", "2") "," BOUND(
			 "B", "b", "2") "," BOUND("B", "a", "1") "," BOUND("B", "b", "2") TAIL,
	         "a 1000+2000\nb 2000+0\nb 2000+0\n", NULL, 0},
		{"one behind the other, of one name",
	         HEAD BOUND("B", "a", "1") "," BOUND("E", "a", "2") "," BOUND("B", "a", "2") "," BOUND("E", "a", "4")
	                 TAIL,
	         "a 1000+1000\na 2000+2000\n", NULL, 0},
		{"the same in any order",
	         HEAD BOUND("E", "a", "4") "," BOUND("B", "a", "2") "," BOUND("E", "a", "2") "," BOUND("B", "a", "1")
	                 TAIL,
	         "a 1000+1000\na 2000+2000\n", NULL, 0},
		{"an end of a name that began before, with a begin of that name",
	         HEAD BOUND("B", "a", "1") "," BOUND("B", "b", "2") "," BOUND("E", "b", "3") "," BOUND(
			 "E", "a", "3") "," BOUND("B", "b", "3") "," BOUND("E", "b", "5") TAIL,
	         "a 1000+2000\nb 2000+1000\nb 3000+2000\n", NULL, 0},
		{"begins of one time: names say which is inside",
	         HEAD BOUND("B", "in", "1") "," BOUND("B", "out", "1") "," BOUND("E", "in", "2") "," BOUND("E", "out",
	                                                                                                   "3") TAIL,
	         "out 1000+2000\nin 1000+1000\n", NULL, 0},
		{"an end without a name, and its begin",
	         HEAD "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":2}," BOUND("B", "a", "2") TAIL, "a 2000+0 lost\n",
	         "1 ends without a begin", 0},
		{"T04 kernels that overlap on a stream", HEAD KERNEL("a", "3", "3.776") "," KERNEL("b", "5", "2") TAIL,
	         "a 3000+3776\nb 5000+2000\n", NULL, 0},
		{"T05 an end behind its parent's, by rounding", HEAD OP("out", "1", "5") "," OP("in", "2", "4.5") TAIL,
	         "out 1000+5000\nin 2000+4000 clipped\n", "1 spans ended later than the one around them", 0},
		{"T05 an end behind its parent's", HEAD OP("out", "1", "5") "," OP("in", "2", "40") TAIL,
	         "out 1000+5000\nin 2000+40000\n", "1 spans of a thread end later than the one in which they begin", 0},
		{"T07 equal times", HEAD OP("first", "1", "10") "," OP("second", "1", "20") TAIL,
	         "second 1000+20000\nfirst 1000+10000\n", NULL, 0},
		{"T08 out of order", HEAD B "," A TAIL, A_AND_B, NULL, 0},
		{"T11 one behind the other", HEAD OP("a", "1", "1") "," OP("b", "2", "1") TAIL,
	         "a 1000+1000\nb 2000+1000\n", NULL, 0},
	};
	CHECK_CASES(cases);
}

/* What 64 lanes do not hold is cut by any amount, and the ledger does not call that rounding. */
static void spans_that_cross_in_every_lane(void **state)
{
	static const char
		sentence[] = "spans crossed others in each of 64 lanes; they were cut there, by 3000 ns together";
	struct buffer text;
	struct model model;
	struct error err = {0};
	buffer_init(&text, 1 << 20);
	buffer_add_text(&text, "[");
	for (int i = 0; i < 66; i++)
		buffer_printf(
			&text,
			"%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":1000}",
			i ? "," : "", 1 + i);
	buffer_add_text(&text, "]");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	assert_int_equal(model.tracks_count, 64);
	assert_int_equal(model.ledger_count, 1);
	assert_int_equal(model.ledger[0].count, 2);
	assert_string_equal(model_text(&model, model.ledger[0].text), sentence);
	buffer_release(&text);
	model_release(&model);
}

/* ---- at every byte ---- */

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

/* ---- compressed ---- */

static size_t gzip(const char *text, size_t length, unsigned char *out, size_t capacity)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
	                   .avail_in = (uInt)length,
	                   .next_out = out,
	                   .avail_out = (uInt)capacity};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

/* J19 */
static void compressed_traces(void **state)
{
	static const struct test_case good = {"gzip", "", A_AND_B, NULL, 0},
				      cut = {"gzip, cut", "", A_AND_B, "1 the compressed data is cut off", 0};
	static const char first[] = HEAD A ",", second[] = B TAIL, all[] = HEAD A "," B TAIL;
	unsigned char bytes[2048];
	size_t length = gzip(all, sizeof all - 1, bytes, sizeof bytes);
	check_case(&good, bytes, length);
	check_case(&cut, bytes, length - 6); /* in its check sum */
	bytes[length - 6] ^= 1;
	check_case(&cut, bytes, length);
	length = gzip(first, sizeof first - 1, bytes, sizeof bytes);
	length += gzip(second, sizeof second - 1, bytes + length, sizeof bytes - length);
	check_case(&good, bytes, length);
	for (size_t cut_at = 12; cut_at < length; cut_at++) { /* J08: at any byte */
		struct model model;
		struct error err = {0};
		enum status status = load(bytes, cut_at, &model, &err);
		assert_true(status == STATUS_OK || status == STATUS_INPUT);
		model_release(&model);
	}
	memset(bytes + length, 0, 32); /* tapes and some stores fill up with zeros, as gzip knows */
	check_case(&good, bytes, length + 32);
	bytes[length + 31] = 'x';
	check_case(&cut, bytes, length + 32);
}

#define MEMBERS 24

static size_t zstd(const char *text, size_t length, unsigned char *out, size_t capacity)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	length = ZSTD_compress2(context, out, capacity, text, length);
	assert_false(ZSTD_isError(length));
	ZSTD_freeCCtx(context);
	return length;
}

/* MEMBERS events, each a member of gzip (or a frame of zstd), and where those begin. */
static size_t pack_members(unsigned char *bytes, size_t capacity, size_t begins[MEMBERS + 1], bool is_zstd)
{
	size_t length = 0;
	for (int i = 0; i < MEMBERS; i++) {
		char text[256];
		int n = snprintf(text, sizeof text, "%s" OP("m%02d", "%d", "1") "%s", i ? "" : HEAD, i, 2 * i + 1,
		                 i + 1 < MEMBERS ? ",\n" : TAIL);
		begins[i] = length;
		length += (is_zstd ? zstd : gzip)(text, (size_t)n, bytes + length, capacity - length);
	}
	begins[MEMBERS] = length;
	return length;
}

/* All must be there but `damaged` and the `lost` behind it; when one of those is not, it must be said. */
static void check_members(const unsigned char *bytes, size_t length, int damaged, int lost, const char *what)
{
	struct test_case said = {what, "", "", "1 places where the compressed data is damaged", 0};
	struct model model;
	struct error err = {0};
	struct buffer spans;
	bool is_all = true;
	assert_int_equal(load(bytes, length, &model, &err), STATUS_OK);
	describe(&model, &spans);
	for (int i = 0; i < MEMBERS; i++) {
		char span[64];
		snprintf(span, sizeof span, "m%02d %d+1000\n", i, 1000 * (2 * i + 1));
		bool is_here = strstr(spans.data, span);
		if (!is_here && (i < damaged || i > damaged + lost))
			fail_msg("%s: event %d is not there:\n%s", what, i, spans.data);
		is_all &= is_here;
	}
	if (!is_all)
		check_ledger(&said, &model);
	buffer_release(&spans);
	model_release(&model);
}

/* J19: what follows a damaged member is read. */
static void members_behind_a_damaged_one(void **state)
{
	static unsigned char bytes[16384];
	for (int is_zstd = 0; is_zstd < 2; is_zstd++) {
		size_t begins[MEMBERS + 1], length = pack_members(bytes, sizeof bytes, begins, is_zstd);
		for (size_t bit = 8 * begins[7]; bit < 8 * begins[8]; bit++) {
			char what[64];
			snprintf(what, sizeof what, "%s, bit %zu of a member", is_zstd ? "zstd" : "gzip",
			         bit - 8 * begins[7]);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			check_members(bytes, length, 7, 0, what);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		memset(bytes + begins[3] + 30, 0, begins[5] - begins[3]); /* a hole from member to member */
		check_members(bytes, length, 3, 2, "a hole");
	}
}

/* Of many lengths, read in small pieces: the end of the data and the end of its output do not come together. */
static void compressed_input_in_pieces(void **state)
{
	static unsigned char bytes[1 << 16];
	static char text[40000];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * i % 251);
	for (size_t length = 1; length < sizeof text; length = length * 5 / 4 + 1) {
		for (size_t capacity = 1; capacity < 3000; capacity = capacity * 7 + 2) {
			size_t compressed = gzip(text, length, bytes, sizeof bytes), done = 0, n = 1;
			struct input_stream *input;
			struct error err;
			char path[64], piece[3000];
			int fd = memfd_create("gzip", 0);
			assert_int_equal(write(fd, bytes, compressed), compressed);
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			assert_int_equal(input_open(path, &input, &err), STATUS_OK);
			for (; n > 0; done += n) {
				assert_int_equal(input_read(input, piece, capacity, &n, &err), STATUS_OK);
				assert_memory_equal(piece, text + done, n);
			}
			assert_int_equal(done, length);
			input_close(input);
			close(fd);
		}
	}
}

/* J19: both byte orders, with and without a mark. */
static void traces_in_utf16(void **state)
{
	static const struct test_case expected = {"UTF-16", "", A_AND_B, "1 the text is UTF-16", 0};
	static const char text[] = HEAD A "," B TAIL;
	char bytes[2 * sizeof text];
	for (int form = 0; form < 4; form++) {
		bool is_big = form & 1, has_mark = form & 2;
		size_t length = 0;
		if (has_mark) {
			memcpy(bytes, is_big ? "\xfe\xff" : "\xff\xfe", 2);
			length = 2;
		}
		for (size_t i = 0; i + 1 < sizeof text; i++, length += 2) {
			bytes[length + is_big] = text[i];
			bytes[length + !is_big] = 0;
		}
		check_case(&expected, bytes, length);
		unsigned char packed[2 * sizeof bytes];
		check_case(&expected, packed, gzip(bytes, length, packed, sizeof packed));
	}
}

/* ---- steps ---- */

#define STEP(number, ts, dur)                                                                                          \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" number                                    \
	"\",\"pid\":1,\"tid\":1,\"ts\":" ts dur "}"

static void steps_without_a_number_are_said(void **state)
{
	static const struct test_case cases[] = {
		{"no digits", "[" STEP("abc", "1", ",\"dur\":1") "," STEP("-3", "3", ",\"dur\":1") "]",
	         "ProfilerStep#abc 1000+1000\nProfilerStep#-3 3000+1000\n",
	         "2 annotations ProfilerStep# without a number", 0},
		{"too many", "[" STEP("99999999999999999999", "1", ",\"dur\":1") "]",
	         "ProfilerStep#99999999999999999999 1000+1000\n", "1 annotations ProfilerStep# without a number", 0},
		{"a step", "[" STEP("12", "1", ",\"dur\":1") "]", "ProfilerStep#12 1000+1000\n", NULL, 0},
	};
	CHECK_CASES(cases);
}

/* R04, T03: a moment belongs to one step. */
static void steps_do_not_overlap(void **state)
{
	static const char text[] = "[" STEP("2", "10", ",\"dur\":5") "," STEP("1", "1", "") "," STEP("2", "10",
	                                                                                             ",\"dur\":5") "]";
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(model.steps[0].number, 1);
	assert_int_equal(model.steps[0].end_ns, 10000);
	assert_true(model.steps[0].is_open);
	assert_int_equal(model.steps[1].end_ns, 15000);
	model_release(&model);
}

/* Each process trains at its own pace, its forwards and backwards on threads of their own; the file has the threads of all in turn. */
static void steps_of_each_process(void **state)
{
	static const char *const parts[] = {"enumerate(DataLoader)#x.__next__", "aten::linear",
	                                    "autograd::engine::evaluate_function: AddmmBackward0",
	                                    "Optimizer.step#SGD.step"};
	uint32_t steps[4] = {0};
	struct buffer text;
	struct model model;
	struct error err = {0};
	buffer_init(&text, 1 << 20);
	for (int step = 0; step < 6; step++)
		for (int part = 0; part < 4; part++)
			for (int pid = 1; pid < 4 && step < 7 - pid; pid++)
				buffer_printf(&text,
				              "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
				              "\"ts\":%d,\"dur\":90}",
				              text.length ? "," : "[", part % 3 ? "cpu_op" : "user_annotation",
				              parts[part], pid, 10 * (part == 2) + pid, 400 * step + 100 * part + pid);
	buffer_add_text(&text, "]");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	for (uint32_t i = 0; i < model.steps_count; i++)
		steps[model.processes[model.steps[i].process].pid]++;
	for (uint32_t pid = 1; pid < 4; pid++)
		assert_int_equal(steps[pid], 7 - pid);
	buffer_release(&text);
	model_release(&model);
}

/* Of two names that take the same time the choice is not that of the file. */
static void what_repeats_in_any_order(void **state)
{
	static const char *const texts[] = {"run", "call", "step", "load", "work", "turn", "loop", "item"};
	for (uint32_t other = 1; other < 8; other++) {
		for (int order = 0; order < 2; order++) {
			struct buffer text;
			struct model model;
			struct error err = {0};
			buffer_init(&text, 1 << 20);
			for (uint32_t i = 0; i < 12; i++)
				buffer_printf(&text,
				              "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,"
				              "\"tid\":1,\"ts\":%u,\"dur\":9}",
				              i ? "," : "[", texts[(i & 1) == (uint32_t)order ? 0 : other],
				              10 * (i >> 1));
			buffer_add_text(&text, "]");
			assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
			const char *said = model_text(&model, model.ledger[model.ledger_count - 1].text);
			const char *first = strcmp(texts[other], "run") < 0 ? texts[other] : "run";
			assert_non_null(strstr(said, first));
			buffer_release(&text);
			model_release(&model);
		}
	}
}

/* Where all lines with "ProfilerStep#" were cut out of a trace, such events are left. */
static void what_has_no_name_is_no_step(void **state)
{
	static const char *const names[] = {"", "\"name\":\"\",", "\"name\":\"work\","};
	for (int i = 0; i < 3; i++) {
		struct buffer text;
		struct model model;
		struct error err = {0};
		buffer_init(&text, 1 << 20);
		for (int at = 0; at < 40; at += 10)
			buffer_printf(&text,
			              "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",%s\"pid\":1,\"tid\":1,\"ts\":%d,"
			              "\"dur\":9}",
			              at ? "," : "[", names[i], at);
		buffer_add_text(&text, "]");
		assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
		assert_int_equal(model.steps_count, i == 2 ? 4 : 0);
		buffer_release(&text);
		model_release(&model);
	}
}

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

/* ---- asynchronous ---- */

#define HALF(ph, name, id, ts)                                                                                         \
	"{\"ph\":\"" ph "\",\"cat\":\"io\",\"name\":\"" name "\",\"pid\":1,\"tid\":1," id ",\"ts\":" ts "}"

#define LOOSE "spans of rows that are no thread"
#define BEGUN_AT_ONCE "y 1000+3000\nx 1000+1000\n"

/* T18: pairs by category and id, in any order of the file; what does not pair is said. */
static void asynchronous_events(void **state)
{
	static const struct test_case cases[] = {
		{"ids as numbers and texts",
	         HEAD A "," HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":\"0x2\"", "2") "," HALF(
			 "e", "x", "\"id\":\"1\"", "3") "," HALF("e", "y", "\"id\":2", "4") TAIL,
	         "a 1000+1000\nx 1000+2000\ny 2000+2000\n", "2 " LOOSE, 0},
		{"nested, written backwards",
	         "[" HALF("e", "out", "\"id\":1", "9") "," HALF("e", "in", "\"id\":1", "5") "," HALF(
			 "b", "in", "\"id\":1", "3") "," HALF("b", "out", "\"id\":1", "1") "]",
	         "out 1000+8000\nin 3000+2000\n", "2 " LOOSE, 0},
		{"begun at once, written first to last",
	         "[" HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":1", "1") "," HALF(
			 "e", "", "\"id\":1", "2") "," HALF("e", "", "\"id\":1", "4") "]",
	         BEGUN_AT_ONCE, "2 " LOOSE, 0},
		{"begun at once, written last to first",
	         "[" HALF("b", "y", "\"id\":1", "1") "," HALF("b", "x", "\"id\":1", "1") "," HALF(
			 "e", "", "\"id\":1", "4") "," HALF("e", "", "\"id\":1", "2") "]",
	         BEGUN_AT_ONCE, "2 " LOOSE, 0},
		{"of 2014", "[" HALF("S", "x", "\"id\":1", "1") "," HALF("F", "x", "\"id\":1", "3") "]",
	         "x 1000+2000\n", "1 " LOOSE, 0},
		{"ids of a process",
	         "[" HALF("b", "x", "\"id2\":{\"local\":\"0x1\"}",
	                  "1") "," HALF("e", "x", "\"id2\":{\"local\":\"0x1\"}", "2") "]",
	         "x 1000+1000\n", "1 " LOOSE, 0},
		{"an instant",
	         "[" HALF("b", "x", "\"id\":1", "1") "," HALF("n", "i", "\"id\":1", "2") "," HALF("e", "x", "\"id\":1",
	                                                                                          "3") "]",
	         "x 1000+2000\n", "1 " LOOSE, 0},
		{"no begin", "[" A "," HALF("e", "x", "\"id\":1", "3") "]", "a 1000+1000\n", "1 ends without a begin",
	         0},
		{"no end",
	         "[" HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":2", "2") "," HALF("e", "y", "\"id\":2",
	                                                                                          "9") "]",
	         "x 1000+8000 lost\ny 2000+7000\n", "1 begins without an end", 0},
		{"no end, until the recording's",
	         "[" A "," HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":2", "1") "," HALF(
			 "e", "y", "\"id\":2", "2") "," OP("b", "3", "7") "]",
	         "a 1000+1000\nb 3000+7000\nx 1000+9000 lost\ny 1000+1000\n", "1 begins without an end", 0},
		{"of a process and of all",
	         "[" HALF("b", "x", "\"id2\":{\"local\":1}",
	                  "1") "," HALF("b", "y", "\"id2\":{\"global\":1}",
	                                "2") "," HALF("e", "x", "\"id2\":{\"local\": \"0x1\"}",
	                                              "3") "," HALF("e", "y", "\"id2\":{\"global\":1}", "9") "]",
	         "x 1000+2000\ny 2000+7000\n", "2 " LOOSE, 0},
		{"a begin on a thread of its own",
	         "[" A ",{\"ph\":\"B\",\"name\":\"x\",\"pid\":1,\"tid\":2,\"ts\":1}," OP("b", "3", "7") "]",
	         "a 1000+1000\nb 3000+7000\nx 1000+9000 lost\n", "1 begins without an end", 0},
	};
	CHECK_CASES(cases);
}

/* ---- large ---- */

/* J17, J18: values of any size and depth are passed over. */
static void large_values(void **state)
{
	static const struct test_case expected = {"large", "", A_AND_B, "args longer than 4 KiB are cut", 0};
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
	static const struct test_case expected = {"a large event", "", A_AND_B, "args longer than 4 KiB are cut", 0};
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
	static const struct test_case inside = {"events in args", "", A_AND_B, "1 args longer than 4 KiB are cut", 0};
	static const struct test_case cut = {"a list that does not end", "", "b 3000+1000\n", "1 events that cannot",
	                                     0};
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
	                                          "1 events larger than 32 MiB: of their texts the first MiB", 0};
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

/* ---- what else an event says ---- */

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
		cmocka_unit_test(forms_of_files),
		cmocka_unit_test(texts_that_are_not_escaped),
		cmocka_unit_test(events_that_are_broken),
		cmocka_unit_test(processes_that_wrote_one_file),
		cmocka_unit_test(files_of_one_writer),
		cmocka_unit_test(kernels_without_an_end),
		cmocka_unit_test(spans_that_do_not_nest),
		cmocka_unit_test(spans_that_cross_in_every_lane),
		cmocka_unit_test(a_trace_cut_at_any_byte),
		cmocka_unit_test(a_trace_with_any_byte_changed),
		cmocka_unit_test(a_hole_anywhere_is_said),
		cmocka_unit_test(compressed_traces),
		cmocka_unit_test(members_behind_a_damaged_one),
		cmocka_unit_test(compressed_input_in_pieces),
		cmocka_unit_test(traces_in_utf16),
		cmocka_unit_test(steps_without_a_number_are_said),
		cmocka_unit_test(steps_do_not_overlap),
		cmocka_unit_test(steps_of_each_process),
		cmocka_unit_test(what_repeats_in_any_order),
		cmocka_unit_test(what_has_no_name_is_no_step),
		cmocka_unit_test(threads_with_two_names),
		cmocka_unit_test(asynchronous_events),
		cmocka_unit_test(large_values),
		cmocka_unit_test(large_events),
		cmocka_unit_test(events_in_args),
		cmocka_unit_test(events_beyond_the_window),
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
