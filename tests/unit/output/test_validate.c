/* SPDX-License-Identifier: Apache-2.0
 *
 * `stepscope validate`: one small file per rule that breaks it, and files that break none.
 */
#include "output/validate/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "{\"distributedInfo\": {\"rank\": 0}, \"displayTimeUnit\": \"ms\", \"traceEvents\": ["
#define STEP                                                                                                           \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":900.000}"
#define OP(more)                                                                                                       \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":1.000,\"dur\":2.000" more "}"
#define CALL(ts, more)                                                                                                 \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":" ts          \
	",\"dur\":1,\"args\":{\"External id\":3,\"correlation\":7" more "}}"
#define KERNEL(ts, args)                                                                                               \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" ts ",\"dur\":5,\"args\":{" args  \
	"}}"
#define ON_STREAM "\"device\":0,\"stream\":7,\"External id\":3,\"correlation\":7"
#define SYNC(kind, ts, more)                                                                                           \
	"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"s\",\"pid\":0,\"tid\":99,\"ts\":" ts                           \
	",\"dur\":1,\"args\":{\"cuda_sync_kind\":\"" kind "\",\"stream\":7,\"device\":0" more "}}"
#define RECORD(ts)                                                                                                     \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaEventRecord\",\"pid\":1,\"tid\":1,\"ts\":" ts           \
	",\"dur\":1,\"args\":{\"correlation\":50}}"
#define BACKWARD(name, ts)                                                                                             \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"autograd::engine::evaluate_function: " name                       \
	"\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":1,\"args\":{\"Sequence number\":5}}"
#define TAIL "]}"
#define WITH(events) HEAD STEP "," events TAIL

struct broken_file {
	enum validate_rule rule;
	uint64_t count;
	const char *text;
};

