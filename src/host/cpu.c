/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c: time per core from /proc/stat, as shares of the time since the previous sample.
 */
#include "host/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	USER,
	NICE,
	SYSTEM,
	IDLE,
	IOWAIT,
	IRQ,
	SOFTIRQ,
	STEAL,
	TIMES
};

struct core {
	bool is_known;
	uint64_t last[TIMES];
	uint32_t busy, user, system, iowait, steal; /* counters */
};

struct cpu {
	struct host_file file;
	struct core all;
	struct core cores[HOST_MAX_CORES];
	uint32_t runnable, blocked;
	bool has_counters;
};

static void cpu_add_counters(struct host *host, struct core *core, const char *name)
{
	core->busy = host_counter(host, "%s.busy_ratio", name);
	core->user = host_counter(host, "%s.user_ratio", name);
	core->system = host_counter(host, "%s.system_ratio", name);
	core->iowait = host_counter(host, "%s.iowait_ratio", name);
	core->steal = host_counter(host, "%s.steal_ratio", name);
}

static void emit_shares(struct host *host, const struct core *core, const uint64_t *now)
{
	double spent[TIMES], total = 0;

	for (int i = 0; i < TIMES; i++) {
		/* iowait and steal sometimes decrease */
		spent[i] = now[i] > core->last[i] ? (double)(now[i] - core->last[i]) : 0;
		total += spent[i];
	}
	if (total <= 0)
		return;
	host_value(host, core->busy, 1 - (spent[IDLE] + spent[IOWAIT]) / total);
	host_value(host, core->user, (spent[USER] + spent[NICE]) / total);
	host_value(host, core->system, (spent[SYSTEM] + spent[IRQ] + spent[SOFTIRQ]) / total);
	host_value(host, core->iowait, spent[IOWAIT] / total);
	host_value(host, core->steal, spent[STEAL] / total);
}

/* `text` starts after the name of the core. */
static void sample_core(struct host *host, struct core *core, const char *name, const char *text)
{
	uint64_t now[TIMES] = {0};
	char *end;

	for (int i = 0; i < TIMES; i++) {
		now[i] = strtoull(text, &end, 10);
		/* old kernels have fewer columns */
		if (end == text)
			break;
		text = end;
	}
	if (core->is_known) {
		emit_shares(host, core, now);
	} else {
		cpu_add_counters(host, core, name);
		core->is_known = true;
	}
	memcpy(core->last, now, sizeof(now));
}

static void cpu_sample_line(struct host *host, struct cpu *cpu, const char *line, unsigned long *beyond)
{
	unsigned long number;
	char name[24];
	char *end;

	if (line[3] == ' ') {
		sample_core(host, &cpu->all, "cpu", line + 4);
		return;
	}
	number = strtoul(line + 3, &end, 10);
	if (end == line + 3 || *end != ' ')
		return;
	if (number >= HOST_MAX_CORES) {
		(*beyond)++;
		return;
	}
	snprintf(name, sizeof(name), "cpu%lu", number);
	sample_core(host, &cpu->cores[number], name, end);
}

static void sample_queue(struct host *host, struct cpu *cpu, const char *text)
{
	uint64_t number;

	if (!cpu->has_counters) {
		cpu->runnable = host_counter(host, "cpu.runnable_threads");
		cpu->blocked = host_counter(host, "cpu.blocked_threads");
		cpu->has_counters = true;
	}
	if (host_find_number(text, "procs_running ", &number))
		host_value(host, cpu->runnable, (double)number);
	if (host_find_number(text, "procs_blocked ", &number))
		host_value(host, cpu->blocked, (double)number);
}

static void cpu_sample(struct host *host, void *state)
{
	struct cpu *cpu = state;
	const char *text = host_file_read(host, &cpu->file, "/proc/stat");
	unsigned long beyond = 0;

	if (!text)
		return;
	while (!strncmp(text, "cpu", 3)) {
		const char *next = strchr(text, '\n');

		cpu_sample_line(host, cpu, text, &beyond);
		if (!next)
			return;
		text = next + 1;
	}
	sample_queue(host, cpu, text);
	if (beyond)
		host_omit(host, "cpu: the first %d of %lu cores are recorded", HOST_MAX_CORES, HOST_MAX_CORES + beyond);
}

static void cpu_close_files(void *state)
{
	host_file_close(&((struct cpu *)state)->file);
}

const struct host_source host_cpu = {"cpu", sizeof(struct cpu), NULL, cpu_sample, cpu_close_files};
