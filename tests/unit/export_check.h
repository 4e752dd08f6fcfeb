/* SPDX-License-Identifier: Apache-2.0
 *
 * export_check.h: helpers of the exporters' tests: a model, a temporary directory, the text of what was written.
 */
#ifndef TESTS_EXPORT_CHECK_H
#define TESTS_EXPORT_CHECK_H

#include "base/buffer.h"
#include "base/input_stream.h"
#include "export_sample.h"
#include "output/export/exporter.h"
#include "output/validate/validate.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct export_test {
	struct model model;
	char directory[64];
	char path[128];
	struct export_options options;
	struct export_result result;
	struct error err;
	struct validation validation;
	struct buffer text; /* of the file, decompressed */
};

static inline struct export_test *test_begin(unsigned ranks)
{
	struct export_test *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	model_init(&test->model, 0);
	sample_fill(&test->model, ranks);
	snprintf(test->directory, sizeof(test->directory), "/tmp/test_export_XXXXXX");
	assert_non_null(mkdtemp(test->directory));
	buffer_init(&test->text, (size_t)1 << 30);
	return test;
}

static inline void test_read(struct export_test *test)
{
	struct input_stream *input;
	char bytes[4096];
	size_t length;

	buffer_clear(&test->text);
	assert_int_equal(input_open(test->path, &input, &test->err), STATUS_OK);
	do {
		assert_int_equal(input_read(input, bytes, sizeof(bytes), &length, &test->err), STATUS_OK);
		buffer_add(&test->text, bytes, length);
	} while (length);
	input_close(input);
}

/* Writes the model as `format` into a file `name`, which must succeed, and reads it back. */
static inline void test_export(struct export_test *test, const char *format, const char *name)
{
	snprintf(test->path, sizeof(test->path), "%s/%s", test->directory, name);
	assert_int_equal(
		exporter_find(format)->write(&test->model, test->path, &test->options, &test->result, &test->err),
		STATUS_OK);
	test_read(test);
}

/* The file breaks no rule that is an error. */
static inline void test_validate(struct export_test *test)
{
	assert_int_equal(validate_file(test->path, &test->validation, &test->err), STATUS_OK);
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		if (test->validation.findings[i].count && validate_rules[i].is_error)
			fail_msg("%s is broken: %s", validate_rules[i].id, validate_rules[i].text);
}

static inline unsigned test_count_files(const struct export_test *test)
{
	DIR *directory = opendir(test->directory);
	struct dirent *entry;
	unsigned count = 0;

	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static inline unsigned count_text(const char *text, const char *word)
{
	unsigned count = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		count++;
	return count;
}

static inline void test_end(struct export_test *test)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", test->directory);
	assert_int_equal(system(command), 0);
	buffer_release(&test->text);
	model_release(&test->model);
	free(test);
}

#endif
