/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.c: the table `processes`: every process of the run, how it ended, and the resources it used. Data that a
 * process recorded about itself comes from its counters. The rest comes from `stepscope run` (facts
 * "child.<pid>.<key>" of its recording).
 */
#include "analysis/machine/processes.h"

#include "analysis/analysis_context.h"
#include "analysis/loader/loader_batches.h"
#include "analysis/shared/labels.h"
#include "model/reasons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

enum {
	PROCESS_PID,
	PROCESS_ROLE,
	PROCESS_RANK,
	PROCESS_PARENT,
	PROCESS_HOST,
	PROCESS_NAME,
	PROCESS_FIRST,
	PROCESS_WALL,
	PROCESS_END,
	PROCESS_EXIT,
	PROCESS_SIGNAL,
	PROCESS_LAST_STEP,
	PROCESS_LAST_OP,
	PROCESS_CPU,
	PROCESS_RSS,
	PROCESS_READ,
	PROCESS_WRITTEN,
	PROCESS_FAULTS,
	PROCESS_SWITCHES,
	PROCESS_PREEMPTED,
	PROCESS_COLUMNS,
};

static const struct table_column columns[PROCESS_COLUMNS] = {
	[PROCESS_PID] = {.name = "pid", .type = TABLE_INT, .role = ROLE_KEY, .definition = "process id"},
	[PROCESS_ROLE] =
		{.name = "role",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition =
                         "trainer, worker (forked by a trainer), launcher, host (stepscope run itself), imported, program (did "
                         "not record itself)"},
	[PROCESS_RANK] = {.name = "rank", .type = TABLE_INT, .role = ROLE_KEY, .definition = "rank"},
	[PROCESS_PARENT] = {.name = "parent_pid",
                            .title = "parent",
                            .type = TABLE_INT,
                            .definition = "process id of its parent"},
	[PROCESS_HOST] = {.name = "host", .type = TABLE_TEXT, .definition = "machine"},
	[PROCESS_NAME] = {.name = "program", .type = TABLE_TEXT, .definition = "name of the program"},
	[PROCESS_FIRST] = {.name = "first_ns",
                           .title = "first",
                           .type = TABLE_INT,
                           .unit = UNIT_NS_SINCE_START,
                           .definition = "first known instant of the process, since the first known instant of the run",
                           .is_hidden = true},
	[PROCESS_WALL] =
		{.name = "wall_ns",
                 .title = "wall",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time from the first to the last known instant of the process; missing with --steps, like all values "
                         "of whole processes",
                 .rules = RULE_NOT_NEGATIVE},
	[PROCESS_END] = {.name = "end", .type = TABLE_TEXT, .definition = "how the process ended, in words"},
	[PROCESS_EXIT] = {.name = "exit_status",
                          .title = "exit",
                          .type = TABLE_INT,
                          .definition = "exit status of the process",
                          .is_hidden = true},
	[PROCESS_SIGNAL] = {.name = "signal",
                            .type = TABLE_TEXT,
                            .definition = "name of the signal that ended the process",
                            .is_hidden = true},
	[PROCESS_LAST_STEP] = {.name = "last_step",
                               .title = "last step",
                               .type = TABLE_INT,
                               .definition = "number of the last step that the process started"},
	[PROCESS_LAST_OP] = {.name = "last_open",
                             .title = "was in",
                             .type = TABLE_TEXT,
                             .definition = "innermost span that was open when the recording of the process stopped"},
	[PROCESS_CPU] =
		{.name = "cpu_ns",
                 .title = "CPU",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "CPU time of all threads of the process; for a program that did not record itself, including the "
                         "processes it waited for"},
	[PROCESS_RSS] = {.name = "rss_peak_bytes",
                         .title = "peak RSS",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .definition = "largest resident memory"},
	[PROCESS_READ] = {.name = "read_bytes",
                          .title = "read",
                          .type = TABLE_INT,
                          .unit = UNIT_BYTES,
                          .definition = "bytes read from storage"},
	[PROCESS_WRITTEN] = {.name = "write_bytes",
                             .title = "written",
                             .type = TABLE_INT,
                             .unit = UNIT_BYTES,
                             .definition = "bytes written to storage"},
	[PROCESS_FAULTS] = {.name = "major_faults",
                            .title = "major faults",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "page faults that went to storage"},
	[PROCESS_SWITCHES] = {.name = "voluntary_switches",
                              .title = "waits",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .definition = "context switches because the process waited"},
	[PROCESS_PREEMPTED] = {.name = "involuntary_switches",
                               .title = "preempted",
                               .type = TABLE_INT,
                               .unit = UNIT_COUNT,
                               .definition = "context switches because another task took the CPU"},
};

