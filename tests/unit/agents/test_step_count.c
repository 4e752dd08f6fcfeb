/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps counted while they happen: loops as people write them, as what they tell, and how many steps had ended at each of their steps.
 */
#include "agents/torch/count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct step_count count;
static unsigned ended;

static int begin(void **state)
{
	memset(&count, 0, sizeof(count));
	ended = 0;
	return 0;
}

static unsigned call(uint64_t identity, bool is_new, bool is_inside, bool is_closure)
{
	return count_call(&count, &(struct counted_call){identity, is_new, is_inside, is_closure});
}

/* d batch, f operator, b backward that trains, z zero_grad, s scaler, A.. call of that optimizer, ? of one that is not known, + before one
 * that was made since the call before, ( before one with a closure. */
static void tell(const char *what)
{
	bool is_new = false, is_closure = false;

	for (; *what; what++) {
		if (*what == 'd')
			ended += count_batch(&count);
		else if (*what == 'f')
			ended += count_operator(&count);
		else if (*what == 'b')
			ended += count_backward(&count);
		else if (*what == 'z')
			count_zero_grad(&count);
		else if (*what == 's')
			ended += count_scaler(&count);
		else if (*what != '+' && *what != '(')
			ended += call(*what == '?' ? 0 : (uint64_t)*what << 32, is_new, false, is_closure);
		is_new = *what == '+';
		is_closure = *what == '(';
	}
}

static void made(unsigned optimizers)
{
	while (optimizers--)
		count_made(&count);
}

static void one_optimizer(void **state)
{
	made(1);
	for (unsigned step = 0; step < 5; step++) {
		tell("dfzb");
		assert_int_equal(ended, step);
		tell("A");
		assert_int_equal(ended, step + 1);
	}
}

static void accumulation(void **state)
{
	made(1);
	for (unsigned step = 0; step < 5; step++) {
		tell("dfbdfbdfb");
		assert_int_equal(ended, step);
		tell("Az");
		assert_int_equal(ended, step + 1);
	}
}

static void two_networks(void **state)
{
	made(2);
	for (unsigned step = 0; step < 5; step++) {
		tell("dzfbAzfb");
		assert_int_equal(ended, step);
		tell("B");
		assert_int_equal(ended, step + 1);
	}
}

/* The second optimizer is never called: its absence shows at the second step. */
static void one_that_is_never_called(void **state)
{
	made(2);
	tell("dzfbA");
	assert_int_equal(ended, 0);
	for (unsigned step = 1; step < 5; step++) {
		tell("dzfbA");
		assert_int_equal(ended, step + 1);
	}
}

static void one_that_is_called_at_times(void **state)
{
	made(2);
	tell("dfbAdfbAdfbAfbB");
	assert_int_equal(ended, 3);
	tell("dfbAdfbAdfbAfbB");
	assert_int_equal(ended, 6);
}

static void one_inside_of_another(void **state)
{
	made(2);
	for (unsigned step = 0; step < 3; step++) {
		tell("dfbfb");
		assert_int_equal(call(7, false, true, false), 0);
		tell("A");
		assert_int_equal(ended, step + 1);
	}
}

static void another_takes_over(void **state)
{
	made(1);
	tell("dfzbAdfzbA");
	made(1);
	tell("dfzbBdfzbB");
	assert_int_equal(ended, 4);
}

/* At most two at a time, so each lies where the one before the last did. */
static void a_new_one_for_each_step(void **state)
{
	for (unsigned step = 0; step < 6; step++) {
		made(1);
		tell("fb");
		assert_int_equal(ended, step);
		tell(step % 2 ? "+B" : "+A");
		assert_int_equal(ended, step + 1);
	}
}

static void a_new_one_at_the_same_place_for_each_step(void **state)
{
	for (unsigned step = 0; step < 6; step++) {
		made(1);
		tell("dfb+A");
		assert_int_equal(ended, step + 1);
	}
}

