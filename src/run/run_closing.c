/* SPDX-License-Identifier: Apache-2.0
 *
 * run_closing.c: gathers the facts for the closing lines, and prints the lines.
 */
#include "run/run_closing.h"

#include "commands/command.h"
#include "commands/say.h"
#include "run/run_state.h"
#include "run/run_words.h"

#include <sys/wait.h>

static enum closing_kind run_closing_kind(const struct run *run)
{
	if (common.is_quiet || run->directory.is_nested)
		return CLOSING_SILENT;
	if (run->settings.resolved.mode == RECORD_OFF)
		return CLOSING_OFF;
	if (run->directory.fd < 0)
		return CLOSING_SILENT;
	return run_directory_exists(&run->directory) ? CLOSING_CAPTURED : CLOSING_REMOVED;
}

/* Returns NULL if the program did not record. */
static const struct watched *run_closing_program(const struct run *run)
{
	const struct watched *found = NULL;

	for (uint32_t i = 0; i < run->watch.count; i++) {
		const struct watched *process = &run->watch.items[i];

		if (process->is_ours && process->role != STEPSCOPE_ROLE_HOST && process->ids.here == run->child.pid)
			found = process;
	}
	return found;
}

static struct run_usage run_closing_usage(const struct run_child *child)
{
	return (struct run_usage){
		.wall_ns = child->end_ns - child->start_ns,
		.cpu_ns = child->user_ns + child->system_ns,
		.peak_bytes = child->max_rss_bytes,
		.io = child->io,
	};
}

void run_closing_find(struct run_closing *closing, struct run *run)
{
	*closing = (struct run_closing){
		.kind = run_closing_kind(run),
		.off_reason = run->off_reason,
		.directory = run->directory.shown,
	};
	if (closing->kind != CLOSING_CAPTURED)
		return;
	run_captured_find(&closing->captured, run);
	closing->was_killed = WIFSIGNALED(run->child.wait_status);
	if (closing->was_killed)
		closing->end = run_end_of_program(run, run_closing_program(run));
	closing->usage = run_closing_usage(&run->child);
	closing->unseen = run_unseen_find(&run->unseen);
	closing->has_recordings = run_directory_has_recordings(&run->directory);
}

void run_closing_print(const struct run_closing *closing)
{
	struct buffer text;

	buffer_init(&text, RUN_WORDS_BYTES);
	for (enum closing_line line = 0; line < CLOSING_LINES; line++) {
		buffer_clear(&text);
		if (run_words_closing(&text, closing, line))
			say("stepscope: %s\n", text.data);
	}
	buffer_release(&text);
}

void run_closing_release(struct run_closing *closing)
{
	run_captured_release(&closing->captured);
}
