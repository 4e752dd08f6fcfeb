/* SPDX-License-Identifier: Apache-2.0
 *
 * test_own_facts.c: what a process says of itself, and whose it is.
 */
#include "format/own_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PID 4242

static void add(struct own_facts *facts, const char *key, const char *value)
{
	char text[200];
	int length = snprintf(text, sizeof(text), "%s%c%s", key, '\0', value);

	own_facts_add(facts, PID, text, (uint32_t)length);
}

static void facts_of_the_process_itself_count(void **state)
{
	struct own_facts facts = {0};

	add(&facts, "trains", "process 4242");
	add(&facts, "rank", "1 of 2, process 4242");
	add(&facts, "captured", "detail, process 4242");
	assert_true(facts.trains);
	assert_true(facts.has_rank);
	assert_int_equal(facts.rank, 1);
	assert_int_equal(facts.world_size, 2);
	assert_int_equal(facts.captured, CAPTURED_DETAIL);
}

static void facts_of_its_parent_do_not(void **state)
{
	struct own_facts facts = {0};

	add(&facts, "trains", "process 4241");
	add(&facts, "rank", "1 of 2, process 4241");
	add(&facts, "captured", "steps, process 4241");
	assert_false(facts.trains);
	assert_false(facts.has_rank);
	assert_int_equal(facts.captured, CAPTURED_UNKNOWN);
}

static void what_is_not_one_of_its_words_is_not_known(void **state)
{
	static const char *const values[] = {"",
	                                     "process 4242",
	                                     "step, process 4242",
	                                     "steps,process 42424242",
	                                     "steps",
	                                     "stepsstepssteps, process 4242",
	                                     "Steps, process 4242"};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct own_facts facts = {0};

		add(&facts, "captured", values[i]);
		assert_int_equal(facts.captured, CAPTURED_UNKNOWN);
	}
}

static void the_newest_word_holds(void **state)
{
	struct own_facts facts = {0};

	add(&facts, "captured", "nothing, process 4242");
	add(&facts, "captured", "steps, process 4242");
	assert_int_equal(facts.captured, CAPTURED_STEPS);
}

static void older_facts_fill_gaps_only(void **state)
{
	struct own_facts newer = {0}, older = {0}, none = {0};

	add(&newer, "captured", "nothing, process 4242");
	add(&older, "captured", "steps, process 4242");
	add(&older, "rank", "1 of 2, process 4242");
	add(&older, "trains", "process 4242");
	own_facts_join(&newer, &older);
	assert_int_equal(newer.captured, CAPTURED_NOTHING);
	assert_true(newer.trains);
	assert_int_equal(newer.rank, 1);
	add(&none, "rank", "5 of 8, process 4242");
	own_facts_join(&none, &newer);
	assert_int_equal(none.rank, 5);
	assert_int_equal(none.world_size, 8);
	assert_int_equal(none.captured, CAPTURED_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_of_the_process_itself_count),
		cmocka_unit_test(facts_of_its_parent_do_not),
		cmocka_unit_test(what_is_not_one_of_its_words_is_not_known),
		cmocka_unit_test(the_newest_word_holds),
		cmocka_unit_test(older_facts_fill_gaps_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
