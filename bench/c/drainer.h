/* SPDX-License-Identifier: Apache-2.0
 *
 * drainer.h: the CPU time of the recorder's own thread, as counted by the scheduler.
 */
#ifndef BENCH_DRAINER_H
#define BENCH_DRAINER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the CPU ns of the thread "stepscope" in this process, or -1 without one. */
static inline int64_t drainer_cpu_ns(void)
{
	int64_t ns = -1;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		char path[64], text[64] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
		FILE *file = fopen(path, "r");
		bool is_ours = file && fgets(text, sizeof(text), file) && strcmp(text, "stepscope\n") == 0;
		if (file)
			fclose(file);
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", entry->d_name);
		file = is_ours ? fopen(path, "r") : NULL;
		if (file && fgets(text, sizeof(text), file))
			ns = strtoll(text, NULL, 10);
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return ns;
}

#endif