static const struct broken_file files[] = {
	{VALIDATE_T1, 1, WITH("{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")},
	{VALIDATE_T2, 1, WITH("{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{}}")},
	{VALIDATE_T3, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":\"main\",\"ts\":1,\"dur\":1}")},
	{VALIDATE_T4, 1, WITH(KERNEL("5", "\"stream\":7"))},
	{VALIDATE_T5, 1, WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1}")},
	{VALIDATE_T6, 1, WITH("{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"pid\":1,\"tid\":1,\"ts\":1}")},
	{VALIDATE_T7, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#x\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")},
	{VALIDATE_T8, 1, WITH(OP(",\"args\":null"))},
	{VALIDATE_T9, 1, "[" STEP "]"},
	{VALIDATE_T10, 1, HEAD OP("") TAIL},
	{VALIDATE_T12, 2, WITH(OP(",\"args\":{\"a\":NaN,\"b\":N/A}"))},
	{VALIDATE_T13, 1,
         WITH("{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: x\",\"pid\":1,\"tid\":1,\"ts\":0},"
              "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":1,\"tid\":1,\"ts\":86400001}")},
	{VALIDATE_H2, 1, "{\"distributedInfo\":{\"rank\":0},\"traceEvents\":[" STEP "]}"},
	{VALIDATE_H2n, 1, "{\"traceEvents\":[" STEP "]}"},
	{VALIDATE_H2n, 1, "{\"traceEvents\":[" STEP "],\"distributedInfo\":{\"rank\": 0}}"},
	{VALIDATE_H5, 1, WITH(KERNEL("5", "\"device\":0,\"stream\":-1"))},
	{VALIDATE_H5, 1, WITH(KERNEL("5", "\"device\":0"))},
	{VALIDATE_H5c, 1, WITH(OP(",\"args\":{\"stream\":7}"))},
	{VALIDATE_H5z, 1, WITH(KERNEL("5", "\"device\":0,\"stream\":0"))},
	{VALIDATE_H6, 1, WITH(KERNEL("5", ON_STREAM))},
	{VALIDATE_H6, 1, WITH(CALL("1", "") "," CALL("2", "") "," KERNEL("5", ON_STREAM))},
	{VALIDATE_H9, 1, WITH(OP(",\"args\":{\"External id\":\"a\"}"))},
	{VALIDATE_H9n, 1, WITH(OP(",\"args\":{\"Python parent id\":null}"))},
	{VALIDATE_H10, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":2,\"tid\":1,\"ts\":1,\"dur\":604800000001}")},
	{VALIDATE_P1, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\x01\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")},
	{VALIDATE_P1n, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\\u00e9\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")},
	{VALIDATE_P2, 1, WITH("{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1}")},
	{VALIDATE_P2, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":-1}")},
	{VALIDATE_P3, 1,
         WITH(OP("") ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1.001}")},
	{VALIDATE_P5, 1, WITH("{\"ph\":\"s\",\"cat\":\"c\",\"name\":\"c\",\"id\":\"1\",\"pid\":1,\"tid\":1,\"ts\":1}")},
	{VALIDATE_P5n, 1, WITH("{\"ph\":\"s\",\"cat\":\"c\",\"name\":\"c\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":1}")},
	{VALIDATE_P6, 1, WITH("{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":1,\"args\":{\"a\":\"much\"}}")},
	{VALIDATE_P7, 1, WITH("{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"ts\":1}")},
	{VALIDATE_C1, 1, "{\"displayTimeUnit\":\"us\",\"traceEvents\":[]}"},
	{VALIDATE_C3, 1, "[" STEP ",\n"},
	{VALIDATE_C3, 1, "[" STEP},
	{VALIDATE_V1, 1, WITH(CALL("6", "") "," KERNEL("5", ON_STREAM))},
	{VALIDATE_V2, 1, WITH(SYNC("Event Sync", "5", ""))},
	{VALIDATE_V2, 1, WITH(SYNC("Stream Wait Event", "5", ",\"wait_on_cuda_event_record_corr_id\":-1"))},
	{VALIDATE_V3, 1, WITH(KERNEL("5", ON_STREAM) "," SYNC("Stream Sync", "7", ""))},
	{VALIDATE_V3, 0, WITH(KERNEL("5", ON_STREAM) "," SYNC("Stream Sync", "10", ""))},
	{VALIDATE_V4, 1, WITH(SYNC("Stream Wait Event", "5", ",\"wait_on_cuda_event_record_corr_id\":50"))},
	{VALIDATE_V4, 1,
         WITH(RECORD("6") "," SYNC("Stream Wait Event", "5", ",\"wait_on_cuda_event_record_corr_id\":50"))},
	{VALIDATE_V4, 0,
         WITH(RECORD("4") "," SYNC("Stream Wait Event", "5", ",\"wait_on_cuda_event_record_corr_id\":50"))},
	{VALIDATE_V5, 1,
         WITH("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")},
	{VALIDATE_V6, 1, WITH(BACKWARD("Mm", "1") "," BACKWARD("Add", "3"))},
	{VALIDATE_V6, 0, WITH(BACKWARD("Mm", "1") "," BACKWARD("Mm", "3"))},
};

/* Writes text into a file that is gone when the test ends. */
static void put_file(char *path, const void *bytes, size_t length)
{
	int fd;

	snprintf(path, 64, "/tmp/test_validate_XXXXXX.json");
	fd = mkstemps(path, 5);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static enum status check(const void *bytes, size_t length, struct validation *validation)
{
	struct error err;
	char path[64];
	enum status status;

	put_file(path, bytes, length);
	status = validate_file(path, validation, &err);
	unlink(path);
	return status;
}

static void every_rule_is_found_where_it_is_broken(void **state)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct validation validation;

		assert_int_equal(check(files[i].text, strlen(files[i].text), &validation), STATUS_OK);
		if (validation.findings[files[i].rule].count != files[i].count)
			fail_msg("%s: counted %d times in %s", validate_rules[files[i].rule].id,
			         (int)validation.findings[files[i].rule].count, files[i].text);
	}
}

/* A file that breaks one rule does not break another one by accident of ours. */
static void other_errors_are_not_invented(void **state)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct validation validation;

		assert_int_equal(check(files[i].text, strlen(files[i].text), &validation), STATUS_OK);
		for (int rule = 0; rule < VALIDATE_RULE_COUNT; rule++) {
			bool is_related = rule == VALIDATE_P2 || rule == VALIDATE_T5 || rule == VALIDATE_H9 ||
			                  rule == VALIDATE_T4 || rule == VALIDATE_H5 || rule == VALIDATE_T9;

			if ((enum validate_rule)rule != files[i].rule && validate_rules[rule].is_error && !is_related)
				if (validation.findings[rule].count)
					fail_msg("%s is said to be broken by %s", validate_rules[rule].id,
					         files[i].text);
		}
	}
}