/* Columns with the last value of a counter of the process or, without it, the sum of facts that its parent noted. */
static const struct {
	int column;
	const char *counter, *facts[2];
} sources[] = {
	{PROCESS_CPU, "process.cpu_ns", {"user_ns", "system_ns"}},
	{PROCESS_RSS, "process.rss_peak_bytes", {"max_rss_bytes"}},
	{PROCESS_READ, "process.read_bytes", {"read_bytes"}},
	{PROCESS_WRITTEN, "process.write_bytes", {"write_bytes"}},
	{PROCESS_FAULTS, "process.major_faults", {"major_faults"}},
	{PROCESS_SWITCHES, "process.voluntary_switches", {"voluntary_switches"}},
	{PROCESS_PREEMPTED, "process.involuntary_switches", {"involuntary_switches"}},
};

/* A process that `stepscope run` may have noted facts about. */
struct child {
	const struct process *process; /* NULL: it recorded nothing itself */
	uint32_t host;                 /* if process is NULL: the recording with these facts */
	int64_t pid;
};

static bool is_on_machine_of(const struct process *process, const struct process *other)
{
	if (process->machine && other->machine)
		return process->machine == other->machine;
	return process->host == other->host;
}

/* Containers on one machine use the same pids. */
static bool is_in_namespace_of(const struct process *process, const struct process *other)
{
	return !process->pid_namespace || !other->pid_namespace || process->pid_namespace == other->pid_namespace;
}

static const char *recorded_fact(const struct model *model, const struct process *process, const char *key)
{
	char name[128], nested[128];
	bool is_certain = false;

	snprintf(name, sizeof(name), "child.%" PRId64 ".%s", process->pid, key);
	snprintf(nested, sizeof(nested), "child.%" PRId64 "@%" PRIu64 ".%s", process->pid, process->pid_namespace, key);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *host = &model->processes[i];
		const char *text;

		if (host->role != STEPSCOPE_ROLE_HOST)
			continue;
		is_certain |= process->machine && host->machine;
		if (!is_on_machine_of(process, host))
			continue;
		text = model_meta(model, i, is_in_namespace_of(process, host) ? name : nested);
		if (text)
			return text;
	}
	return is_certain ? NULL : model_meta(model, MODEL_NONE, name);
}

static const char *child_fact(const struct model *model, const struct child *child, const char *key)
{
	char name[96];

	if (child->process)
		return recorded_fact(model, child->process, key);
	snprintf(name, sizeof(name), "child.%" PRId64 ".%s", child->pid, key);
	return model_meta(model, child->host, name);
}

static bool child_number(const struct model *model, const struct child *child, const char *key, int64_t *number)
{
	const char *text = child_fact(model, child, key);

	if (!text || !text[0])
		return false;
	*number = strtoll(text, NULL, 10);
	return true;
}

/* The values of counters come from a file: any double is possible. */
static int64_t whole_number(double value)
{
	return value >= 9e18 ? INT64_MAX : value > 0 ? (int64_t)value : 0;
}

bool process_counter(const struct model *model, uint32_t process, const char *name, int64_t *value)
{
	uint32_t string = intern_find(&model->strings, name);

	for (uint32_t i = 0; i < model->series_count && string; i++) {
		const struct value_series *series = model->series[i];

		if (series->process != process || series->name != string || series->is_metric || !series->count)
			continue;
		*value = whole_number(series->value[series->count - 1]);
		return true;
	}
	return false;
}

static bool child_sum(const struct model *model, const struct child *child, const char *const facts[2], int64_t *sum)
{
	int64_t second = 0;

	if (!child_number(model, child, facts[0], sum))
		return false;
	if (facts[1] && child_number(model, child, facts[1], &second))
		*sum += second;
	return true;
}

