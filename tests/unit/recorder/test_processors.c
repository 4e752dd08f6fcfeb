/* SPDX-License-Identifier: Apache-2.0
 *
 * test_processors.c: the quota of control groups of both versions, at each level, and the processors of the mask.
 */
#include "recorder/processors.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static void write_text(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool find(const char *groups, double *quota)
{
	char path[128];

	write_text("groups", groups);
	snprintf(path, sizeof(path), "%s/groups", root);
	return processors_find_quota(path, root, quota);
}

static void the_tightest_level_counts(void **state)
{
	double quota;

	write_text("a/b/cpu.max", "400000 100000\n");
	write_text("a/cpu.max", "150000 100000\n");
	write_text("free/cpu.max", "max 100000\n");
	assert_true(find("0::/a/b\n", &quota) && quota == 1.5);
	assert_true(find("0::/a/b/c", &quota) && quota == 1.5); /* the innermost level has no such file */
	assert_true(find("0::/free\n", &quota) && quota == 0);
	assert_false(find("0::/other\n", &quota));
	assert_false(find("", &quota));
	write_text("cpu.max", "50000 100000\n");
	assert_true(find("0::/other\n", &quota) && quota == 0.5); /* the root, as in a container */
	(void)state;
}

static void version_1_has_two_files(void **state)
{
	double quota;

	write_text("cpu/a/cpu.cfs_quota_us", "250000\n");
	write_text("cpu/a/cpu.cfs_period_us", "100000\n");
	write_text("cpu/free/cpu.cfs_quota_us", "-1\n");
	write_text("cpu/free/cpu.cfs_period_us", "100000\n");
	assert_true(find("9:name=systemd:/\n4:cpu,cpuacct:/a\n2:memory:/x\n", &quota) && quota == 2.5);
	assert_true(find("1:cpu:/free\n", &quota) && quota == 0);
	assert_false(find("2:cpuacct:/a\n3:cpuset:/a\n", &quota));
	(void)state;
}

static void the_mask_is_that_of_the_thread(void **state)
{
	cpu_set_t set, one;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(processors_allowed(), CPU_COUNT(&set));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) == 0)
		assert_int_equal(processors_allowed(), 1);
	(void)sched_setaffinity(0, sizeof(set), &set);
	(void)state;
}

static int make_root(void **state)
{
	snprintf(root, sizeof(root), "/tmp/test_processors.XXXXXX");
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	(void)state;
	return system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_tightest_level_counts, make_root, remove_root),
		cmocka_unit_test_setup_teardown(version_1_has_two_files, make_root, remove_root),
		cmocka_unit_test(the_mask_is_that_of_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
