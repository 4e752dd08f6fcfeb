/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: memory and swap from /proc/meminfo; paging and out-of-memory kills from /proc/vmstat.
 */
#include "host/source.h"

#include <unistd.h>

struct memory {
	struct host_file meminfo, vmstat;
	bool has_counters;
	uint32_t total, available, used, dirty, swap_total, swap_used;
	uint32_t major_faults, swap_in, swap_out, oom_kills;
	struct host_rate fault_rate, in_rate, out_rate;
};

static void memory_add_counters(struct host *host, struct memory *memory)
{
	memory->has_counters = true;
	memory->total = host_counter(host, "memory.total_bytes");
	memory->available = host_counter(host, "memory.available_bytes");
	memory->used = host_counter(host, "memory.used_bytes");
	memory->dirty = host_counter(host, "memory.dirty_bytes");
	memory->swap_total = host_counter(host, "swap.total_bytes");
	memory->swap_used = host_counter(host, "swap.used_bytes");
	memory->major_faults = host_counter(host, "memory.major_faults_per_s");
	memory->swap_in = host_counter(host, "swap.in_bytes_per_s");
	memory->swap_out = host_counter(host, "swap.out_bytes_per_s");
	memory->oom_kills = host_counter(host, "memory.oom_kills");
}

static void sample_meminfo(struct host *host, const struct memory *memory, const char *text)
{
	uint64_t total, available, dirty, swap_total, swap_free;

	if (host_find_number(text, "MemTotal:", &total)) {
		host_value(host, memory->total, (double)total * 1024);
		if (host_find_number(text, "MemAvailable:", &available)) {
			host_value(host, memory->available, (double)available * 1024);
			host_value(host, memory->used, ((double)total - (double)available) * 1024);
		}
	}
	if (host_find_number(text, "Dirty:", &dirty))
		host_value(host, memory->dirty, (double)dirty * 1024);
	if (host_find_number(text, "SwapTotal:", &swap_total) && host_find_number(text, "SwapFree:", &swap_free)) {
		host_value(host, memory->swap_total, (double)swap_total * 1024);
		host_value(host, memory->swap_used, ((double)swap_total - (double)swap_free) * 1024);
	}
}

static void sample_vmstat(struct host *host, struct memory *memory, const char *text)
{
	const double page_bytes = (double)sysconf(_SC_PAGESIZE);
	uint64_t number;

	if (host_find_number(text, "pgmajfault ", &number))
		host_rate_value(host, &memory->fault_rate, memory->major_faults, number, 1);
	if (host_find_number(text, "pswpin ", &number))
		host_rate_value(host, &memory->in_rate, memory->swap_in, number, page_bytes);
	if (host_find_number(text, "pswpout ", &number))
		host_rate_value(host, &memory->out_rate, memory->swap_out, number, page_bytes);
	if (host_find_number(text, "oom_kill ", &number)) {
		host_value(host, memory->oom_kills, (double)number);
		host_note_oom_kills(host, false, number);
	}
}

static void memory_sample(struct host *host, void *state)
{
	struct memory *memory = state;
	const char *text;

	if (!memory->has_counters)
		memory_add_counters(host, memory);
	text = host_file_read(host, &memory->meminfo, "/proc/meminfo");
	if (text)
		sample_meminfo(host, memory, text);
	text = host_file_read(host, &memory->vmstat, "/proc/vmstat");
	if (text)
		sample_vmstat(host, memory, text);
}

static void memory_close_files(void *state)
{
	struct memory *memory = state;

	host_file_close(&memory->meminfo);
	host_file_close(&memory->vmstat);
}

const struct host_source host_memory = {"memory", sizeof(struct memory), NULL, memory_sample, memory_close_files};