/* With --steps only a part of the recording was read: values of the whole process would contradict it. */
static const char *const of_a_part = "--steps reads only a part of the process";

static void set_used(struct table *table, int row, const struct model *model, uint32_t process,
                     const struct child *child)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		int64_t number;

		if ((process != MODEL_NONE && process_counter(model, process, sources[i].counter, &number)) ||
		    child_sum(model, child, sources[i].facts, &number))
			table_set_int(table, row, sources[i].column, number);
		else
			table_set_missing(table, row, sources[i].column, "the process was not sampled");
	}
}

/* ---- the end of a process ---- */

static const char *describe_end(const struct model *model, const struct child *child, struct arena *arena)
{
	const struct process *process = child->process;
	const char *signal = child_fact(model, child, "signal");
	int64_t number;

	if (signal && signal[0])
		return arena_printf(arena, "killed by %s", signal);
	if (child_number(model, child, "status", &number))
		return arena_printf(arena, "exit status %" PRId64, number);
	if (process && process->is_alive)
		return "still running";
	if (!process || !process->is_closed)
		return CELL_END_UNCLOSED;
	return process->end_reason ? arena_printf(arena, "closed: %s", model_text(model, process->end_reason))
	                           : "closed";
}

static struct child child_of(const struct model *model, uint32_t process)
{
	return (struct child){.process = &model->processes[process], .pid = model->processes[process].pid};
}

const char *process_end(const struct model *model, uint32_t process, struct arena *arena)
{
	const struct child child = child_of(model, process);

	return describe_end(model, &child, arena);
}

const char *process_signal(const struct model *model, uint32_t process)
{
	const struct child child = child_of(model, process);
	const char *signal = child_fact(model, &child, "signal");

	return signal && signal[0] ? signal : NULL;
}

bool process_end_is_unclosed(const struct model *model, uint32_t process)
{
	const struct child child = child_of(model, process);
	const char *signal = child_fact(model, &child, "signal");
	int64_t number;

	return !(signal && signal[0]) && !child_number(model, &child, "status", &number) && !child.process->is_alive &&
	       !child.process->is_closed;
}

bool process_exited_well(const struct model *model, uint32_t process)
{
	const struct child child = child_of(model, process);
	const char *signal = child_fact(model, &child, "signal");
	int64_t number;

	return !(signal && signal[0]) && child_number(model, &child, "status", &number) && number == 0;
}

const char *process_failure(const struct model *model, uint32_t process, struct arena *arena)
{
	const struct child child = child_of(model, process);
	const char *signal = child_fact(model, &child, "signal");
	int64_t number;

	if ((signal && signal[0]) || (child_number(model, &child, "status", &number) && number))
		return process_end(model, process, arena);
	return NULL;
}

/* Returns true if `stepscope run` was killed, too, for example because all processes of a job were stopped. Then no
 * process saw the end of a program that did not close its recording. */
static bool has_unseen_end(const struct model *model)
{
	bool is_host_lost = false, is_open = false;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		bool is_lost = !process->is_closed && !process->is_alive;

		is_host_lost |= is_lost && process->role == STEPSCOPE_ROLE_HOST;
		is_open |= is_lost && process->role == STEPSCOPE_ROLE_TRAINER;
	}
	return is_host_lost && is_open;
}

const char *program_failure(const struct model *model, struct arena *arena)
{
	for (uint32_t i = 0; i < model->meta_count; i++) {
		const struct model_meta *meta = &model->meta[i];
		struct child child = {.host = meta->process};
		const char *pid;

		if (strcmp(model_text(model, meta->key), "exit") != 0 ||
		    !strtoll(model_text(model, meta->value), NULL, 10))
			continue;
		pid = model_meta(model, meta->process, "child");
		child.pid = pid ? strtoll(pid, NULL, 10) : 0;
		return pid ? describe_end(model, &child, arena)
		           : arena_printf(arena, "exit status %s", model_text(model, meta->value));
	}
	return has_unseen_end(model) ? "neither the program nor 'stepscope run' closed its recording" : NULL;
}

