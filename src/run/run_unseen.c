/* SPDX-License-Identifier: Apache-2.0
 *
 * run_unseen.c: reads /proc/PID/maps of the program and its descendants: every second at first, later every tenth
 * second. While Python imports PyTorch, PyTorch's library is loaded before ours; our hook shows how long the import
 * lasts. If no flag and no environment explains it, a process counts as unseen after many looks.
 */
#include "run/run_unseen.h"

#include "base/text.h"
#include "run/run_python.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_TICKS 10u
#define CERTAIN_LOOKS 8u /* the process may be about to import PyTorch, or about to end */
#define DEPTH_MAX 8      /* of descendants */

enum run_unseen_contents {
	HAS_NEITHER,
	HAS_TORCH,
	HAS_US,
};

static enum run_unseen_contents look_into(pid_t pid)
{
	enum run_unseen_contents found = HAS_NEITHER;
	char path[64], *line = NULL;
	size_t capacity = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return HAS_NEITHER;
	while (found != HAS_US && getline(&line, &capacity, maps) > 0) {
		if (strstr(line, "/libstepscope.so"))
			found = HAS_US;
		else if (strstr(line, "/libtorch_cpu.so"))
			found = HAS_TORCH;
	}
	free(line);
	fclose(maps);
	return found;
}

/* Returns the flag that keeps stepscope out. Options of Python come before the script; -c, -m, -W and -X end a cluster
 * or take an argument. */
static char flag_of(const char *command, size_t bytes)
{
	const char *end = command + bytes;

	for (const char *word = command + strlen(command) + 1; word < end && word[0] == '-'; word += strlen(word) + 1) {
		for (const char *letter = word + 1; *letter && *letter != '-'; letter++) {
			if (strchr("IES", *letter))
				return *letter;
			if (strchr("cm", *letter))
				return 0;
			if (strchr("WX", *letter)) {
				if (!letter[1])
					word += strlen(word) + 1;
				break;
			}
		}
	}
	return 0;
}

/* Programs and modules, as in python/stepscope/_torch.py. */
static const char *const launchers[] = {"torchrun",
                                        "accelerate",
                                        "accelerate-launch",
                                        "deepspeed",
                                        "torch.distributed.run",
                                        "torch.distributed.launch",
                                        "accelerate.commands.launch",
                                        "accelerate.commands.accelerate_cli",
                                        "deepspeed.launcher.runner",
                                        "deepspeed.launcher.launch"};

/* Also sets *is_launcher: a launcher of ranks loads PyTorch but is not a rank. */
static char read_flag(pid_t pid, bool *is_launcher)
{
	char path[64], command[4096];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	FILE *file = fopen(path, "re");
	size_t bytes = file ? fread(command, 1, sizeof(command) - 2, file) : 0;
	if (file)
		fclose(file);
	command[bytes] = command[bytes + 1] = '\0';
	*is_launcher = bytes == 0;
	for (const char *word = command; word < command + bytes; word += strlen(word) + 1) {
		const char *slash = strrchr(word, '/');
		const char *name = slash ? slash + 1 : word;
		for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
			*is_launcher |= !strcmp(name, launchers[i]);
	}
	return flag_of(command, bytes);
}

/* Returns true if the process has another environment than `stepscope run` made: a script overwrote PYTHONPATH, or
 * `env -i`. */
static bool is_off_path(pid_t pid)
{
	struct run_python python;
	char path[64], *entry = NULL;
	size_t capacity = 0;
	bool is_found = false;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	FILE *file = run_python_find(&python) ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	while (!is_found && getdelim(&entry, &capacity, '\0', file) > 0)
		is_found = !strncmp(entry, "PYTHONPATH=", 11) && strstr(entry, python.startup);
	is_found |= ferror(file) != 0; /* unknown, so not reported */
	free(entry);
	fclose(file);
	return !is_found;
}

/* During the import, python/stepscope/_hook.py keeps its own file open. */
static bool is_importing(pid_t pid)
{
	bool is_found = false;
	char path[64], link[4096];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *descriptors = opendir(path);
	while (descriptors && !is_found && (entry = readdir(descriptors))) {
		ssize_t bytes = readlinkat(dirfd(descriptors), entry->d_name, link, sizeof(link) - 1);

		link[bytes < 0 ? 0 : bytes] = '\0';
		is_found = strstr(link, "stepscope") && text_ends_with(link, "_hook.py");
	}
	if (descriptors)
		closedir(descriptors);
	return is_found;
}

static struct unseen_process *find_process(struct run_unseen *unseen, pid_t pid)
{
	for (int i = 0; i < unseen->count; i++) {
		if (unseen->processes[i].pid == pid)
			return &unseen->processes[i];
	}
	return NULL;
}

static void count_look(struct run_unseen *unseen, pid_t pid)
{
	struct unseen_process *process = find_process(unseen, pid);

	if (!process && unseen->count == RUN_UNSEEN_MAX)
		return;
	if (!process) {
		process = &unseen->processes[unseen->count++];
		*process = (struct unseen_process){.pid = pid};
		process->flag = read_flag(pid, &process->is_excused);
		process->is_off_path = is_off_path(pid);
	}
	process->is_importing = is_importing(pid);
	process->looks += !process->is_importing;
}

void run_unseen_excuse(struct run_unseen *unseen, pid_t pid)
{
	struct unseen_process *process = find_process(unseen, pid);

	if (process)
		process->is_excused = true;
}

static void look_at_children(struct run_unseen *unseen, pid_t pid, int depth)
{
	char path[64];
	int child;

	switch (look_into(pid)) {
	case HAS_TORCH:
		count_look(unseen, pid);
		break;
	case HAS_US:
		run_unseen_excuse(unseen, pid);
		break;
	case HAS_NEITHER:
		break;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *children = depth < DEPTH_MAX ? fopen(path, "re") : NULL;
	while (children && fscanf(children, "%d", &child) == 1)
		look_at_children(unseen, child, depth + 1);
	if (children)
		fclose(children);
}

void run_unseen_tick(struct run_unseen *unseen, pid_t program)
{
	unsigned tick = unseen->ticks++;

	if (program > 0 && (tick < FIRST_TICKS || tick % 10 == 0))
		look_at_children(unseen, program, 0);
}

static enum unseen_reason unseen_reason_of(const struct unseen_process *process)
{
	if (process->is_excused)
		return UNSEEN_NONE;
	if (process->is_importing)
		return UNSEEN_IMPORTING;
	if (process->flag)
		return UNSEEN_FLAG;
	if (process->is_off_path)
		return UNSEEN_OFF_PATH;
	return process->looks >= CERTAIN_LOOKS ? UNSEEN_NO_PACKAGE : UNSEEN_NONE;
}

struct unseen_found run_unseen_find(const struct run_unseen *unseen)
{
	for (int i = 0; i < unseen->count; i++) {
		const struct unseen_process *process = &unseen->processes[i];
		enum unseen_reason reason = unseen_reason_of(process);

		if (reason)
			return (struct unseen_found){reason, process->pid, process->flag};
	}
	return (struct unseen_found){UNSEEN_NONE, 0, 0};
}
