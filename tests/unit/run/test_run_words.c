/* SPDX-License-Identifier: Apache-2.0
 *
 * test_run_words.c: facts of a run, and the lines that `stepscope run` prints of them.
 */
#include "format/fold.h"
#include "run/run_words.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_TRAINERS 16
#define EXITED(status) ((status) << 8)

#define ALL_FIVE "captured all 5 steps (0-4) with operators"
#define NO_MARKS "the program marked no steps, operators or ranges: mark them"
#define REPORT "\nreport: stepscope report run"
#define ADVICE                                                                                                         \
	"\nto see steps, mark them with stepscope_step_begin() in C (stepscope/stepscope.h), stepscope.step() in Python"
#define NO_CALLS                                                                                                       \
	"captured no steps: the program did not call stepscope, or could not record (then a message above says why); "
#define UNWRITTEN(reason)                                                                                              \
	"the end of the recording could not be written: " reason                                                       \
	"; it is still in memory: free disk space, then run stepscope report"

/* All lines of a closing, without "stepscope: ". The caller frees them. */
static char *lines_of(const struct run_closing *closing)
{
	struct buffer all, text;

	buffer_init(&all, RUN_WORDS_BYTES);
	buffer_init(&text, RUN_WORDS_BYTES);
	for (enum closing_line line = 0; line < CLOSING_LINES; line++) {
		buffer_clear(&text);
		if (run_words_closing(&text, closing, line))
			buffer_printf(&all, "%s%s", all.length ? "\n" : "", text.data);
	}
	buffer_release(&text);
	return buffer_take(&all);
}

/* ---- what was captured ---- */

struct captured_case {
	const char *lines;
	struct captured_process
		trainers[MOST_TRAINERS]; /* as they were found; of those that are used `outcome` is not 0 */
	struct run_captured captured;
};

static void expect_captured(const struct captured_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct captured_process trainers[MOST_TRAINERS];
		struct run_closing closing = {
			.kind = CLOSING_CAPTURED,
			.directory = "run",
			.captured = cases[i].captured,
			.has_recordings = true,
		};
		char *lines;

		memcpy(trainers, cases[i].trainers, sizeof(trainers));
		closing.captured.trainers = trainers;
		for (int k = 0; k < MOST_TRAINERS && trainers[k].outcome; k++)
			trainers[k].order = closing.captured.trainer_count++;
		run_captured_settle(&closing.captured);
		lines = lines_of(&closing);
		assert_string_equal(lines, cases[i].lines);
		free(lines);
	}
}

#define EXPECT_CAPTURED(cases) expect_captured(cases, sizeof(cases) / sizeof((cases)[0]))
#define TOLD(number, sentence)                                                                                         \
	{                                                                                                              \
		.rank = (number), .outcome = CAPTURED_STEPS, .told = (sentence)                                        \
	}
#define TOLD_BY(id, number, sentence)                                                                                  \
	{                                                                                                              \
		.pid = (id), .rank = (number), .outcome = CAPTURED_STEPS, .told = (sentence)                           \
	}

static void one_process_speaks_for_itself(void **state)
{
	static const struct captured_case cases[] = {
		{ALL_FIVE REPORT, {TOLD(-1, ALL_FIVE)}, {0}},
		{ALL_FIVE REPORT, {TOLD(3, ALL_FIVE)}, {0}},
		{"its process still records" REPORT,
	         {{.rank = -1, .outcome = CAPTURED_DETAIL, .end = CAPTURED_END_OPEN}},
	         {0}},
		{"the end of the recording is missing, because its buffers are gone" REPORT,
	         {{.rank = -1, .outcome = CAPTURED_DETAIL, .end = CAPTURED_END_LOST}},
	         {0}},
		{UNWRITTEN("disk full") REPORT,
	         {{.rank = -1,
	           .outcome = CAPTURED_STEPS,
	           .end = CAPTURED_END_UNWRITTEN,
	           .unwritten_reason = "disk full"}},
	         {0}},
		{ALL_FIVE "; " UNWRITTEN("disk full") REPORT,
	         {{.rank = -1, .outcome = CAPTURED_STEPS, .told = ALL_FIVE, .unwritten_reason = "disk full"}},
	         {0}},
	};

	EXPECT_CAPTURED(cases);
	(void)state;
}

