/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: one row per launcher; the first one whose rank variable holds a number gives the rank.
 */
#include "recorder/ranks.h"

#include <stddef.h>
#include <string.h>

enum fact {
	RANK,
	LOCAL_RANK,
	WORLD_SIZE,
	FACTS
};

struct launcher {
	const char *name;
	const char *variable[FACTS]; /* NULL: no such variable */
};

/* In the order of the search. torchrun, accelerate, deepspeed and scripts set RANK for each process. Slurm is last: a
 * shell script of sbatch has SLURM_PROCID=0 and passes it on to all processes that mpirun starts from it. Under srun
 * the other variables, if set, agree with SLURM_PROCID. */
static const struct launcher launchers[] = {
	{"environment", {"RANK", "LOCAL_RANK", "WORLD_SIZE"}},
	{"openmpi", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"}},
	{"mvapich2", {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"}},
	{"pmi", {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"}},
	{"pmix", {"PMIX_RANK", NULL, NULL}},
	{"slurm", {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"}},
};
#define LAUNCHER_COUNT (sizeof(launchers) / sizeof(launchers[0]))

static const char *variable(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	}
	return NULL;
}

/* Reads a number from 0 to INT32_MAX. Returns false for any other text, which counts as not set. */
static bool number(char *const *environment, const char *name, int32_t *value)
{
	const char *text = name ? variable(environment, name) : NULL;
	int64_t sum = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		sum = sum * 10 + (*text - '0');
		if (sum > INT32_MAX)
			return false;
	}
	*value = (int32_t)sum;
	return true;
}

/* Returns the first known value of a fact, or -1. The launcher that gave the rank comes first, then the others, because
 * srun leaves WORLD_SIZE to the user's script. */
static int32_t first_known(char *const *environment, const struct launcher *told, enum fact fact)
{
	int32_t value = -1;

	if (told && number(environment, told->variable[fact], &value))
		return value;
	for (size_t i = 0; i < LAUNCHER_COUNT; i++) {
		if (number(environment, launchers[i].variable[fact], &value))
			return value;
	}
	return -1;
}

static void read_role(struct job_identity *identity, char *const *environment)
{
	const char *role = variable(environment, "ROLE_NAME");
	size_t length = role ? strlen(role) : 0;

	if (length >= sizeof(identity->role))
		length = sizeof(identity->role) - 1;
	if (length)
		memcpy(identity->role, role, length);
	identity->role[length] = '\0';
}

void job_identity_read(struct job_identity *identity, char *const *environment)
{
	const struct launcher *told = NULL;

	*identity = (struct job_identity){.launcher = ""};
	for (size_t i = 0; i < LAUNCHER_COUNT && !told; i++) {
		if (number(environment, launchers[i].variable[RANK], &identity->rank))
			told = &launchers[i];
	}
	identity->local_rank = first_known(environment, told, LOCAL_RANK);
	identity->world_size = first_known(environment, told, WORLD_SIZE);
	identity->has_rank = told != NULL;
	if (told) {
		identity->launcher = told->name;
	} else if (identity->local_rank >= 0) {
		identity->has_rank = true;
		identity->rank = identity->local_rank;
		identity->launcher = "environment";
	}
	if (told == &launchers[0] && variable(environment, "TORCHELASTIC_RUN_ID"))
		identity->launcher = "torchrun";
	if (!number(environment, "TORCHELASTIC_RESTART_COUNT", &identity->restart_count))
		number(environment, "SLURM_RESTART_COUNT", &identity->restart_count);
	read_role(identity, environment);
}

bool ranks_selected(const struct record_options *options, const struct job_identity *identity)
{
	if (options->ranks == RANKS_ALL)
		return true;
	if (options->ranks == RANKS_LOCAL0)
		return identity->local_rank >= 0 ? identity->local_rank == 0 : identity->rank == 0;
	for (int i = 0; i < options->rank_range_count; i++) {
		if (identity->rank >= options->rank_list[i].first && identity->rank <= options->rank_list[i].last)
			return true;
	}
	return false;
}
