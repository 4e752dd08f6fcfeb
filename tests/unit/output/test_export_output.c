/* SPDX-License-Identifier: Apache-2.0
 *
 * Where exports go: compression, names that appear only when all is written, and disks that fill up.
 */
#include "export_check.h"
#include "output/export/compress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

static void compressed_files_hold_the_same_bytes(void **state)
{
	static const char *const names[] = {"a.json.gz", "a.json.zst"};
	struct export_test *test = test_begin(2);
	struct buffer plain;

	test_export(test, "chrome", "a.json");
	buffer_init(&plain, SIZE_MAX);
	buffer_add(&plain, test->text.data, test->text.length);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat info;

		test_export(test, "chrome", names[i]);
		assert_int_equal(test->text.length, plain.length);
		assert_memory_equal(test->text.data, plain.data, plain.length);
		assert_int_equal(stat(test->path, &info), 0);
		assert_int_equal(test->result.bytes_file, info.st_size);
		assert_int_equal(test->result.bytes_raw, plain.length);
		assert_true(test->result.bytes_file < plain.length / 4);
	}
	buffer_release(&plain);
	test_end(test);
}

static void many_blocks_come_out_in_order(void **state)
{
	struct export_test *test = test_begin(0);
	struct output *output;
	struct writer w;
	uint64_t bytes;

	snprintf(test->path, sizeof(test->path), "%s/numbers.gz", test->directory);
	assert_int_equal(output_open(test->path, &output, &test->err), STATUS_OK);
	w = writer_begin(output);
	for (unsigned i = 0; i < 2000000; i++)
		writer_printf(&w, "%u\n", i);
	writer_end(&w);
	assert_int_equal(output_close(output, &bytes, &test->err), STATUS_OK);
	test_read(test);
	for (const char *at = test->text.data, *end; *at; at = end + 1) {
		static unsigned next;

		assert_int_equal(strtoul(at, (char **)&end, 10), next++);
	}
	test_end(test);
}

static void name_appears_only_when_all_is_written(void **state)
{
	struct export_test *test = test_begin(0);
	struct output *output;
	struct writer w;
	uint64_t bytes;

	snprintf(test->path, sizeof(test->path), "%s/a.json", test->directory);
	assert_int_equal(output_open(test->path, &output, &test->err), STATUS_OK);
	w = writer_begin(output);
	writer_text(&w, "hello");
	writer_end(&w);
	assert_int_equal(access(test->path, F_OK), -1);
	assert_int_equal(output_close(output, &bytes, &test->err), STATUS_OK);
	assert_int_equal(access(test->path, F_OK), 0);
	assert_int_equal(test_count_files(test), 1);
	test_end(test);
}

static void aborted_output_leaves_the_old_file(void **state)
{
	struct export_test *test = test_begin(0);
	struct output *output;
	struct writer w;
	FILE *old;

	snprintf(test->path, sizeof(test->path), "%s/a.json", test->directory);
	old = fopen(test->path, "w");
	fputs("old", old);
	fclose(old);
	assert_int_equal(output_open(test->path, &output, &test->err), STATUS_OK);
	w = writer_begin(output);
	writer_text(&w, "new");
	writer_end(&w);
	output_abort(output);
	test_read(test);
	assert_string_equal(test->text.data, "old");
	assert_int_equal(test_count_files(test), 1);
	test_end(test);
}

static void full_disk_is_an_error_and_leaves_no_file(void **state)
{
	struct export_test *test = test_begin(2);
	struct rlimit limit = {10000, RLIM_INFINITY}; /* bytes a file may have: EFBIG instead of ENOSPC */
	struct rlimit old;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	snprintf(test->path, sizeof(test->path), "%s/a.json", test->directory);
	assert_int_equal(
		exporter_find("chrome")->write(&test->model, test->path, &test->options, &test->result, &test->err),
		STATUS_IO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(test->err.text, "cannot write '"));
	assert_non_null(strstr(test->err.hint, "no partial file"));
	assert_int_equal(test_count_files(test), 0);
	test_end(test);
}

static void device_that_is_full_is_an_error(void **state)
{
	struct export_test *test = test_begin(1);

	assert_int_equal(
		exporter_find("perfetto")->write(&test->model, "/dev/full", &test->options, &test->result, &test->err),
		STATUS_IO);
	assert_non_null(strstr(test->err.text, "No space left"));
	test_end(test);
}

static void missing_directory_is_named(void **state)
{
	struct export_test *test = test_begin(1);

	assert_int_equal(exporter_find("chrome")->write(&test->model, "/nonexistent/a.json", &test->options,
	                                                &test->result, &test->err),
	                 STATUS_IO);
	assert_string_equal(test->err.text, "cannot write '/nonexistent/a.json': No such file or directory");
	test_end(test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_files_hold_the_same_bytes),
		cmocka_unit_test(many_blocks_come_out_in_order),
		cmocka_unit_test(name_appears_only_when_all_is_written),
		cmocka_unit_test(aborted_output_leaves_the_old_file),
		cmocka_unit_test(full_disk_is_an_error_and_leaves_no_file),
		cmocka_unit_test(device_that_is_full_is_an_error),
		cmocka_unit_test(missing_directory_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
