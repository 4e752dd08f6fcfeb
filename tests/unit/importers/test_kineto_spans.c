/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of Kineto's and other Chrome traces: how they nest, cross and end, with begins and ends in any order of the file.
 */
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
	         "2 kernels, copies or fills without a valid duration", 0},
		{"T06 a kernel beyond all later ones, far longer than others of its name",
	         HEAD KERNEL("k", "1", "1600000") "," EIGHT_KERNELS TAIL, "k 1000+1000 clipped lost\n" EIGHT_SPANS,
	         "1 kernels, copies or fills last beyond all later work of their stream", 0},
		{"T06 the only one of its name", HEAD KERNEL("long", "1", "1600000") "," EIGHT_KERNELS TAIL,
	         "long 1000+1600000000\n" EIGHT_SPANS, "their ends may be wrong, but are kept", 0},
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
	         "k 1600000000000000000+1000\n", "1 device events without a time", 0},
		{"I03 process 0 and device 0",
	         HEAD
	         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":9}," KERNEL(
			 "k", "2", "3") TAIL,
	         "op 1000+9000\nk 2000+3000\n", NULL, 0},
		{"T03 no duration",
	         HEAD OP("out", "1", "5") "," OP(
			 "a", "2",
			 "-1") ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":3}" TAIL,
	         "out 1000+5000\na 2000+4000 lost\nb 3000+3000 lost\n", "2 spans without a valid duration", 0},
		{"T03 begin and end",
	         HEAD
	         "{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1},{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,"
	         "\"tid\":1,\"ts\":2},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4}"
	         ",{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5}" TAIL,
	         "a 1000+3000\nb 2000+1000\n", "1 ends without a start", 0},
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
	         "1 ends without a start", 0},
		{"T04 kernels that overlap on a stream", HEAD KERNEL("a", "3", "3.776") "," KERNEL("b", "5", "2") TAIL,
	         "a 3000+3776\nb 5000+2000\n", NULL, 0},
		{"T05 an end behind its parent's, by rounding", HEAD OP("out", "1", "5") "," OP("in", "2", "4.5") TAIL,
	         "out 1000+5000\nin 2000+4000 clipped\n",
	         "1 spans ended up to a microsecond later than the enclosing span", 0},
		{"T05 an end behind its parent's", HEAD OP("out", "1", "5") "," OP("in", "2", "40") TAIL,
	         "out 1000+5000\nin 2000+40000\n", "1 spans of a thread end later than the span in which they start",
	         0},
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
		sentence[] = "spans crossed other spans in all 64 lanes; the excess was cut off, 3000 ns in total";
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

#define HALF(ph, name, id, ts)                                                                                         \
	"{\"ph\":\"" ph "\",\"cat\":\"io\",\"name\":\"" name "\",\"pid\":1,\"tid\":1," id ",\"ts\":" ts "}"

#define LOOSE "spans in rows that are neither a thread"
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
		{"no begin", "[" A "," HALF("e", "x", "\"id\":1", "3") "]", "a 1000+1000\n", "1 ends without a start",
	         0},
		{"no end",
	         "[" HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":2", "2") "," HALF("e", "y", "\"id\":2",
	                                                                                          "9") "]",
	         "x 1000+8000 lost\ny 2000+7000\n", "1 starts without an end", 0},
		{"no end, until the recording's",
	         "[" A "," HALF("b", "x", "\"id\":1", "1") "," HALF("b", "y", "\"id\":2", "1") "," HALF(
			 "e", "y", "\"id\":2", "2") "," OP("b", "3", "7") "]",
	         "a 1000+1000\nb 3000+7000\nx 1000+9000 lost\ny 1000+1000\n", "1 starts without an end", 0},
		{"of a process and of all",
	         "[" HALF("b", "x", "\"id2\":{\"local\":1}",
	                  "1") "," HALF("b", "y", "\"id2\":{\"global\":1}",
	                                "2") "," HALF("e", "x", "\"id2\":{\"local\": \"0x1\"}",
	                                              "3") "," HALF("e", "y", "\"id2\":{\"global\":1}", "9") "]",
	         "x 1000+2000\ny 2000+7000\n", "2 " LOOSE, 0},
		{"a begin on a thread of its own",
	         "[" A ",{\"ph\":\"B\",\"name\":\"x\",\"pid\":1,\"tid\":2,\"ts\":1}," OP("b", "3", "7") "]",
	         "a 1000+1000\nb 3000+7000\nx 1000+9000 lost\n", "1 starts without an end", 0},
	};
	CHECK_CASES(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_without_an_end),
		cmocka_unit_test(spans_that_do_not_nest),
		cmocka_unit_test(spans_that_cross_in_every_lane),
		cmocka_unit_test(asynchronous_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
