/* SPDX-License-Identifier: Apache-2.0
 *
 * run_words.c: the only file with the English of the closing lines. It words each process first. Processes with the
 * same words form one group, named by its ranks.
 */
#include "run/run_words.h"

#include "base/memory.h"
#include "base/shell.h"
#include "base/units.h"
#include "format/fold.h"
#include "run/run_signals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SENTENCE_BYTES 4096
#define GROUPS_NAMED 3
#define NAMED_IN_GROUP 8

static const char *words_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- how a process ended ---- */

static void words_add_status(struct buffer *out, const struct run_end *end)
{
	char name[RUN_SIGNAL_BYTES];

	if (!end->has_status)
		buffer_add_text(out, "ended with unknown exit status");
	else if (WIFSIGNALED(end->wait_status))
		buffer_printf(out, "was killed by %s", run_signal_name(name, WTERMSIG(end->wait_status)));
	else
		buffer_printf(out, "exited with status %d", WEXITSTATUS(end->wait_status));
	if (end->is_out_of_memory)
		buffer_add_text(out, " (out of memory: the kernel killed a process meanwhile)");
}

static void words_add_place(struct buffer *out, const struct fold_result *place)
{
	if (place->has_step)
		buffer_printf(out, ", last step %" PRId64, place->last_step);
	else if (place->steps_counted)
		buffer_printf(out, ", after %" PRIu64 " steps (counted; the program marks no steps)",
		              place->steps_counted);
	if (place->last_op[0])
		buffer_printf(out, ", last op '%s'", place->last_op);
	if (place->last_op[0] && place->is_earlier_op)
		buffer_printf(out, " of step %" PRId64, place->last_op_step);
}

void run_words_end(struct buffer *out, const struct run_end *end)
{
	words_add_status(out, end);
	if (end->place)
		words_add_place(out, end->place);
}

void run_words_death(struct buffer *out, const struct run_end *end)
{
	if (end->rank >= 0 && !end->is_worker)
		buffer_printf(out, "rank %" PRId32 " (pid %d) ", end->rank, (int)end->pid);
	else
		buffer_printf(out, "%s %d ", end->is_worker ? "worker" : "process", (int)end->pid);
	run_words_end(out, end);
}

/* ---- processes that are not recorded ---- */

#define AUTO "put `import stepscope; stepscope.auto()` at the top of its script"
#define INSTALLED ", with stepscope installed for that Python"

void run_words_unseen(struct buffer *out, const struct unseen_found *unseen)
{
	int pid = (int)unseen->pid;

	switch (unseen->reason) {
	case UNSEEN_NONE:
		break;
	case UNSEEN_IMPORTING:
		buffer_printf(out, "process %d was still importing PyTorch at the last check: it is not recorded", pid);
		break;
	case UNSEEN_FLAG:
		buffer_printf(out, "process %d ran PyTorch unobserved: Python was started with -%c; " AUTO INSTALLED,
		              pid, unseen->flag);
		break;
	case UNSEEN_OFF_PATH:
		buffer_printf(out,
		              "process %d ran PyTorch unobserved: its PYTHONPATH lacks the directory that `stepscope "
		              "run` added (PYTHONPATH=src:$PYTHONPATH keeps it); " AUTO INSTALLED,
		              pid);
		break;
	case UNSEEN_NO_PACKAGE:
		buffer_printf(out,
		              "process %d ran PyTorch unobserved: its Python did not load the package stepscope; " AUTO,
		              pid);
	}
}

/* ---- one process ---- */

static void words_add_counted(struct buffer *out, const struct captured_steps *steps)
{
	buffer_printf(out, ", after %" PRIu64 " step%s (counted; the program marks no steps)", steps->counted,
	              words_plural(steps->counted));
	if (!steps->has_schedule)
		return;
	if (!steps->detailed)
		buffer_add_text(out, ", none of them with operators");
	else if (steps->detailed == steps->counted)
		buffer_add_text(out, ", with operators");
	else if (steps->last_detailed - steps->first_detailed + 1 == (int64_t)steps->detailed)
		buffer_printf(out, ", those from %" PRId64 " to %" PRId64 " with operators", steps->first_detailed,
		              steps->last_detailed);
	else
		buffer_printf(out, ", %" PRIu64 " of them from %" PRId64 " to %" PRId64 " with operators",
		              steps->detailed, steps->first_detailed, steps->last_detailed);
}