static void a_new_pair_for_each_epoch(void **state)
{
	for (unsigned epoch = 0; epoch < 3; epoch++) {
		made(2);
		tell(epoch % 2 ? "fb+B" : "fb+A"); /* each lies where another one was */
		assert_int_equal(ended, 3 * epoch);
		tell(epoch % 2 ? "fbA" : "fbB");
		assert_int_equal(ended, 3 * epoch + 1);
		tell(epoch % 2 ? "fbBfbAfbBfbA" : "fbAfbBfbAfbB");
		assert_int_equal(ended, 3 * epoch + 3);
	}
}

/* Both are there from the start, so the first step of the first is known to have ended at its second. */
static void training_goes_on_with_a_closure(void **state)
{
	made(2);
	tell("fbAfbAfbA");
	assert_int_equal(ended, 3);
	tell("b(B");
	assert_int_equal(ended, 4);
	tell("b(Bb(B");
	assert_int_equal(ended, 6);
}

/* It could have been the second network of the step before, until it comes again. */
static void training_goes_on_with_another(void **state)
{
	made(2);
	tell("fbAfbAfbA");
	tell("fbB");
	assert_int_equal(ended, 3);
	tell("fbB");
	assert_int_equal(ended, 5);
	tell("fbB");
	assert_int_equal(ended, 6);
}

static void training_goes_on_with_another_on_the_same_batch(void **state)
{
	made(2);
	tell("dfbAfbAfbAfbBfbBfbB");
	assert_int_equal(ended, 6);
	tell("dfbB");
	assert_int_equal(ended, 7);
}

static void networks_that_have_closures(void **state)
{
	made(2);
	for (unsigned step = 0; step < 4; step++) {
		tell("b(A");
		assert_int_equal(ended, step);
		tell("b(B");
		assert_int_equal(ended, step + 1);
	}
}

static void a_scaler_that_leaves_updates_out(void **state)
{
	made(1);
	tell("fzbAsfzbs");
	assert_int_equal(ended, 2);
	tell("fzbAs");
	assert_int_equal(ended, 3);
	for (unsigned step = 3; step < 12; step++) {
		tell(step % 4 ? "fzbAs" : "fzbs");
		assert_int_equal(ended, step + 1);
	}
}

static void behind_an_update_that_was_left_out(void **state)
{
	made(1);
	tell("fzbAsfzbsfzbAsfzbAsfzbAs");
	assert_int_equal(ended, 5);
	begin(NULL);
	made(2);
	tell("dfzbAfzbBs");
	assert_int_equal(ended, 1);
	tell("dfzbsdfzbA");
	assert_int_equal(ended, 2);
	tell("fzbBs");
	assert_int_equal(ended, 3);
}

static void gradients_thrown_away(void **state)
{
	made(1);
	tell("dfzbA");
	tell("dfzb");
	assert_int_equal(ended, 1);
	tell("dfzb"); /* only now is it known */
	assert_int_equal(ended, 2);
	tell("A");
	assert_int_equal(ended, 3);
}

static void gradients_thrown_away_without_batches(void **state)
{
	made(1);
	tell("fbAzfbAzfbAzfbz");
	assert_int_equal(ended, 3);
	tell("fb"); /* only now is it known */
	assert_int_equal(ended, 4);
	tell("Az");
	assert_int_equal(ended, 5);
	begin(NULL);
	made(1);
	tell("fbzfbzfbAzfbzfbzfbAz"); /* several losses that are looked at one by one */
	assert_int_equal(ended, 2);
}

static void without_optimizer(void **state)
{
	tell("dfb");
	assert_int_equal(ended, 0);
	tell("f"); /* the update by hand */
	assert_int_equal(ended, 1);
	tell("dfbd");
	assert_int_equal(ended, 2);
}

static void optimizers_in_the_backward(void **state)
{
	made(4);
	tell("dfb");
	count_hooked(&count);
	tell("dfbd");
	assert_int_equal(ended, 2);
}

