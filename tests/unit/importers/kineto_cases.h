/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_cases.h: traces as texts, each with the spans that the reader of Kineto's traces must find in it and the words of its ledger.
 *
 *     static const struct test_case cases[] = {
 *         {"J09 a comma at the end", "[" A "," B ",\n]", A_AND_B, "1 commas", 0},
 *     };
 *     CHECK_CASES(cases);
 *
 * Include it after cmocka.h.
 */
#ifndef UNIT_KINETO_CASES_H
#define UNIT_KINETO_CASES_H

#include "base/buffer.h"
#include "import_bytes.h"

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
	const char *ledger; /* a part of its lines "count sentence"; NULL: it must be empty */
	size_t length;      /* 0: up to the NUL of the text */
};

/* Writes a line for each span of the model into the buffer, which it initialises. */
void describe(const struct model *model, struct buffer *out);

/* Fails unless the ledger has the words of the case. */
void check_ledger(const struct test_case *test, const struct model *model);

/* Loads these bytes instead of the text of the case, and compares spans and ledger. */
void check_case(const struct test_case *test, const void *bytes, size_t length);

/* Checks the text of each case. */
void check_cases(const struct test_case *cases, size_t count);
#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof *(cases))

#endif