static void a_killed_process_is_told_by_its_steps(void **state)
{
	static const struct {
		const char *words;
		struct captured_steps steps;
	} cases[] = {
		{"", {0}},
		{" at step 0", {.has_last = true}},
		{" at step -2", {.has_last = true, .last = -2, .counted = 4}},
		{", after 1 step (counted; the program marks no steps)", {.counted = 1}},
		{", after 9 steps (counted; the program marks no steps)", {.counted = 9, .detailed = 9}},
		{", after 9 steps (counted; the program marks no steps), none of them with operators",
	         {.counted = 9, .has_schedule = true}},
		{", after 9 steps (counted; the program marks no steps), with operators",
	         {.counted = 9, .has_schedule = true, .detailed = 9, .last_detailed = 8}},
		{", after 9 steps (counted; the program marks no steps), those from 3 to 5 with operators",
	         {.counted = 9, .has_schedule = true, .detailed = 3, .first_detailed = 3, .last_detailed = 5}},
		{", after 9 steps (counted; the program marks no steps), 2 of them from 3 to 5 with operators",
	         {.counted = 9, .has_schedule = true, .detailed = 2, .first_detailed = 3, .last_detailed = 5}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char lines[512];
		struct captured_case one = {
			.lines = lines,
			.trainers = {{.rank = -1,
		                      .outcome = CAPTURED_STEPS,
		                      .end = CAPTURED_END_COMPLETE,
		                      .steps = cases[i].steps}},
		};

		snprintf(lines, sizeof(lines), "recorded up to its end%s" REPORT, cases[i].words);
		expect_captured(&one, 1);
	}
	(void)state;
}

static void processes_with_the_same_words_are_one_group(void **state)
{
	static const struct captured_case cases[] = {
		{"4 processes, ranks 0-3: " ALL_FIVE REPORT,
	         {TOLD(2, ALL_FIVE), TOLD(0, ALL_FIVE), TOLD(3, ALL_FIVE), TOLD(1, ALL_FIVE)},
	         {0}},
		{"3 processes, rank 0, rank 2: " ALL_FIVE "; rank 1: captured step 3" REPORT,
	         {TOLD(0, ALL_FIVE), TOLD(1, "captured step 3"), TOLD(2, ALL_FIVE)},
	         {0}},
		{"2 processes, rank 1, pid 77: " ALL_FIVE REPORT, {TOLD_BY(77, -1, ALL_FIVE), TOLD(1, ALL_FIVE)}, {0}},
		{"4 processes, rank 0: a; rank 1: b; rank 2: c; the others differ, see the report" REPORT,
	         {TOLD(0, "a"), TOLD(1, "b"), TOLD(2, "c"), TOLD(3, "d")},
	         {0}},
		{"10 processes, rank 0, rank 2, rank 4, rank 6, rank 8, rank 10, rank 12, rank 14 and 2 more: a" REPORT,
	         {TOLD(0, "a"), TOLD(2, "a"), TOLD(4, "a"), TOLD(6, "a"), TOLD(8, "a"), TOLD(10, "a"), TOLD(12, "a"),
	          TOLD(14, "a"), TOLD(16, "a"), TOLD(18, "a")},
	         {0}},
	};

	EXPECT_CAPTURED(cases);
	(void)state;
}

/* A job that was started again, or two jobs in one run. */
static void a_rank_that_several_have_is_named_by_its_pids(void **state)
{
	static const struct captured_case cases[] = {
		{"4 processes, rank 0 (pid 10), rank 0 (pid 20), rank 1 (pid 11), rank 1 (pid 21): a" REPORT,
	         {TOLD_BY(10, 0, "a"), TOLD_BY(11, 1, "a"), TOLD_BY(20, 0, "a"), TOLD_BY(21, 1, "a")},
	         {0}},
		{"2 of 3 processes trained, ranks 0-1: a" REPORT,
	         {TOLD_BY(10, 0, "a"),
	          TOLD_BY(11, 1, "a"),
	          {.pid = 20, .rank = 1, .outcome = CAPTURED_NOTHING, .told = NO_MARKS}},
	         {0}},
	};

	EXPECT_CAPTURED(cases);
	(void)state;
}

static void it_speaks_for_the_best_outcome(void **state)
{
	static const struct captured_case cases[] = {
		{"1 of 3 processes trained, pid 12: a" REPORT,
	         {{.pid = 10, .rank = -1, .outcome = CAPTURED_NOTHING, .told = NO_MARKS},
	          {.pid = 11, .rank = -1, .outcome = CAPTURED_DETAIL, .told = "captured its ranges"},
	          TOLD_BY(12, -1, "a")},
	         {0}},
		{"1 of 2 processes ran operators or ranges, pid 11: captured its ranges" REPORT,
	         {{.pid = 10, .rank = -1, .outcome = CAPTURED_NOTHING, .told = NO_MARKS},
	          {.pid = 11, .rank = -1, .outcome = CAPTURED_DETAIL, .told = "captured its ranges"}},
	         {0}},
		{"2 processes, pid 10, pid 11: " NO_MARKS REPORT,
	         {{.pid = 10, .rank = -1, .outcome = CAPTURED_NOTHING, .told = NO_MARKS},
	          {.pid = 11, .rank = -1, .outcome = CAPTURED_NOTHING, .told = NO_MARKS}},
	         {0}},
	};

	EXPECT_CAPTURED(cases);
	(void)state;
}

static void workers_and_losses_follow(void **state)
{
	static const struct captured_case cases[] = {
		{"captured 1 worker process" REPORT, {{0}}, {.workers = 1}},
		{ALL_FIVE ", and 20 worker processes" REPORT, {TOLD(-1, ALL_FIVE)}, {.workers = 20}},
		{ALL_FIVE "; 1 event was dropped (0 of steps and phases), see --pool" REPORT,
	         {TOLD(-1, ALL_FIVE)},
	         {.dropped = 1}},
		{ALL_FIVE "; at least 900 events were dropped (2 of steps and phases), see --pool" REPORT,
	         {TOLD(-1, ALL_FIVE)},
	         {.dropped = 900, .dropped_coarse = 2, .is_dropped_least = true}},
		{ALL_FIVE
	         ", and 2 worker processes; the end of 1 more recording could not be written: disk full" REPORT,
	         {TOLD(-1, ALL_FIVE)},
	         {.workers = 2, .unwritten_workers = 1, .unwritten_reason = "disk full"}},
		{"1 of 2 processes trained, rank 0: a, and 2 worker processes; the end of 3 more recordings could not be "
	         "written: disk full; 5 events were dropped (0 of steps and phases), see --pool" REPORT,
	         {TOLD(0, "a"), {.rank = 1, .outcome = CAPTURED_DETAIL, .told = "b", .unwritten_reason = "disk full"}},
	         {.workers = 2, .unwritten_workers = 2, .unwritten_reason = "disk full", .dropped = 5}},
	};

	EXPECT_CAPTURED(cases);
	(void)state;
}

/* ---- all lines ---- */

static const struct fold_result at_matmul = {.has_step = true, .last_step = 17, .last_op = "matmul"};
static const struct fold_result after_matmul = {.has_step = true,
                                                .last_step = 17,
                                                .last_op = "matmul",
                                                .is_earlier_op = true,
                                                .last_op_step = 16};
static const struct fold_result after_steps = {.steps_counted = 4};

static void the_kind_decides_which_lines_there_are(void **state)
{
	static const struct {
		const char *lines;
		struct run_closing closing;
	} cases[] = {
		{"", {.kind = CLOSING_SILENT}},
		{"captured nothing: recording is off (enabled=false)",
	         {.kind = CLOSING_OFF, .off_reason = "enabled=false"}},
		{"the run directory 'runs/a' was removed while the program ran",
	         {.kind = CLOSING_REMOVED, .directory = "runs/a", .has_recordings = true}},
		{NO_CALLS "wall 1.500 s, CPU 2.000 s, peak memory 64.0 MiB" ADVICE,
	         {.kind = CLOSING_CAPTURED,
	          .directory = "run",
	          .usage = {.wall_ns = 1500000000, .cpu_ns = 2000000000, .peak_bytes = 64 << 20}}},
		{NO_CALLS "wall 1.500 s, CPU 0 ns, peak memory 0 B, read 512 B, written 0 B" REPORT ADVICE,
	         {.kind = CLOSING_CAPTURED,
	          .directory = "run",
	          .usage = {.wall_ns = 1500000000, .io = {.is_known = true, .read_bytes = 512}},
	          .has_recordings = true}},
		{NO_CALLS "wall 0 ns, CPU 0 ns, peak memory 0 B\nprocess 7 was still importing PyTorch at the "
	                  "last check: it is not recorded\nreport: stepscope report './-a b'",
	         {.kind = CLOSING_CAPTURED,
	          .directory = "./-a b",
	          .unseen = {.reason = UNSEEN_IMPORTING, .pid = 7},
	          .has_recordings = true}},
		{"the program was killed by SIGKILL (out of memory: the kernel killed a process meanwhile), last step 17, last op "
	         "'matmul'; captured 3 worker processes\nreport: stepscope report ./-run",
	         {.kind = CLOSING_CAPTURED,
	          .directory = "-run",
	          .was_killed = true,
	          .end = {.has_status = true, .wait_status = SIGKILL, .is_out_of_memory = true, .place = &at_matmul},
	          .captured = {.workers = 3},
	          .has_recordings = true}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *lines = lines_of(&cases[i].closing);

		assert_string_equal(lines, cases[i].lines);
		free(lines);
	}
	(void)state;
}

static void a_death_names_the_process_and_its_place(void **state)
{
	static const struct {
		const char *words;
		struct run_end end;
	} cases[] = {
		{"rank 3 (pid 42) was killed by SIGSEGV, last step 17, last op 'matmul'",
	         {.pid = 42, .rank = 3, .has_status = true, .wait_status = SIGSEGV, .place = &at_matmul}},
		{"process 42 exited with status 7, last step 17, last op 'matmul' of step 16",
	         {.pid = 42, .rank = -1, .has_status = true, .wait_status = EXITED(7), .place = &after_matmul}},
		{"process 42 ended with unknown exit status, after 4 steps (counted; the program marks no steps)",
	         {.pid = 42, .rank = -1, .place = &after_steps}},
		{"worker 42 was killed by SIGKILL (out of memory: the kernel killed a process meanwhile)",
	         {.pid = 42,
	          .rank = 3,
	          .is_worker = true,
	          .has_status = true,
	          .wait_status = SIGKILL,
	          .is_out_of_memory = true}},
		{"rank 0 (pid 42) was killed by signal 34",
	         {.pid = 42, .rank = 0, .has_status = true, .wait_status = 34}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buffer text;

		buffer_init(&text, RUN_WORDS_BYTES);
		run_words_death(&text, &cases[i].end);
		assert_string_equal(text.data, cases[i].words);
		buffer_release(&text);
	}
	(void)state;
}

static void an_unseen_process_comes_with_the_remedy(void **state)
{
	static const struct {
		const char *words;
		struct unseen_found unseen;
	} cases[] = {
		{"", {UNSEEN_NONE, 0, 0}},
		{"process 7 was still importing PyTorch at the last check: it is not recorded",
	         {UNSEEN_IMPORTING, 7, 'E'}},
		{"process 7 ran PyTorch unobserved: Python was started with -E; put `import stepscope; stepscope.auto()` at "
	         "the top of its script, with stepscope installed for that Python",
	         {UNSEEN_FLAG, 7, 'E'}},
		{"process 7 ran PyTorch unobserved: its PYTHONPATH lacks the directory that `stepscope run` added "
	         "(PYTHONPATH=src:$PYTHONPATH keeps it); put `import stepscope; stepscope.auto()` at the top of its "
	         "script, with stepscope installed for that Python",
	         {UNSEEN_OFF_PATH, 7, 0}},
		{"process 7 ran PyTorch unobserved: its Python did not load the package stepscope; put `import stepscope; "
	         "stepscope.auto()` at the top of its script",
	         {UNSEEN_NO_PACKAGE, 7, 0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buffer text;

		buffer_init(&text, RUN_WORDS_BYTES);
		run_words_unseen(&text, &cases[i].unseen);
		assert_string_equal(text.data, cases[i].words);
		buffer_release(&text);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_speaks_for_itself),
		cmocka_unit_test(a_killed_process_is_told_by_its_steps),
		cmocka_unit_test(processes_with_the_same_words_are_one_group),
		cmocka_unit_test(a_rank_that_several_have_is_named_by_its_pids),
		cmocka_unit_test(it_speaks_for_the_best_outcome),
		cmocka_unit_test(workers_and_losses_follow),
		cmocka_unit_test(the_kind_decides_which_lines_there_are),
		cmocka_unit_test(a_death_names_the_process_and_its_place),
		cmocka_unit_test(an_unseen_process_comes_with_the_remedy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