/* In a forked child: what its parent made is the child's, and of no interest once the child makes its own. */
static void a_child_with_the_optimizer_of_its_parent(void **state)
{
	made(2);
	count_forked(&count);
	for (unsigned step = 0; step < 3; step++) {
		tell("dzfbAzfb");
		assert_int_equal(ended, step);
		tell("B");
		assert_int_equal(ended, step + 1);
	}
}

static void a_child_with_an_optimizer_of_its_own(void **state)
{
	made(1);
	count_forked(&count);
	made(1);
	for (unsigned step = 0; step < 3; step++) {
		tell("dzfb");
		assert_int_equal(ended, step);
		tell("B");
		assert_int_equal(ended, step + 1);
	}
}

static void a_child_that_goes_on(void **state)
{
	made(3);
	tell("dzfbAzfbBdzfbAzfbB");
	assert_int_equal(ended, 2);
	count_forked(&count);
	tell("dzfbA");
	assert_int_equal(ended, 2);
	tell("zfbB");
	assert_int_equal(ended, 3);
}

static void a_child_that_goes_on_with_an_optimizer_of_its_own(void **state)
{
	made(1);
	tell("dzfbAdzfbA");
	count_forked(&count);
	made(1);
	tell("zfb");
	assert_int_equal(ended, 2);
	tell("B");
	assert_int_equal(ended, 3);
}

static void optimizers_that_are_not_known(void **state)
{
	made(2);
	tell("dfb?fb?dfb?fb?");
	assert_int_equal(ended, 2);
}

static void more_optimizers_than_there_is_room_for(void **state)
{
	for (unsigned step = 0; step < 3; step++) {
		for (uint64_t i = 1; i <= 2 * COUNT_OPTIMIZERS; i++)
			ended += call(i << 20, false, false, false);
	}
	assert_in_range(ended, 1, 3 * COUNT_OPTIMIZERS); /* wrong, but it ends */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_optimizer, begin),
		cmocka_unit_test_setup(accumulation, begin),
		cmocka_unit_test_setup(two_networks, begin),
		cmocka_unit_test_setup(one_that_is_never_called, begin),
		cmocka_unit_test_setup(one_that_is_called_at_times, begin),
		cmocka_unit_test_setup(one_inside_of_another, begin),
		cmocka_unit_test_setup(another_takes_over, begin),
		cmocka_unit_test_setup(a_new_one_for_each_step, begin),
		cmocka_unit_test_setup(a_new_one_at_the_same_place_for_each_step, begin),
		cmocka_unit_test_setup(a_new_pair_for_each_epoch, begin),
		cmocka_unit_test_setup(training_goes_on_with_a_closure, begin),
		cmocka_unit_test_setup(training_goes_on_with_another, begin),
		cmocka_unit_test_setup(training_goes_on_with_another_on_the_same_batch, begin),
		cmocka_unit_test_setup(networks_that_have_closures, begin),
		cmocka_unit_test_setup(a_scaler_that_leaves_updates_out, begin),
		cmocka_unit_test_setup(behind_an_update_that_was_left_out, begin),
		cmocka_unit_test_setup(gradients_thrown_away, begin),
		cmocka_unit_test_setup(gradients_thrown_away_without_batches, begin),
		cmocka_unit_test_setup(without_optimizer, begin),
		cmocka_unit_test_setup(optimizers_in_the_backward, begin),
		cmocka_unit_test_setup(a_child_with_the_optimizer_of_its_parent, begin),
		cmocka_unit_test_setup(a_child_with_an_optimizer_of_its_own, begin),
		cmocka_unit_test_setup(a_child_that_goes_on, begin),
		cmocka_unit_test_setup(a_child_that_goes_on_with_an_optimizer_of_its_own, begin),
		cmocka_unit_test_setup(optimizers_that_are_not_known, begin),
		cmocka_unit_test_setup(more_optimizers_than_there_is_room_for, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
