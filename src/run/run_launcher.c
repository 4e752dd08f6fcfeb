/* SPDX-License-Identifier: Apache-2.0
 *
 * run_launcher.c: the variables of the launchers. A job of one process needs no common name: two runs in one
 * interactive allocation must not share a directory.
 */
#include "run/run_launcher.h"

#include "run/run_process.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

static const char *first_variable(const char *const *names)
{
	for (; *names; names++) {
		if (variable(*names))
			return variable(*names);
	}
	return NULL;
}

static bool is_above_one(const char *text)
{
	return text && strtol(text, NULL, 10) > 1;
}

/* Sets "kind-text", and replaces all characters that do not belong in a file name. */
static bool set_job(struct run_launcher *launcher, const char *kind, const char *text)
{
	snprintf(launcher->job, sizeof(launcher->job), "%s-%s", kind, text);
	for (char *c = launcher->job; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			*c = '-';
	}
	return true;
}

/* If all ranks are children of one launcher process on this machine, that process identifies the job. */
static bool set_parent_job(struct run_launcher *launcher, const char *kind)
{
	char host[65] = "", text[120];
	struct process_facts parent;
	struct process_view view;

	process_view_init(&view);
	if (!process_read(&parent, process_in_proc(&view, getppid())))
		return false;
	gethostname(host, sizeof(host) - 1);
	snprintf(text, sizeof(text), "%s-%d-%" PRIu64, host, (int)parent.pid, parent.start_time);
	return set_job(launcher, kind, text);
}

static bool find_slurm(struct run_launcher *launcher)
{
	const char *job = first_variable((const char *const[]){"SLURM_JOB_ID", "SLURM_JOBID", NULL});
	const char *step = first_variable((const char *const[]){"SLURM_STEP_ID", "SLURM_STEPID", NULL});
	const char *tasks = first_variable((const char *const[]){"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL});
	const char *restart = variable("SLURM_RESTART_COUNT");
	char text[120];

	if (!job || !step || !variable("SLURM_PROCID") || !is_above_one(tasks))
		return false;
	snprintf(text, sizeof(text), "%s.%s%s%s", job, step, restart ? ".r" : "", restart ? restart : "");
	return set_job(launcher, "slurm", text);
}

static bool find_mpi(struct run_launcher *launcher)
{
	const char *name_space = variable("PMIX_NAMESPACE");
	const char *job = variable("OMPI_MCA_ess_base_jobid");
	const char *size = first_variable(
		(const char *const[]){"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", NULL});
	const char *local = first_variable((const char *const[]){"MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", NULL});

	if (size && !is_above_one(size))
		return false;
	if (name_space && variable("PMIX_RANK"))
		return set_job(launcher, "pmix", name_space);
	if (job && size)
		return set_job(launcher, "ompi", job);
	return size && local && !strcmp(size, local) && set_parent_job(launcher, "mpi");
}

static bool find_torchrun(struct run_launcher *launcher)
{
	const char *id = variable("TORCHELASTIC_RUN_ID");
	const char *world = variable("WORLD_SIZE");
	const char *local = variable("LOCAL_WORLD_SIZE");

	if (!id || !is_above_one(world))
		return false;
	/* torchrun sets "none" if the user gave no id */
	if (strcmp(id, "none") != 0)
		return set_job(launcher, "torchrun", id);
	return local && !strcmp(world, local) && set_parent_job(launcher, "torchrun");
}

bool run_launcher_find(struct run_launcher *launcher)
{
	launcher->job[0] = '\0';
	return find_slurm(launcher) || find_mpi(launcher) || find_torchrun(launcher);
}

bool run_launcher_is_variable(const char *name)
{
	static const char *const prefixes[] = {
		"SLURM_",
		"PMI_",
		"PMIX_",
		"OMPI_COMM_WORLD_",
		"OMPI_MCA_ess_",
		"MV2_COMM_WORLD_",
		"MPI_LOCAL",
		"TORCHELASTIC_",
		"NCCL_",
		"TORCH_NCCL_",
		"KINETO_",
		"PT_PROFILER_JOB_",
		"OMP_",
		"OPENBLAS_",
		"MKL_",
		"GOMP_",
		"KMP_",
		"CUDA_",
		"NVIDIA_VISIBLE_DEVICES",
		"PYTORCH_",
		"STEPSCOPE",
		NULL,
	};
	static const char *const names[] = {
		"RANK",
		"LOCAL_RANK",
		"WORLD_SIZE",
		"LOCAL_WORLD_SIZE",
		"GROUP_RANK",
		"GROUP_WORLD_SIZE",
		"ROLE_RANK",
		"ROLE_NAME",
		"ROLE_WORLD_SIZE",
		"MASTER_ADDR",
		"MASTER_PORT",
		"NODE_RANK",
		"TEARDOWN_CUPTI",
		"DISABLE_CUPTI_LAZY_REINIT",
		"LD_PRELOAD",
		"LD_LIBRARY_PATH",
		"MALLOC_ARENA_MAX",
		"CONDA_DEFAULT_ENV",
		"VIRTUAL_ENV",
		"HOSTNAME",
		NULL,
	};

	for (int i = 0; prefixes[i]; i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	for (int i = 0; names[i]; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}
