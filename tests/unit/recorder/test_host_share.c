/* SPDX-License-Identifier: Apache-2.0
 *
 * test_host_share.c: what processes of one run directory agree by. Two of them are one process here, with two mappings.
 */
#include "recorder/host_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_host_share.XXXXXX";

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	host_share_remove(directory);
	return rmdir(directory);
}

static void the_largest_wish_for_a_stretch_counts(void **state)
{
	struct host_share a = {0}, b = {0};

	(void)state;
	host_share_open(&a, directory);
	host_share_open(&b, directory);
	if (!a.words || !b.words)
		skip(); /* no /dev/shm */
	assert_int_equal(host_share_get(&a, 0), -1);
	for (int64_t stretch = -20; stretch < 20; stretch++) {
		assert_int_equal(host_share_get(&b, stretch), -1);
		host_share_put(&a, stretch, 3);
		assert_int_equal(host_share_get(&b, stretch), 3);
		host_share_put(&b, stretch, 0);
		assert_int_equal(host_share_get(&a, stretch), 3);
		host_share_put(&b, stretch, 5);
		assert_int_equal(host_share_get(&a, stretch), 5);
		assert_int_equal(host_share_get(&a, stretch + 8), -1);
	}
	/* a program whose numbers begin anew */
	host_share_put(&a, -20, 1);
	assert_int_equal(host_share_get(&b, -20), 1);
	host_share_close(&a, directory);
	assert_int_equal(host_share_get(&b, -20), 1);
	host_share_forget(&b);
	assert_null(b.words);
}

static void the_file_goes_with_the_first_that_ends(void **state)
{
	struct host_share share = {0};
	struct stat info;
	char path[128];

	(void)state;
	host_share_open(&share, directory);
	if (!share.words)
		skip();
	assert_int_equal(stat(directory, &info), 0);
	snprintf(path, sizeof(path), "/dev/shm/stepscope.%u.share.%llx.%llx", (unsigned)getuid(),
	         (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
	assert_int_equal(access(path, F_OK), 0);
	host_share_close(&share, directory);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void without_a_mapping_nobody_says_anything(void **state)
{
	struct host_share share = {0};

	(void)state;
	host_share_open(&share, "/nowhere/at/all");
	assert_null(share.words);
	host_share_put(&share, 1, 3);
	assert_int_equal(host_share_get(&share, 1), -1);
	host_share_close(&share, "/nowhere/at/all");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_wish_for_a_stretch_counts),
		cmocka_unit_test(the_file_goes_with_the_first_that_ends),
		cmocka_unit_test(without_a_mapping_nobody_says_anything),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
