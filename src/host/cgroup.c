/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.c: limits and usage of our control group. Limits apply at every level above us. This file follows the level
 * with the tightest limit and reports the usage at that level, because that level fills up first.
 */
#include "host/cgroup_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT (UINT64_C(1) << 60) /* version 1 uses a number near 2^63 for no limit */

struct memory_group {
	struct cgroup_path path; /* the level that is followed */
	struct host_file limit_file, usage_file, stat_file, event_file;
	uint32_t used, working_set, limit, oom_kills;
};

struct cpu_group {
	struct cgroup_path path;
	struct cgroup_path usage_path; /* version 1 counts usage in a separate tree */
	struct host_file limit_file, period_file, stat_file, usage_file;
	uint32_t used, limit, throttled, throttled_periods;
	struct host_rate used_rate, throttled_rate, period_rate, throttled_period_rate;
};

struct cgroup {
	struct memory_group memory;
	struct cpu_group cpu;
};

static const char *cgroup_read_file(struct host *host, struct host_file *file, const struct cgroup_path *path,
                                    const char *name)
{
	char full[CGROUP_PATH_BYTES + 64];

	snprintf(full, sizeof(full), "%s/%s", path->directory, name);
	return host_file_read(host, file, full);
}

/* Reads a file that holds one number, or "max". */
static bool cgroup_read_number(struct host *host, struct host_file *file, const struct cgroup_path *path,
                               const char *name, uint64_t *number)
{
	const char *text = cgroup_read_file(host, file, path, name);
	char *end;

	if (!text)
		return false;
	*number = strtoull(text, &end, 10);
	return end != text;
}

/* ---- memory ---- */

static const char *memory_limit_name(int version)
{
	return version == 2 ? "memory.max" : "memory.limit_in_bytes";
}

/* Moves to the level with the lowest limit; stays at our own group if there is no limit. */
static void follow_memory(struct host *host, struct cgroup_path *path)
{
	struct cgroup_path level = *path;
	uint64_t lowest = NO_LIMIT, limit;

	do {
		struct host_file file = {0};

		if (cgroup_read_number(host, &file, &level, memory_limit_name(level.version), &limit) &&
		    limit < lowest) {
			lowest = limit;
			*path = level;
		}
		host_file_close(&file);
	} while (cgroup_path_up(&level));
}

static void open_memory(struct host *host, struct memory_group *group)
{
	if (!cgroup_path_find(&group->path, host, "memory"))
		return;
	follow_memory(host, &group->path);
	group->used = host_counter(host, "cgroup.memory_used_bytes");
	group->working_set = host_counter(host, "cgroup.memory_working_set_bytes");
	group->limit = host_counter(host, "cgroup.memory_limit_bytes");
	group->oom_kills = host_counter(host, "cgroup.memory_oom_kills");
}

static void sample_memory(struct host *host, struct memory_group *group)
{
	bool is_v2 = group->path.version == 2;
	uint64_t number, used, inactive;
	const char *text;

	if (!group->path.version)
		return;
	if (cgroup_read_number(host, &group->limit_file, &group->path, memory_limit_name(group->path.version),
	                       &number) &&
	    number < NO_LIMIT)
		host_value(host, group->limit, (double)number);
	if (cgroup_read_number(host, &group->usage_file, &group->path,
	                       is_v2 ? "memory.current" : "memory.usage_in_bytes", &used)) {
		host_value(host, group->used, (double)used);
		text = cgroup_read_file(host, &group->stat_file, &group->path, "memory.stat");
		/* used memory without files that the kernel can drop at once: the rest counts against the limit */
		if (text && host_find_number(text, is_v2 ? "inactive_file " : "total_inactive_file ", &inactive))
			host_value(host, group->working_set, used > inactive ? (double)(used - inactive) : 0);
	}
	text = cgroup_read_file(host, &group->event_file, &group->path, is_v2 ? "memory.events" : "memory.oom_control");
	if (text && host_find_number(text, "oom_kill ", &number)) {
		host_value(host, group->oom_kills, (double)number);
		host_note_oom_kills(host, true, number);
	}
}

/* ---- CPU ---- */

