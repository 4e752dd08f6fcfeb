/* SPDX-License-Identifier: Apache-2.0
 *
 * test_step_budget.c: which steps of a program have operators, by the recording that it leaves. What N is chosen when is a matter of
 * tests/unit/recorder/test_budget.c, which has a clock of its own.
 */
#include "harness.h"
#include "recorder/budget.h"
#include "recording.h"

#include <stepscope/stepscope.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS 320
#define MANY 50000

static void spin_us(int64_t us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static void run_steps(int64_t first, int64_t steps, int operators, int64_t us)
{
	for (int64_t number = first; number < first + steps; number++) {
		stepscope_step_begin(number);
		for (int i = 0; i < operators; i++) {
			stepscope_op_begin("operator");
			stepscope_op_end();
		}
		if (us)
			spin_us(us);
		stepscope_step_end();
	}
}

static void victim_short(int argc, char **argv)
{
	run_steps(1000, STEPS, 1, 0);
}

static void victim_cheap(int argc, char **argv)
{
	run_steps(0, STEPS, 10, 500);
}

static void victim_expensive(int argc, char **argv)
{
	run_steps(0, STEPS, MANY, 0);
}

static void victim_without_steps(int argc, char **argv)
{
	for (int i = 0; i < STEPS; i++) {
		stepscope_op_begin("operator");
		stepscope_op_end();
	}
}

/* A worker has no steps: it goes on as its parent did, here before and in the first step, which has no operators. */
static void victim_workers(int argc, char **argv)
{
	pid_t child;

	stepscope_op_begin("before");
	stepscope_op_end();
	for (int i = 0; i < 2; i++) {
		if (i)
			stepscope_step_begin(0);
		child = fork();
		if (child == 0) {
			for (int k = 0; k < 5; k++) {
				stepscope_op_begin("in the worker");
				stepscope_op_end();
			}
			stepscope_shutdown();
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	stepscope_step_end();
}

/* Its operators have inputs and an element type. */
static void victim_shaped(int argc, char **argv)
{
	const struct stepscope_op_info info = {
		.input_count = 1, .rank = {1}, .shape = {{8}}, .dtype = STEPSCOPE_DTYPE_F32};

	for (int64_t number = 1000; number < 1000 + STEPS; number++) {
		stepscope_step_begin(number);
		stepscope_op_begin_info(stepscope_name(STEPSCOPE_KIND_OP, "operator"), &info);
		stepscope_op_end();
		stepscope_step_end();
	}
}

static uint64_t count_of(const char *victim, const char *options, enum stepscope_event event)
{
	struct recording *recording;
	uint64_t begun;

	harness.options = options;
	CHECK(harness_run(victim, NULL) == 0);
	recording = recording_read(harness.directory);
	CHECK_EQUAL(recording_drops(recording, STEPSCOPE_EVENT_BEGIN), 0);
	begun = recording_sum(recording, event);
	recording_free(recording);
	return begun;
}

static uint64_t operators_of(const char *victim, const char *options)
{
	return count_of(victim, options, STEPSCOPE_EVENT_BEGIN);
}

static uint64_t expected(unsigned bits)
{
	uint64_t count = 0;

	for (int64_t number = 1000 + BUDGET_SKIPPED; number < 1000 + STEPS; number++)
		count += budget_selects(number, bits);
	return count;
}

static void a_fixed_number_records_the_steps_of_its_set(void)
{
	CHECK_EQUAL(operators_of("short", "keep_size=0,cost_every=8"), expected(3));
}

static void a_fixed_number_becomes_a_power_of_two(void)
{
	CHECK_EQUAL(operators_of("short", "keep_size=0,cost_every=9"), expected(4));
}

static void one_leaves_out_two_of_each_32(void)
{
	CHECK_EQUAL(operators_of("short", "keep_size=0,cost_every=1"), expected(0));
	CHECK(expected(0) < STEPS - 2 * (STEPS / 32));
}

static void what_was_asked_for_is_whole(void)
{
	CHECK_EQUAL(operators_of("short", "keep_size=0,steps=all,budget=1%"), STEPS);
}

static void without_a_budget_all_is_recorded(void)
{
	CHECK_EQUAL(operators_of("short", "keep_size=0,budget=none"), STEPS);
}

static void cheap_operators_are_in_most_steps(void)
{
	CHECK(operators_of("cheap", "keep_size=0,budget=3%") > 10 * STEPS / 2);
}

static void expensive_operators_are_in_fewer_steps(void)
{
	uint64_t begun = operators_of("expensive", "keep_size=0,budget=3%,pool=64M");

	CHECK(begun >= MANY);
	/* Two where nobody disturbs it. A machine that stops the program in a step without operators makes them look cheap for a while: no bound
	 * that depends on the clock. Without a controller they are in expected(0) of them. */
	CHECK(begun < MANY * expected(0));
}

static void a_program_without_steps_is_whole(void)
{
	CHECK_EQUAL(operators_of("without_steps", "keep_size=0,budget=3%"), STEPS);
}

/* In a part of them inputs are what PyTorch is asked for. */
static void what_a_program_tells_of_inputs_is_in_all_chosen_steps(void)
{
	CHECK_EQUAL(count_of("shaped", "keep_size=0,cost_every=8,with=shapes", STEPSCOPE_EVENT_ARG), 2 * expected(3));
}

static void inputs_are_kept_only_where_they_are_asked_for(void)
{
	CHECK_EQUAL(count_of("shaped", "keep_size=0,cost_every=8", STEPSCOPE_EVENT_ARG), 0);
}

static void workers_go_on_as_their_parent_did(void)
{
	if (IS_THREAD_SANITIZED)
		harness_skip("its library cannot start threads in forked children");
	CHECK_EQUAL(operators_of("workers", "keep_size=0,budget=3%"), 1 + 5);
}

HARNESS_MAIN(LIST(VICTIM(short), VICTIM(cheap), VICTIM(expensive), VICTIM(without_steps), VICTIM(workers),
                  VICTIM(shaped)),
             LIST(TEST(a_fixed_number_records_the_steps_of_its_set), TEST(a_fixed_number_becomes_a_power_of_two),
                  TEST(one_leaves_out_two_of_each_32), TEST(what_was_asked_for_is_whole),
                  TEST(without_a_budget_all_is_recorded), TEST(cheap_operators_are_in_most_steps),
                  TEST(expensive_operators_are_in_fewer_steps), TEST(a_program_without_steps_is_whole),
                  TEST(what_a_program_tells_of_inputs_is_in_all_chosen_steps),
                  TEST(inputs_are_kept_only_where_they_are_asked_for), TEST(workers_go_on_as_their_parent_did)))
