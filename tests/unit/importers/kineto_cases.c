/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads traces from texts and compares their spans and their ledgers with the expected ones.
 */
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

void describe(const struct model *model, struct buffer *out)
{
	buffer_init(out, 1 << 20);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		model_visit_spans(model, i, describe_span, out);
	buffer_add_text(out, "");
}

void check_ledger(const struct test_case *test, const struct model *model)
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

void check_case(const struct test_case *test, const void *bytes, size_t length)
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

void check_cases(const struct test_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_case(&cases[i], cases[i].text, cases[i].length ? cases[i].length : strlen(cases[i].text));
}