static void nameless_events_pass_before_both_markers(void **state)
{
	static const char text[] = WITH(
		"{\"ph\":\"M\",\"pid\":1,\"tid\":1},"
		"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: x\",\"pid\":1,\"tid\":1,\"ts\":0},"
		"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":1,\"tid\":1,\"ts\":1}");
	struct validation validation;

	assert_int_equal(check(text, strlen(text), &validation), STATUS_OK);
	assert_int_equal(validation.findings[VALIDATE_T2].count, 0);
}

static void offset_is_that_of_the_first_one(void **state)
{
	static const char text[] = WITH(OP("") "," OP(",\"args\":null") "," OP(",\"args\":null"));
	struct validation validation;

	assert_int_equal(check(text, strlen(text), &validation), STATUS_OK);
	assert_int_equal(validation.findings[VALIDATE_T8].count, 2);
	assert_int_equal(validation.findings[VALIDATE_T8].first_offset, strlen(HEAD STEP "," OP("") ","));
	assert_string_equal(validation.findings[VALIDATE_T8].detail, "mm");
}

static void numbers_keep_their_nanoseconds(void **state)
{
	/* 16 digits: two events that touch, but overlap when microseconds are kept in a double */
	static const char text[] = WITH(
		"{\"ph\":\"X\",\"cat\":\"a\",\"name\":\"a\",\"pid\":5,\"tid\":1,\"ts\":7888999999999.101,\"dur\":0.001},"
		"{\"ph\":\"X\",\"cat\":\"a\",\"name\":\"b\",\"pid\":5,\"tid\":1,\"ts\":7888999999999.102,\"dur\":5.000}");
	struct validation validation;

	assert_int_equal(check(text, strlen(text), &validation), STATUS_OK);
	assert_int_equal(validation.findings[VALIDATE_P3].count, 0);
}

static void what_is_no_trace_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "hello", "{\"traceEvents\": [{\"ph\": \"X\"", "{\"traceEvents\": [}", "{]", "[1 2]", "\n",
		/* other JSON */
		"{}", "{\"rank\": 1}", "{\"traceEvents\": [1]}", "[[1, 2], [3]]", "[{\"name\": \"a\"}]"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct validation validation;

		assert_int_equal(check(texts[i], strlen(texts[i]), &validation), STATUS_INPUT);
	}
}

static void a_trace_without_events_is_one(void **state)
{
	struct validation validation;

	assert_int_equal(check("[]", 2, &validation), STATUS_OK);
	assert_int_equal(check("{\"traceEvents\": []}", 19, &validation), STATUS_OK);
}

/* ---- Perfetto: packets by hand ---- */

#define CLEARED "\x50\x01\x68\x01"               /* sequence 1, state cleared */
#define NEEDS "\x50\x01\x68\x02"                 /* sequence 1, needs state */
#define TRACK "\xe2\x03\x02\x08\x05"             /* descriptor of track 5 */
#define BEGIN "\x5a\x06\x48\x01\x58\x05\x50\x07" /* begin on track 5, name iid 7 */
#define END "\x5a\x04\x48\x02\x58\x05"
#define NAME "\x62\x07\x12\x05\x08\x07\x12\x01\x61" /* name iid 7: "a" */
#define AT(time) "\x40" time