static void set_end(struct table *table, int row, const struct model *model, const struct child *child)
{
	const char *signal = child_fact(model, child, "signal");
	int64_t number;

	table_set_missing(table, row, PROCESS_EXIT, "no exit status was recorded");
	table_set_missing(table, row, PROCESS_SIGNAL, "no fatal signal was recorded");
	if (signal && signal[0])
		table_set_text(table, row, PROCESS_SIGNAL, signal);
	else if (child_number(model, child, "status", &number))
		table_set_int(table, row, PROCESS_EXIT, number);
	table_set_text(table, row, PROCESS_END, describe_end(model, child, &table->arena));
}

/* Returns the deepest span of the process that never ended. If several threads have one, returns that of the main
 * thread. */
static uint32_t last_open(const struct model *model, uint32_t process)
{
	uint32_t name = 0;

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];
		const struct span_chunk *chunk;
		uint32_t found = 0;

		if (track->process != process || track->kind != TRACK_THREAD)
			continue;
		for (uint32_t c = 0; c < track->chunk_count; c++) {
			chunk = track->chunks[c];
			for (uint32_t row = 0; row < chunk->count; row++) {
				if (chunk->flags[row] & SPAN_IS_OPEN)
					found = chunk->name[row];
			}
			model_chunk_done(model, chunk);
		}
		found = track->last_call ? track->last_call : found; /* the call is nested in the open spans */
		if (found && (!name || track->is_main))
			name = found;
	}
	return name;
}

static void set_last(struct table *table, int row, const struct model *model, uint32_t process)
{
	uint32_t open = model->processes[process].is_closed ? 0 : last_open(model, process);

	table_set_missing(table, row, PROCESS_LAST_STEP, "the process marked no steps");
	for (uint32_t i = 0; i < model->steps_count; i++) {
		if (model->steps[i].process == process)
			table_set_int(table, row, PROCESS_LAST_STEP, model->steps[i].number);
	}
	if (open)
		table_set_text(table, row, PROCESS_LAST_OP, model_text(model, open));
	else
		table_set_missing(table, row, PROCESS_LAST_OP, "no span was open when the recording stopped");
}

static void set_optional(struct table *table, int row, int column, bool has_value, int64_t value, const char *reason)
{
	if (has_value)
		table_set_int(table, row, column, value);
	else
		table_set_missing(table, row, column, reason);
}

static void set_time(struct table *table, int row, const struct model *model, const struct process *process,
                     int64_t origin_ns)
{
	if (!process->has_times) {
		table_set_missing(table, row, PROCESS_FIRST, model_reason(model, REASON_NO_TIMES));
		table_set_missing(table, row, PROCESS_WALL, model_reason(model, REASON_NO_TIMES));
		return;
	}
	table_set_int(table, row, PROCESS_FIRST, process->first_ns - origin_ns);
	table_set_int(table, row, PROCESS_WALL,
	              process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0);
}

static void set_whole(struct table *table, int row, const struct model *model, uint32_t number, int64_t origin_ns)
{
	const struct child child = child_of(model, number);

	set_time(table, row, model, &model->processes[number], origin_ns);
	set_last(table, row, model, number);
	set_used(table, row, model, number, &child);
}

static void set_part(struct table *table, int row)
{
	static const int unknown[] = {PROCESS_FIRST, PROCESS_WALL, PROCESS_LAST_STEP, PROCESS_LAST_OP};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		table_set_missing(table, row, unknown[i], of_a_part);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		table_set_missing(table, row, sources[i].column, of_a_part);
}