static void words_add_process(struct buffer *out, const struct captured_process *process)
{
	switch (process->end) {
	case CAPTURED_END_TOLD:
		buffer_add_text(out, process->told);
		break;
	case CAPTURED_END_OPEN:
		buffer_add_text(out, "its process still records");
		break;
	case CAPTURED_END_LOST:
		buffer_add_text(out, "the end of the recording is missing, because its buffers are gone");
		break;
	case CAPTURED_END_COMPLETE:
		buffer_add_text(out, "recorded up to its end");
		if (process->steps.has_last)
			buffer_printf(out, " at step %" PRId64, process->steps.last);
		else if (process->steps.counted)
			words_add_counted(out, &process->steps);
		break;
	case CAPTURED_END_UNWRITTEN:
		break;
	}
	if (process->unwritten_reason)
		buffer_printf(out,
		              "%sthe end of the recording could not be written: %s; it is still in memory: free disk "
		              "space, then run stepscope report",
		              process->end == CAPTURED_END_TOLD ? "; " : "", process->unwritten_reason);
}

static char *words_of_process(const struct captured_process *process)
{
	struct buffer text;
	char *sentence;

	buffer_init(&text, SENTENCE_BYTES);
	words_add_process(&text, process);
	sentence = buffer_take(&text);
	if (!sentence)
		memory_exhausted(SENTENCE_BYTES);
	return sentence;
}

/* ---- groups of processes ---- */

struct words_trainers { /* in the order of their ranks */
	const struct captured_process *list;
	int count;
	char **sentences; /* NULL: the run does not speak for the trainer */
};

static void words_trainers_init(struct words_trainers *trainers, const struct run_captured *captured)
{
	*trainers = (struct words_trainers){
		.list = captured->trainers,
		.count = captured->trainer_count,
		.sentences = memory_resize(NULL, (size_t)captured->trainer_count, sizeof(char *)),
	};
	for (int i = 0; i < trainers->count; i++)
		trainers->sentences[i] = trainers->list[i].is_spoken_for ? words_of_process(&trainers->list[i]) : NULL;
}

static void words_trainers_release(struct words_trainers *trainers)
{
	for (int i = 0; i < trainers->count; i++)
		free(trainers->sentences[i]);
	free(trainers->sentences);
}

/* Returns true if trainer i is in the group of `first`, which has a sentence. */
static bool words_are_same(const struct words_trainers *trainers, int i, int first)
{
	return trainers->sentences[i] && !strcmp(trainers->sentences[i], trainers->sentences[first]);
}

/* Returns the last trainer of the range of ranks that starts at `i`. */
static int words_end_of_ranks(const struct words_trainers *trainers, int i, int first)
{
	const struct captured_process *list = trainers->list;

	while (i + 1 < trainers->count && list[i + 1].rank == list[i].rank + 1 &&
	       words_are_same(trainers, i + 1, first) && !list[i + 1].is_rank_shared)
		i++;
	return i;
}

/* "ranks 0-3", "rank 2, rank 5 (pid 4242), pid 4711 and 3 more" */
static void words_add_names(struct buffer *out, const struct words_trainers *trainers, int first)
{
	int named = 0, more = 0;

	for (int i = first; i < trainers->count; i++) {
		const struct captured_process *trainer = &trainers->list[i];

		if (!words_are_same(trainers, i, first))
			continue;
		if (named++ >= NAMED_IN_GROUP) {
			more++;
			continue;
		}
		buffer_add_text(out, named > 1 ? ", " : "");
		if (trainer->rank < 0) {
			buffer_printf(out, "pid %d", (int)trainer->pid);
		} else if (trainer->is_rank_shared) {
			buffer_printf(out, "rank %" PRId32 " (pid %d)", trainer->rank, (int)trainer->pid);
		} else {
			i = words_end_of_ranks(trainers, i, first);
			buffer_printf(out,
			              trainers->list[i].rank > trainer->rank ? "ranks %" PRId32 "-%" PRId32
			                                                     : "rank %" PRId32,
			              trainer->rank, trainers->list[i].rank);
		}
	}
	if (more)
		buffer_printf(out, " and %d more", more);
}

static void words_add_groups(struct buffer *out, const struct words_trainers *trainers)
{
	int groups = 0;

	for (int i = 0; i < trainers->count; i++) {
		bool is_new = trainers->sentences[i] != NULL;

		for (int j = 0; j < i && is_new; j++)
			is_new = !words_are_same(trainers, j, i);
		if (!is_new)
			continue;
		if (++groups > GROUPS_NAMED) {
			buffer_add_text(out, "; the others differ, see the report");
			return;
		}
		buffer_add_text(out, groups > 1 ? "; " : ", ");
		words_add_names(out, trainers, i);
		buffer_printf(out, ": %s", trainers->sentences[i]);
	}
}