struct broken_packets {
	enum validate_rule rule;
	const char *packets[6]; /* NULL-terminated; bytes without NUL */
};

static const struct broken_packets packet_files[] = {
	{VALIDATE_W2, {CLEARED, "\x50\x01\x59\x01\x02\x03\x04\x05\x06\x07\x08"}},
	{VALIDATE_W3, {"\x68\x01", "\x68\x02" NAME}},
	{VALIDATE_W4, {CLEARED, TRACK "\x50\x01", NEEDS AT("\x05") BEGIN, NEEDS AT("\x06") END}},
	{VALIDATE_W5, {CLEARED, TRACK "\x50\x01", NEEDS NAME, "\x50\x01" AT("\x05") BEGIN, NEEDS AT("\x06") END}},
	{VALIDATE_W6, {TRACK "\x50\x01", NEEDS NAME, NEEDS AT("\x05") BEGIN, NEEDS AT("\x06") END}},
	{VALIDATE_W7, {CLEARED, NEEDS NAME, NEEDS AT("\x05") BEGIN, NEEDS AT("\x06") END}},
	{VALIDATE_W8, {CLEARED, TRACK "\x50\x01", NEEDS AT("\x06") END}},
	{VALIDATE_W9, {"\xe2\x03\x08\x08\x05\x28\x03\x22\x02\x08\x01"}},
	{VALIDATE_W10, {CLEARED, TRACK "\x50\x01", NEEDS NAME BEGIN, NEEDS AT("\x06") END}},
	{VALIDATE_W11, {CLEARED, TRACK "\x50\x01", NEEDS NAME AT("\x05") BEGIN}},
	{VALIDATE_W12, {"\x32\x06\x0a\x04\x08\x06\x10\x09", "\x32\x06\x0a\x04\x08\x06\x10\x08"}},
	{VALIDATE_W13, {CLEARED, TRACK "\x50\x01", NEEDS NAME AT("\x05") BEGIN, NEEDS AT("\x04") END}},
};

static size_t put_packets(char *to, const char *const *packets)
{
	size_t length = 0;

	for (; *packets; packets++) {
		to[length++] = '\n';
		to[length++] = (char)strlen(*packets);
		memcpy(to + length, *packets, strlen(*packets));
		length += strlen(*packets);
	}
	return length;
}

static void every_rule_about_packets_is_found(void **state)
{
	for (size_t i = 0; i < sizeof(packet_files) / sizeof(packet_files[0]); i++) {
		char bytes[512];
		struct validation validation;
		size_t length = put_packets(bytes, packet_files[i].packets);

		assert_int_equal(check(bytes, length, &validation), STATUS_OK);
		for (int rule = 0; rule < VALIDATE_RULE_COUNT; rule++)
			if ((validation.findings[rule].count > 0) != ((enum validate_rule)rule == packet_files[i].rule))
				fail_msg("file of %s: %s counted %d times", validate_rules[packet_files[i].rule].id,
				         validate_rules[rule].id, (int)validation.findings[rule].count);
	}
}

static void packet_that_is_cut_off_is_unreadable(void **state)
{
	struct validation validation;

	assert_int_equal(check("\n\x05\x50\x01", 4, &validation), STATUS_INPUT);
	assert_int_equal(validation.findings[VALIDATE_W1].count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_is_found_where_it_is_broken),
		cmocka_unit_test(other_errors_are_not_invented),
		cmocka_unit_test(nameless_events_pass_before_both_markers),
		cmocka_unit_test(offset_is_that_of_the_first_one),
		cmocka_unit_test(numbers_keep_their_nanoseconds),
		cmocka_unit_test(what_is_no_trace_is_refused),
		cmocka_unit_test(a_trace_without_events_is_one),
		cmocka_unit_test(every_rule_about_packets_is_found),
		cmocka_unit_test(packet_that_is_cut_off_is_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
