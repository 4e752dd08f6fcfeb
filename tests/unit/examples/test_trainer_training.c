/* SPDX-License-Identifier: Apache-2.0 */
/* Short runs of the example trainer on the text in the repository: the loss falls, the same seed gives the same run,
 * and a run can go on from a checkpoint. A run is over, threads included, before anything about it is checked. */
#include "trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST_STEPS 64

struct result {
	int status;
	long steps;
	double loss[MOST_STEPS], data_wait_ns[MOST_STEPS];
	size_t peak_bytes;
	struct failure failure;
};

/* Runs the trainer with the options, which end with NULL. */
static struct result run(const char *const *options)
{
	static const char *const small[] = {"test",      "--layers", "2",       "--dim", "32",      "--heads", "2",
	                                    "--context", "32",       "--batch", "4",     "--quiet", NULL};
	struct result result = {0};
	struct trainer trainer;
	struct settings settings;
	struct ranks ranks = {.size = 1, .descriptor = -1};
	char *arguments[64];
	int count = 0;
	for (int i = 0; small[i] != NULL; i++)
		arguments[count++] = (char *)(uintptr_t)small[i];
	for (int i = 0; options[i] != NULL; i++)
		arguments[count++] = (char *)(uintptr_t)options[i];
	result.status = settings_parse(&settings, count, arguments, &result.failure);
	if (result.status == 0) {
		result.status = trainer_init(&trainer, &settings, &ranks, &result.failure);
		if (result.status == 0)
			result.status = trainer_run(&trainer, &result.failure);
		for (long i = 0; i < trainer.stamps.count && i < MOST_STEPS; i++) {
			result.loss[i] = trainer.stamps.stamps[i].loss;
			result.data_wait_ns[i] = (double)trainer.stamps.stamps[i].data_wait_ns;
			result.steps = i + 1;
		}
		result.peak_bytes = trainer.engine.memory.peak_bytes;
		if (trainer_release(&trainer, &result.failure) != 0)
			result.status = -1;
	}
	settings_release(&settings);
	return result;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void assert_succeeded(const struct result *result)
{
	if (result->status != 0)
		print_error("%s\n", result->failure.text);
	assert_int_equal(result->status, 0);
}

static void assert_same_losses(const struct result *a, const struct result *b)
{
	assert_succeeded(a);
	assert_succeeded(b);
	assert_int_equal(a->steps, b->steps);
	assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
}

static void the_loss_falls(void **state)
{
	struct result result = RUN("--steps", "60", "--lr", "0.01", "--batch", "16");
	double before = 0, after = 0;
	(void)state;
	assert_succeeded(&result);
	for (int i = 0; i < 5; i++) {
		before += result.loss[i] / 5;
		after += result.loss[55 + i] / 5;
	}
	print_message("# loss %.3f -> %.3f\n", before, after);
	assert_true(before > 3.5 && before < log(64) + 0.1); /* nearly blind at first */
	assert_true(after < 3.1);                            /* knows more than how often each letter occurs: 3.3 */
}

static void a_seed_gives_the_same_run_with_any_threads(void **state)
{
	struct result one = RUN("--steps", "8"), again = RUN("--steps", "8");
	struct result threads = RUN("--steps", "8", "--workers", "3", "--loader-threads", "3", "--queue", "5");
	struct result other = RUN("--steps", "8", "--seed", "2");
	(void)state;
	assert_same_losses(&one, &again);
	assert_same_losses(&one, &threads);
	assert_true(other.loss[7] != one.loss[7]);
}

static void a_run_goes_on_from_a_checkpoint(void **state)
{
	char folder[] = "/tmp/trainer-test-XXXXXX", file[64];
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/checkpoint.bin", folder);
	struct result whole = RUN("--steps", "10");
	struct result half = RUN("--steps", "6", "--checkpoint-every", "2", "--out", folder);
	struct result rest = RUN("--steps", "10", "--resume", file);
	struct result other = RUN("--steps", "10", "--resume", file, "--dim", "64");
	FILE *damage = fopen(file, "r+b");
	assert_non_null(damage);
	fseek(damage, 1000, SEEK_SET);
	int byte = fgetc(damage);
	fseek(damage, 1000, SEEK_SET);
	fputc(byte ^ 1, damage);
	fclose(damage);
	struct result damaged = RUN("--steps", "10", "--resume", file);
	unlink(file);
	rmdir(folder);
	assert_succeeded(&whole);
	assert_succeeded(&half);
	assert_succeeded(&rest);
	assert_int_equal(rest.steps, 4);
	assert_memory_equal(rest.loss, whole.loss + 6, 4 * sizeof(double));
	assert_int_equal(other.status, -1);
	assert_non_null(strstr(other.failure.text, "another model"));
	assert_int_equal(damaged.status, -1);
	assert_non_null(strstr(damaged.failure.text, "checksum"));
}

/* The delays are many times a step of this size, so that a busy machine does not hide them. */
static void a_slow_loader_makes_steps_wait(void **state)
{
	struct result slow = RUN("--steps", "10", "--accumulate", "1", "--fault", "slow-loader=200");
	struct result some = RUN("--steps", "12", "--accumulate", "1", "--queue", "1", "--fault",
	                         "slow-loader-every=4,400");
	(void)state;
	assert_succeeded(&slow);
	assert_succeeded(&some);
	for (int i = 5; i < 10; i++)
		assert_true(slow.data_wait_ns[i] > 10e6);
	for (int i = 3; i < 12; i += 4)
		assert_true(some.data_wait_ns[i] > 30e6);
}

static void a_nan_spreads_from_its_step(void **state)
{
	struct result result = RUN("--steps", "6", "--fault", "nan=3");
	(void)state;
	assert_succeeded(&result);
	for (int i = 0; i < 6; i++)
		assert_true(isnan(result.loss[i]) == (i >= 3));
}

static void a_leak_grows_with_the_steps(void **state)
{
	struct result tight = RUN("--steps", "8"), leaky = RUN("--steps", "8", "--fault", "leak=100");
	(void)state;
	assert_same_losses(&tight, &leaky);
	assert_true(leaky.peak_bytes >= tight.peak_bytes + 7 * 100 * 1024);
}

static void text_that_is_missing_or_short_is_refused(void **state)
{
	struct result missing = RUN("--steps", "1", "--data", "/nonexistent/text");
	struct result empty = RUN("--steps", "1", "--data", "/dev/null");
	(void)state;
	assert_int_equal(missing.status, -1);
	assert_non_null(strstr(missing.failure.text, "cannot read '/nonexistent/text'"));
	assert_int_equal(empty.status, -1);
	assert_non_null(strstr(empty.failure.text, "/dev/null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loss_falls),
		cmocka_unit_test(a_seed_gives_the_same_run_with_any_threads),
		cmocka_unit_test(a_run_goes_on_from_a_checkpoint),
		cmocka_unit_test(a_slow_loader_makes_steps_wait),
		cmocka_unit_test(a_nan_spreads_from_its_step),
		cmocka_unit_test(a_leak_grows_with_the_steps),
		cmocka_unit_test(text_that_is_missing_or_short_is_refused),
	};
	openblas_set_num_threads(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
