/* SPDX-License-Identifier: Apache-2.0
 *
 * test_launch_config.c: what is known of a launch survives its text, what is not known stays so, and no text does harm.
 */
#include "model/launch_config.h"
#include "model/model.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void facts_survive_their_text(void **state)
{
	struct launch_config config = {0}, again;
	char text[LAUNCH_CONFIG_BYTES];

	launch_config_set(&config, LAUNCH_GRID_X, 7);
	launch_config_set(&config, LAUNCH_GRID_Y, 1);
	launch_config_set(&config, LAUNCH_GRID_Z, 1);
	launch_config_set(&config, LAUNCH_REGISTERS, 0);
	launch_config_set(&config, LAUNCH_BLOCKS_PER_SM, 0.05);
	launch_config_set(&config, LAUNCH_BYTES, 19267584);
	launch_config_set_text(&config, LAUNCH_COLLECTIVE, "allreduce");
	size_t length = launch_config_write(&config, text);
	assert_int_equal(length, strlen(text));
	assert_string_equal(text, "grid=7,1,1;registers=0;blocks_per_sm=0.05;bytes=19267584;collective=allreduce");
	assert_true(launch_config_read(&again, text));
	assert_true(launch_config_has(&again, LAUNCH_REGISTERS));
	assert_false(launch_config_has(&again, LAUNCH_BLOCK_X));
	assert_true(again.numbers[LAUNCH_BLOCKS_PER_SM] == 0.05);
	assert_string_equal(launch_config_text(&again, LAUNCH_COLLECTIVE), "allreduce");
	assert_null(launch_config_text(&again, LAUNCH_DTYPE));
}

static void numbers_are_as_short_as_they_can_be(void **state)
{
	static const char *const texts[] = {"0",       "123456",     "1.5",     "0.0462963",
	                                    "1234567", "12345678.5", "4.2e+09", "0.30000000000000004"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct launch_config config = {0};
		char text[LAUNCH_CONFIG_BYTES];

		launch_config_set(&config, LAUNCH_BYTES_PER_SECOND, strtod(texts[i], NULL));
		launch_config_write(&config, text);
		assert_string_equal(text + strlen("bytes_per_s="), texts[i]);
	}
}

static void what_is_no_number_is_not_known(void **state)
{
	struct launch_config config = {0};
	char text[LAUNCH_CONFIG_BYTES];

	launch_config_set(&config, LAUNCH_BYTES_PER_SECOND, INFINITY);
	launch_config_set(&config, LAUNCH_OCCUPANCY, NAN);
	launch_config_set(&config, LAUNCH_BYTES, -1);
	launch_config_set(&config, LAUNCH_BLOCK_X, 3); /* alone it is no block */
	launch_config_set_text(&config, LAUNCH_DTYPE, "");
	assert_int_equal(launch_config_write(&config, text), 0);
	assert_string_equal(text, "");
}

static void the_longest_text_has_room(void **state)
{
	struct launch_config config = {0}, again;
	char text[LAUNCH_CONFIG_BYTES], value[300];

	memset(value, ';', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	for (int fact = 0; fact < LAUNCH_NUMBERS; fact++)
		launch_config_set(&config, (enum launch_fact)fact, DBL_MAX / 3);
	for (int fact = 0; fact < LAUNCH_TEXTS; fact++)
		launch_config_set_text(&config, (enum launch_text)fact, value);
	assert_true(launch_config_write(&config, text) < sizeof(text) - 1);
	assert_true(launch_config_read(&again, text));
	assert_int_equal(again.has_numbers, config.has_numbers);
	assert_int_equal(again.has_texts, config.has_texts);
}

static void an_occupancy_of_nothing_is_believed_of_small_launches_only(void **state)
{
	struct launch_config config;
	double ratio;

	assert_true(launch_config_read(&config, "warps_per_sm=7;occupancy=0.25"));
	assert_true(launch_config_occupancy(&config, &ratio));
	assert_true(ratio == 0.25);
	assert_true(launch_config_read(&config, "warps_per_sm=0.0125;occupancy=0"));
	assert_true(launch_config_occupancy(&config, &ratio));
	assert_true(launch_config_read(&config, "warps_per_sm=7;occupancy=0"));
	assert_false(launch_config_occupancy(&config, &ratio));
	assert_true(launch_config_read(&config, "occupancy=0"));
	assert_false(launch_config_occupancy(&config, &ratio));
	assert_true(launch_config_read(&config, "warps_per_sm=70;occupancy=1"));
	assert_true(launch_config_occupancy(&config, &ratio));
	assert_true(launch_config_read(&config, "warps_per_sm=70;occupancy=1.5"));
	assert_false(launch_config_occupancy(&config, &ratio));
	assert_true(launch_config_read(&config, "warps_per_sm=7"));
	assert_false(launch_config_occupancy(&config, &ratio));
}

static void other_texts_do_no_harm(void **state)
{
	static const char *const texts[] = {"",          "[2, 3]",   "grid=",       "grid=1,2",   "grid=1,2,x",
	                                    "bytes=inf", "bytes=-2", "registers=;", "=;=;;;=5;;", "who=1"};
	struct launch_config config;
	char longest[5000];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(launch_config_read(&config, texts[i]));
	memset(longest, '9', sizeof(longest));
	memcpy(longest, "bytes=", 6);
	longest[sizeof(longest) - 1] = '\0';
	assert_true(launch_config_read(&config, longest));
	assert_true(isfinite(config.numbers[LAUNCH_BYTES]));
	assert_true(launch_config_read(&config, "what=5;bytes=7;more"));
	assert_true(config.numbers[LAUNCH_BYTES] == 7);
}

static void a_text_that_was_read_is_found_again_also_behind_many_others(void **state)
{
	struct launch_configs configs = {0};
	struct model model;
	char text[32];
	uint32_t first, other, bad;

	model_init(&model, 0);
	first = intern_add(&model.strings, "bytes=1");
	bad = intern_add(&model.strings, "no facts");
	assert_null(launch_config_of(&configs, &model, 0));
	assert_true(launch_config_of(&configs, &model, first)->numbers[LAUNCH_BYTES] == 1);
	for (int i = 2; i < 5000; i++) { /* many more than there is room for */
		snprintf(text, sizeof(text), "bytes=%d", i);
		other = intern_add(&model.strings, text);
		assert_true(launch_config_of(&configs, &model, other)->numbers[LAUNCH_BYTES] == i);
	}
	assert_true(launch_config_of(&configs, &model, first)->numbers[LAUNCH_BYTES] == 1);
	assert_null(launch_config_of(&configs, &model, bad));
	launch_configs_release(&configs);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_survive_their_text),
		cmocka_unit_test(numbers_are_as_short_as_they_can_be),
		cmocka_unit_test(what_is_no_number_is_not_known),
		cmocka_unit_test(the_longest_text_has_room),
		cmocka_unit_test(an_occupancy_of_nothing_is_believed_of_small_launches_only),
		cmocka_unit_test(other_texts_do_no_harm),
		cmocka_unit_test(a_text_that_was_read_is_found_again_also_behind_many_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
