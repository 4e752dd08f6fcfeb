/* SPDX-License-Identifier: Apache-2.0
 *
 * run_end.c: see the header.
 */
#include "run/run_end.h"

#include "run/run_state.h"

#include <signal.h>
#include <sys/wait.h>

static bool is_end_out_of_memory(struct run *run, bool has_status, int wait_status)
{
	uint64_t kills = 0;

	if (!has_status || !WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != SIGKILL)
		return false;
	/* the last sample may be a second old */
	host_recording_tick(run->host);
	return host_recording_oom_kills(run->host, &kills) && kills;
}

struct run_end run_end_find(struct run *run, const struct watched *process,
                            const struct stepscope_segment_header *identity)
{
	return (struct run_end){
		.pid = process->pid,
		.rank = identity->rank,
		.is_worker = identity->role == STEPSCOPE_ROLE_WORKER,
		.has_status = process->has_status,
		.wait_status = process->wait_status,
		.is_out_of_memory = is_end_out_of_memory(run, process->has_status, process->wait_status),
		.place = process->rescue,
	};
}

struct run_end run_end_of_program(struct run *run, const struct watched *recorded)
{
	const struct run_child *child = &run->child;

	return (struct run_end){
		.pid = child->pid,
		.rank = -1,
		.has_status = true,
		.wait_status = child->wait_status,
		.is_out_of_memory = is_end_out_of_memory(run, true, child->wait_status),
		.place = recorded ? recorded->rescue : NULL,
	};
}
