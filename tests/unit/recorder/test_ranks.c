/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranks.c: who a process is under each launcher, and whether it is selected.
 */
#include "recorder/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define IDENTITY(...) identity_of((const char *[]){__VA_ARGS__, NULL})

static struct job_identity identity_of(const char **environment)
{
	struct job_identity identity;

	job_identity_read(&identity, (char *const *)environment);
	return identity;
}

static void check(struct job_identity got, const char *launcher, int rank, int local_rank, int world_size)
{
	assert_true(got.has_rank);
	assert_string_equal(got.launcher, launcher);
	assert_int_equal(got.rank, rank);
	assert_int_equal(got.local_rank, local_rank);
	assert_int_equal(got.world_size, world_size);
}

static void each_launcher_is_understood(void **state)
{
	check(IDENTITY("RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16", "TORCHELASTIC_RUN_ID=x"), "torchrun", 9, 1, 16);
	check(IDENTITY("RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16"), "environment", 9, 1, 16);
	check(IDENTITY("SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_NTASKS=8"), "slurm", 5, 1, 8);
	check(IDENTITY("OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_LOCAL_RANK=3", "OMPI_COMM_WORLD_SIZE=4"), "openmpi",
	      3, 3, 4);
	check(IDENTITY("MV2_COMM_WORLD_RANK=3", "MV2_COMM_WORLD_LOCAL_RANK=1", "MV2_COMM_WORLD_SIZE=4"), "mvapich2", 3,
	      1, 4);
	check(IDENTITY("PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALRANKID=0"), "pmi", 2, 0, 4);
	check(IDENTITY("PMIX_RANK=2"), "pmix", 2, -1, -1);
	check(IDENTITY("LOCAL_RANK=2"), "environment", 2, 2, -1);
}

static void the_innermost_launcher_wins(void **state)
{
	/* torchrun in a job of Slurm: one task per machine */
	check(IDENTITY("SLURM_PROCID=1", "SLURM_LOCALID=0", "SLURM_NTASKS=2", "RANK=11", "LOCAL_RANK=3",
	               "WORLD_SIZE=16", "TORCHELASTIC_RUN_ID=7"),
	      "torchrun", 11, 3, 16);
	/* mpirun in a script of sbatch: the script's SLURM_PROCID is 0 for all */
	check(IDENTITY("SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_LOCALID=0", "OMPI_COMM_WORLD_RANK=6",
	               "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_SIZE=8"),
	      "openmpi", 6, 2, 8);
	/* srun with PMI: both say the same, Slurm knows the rest */
	check(IDENTITY("SLURM_PROCID=6", "SLURM_NTASKS=8", "SLURM_LOCALID=2", "PMIX_RANK=6"), "pmix", 6, 2, 8);
}

static void what_is_no_number_counts_as_not_set(void **state)
{
	check(IDENTITY("RANK=", "SLURM_PROCID=4"), "slurm", 4, -1, -1);
	check(IDENTITY("RANK=one", "SLURM_PROCID=4"), "slurm", 4, -1, -1);
	check(IDENTITY("RANK=-1", "SLURM_PROCID=4"), "slurm", 4, -1, -1);
	check(IDENTITY("RANK=2147483648", "SLURM_PROCID=2147483647"), "slurm", INT32_MAX, -1, -1);
	check(IDENTITY("RANKED=3", "RANK", "SLURM_PROCID=4"), "slurm", 4, -1, -1);
	assert_false(IDENTITY("RANK=99999999999999999999999").has_rank);
}

static void without_a_launcher_there_is_no_rank(void **state)
{
	struct job_identity identity;

	job_identity_read(&identity, NULL);
	assert_false(identity.has_rank);
	assert_int_equal(identity.rank, 0);
	assert_int_equal(identity.local_rank, -1);
	assert_int_equal(identity.world_size, -1);
	assert_int_equal(identity.restart_count, 0);
	assert_string_equal(identity.launcher, "");
	assert_string_equal(identity.role, "");
}

static void restarts_and_role_are_read(void **state)
{
	assert_int_equal(IDENTITY("RANK=0", "TORCHELASTIC_RESTART_COUNT=2", "SLURM_RESTART_COUNT=1").restart_count, 2);
	assert_int_equal(IDENTITY("SLURM_RESTART_COUNT=1").restart_count, 1);
	assert_string_equal(IDENTITY("ROLE_NAME=trainer").role, "trainer");
	assert_int_equal(strlen(IDENTITY("ROLE_NAME=a-name-that-is-longer-than-there-is-room-for-it").role), 31);
}

static bool is_selected(const char *ranks, struct job_identity identity)
{
	struct record_settings settings = {0};
	struct record_options options;
	char problem[256];

	assert_true(record_settings_set(&settings, "ranks", ranks, NULL, false, problem, sizeof(problem)));
	assert_true(record_options_resolve(&options, &settings, problem, sizeof(problem)));
	return ranks_selected(&options, &identity);
}

static void ranks_are_selected(void **state)
{
	struct job_identity tenth = IDENTITY("RANK=10", "LOCAL_RANK=2", "WORLD_SIZE=16");
	struct job_identity eighth = IDENTITY("RANK=8", "LOCAL_RANK=0", "WORLD_SIZE=16");
	struct job_identity alone = IDENTITY("HOME=/");

	assert_true(is_selected("", tenth) && is_selected("all", tenth) && is_selected("all", alone));
	assert_false(is_selected("0", tenth));
	assert_true(is_selected("0", alone));
	assert_false(is_selected("1-", alone));
	assert_true(is_selected("0,8-15", tenth) && is_selected("10", tenth) && is_selected("9-", tenth));
	assert_false(is_selected("0-9,11-", tenth));
	assert_true(is_selected("local0", eighth) && is_selected("local0", alone));
	assert_false(is_selected("local0", tenth));
	assert_true(is_selected("local0", IDENTITY("PMIX_RANK=0")));
	assert_false(is_selected("local0", IDENTITY("PMIX_RANK=1")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launcher_is_understood),
		cmocka_unit_test(the_innermost_launcher_wins),
		cmocka_unit_test(what_is_no_number_counts_as_not_set),
		cmocka_unit_test(without_a_launcher_there_is_no_rank),
		cmocka_unit_test(restarts_and_role_are_read),
		cmocka_unit_test(ranks_are_selected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
