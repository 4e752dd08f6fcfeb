/* SPDX-License-Identifier: Apache-2.0
 *
 * run_facts.c: writes facts about the program and its processes into our own recording: their ends, and their use of
 * the machine.
 */
#include "run/run_state.h"
#include "run/run_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

static void run_facts_add_number(struct run *run, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	host_recording_fact(run->host, key, text);
}

static void run_facts_add_of(struct run *run, pid_t pid, const char *what, int64_t value)
{
	char key[64];

	snprintf(key, sizeof(key), "child.%d.%s", (int)pid, what);
	run_facts_add_number(run, key, value);
}

/* `who`: "<pid>", or "<pid>@<namespace>" for a process in another pid namespace. */
static void record_status(struct run *run, const char *who, int wait_status)
{
	char key[96], name[RUN_SIGNAL_BYTES];

	snprintf(key, sizeof(key), "child.%s.%s", who, WIFSIGNALED(wait_status) ? "signal" : "status");
	if (WIFSIGNALED(wait_status))
		host_recording_fact(run->host, key, run_signal_name(name, WTERMSIG(wait_status)));
	else
		run_facts_add_number(run, key, WEXITSTATUS(wait_status));
}

static void record_status_of(struct run *run, const struct watched *process)
{
	char who[48];

	if (run_watch_is_neighbour(&run->watch, process->pid_namespace))
		snprintf(who, sizeof(who), "%d", (int)process->pid);
	else
		snprintf(who, sizeof(who), "%d@%" PRIu64, (int)process->pid, process->pid_namespace);
	record_status(run, who, process->wait_status);
}

static void run_facts_add_unseen(struct run *run)
{
	struct unseen_found unseen = run_unseen_find(&run->unseen);
	struct buffer text;

	if (!unseen.reason)
		return;
	buffer_init(&text, RUN_WORDS_BYTES);
	run_words_unseen(&text, &unseen);
	host_recording_fact(run->host, "unseen", text.data);
	buffer_release(&text);
}

void run_record_facts(struct run *run)
{
	const struct run_child *child = &run->child;
	char who[16];
	uint64_t kills;

	snprintf(who, sizeof(who), "%d", (int)child->pid);
	record_status(run, who, child->wait_status);
	run_facts_add_number(run, "exit", run_exit_status(child));
	run_facts_add_number(run, "child", child->pid);
	run_facts_add_of(run, child->pid, "wall_ns", child->end_ns - child->start_ns);
	run_facts_add_of(run, child->pid, "user_ns", child->user_ns);
	run_facts_add_of(run, child->pid, "system_ns", child->system_ns);
	run_facts_add_of(run, child->pid, "max_rss_bytes", child->max_rss_bytes);
	run_facts_add_of(run, child->pid, "major_faults", child->page_faults);
	run_facts_add_of(run, child->pid, "voluntary_switches", child->switches);
	run_facts_add_of(run, child->pid, "involuntary_switches", child->preemptions);
	if (child->io.is_known) {
		run_facts_add_of(run, child->pid, "read_bytes", (int64_t)child->io.read_bytes);
		run_facts_add_of(run, child->pid, "write_bytes", (int64_t)child->io.write_bytes);
	}
	host_recording_tick(run->host); /* the last sample may be from before a kill */
	if (host_recording_oom_kills(run->host, &kills))
		run_facts_add_number(run, "oom_kills", (int64_t)kills);
	for (uint32_t i = 0; i < run->watch.count && i < 1024; i++) {
		const struct watched *process = &run->watch.items[i];

		if (process->is_ours && process->has_status && process->ids.here != child->pid)
			record_status_of(run, process);
	}
	run_facts_add_unseen(run);
}