/* Computes the number of cores that quota and period allow. Returns false if there is no limit. */
static bool read_cores(struct host *host, struct host_file *quota_file, struct host_file *period_file,
                       const struct cgroup_path *path, double *cores)
{
	const char *text = cgroup_read_file(host, quota_file, path,
	                                    path->version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
	double quota, period;
	char *end;

	if (!text)
		return false;
	quota = strtod(text, &end);
	if (end == text || quota <= 0)
		return false;
	if (path->version == 1) {
		text = cgroup_read_file(host, period_file, path, "cpu.cfs_period_us");
		end = (char *)text;
	}
	period = end ? strtod(end, NULL) : 0;
	*cores = quota / period;
	return period > 0;
}

static void follow_cpu(struct host *host, struct cgroup_path *path)
{
	struct cgroup_path level = *path;
	double lowest = 0, cores;

	do {
		struct host_file quota = {0}, period = {0};

		if (read_cores(host, &quota, &period, &level, &cores) && (!lowest || cores < lowest)) {
			lowest = cores;
			*path = level;
		}
		host_file_close(&quota);
		host_file_close(&period);
	} while (cgroup_path_up(&level));
}

static void open_cpu(struct host *host, struct cpu_group *group)
{
	if (!cgroup_path_find(&group->path, host, "cpu"))
		return;
	follow_cpu(host, &group->path);
	if (group->path.version == 1)
		cgroup_path_find(&group->usage_path, host, "cpuacct");
	group->limit = host_counter(host, "cgroup.cpu_limit_cores");
	group->used = host_counter(host, "cgroup.cpu_used_cores");
	group->throttled = host_counter(host, "cgroup.cpu_throttled_s_per_s");
	group->throttled_periods = host_counter(host, "cgroup.cpu_throttled_periods_ratio");
}

static void sample_throttling(struct host *host, struct cpu_group *group, const char *text)
{
	bool is_v2 = group->path.version == 2;
	uint64_t number, throttled;
	double periods, throttled_periods;

	if (host_find_number(text, is_v2 ? "throttled_usec " : "throttled_time ", &number))
		host_rate_value(host, &group->throttled_rate, group->throttled, number, is_v2 ? 1e-6 : 1e-9);
	if (!host_find_number(text, "nr_periods ", &number) || !host_find_number(text, "nr_throttled ", &throttled))
		return;
	/* both rates need every sample */
	bool is_known = host_rate(host, &group->period_rate, number, &periods);
	is_known = host_rate(host, &group->throttled_period_rate, throttled, &throttled_periods) && is_known;
	if (is_known && periods > 0)
		host_value(host, group->throttled_periods, throttled_periods / periods);
}

static void sample_cpu(struct host *host, struct cpu_group *group)
{
	uint64_t number;
	const char *text;
	double cores;

	if (!group->path.version)
		return;
	if (read_cores(host, &group->limit_file, &group->period_file, &group->path, &cores))
		host_value(host, group->limit, cores);
	text = cgroup_read_file(host, &group->stat_file, &group->path, "cpu.stat");
	if (text) {
		sample_throttling(host, group, text);
		if (host_find_number(text, "usage_usec ", &number))
			host_rate_value(host, &group->used_rate, group->used, number, 1e-6);
	}
	if (group->usage_path.version &&
	    cgroup_read_number(host, &group->usage_file, &group->usage_path, "cpuacct.usage", &number))
		host_rate_value(host, &group->used_rate, group->used, number, 1e-9);
}

/* ---- both ---- */

static void open_groups(struct host *host, void *state)
{
	struct cgroup *cgroup = state;

	open_memory(host, &cgroup->memory);
	open_cpu(host, &cgroup->cpu);
}

static void cgroup_sample(struct host *host, void *state)
{
	struct cgroup *cgroup = state;

	sample_memory(host, &cgroup->memory);
	sample_cpu(host, &cgroup->cpu);
}

static void cgroup_close_files(void *state)
{
	struct cgroup *cgroup = state;

	host_file_close(&cgroup->memory.limit_file);
	host_file_close(&cgroup->memory.usage_file);
	host_file_close(&cgroup->memory.stat_file);
	host_file_close(&cgroup->memory.event_file);
	host_file_close(&cgroup->cpu.limit_file);
	host_file_close(&cgroup->cpu.period_file);
	host_file_close(&cgroup->cpu.stat_file);
	host_file_close(&cgroup->cpu.usage_file);
}

const struct host_source host_cgroup = {"cgroup", sizeof(struct cgroup), open_groups, cgroup_sample,
                                        cgroup_close_files};
