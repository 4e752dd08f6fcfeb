/* SPDX-License-Identifier: Apache-2.0
 *
 * run_closing.c: what is said and written down when the program has ended.
 */
#include "base/units.h"
#include "commands/command.h"
#include "commands/run_manifest.h"
#include "commands/run_segment.h"
#include "commands/run_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOKED_AT 64 /* processes whose files are read for the closing line */

/* ---- facts in our own recording ---- */

static void fact_number(struct run *run, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	host_recording_fact(run->host, key, text);
}

static void fact_of(struct run *run, pid_t pid, const char *what, int64_t value)
{
	char key[64];

	snprintf(key, sizeof(key), "child.%d.%s", (int)pid, what);
	fact_number(run, key, value);
}

static void record_status(struct run *run, pid_t pid, int wait_status)
{
	char key[64], name[RUN_SIGNAL_BYTES];

	if (!WIFSIGNALED(wait_status)) {
		fact_of(run, pid, "status", WEXITSTATUS(wait_status));
		return;
	}
	snprintf(key, sizeof(key), "child.%d.signal", (int)pid);
	host_recording_fact(run->host, key, run_signal_name(name, WTERMSIG(wait_status)));
}

void run_record_facts(struct run *run)
{
	const struct run_child *child = &run->child;
	uint64_t kills;

	record_status(run, child->pid, child->wait_status);
	fact_number(run, "exit", run_exit_status(child));
	fact_number(run, "child", child->pid);
	fact_of(run, child->pid, "wall_ns", child->end_ns - child->start_ns);
	fact_of(run, child->pid, "user_ns", child->user_ns);
	fact_of(run, child->pid, "system_ns", child->system_ns);
	fact_of(run, child->pid, "max_rss_bytes", child->max_rss_bytes);
	fact_of(run, child->pid, "major_faults", child->page_faults);
	fact_of(run, child->pid, "voluntary_switches", child->switches);
	fact_of(run, child->pid, "involuntary_switches", child->preemptions);
	if (child->io.is_known) {
		fact_of(run, child->pid, "read_bytes", (int64_t)child->io.read_bytes);
		fact_of(run, child->pid, "write_bytes", (int64_t)child->io.write_bytes);
	}
	if (host_recording_oom_kills(run->host, &kills))
		fact_number(run, "oom_kills", (int64_t)kills);
	for (uint32_t i = 0; i < run->watch.count && i < 1024; i++) {
		const struct watched *process = &run->watch.items[i];

		if (process->is_ours && process->has_status && process->pid != child->pid)
			record_status(run, process->pid, process->wait_status);
	}
}

/* ---- what was captured ---- */

struct captured {
	int trainers, workers;
	const struct watched *first; /* trainer of the lowest rank */
	const struct watched *program;
	char sentence[512]; /* of the first one; "" it could not say */
};

/* The sentence stands at the end of one of its last files. */
static void find_sentence(struct run *run, struct captured *captured)
{
	struct run_segment segment;
	char name[512];

	for (uint32_t back = 0; captured->first && back < 3 && back <= captured->first->newest; back++) {
		snprintf(name, sizeof(name), "%s.%" PRIu32 ".ssr", captured->first->stem,
		         captured->first->newest - back);
		if (!run_segment_read(&segment, run->directory.fd, name) || !segment.capture[0])
			continue;
		memcpy(captured->sentence, segment.capture, sizeof(captured->sentence));
		return;
	}
}

static void look(struct run *run, struct captured *captured)
{
	for (uint32_t i = 0; i < run->watch.count; i++) {
		const struct watched *process = &run->watch.items[i];

		if (!process->is_ours || process->role == STEPSCOPE_ROLE_HOST)
			continue;
		if (process->pid == run->child.pid)
			captured->program = process;
		if (process->role == STEPSCOPE_ROLE_WORKER) {
			captured->workers++;
			continue;
		}
		captured->trainers++;
		if (!captured->first || (process->rank >= 0 && process->rank < captured->first->rank))
			captured->first = process;
	}
	find_sentence(run, captured);
}

static void add_usage(struct buffer *out, const struct run_child *child)
{
	char wall[UNITS_BYTES], cpu[UNITS_BYTES], memory[UNITS_BYTES];

	buffer_printf(out, "wall %s, CPU %s, peak memory %s",
	              units_time(wall, (double)(child->end_ns - child->start_ns)),
	              units_time(cpu, (double)(child->user_ns + child->system_ns)),
	              units_bytes(memory, (double)child->max_rss_bytes));
	if (child->io.is_known && (child->io.read_bytes || child->io.write_bytes)) {
		buffer_printf(out, ", read %s", units_bytes(wall, (double)child->io.read_bytes));
		buffer_printf(out, ", written %s", units_bytes(wall, (double)child->io.write_bytes));
	}
}

/* A program that was killed: by what, where it was, and who may have done it. */
static void add_death(struct run *run, struct buffer *out, const struct captured *captured)
{
	if (!WIFSIGNALED(run->child.wait_status))
		return;
	buffer_add_text(out, "the program ");
	run_describe_status(out, true, run->child.wait_status);
	run_describe_memory(run, out, true, run->child.wait_status);
	if (captured->program)
		run_describe_place(out, captured->program);
	buffer_add_text(out, "; ");
}

static void add_captured(struct run *run, struct buffer *out, const struct captured *captured)
{
	if (!captured->first && !captured->workers) {
		buffer_add_text(out, "captured no steps, the program did not call stepscope: ");
		add_usage(out, &run->child);
		return;
	}
	if (captured->trainers > 1)
		buffer_printf(out, "%d processes, rank %d: ", captured->trainers,
		              captured->first->rank < 0 ? 0 : captured->first->rank);
	if (captured->sentence[0])
		buffer_add_text(out, captured->sentence);
	else
		buffer_add_text(out, "captured everything up to its end");
	if (captured->workers)
		buffer_printf(out, ", and %d worker process%s", captured->workers, captured->workers == 1 ? "" : "es");
}

void run_print_closing(struct run *run)
{
	struct captured captured = {0};
	struct buffer text;

	if (run->directory.fd < 0 || common.is_quiet)
		return;
	if (!run_directory_exists(&run->directory)) {
		fprintf(stderr, "stepscope: the run directory '%s' was removed while the program ran\n",
		        run->directory.shown);
		return;
	}
	look(run, &captured);
	buffer_init(&text, 8192);
	add_death(run, &text, &captured);
	add_captured(run, &text, &captured);
	fprintf(stderr, "stepscope: %s\n", text.data);
	fprintf(stderr, "stepscope: report: stepscope report %s\n", run->directory.shown);
	if (!captured.first && !captured.workers)
		fprintf(stderr,
		        "stepscope: to see steps, mark them with stepscope_step_begin() and stepscope_step_end() "
		        "(stepscope/stepscope.h)\n");
	buffer_release(&text);
}