static int processes_add_row(struct table *table, const struct model *model, uint32_t number)
{
	const struct process *process = &model->processes[number];
	const struct child child = child_of(model, number);
	int row = table_row(table);
	int64_t worker;

	if (process->pid)
		table_set_int(table, row, PROCESS_PID, process->pid);
	else
		table_set_missing(table, row, PROCESS_PID, "not in the input");
	/* a worker that was spawned, not forked, does not know its role from the start */
	table_set_text(table, row, PROCESS_ROLE,
	               role_name(loader_worker_number(model, number, &worker) ? STEPSCOPE_ROLE_WORKER : process->role));
	set_optional(table, row, PROCESS_RANK, process->rank >= 0, process->rank, "not set by a launcher");
	set_optional(table, row, PROCESS_PARENT, process->parent_pid > 0, process->parent_pid, "not recorded");
	table_set_text(table, row, PROCESS_HOST, model_text(model, process->host));
	if (process->role == STEPSCOPE_ROLE_HOST) /* its fact "program" names the program that it ran */
		table_set_text(table, row, PROCESS_NAME, "stepscope");
	else if (process->name)
		table_set_text(table, row, PROCESS_NAME, model_text(model, process->name));
	else
		table_set_missing(table, row, PROCESS_NAME, "not recorded");
	set_end(table, row, model, &child);
	return row;
}

/* ---- children that recorded nothing ---- */

static bool is_recorded(const struct model *model, uint32_t host, int64_t pid)
{
	const struct process *run = host == MODEL_NONE ? NULL : &model->processes[host];

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];

		if (process->pid == pid &&
		    (!run || (is_on_machine_of(process, run) && is_in_namespace_of(process, run))))
			return true;
	}
	return false;
}

/* `stepscope run` knows the name of the program that it started, but not those of that program's children. */
static const char *child_program(const struct model *model, uint32_t host, int64_t pid)
{
	const char *child = model_meta(model, host, "child");

	return child && strtoll(child, NULL, 10) == pid ? model_meta(model, host, "program") : NULL;
}

static void add_child(struct table *table, const struct model *model, uint32_t host, int64_t pid)
{
	static const int unknown[] = {PROCESS_RANK,  PROCESS_PARENT,    PROCESS_HOST,
	                              PROCESS_FIRST, PROCESS_LAST_STEP, PROCESS_LAST_OP};
	const struct child child = {.host = host, .pid = pid};
	const char *name = child_program(model, host, pid);
	int64_t wall_ns = 0;
	int row = table_row(table);
	bool has_wall = child_number(model, &child, "wall_ns", &wall_ns);

	table_set_int(table, row, PROCESS_PID, pid);
	table_set_text(table, row, PROCESS_ROLE, "program");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		table_set_missing(table, row, unknown[i], "the process did not record itself");
	if (name)
		table_set_text(table, row, PROCESS_NAME, name);
	else
		table_set_missing(table, row, PROCESS_NAME, "the process did not record itself");
	set_optional(table, row, PROCESS_WALL, has_wall, wall_ns, "no process waited for its end");
	set_end(table, row, model, &child);
	set_used(table, row, model, MODEL_NONE, &child);
}

static void add_children(struct table *table, const struct model *model)
{
	uint32_t previous_host = MODEL_NONE;
	int64_t previous = -1;

	for (uint32_t i = 0; i < model->meta_count; i++) {
		const char *key = model_text(model, model->meta[i].key);
		uint32_t host = model->meta[i].process;
		char *end;
		int64_t pid;

		if (strncmp(key, "child.", 6) != 0)
			continue;
		pid = strtoll(key + 6, &end, 10);
		if (*end != '.' || (pid == previous && host == previous_host) || is_recorded(model, host, pid))
			continue;
		previous = pid;
		previous_host = host;
		add_child(table, model, host, pid);
	}
}

static enum status processes_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	int64_t origin_ns = INT64_MAX;

	table_init(table, "processes", "Processes", "every process of the run, over the whole recording");
	table_columns(table, columns, PROCESS_COLUMNS);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		if (model->processes[i].has_times && model->processes[i].first_ns < origin_ns)
			origin_ns = model->processes[i].first_ns;
	}
	for (uint32_t i = 0; i < model->processes_count; i++) {
		int row = processes_add_row(table, model, i);

		if (is_part_of_run(&context->options))
			set_part(table, row);
		else
			set_whole(table, row, model, i, origin_ns);
	}
	add_children(table, model);
	if (!table->row_count)
		table->empty = "no process was recorded";
	return STATUS_OK;
}

const struct analysis analysis_processes = {
	.name = "processes",
	.row = "process",
	.question = "which processes ran, and how did they end?",
	.run = processes_run,
};
