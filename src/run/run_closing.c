/* SPDX-License-Identifier: Apache-2.0
 *
 * run_closing.c: what is said and written down when the program has ended.
 */
#include "base/shell.h"
#include "base/units.h"
#include "commands/command.h"
#include "commands/say.h"
#include "run/run_captured.h"
#include "run/run_state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- facts in our own recording ---- */

static void fact_number(struct run *run, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	host_recording_fact(run->host, key, text);
}

static void run_closing_fact_of(struct run *run, pid_t pid, const char *what, int64_t value)
{
	char key[64];

	snprintf(key, sizeof(key), "child.%d.%s", (int)pid, what);
	fact_number(run, key, value);
}

/* `who`: "<pid>", or "<pid>@<namespace>" of a process whose pid is not one of our namespace. */
static void record_status(struct run *run, const char *who, int wait_status)
{
	char key[96], name[RUN_SIGNAL_BYTES];

	snprintf(key, sizeof(key), "child.%s.%s", who, WIFSIGNALED(wait_status) ? "signal" : "status");
	if (WIFSIGNALED(wait_status))
		host_recording_fact(run->host, key, run_signal_name(name, WTERMSIG(wait_status)));
	else
		fact_number(run, key, WEXITSTATUS(wait_status));
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

/* Why a process of the program is not in the recording; false: nothing is known. */
static bool find_unseen(struct run *run, char *text, size_t bytes)
{
	for (uint32_t i = 0; i < run->watch.count; i++)
		run_unseen_excuse(&run->unseen, run->watch.items[i].ids.in_proc);
	return run_unseen_sentence(&run->unseen, text, bytes) != NULL;
}

void run_record_facts(struct run *run)
{
	const struct run_child *child = &run->child;
	char unseen[RUN_UNSEEN_BYTES], who[16];
	uint64_t kills;

	snprintf(who, sizeof(who), "%d", (int)child->pid);
	record_status(run, who, child->wait_status);
	fact_number(run, "exit", run_exit_status(child));
	fact_number(run, "child", child->pid);
	run_closing_fact_of(run, child->pid, "wall_ns", child->end_ns - child->start_ns);
	run_closing_fact_of(run, child->pid, "user_ns", child->user_ns);
	run_closing_fact_of(run, child->pid, "system_ns", child->system_ns);
	run_closing_fact_of(run, child->pid, "max_rss_bytes", child->max_rss_bytes);
	run_closing_fact_of(run, child->pid, "major_faults", child->page_faults);
	run_closing_fact_of(run, child->pid, "voluntary_switches", child->switches);
	run_closing_fact_of(run, child->pid, "involuntary_switches", child->preemptions);
	if (child->io.is_known) {
		run_closing_fact_of(run, child->pid, "read_bytes", (int64_t)child->io.read_bytes);
		run_closing_fact_of(run, child->pid, "write_bytes", (int64_t)child->io.write_bytes);
	}
	if (host_recording_oom_kills(run->host, &kills))
		fact_number(run, "oom_kills", (int64_t)kills);
	for (uint32_t i = 0; i < run->watch.count && i < 1024; i++) {
		const struct watched *process = &run->watch.items[i];

		if (process->is_ours && process->has_status && process->ids.here != child->pid)
			record_status_of(run, process);
	}
	if (find_unseen(run, unseen, sizeof(unseen)))
		host_recording_fact(run->host, "unseen", unseen);
}

/* ---- what was captured ---- */

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
static void add_death(struct run *run, struct buffer *out, const struct run_captured *captured)
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

static void add_captured(struct buffer *out, const struct run *run, const struct run_captured *captured)
{
	if (!run_captured_is_empty(captured)) {
		run_captured_say(captured, out);
		return;
	}
	buffer_add_text(out, "captured no steps: the program did not call stepscope, or could not record (it would "
	                     "have said so above); ");
	add_usage(out, &run->child);
}

static void print_report_command(const char *directory)
{
	char word[4 * PATH_MAX + 8];

	shell_quote(word, sizeof(word), directory);
	/* one that begins with a dash would be taken for an option */
	say("stepscope: report: stepscope report %s%s\n", directory[0] == '-' ? "./" : "", word);
}

void run_print_closing(struct run *run)
{
	struct run_captured captured;
	struct buffer text;
	char unseen[RUN_UNSEEN_BYTES];
	bool is_unseen;

	if (common.is_quiet || run->directory.is_nested)
		return;
	if (run->settings.resolved.mode == RECORD_OFF)
		say("stepscope: captured nothing: recording is off (%s)\n", run->off_reason);
	if (run->directory.fd < 0)
		return;
	if (!run_directory_exists(&run->directory)) {
		say("stepscope: the run directory '%s' was removed while the program ran\n", run->directory.shown);
		return;
	}
	run_captured_find(&captured, run);
	buffer_init(&text, 8192);
	add_death(run, &text, &captured);
	add_captured(&text, run, &captured);
	say("stepscope: %s\n", text.data);
	is_unseen = find_unseen(run, unseen, sizeof(unseen));
	if (is_unseen)
		say("stepscope: %s\n", unseen);
	if (run_directory_has_recordings(&run->directory))
		print_report_command(run->directory.shown);
	if (run_captured_is_empty(&captured) && !is_unseen)
		say("stepscope: to see steps, mark them with stepscope_step_begin() in C (stepscope/stepscope.h), "
		    "stepscope.step() in Python\n");
	buffer_release(&text);
	run_captured_release(&captured);
}