static void words_add_trainers(struct buffer *out, const struct run_captured *captured)
{
	struct words_trainers trainers;

	words_trainers_init(&trainers, captured);
	if (captured->trainer_count == 1) {
		buffer_add_text(out, trainers.sentences[0]);
	} else {
		if (captured->spoken_count == captured->trainer_count)
			buffer_printf(out, "%d processes", captured->spoken_count);
		else
			buffer_printf(out, "%d of %d processes %s", captured->spoken_count, captured->trainer_count,
			              captured->outcome == CAPTURED_STEPS ? "trained" : "ran operators or ranges");
		words_add_groups(out, &trainers);
	}
	words_trainers_release(&trainers);
}

/* ---- the lines ---- */

static void words_add_losses(struct buffer *out, const struct run_captured *captured)
{
	if (captured->unwritten)
		buffer_printf(out, "; the end of %d more recording%s could not be written: %s", captured->unwritten,
		              words_plural((uint64_t)captured->unwritten), captured->unwritten_reason);
	if (!captured->dropped)
		return;
	buffer_printf(out, "; %s%" PRIu64 " event%s dropped", captured->is_dropped_least ? "at least " : "",
	              captured->dropped, captured->dropped == 1 ? " was" : "s were");
	buffer_printf(out, " (%" PRIu64 " of steps and phases), see --pool", captured->dropped_coarse);
}

static void words_add_usage(struct buffer *out, const struct run_usage *usage)
{
	char wall[UNITS_BYTES], cpu[UNITS_BYTES], memory[UNITS_BYTES];

	buffer_printf(out, "wall %s, CPU %s, peak memory %s", units_time(wall, (double)usage->wall_ns),
	              units_time(cpu, (double)usage->cpu_ns), units_bytes(memory, (double)usage->peak_bytes));
	if (usage->io.is_known && (usage->io.read_bytes || usage->io.write_bytes)) {
		buffer_printf(out, ", read %s", units_bytes(wall, (double)usage->io.read_bytes));
		buffer_printf(out, ", written %s", units_bytes(wall, (double)usage->io.write_bytes));
	}
}

static void words_add_captured(struct buffer *out, const struct run_closing *closing)
{
	const struct run_captured *captured = &closing->captured;

	if (closing->was_killed) {
		buffer_add_text(out, "the program ");
		run_words_end(out, &closing->end);
		buffer_add_text(out, "; ");
	}
	if (run_captured_is_empty(captured)) {
		buffer_add_text(out, "captured no steps: the program did not call stepscope, or could not record "
		                     "(then a message above says why); ");
		words_add_usage(out, &closing->usage);
		return;
	}
	if (captured->trainer_count)
		words_add_trainers(out, captured);
	if (captured->workers)
		buffer_printf(out, "%s%d worker process%s", captured->trainer_count ? ", and " : "captured ",
		              captured->workers, captured->workers == 1 ? "" : "es");
	words_add_losses(out, captured);
}

static void words_add_report(struct buffer *out, const char *directory)
{
	char word[4 * PATH_MAX + 8];

	shell_quote(word, sizeof(word), directory);
	/* a directory that starts with a dash would be taken for an option */
	buffer_printf(out, "report: stepscope report %s%s", directory[0] == '-' ? "./" : "", word);
}

static bool words_add_first(struct buffer *out, const struct run_closing *closing)
{
	switch (closing->kind) {
	case CLOSING_SILENT:
		return false;
	case CLOSING_OFF:
		buffer_printf(out, "captured nothing: recording is off (%s)", closing->off_reason);
		break;
	case CLOSING_REMOVED:
		buffer_printf(out, "the run directory '%s' was removed while the program ran", closing->directory);
		break;
	case CLOSING_CAPTURED:
		words_add_captured(out, closing);
	}
	return true;
}

bool run_words_closing(struct buffer *out, const struct run_closing *closing, enum closing_line line)
{
	if (line == CLOSING_LINE_CAPTURED)
		return words_add_first(out, closing);
	if (closing->kind != CLOSING_CAPTURED)
		return false;
	if (line == CLOSING_LINE_UNSEEN && closing->unseen.reason) {
		run_words_unseen(out, &closing->unseen);
		return true;
	}
	if (line == CLOSING_LINE_REPORT && closing->has_recordings) {
		words_add_report(out, closing->directory);
		return true;
	}
	if (line == CLOSING_LINE_ADVICE && run_captured_is_empty(&closing->captured) && !closing->unseen.reason) {
		buffer_add_text(out,
		                "to see steps, mark them with stepscope_step_begin() in C (stepscope/stepscope.h), "
		                "stepscope.step() in Python");
		return true;
	}
	return false;
}
