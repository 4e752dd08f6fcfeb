/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of small training loops, which are drawn as letters: calls of optimizers that end a step, updates that are skipped, and the
 * step that a kill leaves open.
 */
#include "base/memory.h"
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool is_uncertain(const char *text)
{
	struct loop loop;
	bool result;

	read_loop(&loop, text);
	result = loop.inference.is_joined || loop.inference.is_each_update;
	inference_release(&loop.inference);
	return result;
}

static void a_step_ends_with_the_optimizer(void **state)
{
	check("DFZB1DFZB1E", "0000011111.", "df.bodf.bod");
	check("DFZBPDFZBPE", "0000011111.", "df.bodf.bod");
	check("FZB1FZB1", "00001111", "f.bof.bo");
	check("oooDFB1oDFB1", "...000011111", "...dfbo.dfbo");
	assert_false(is_uncertain("DFZBPDFZBPE"));
}

static void operators_between_belong_to_the_forward(void **state)
{
	check("DoFoFoBo1", "000000000", "d.fff.b.o");
}

static void several_optimizers_make_one_step(void **state)
{
	check("DFB12DFB12", "0000011111", "dfboodfboo");
	check("DFBPPDFBPP", "0000011111", "dfboodfboo");
	check("DZFB1ZFB2DZFB1ZFB2", "000000000111111111", NULL);
	check("ZFB1ZFB2ZFB1ZFB2", "0000000011111111", NULL);
}

static void names_alone_join_what_has_one_batch(void **state)
{
	check("DZFBPZFBPDZFBPZFBP", "000000000111111111", NULL);
	assert_true(is_uncertain("DZFBPZFBPDZFBPZFBP"));
	assert_false(is_uncertain("DZFB1ZFB2DZFB1ZFB2"));
	/* without a loader there is nothing to join by */
	check("FBPFBP", "000111", NULL);
	assert_true(is_uncertain("FBPFBP"));
	assert_false(is_uncertain("FB1FB1"));
	assert_false(is_uncertain("FBPP"));
}

/* As in a trace of one of several threads. */
static void without_any_backward_each_update_ends_a_step(void **state)
{
	check("oPoPoP", ".01122", NULL);
	check("DoPDoPDoP", "000111222", NULL);
	assert_true(is_uncertain("oPoPoP"));
	check("DFBPoPDFBPoP", "000000111111", NULL);
}

static void several_updates_of_a_batch(void **state)
{
	check("DFB1FB1FB1DFB1", "00001112223333", NULL);
	check("DFB1DFB1DFB12DFB1", "00001111222223333", NULL);
}

static void training_goes_on_with_another_optimizer(void **state)
{
	check("DFB1DFB1DFB2DFB2", "0000111122223333", NULL);
	check("FB1FB1FB2FB2", "000111222333", NULL);
	check("DFB1DFB1DFB12DFB1DFB12", "0000111122222333344444", NULL);
	/* each network has its own batch */
	check("DFB1DFB2DFB1DFB2", "0000000011111111", NULL);
	/* several steps of one batch, with one optimizer and then another */
	check("DFB1FB1FB2FB2", "0000111222333", NULL);
	check("DFB1FB2DFB1FB2", "00000001111111", NULL);
	/* with a closure, also when it is called once only */
	check("FB1FB1FB12(FB)2(FB)", "0001112223333344444", NULL);
	check("FB1FB1FB12(FB)", "00011122233333", NULL);
	check("DFB1DFB1DFB1D2(FB)", "000011112222333333", NULL);
	check("DFB1FB1FB12(FB)", "000011122233333", NULL);
	check("D1(FB)2(FB)D1(FB)2(FB)", "0000000000011111111111", NULL);
	/* the last call of all */
	check("DFB1DFB1DFB2", "000011112222", NULL);
	check("DFB1DFB2", "00000000", NULL);
}

static void an_optimizer_that_is_made_anew_begins_a_step(void **state)
{
	check("FBiFBjFBk", "000111222", NULL);
	check("DFBiDFBjDFBk", "000011112222", NULL);
	/* a pair each time: the second was there when the first was called */
	check("DFBiDFB1DFBjDFB2", "0000000011111111", NULL);
	check("FBiFB1FBjFB2", "000000111111", NULL);
	check("DFBiFB1DFBjFB2", "00000001111111", NULL);
	/* on the same gradients, or the same batch, it is another part of the step */
	check("FBijFBij", "00001111", NULL);
	check("DFBiFBjDFBk", "00000001111", NULL);
	/* one for the inner updates of each step of another */
	check("FBiFB9FBjFB9FBkFB9", "000000111111222222", NULL);
}

static void a_closure_is_a_step(void **state)
{
	check("ooDP(ZFBZFB)DP(ZFB)", "..00000000001111111", "..d...fb.fbod...fbo");
	check("D1(FoFBooFB)", "000000000000", "d..fffb..fbo");
	check("D1(DFB)", "0000000", "d..dfbo");
	/* the optimizer's own work has no numbers, as it turns gradients off; what the closure prepares has none either */
	check("D1(oFBopp)", "0000000000", "d...fb.ooo");
	check("D1(pFBpoop)", "00000000000", "d...fbooooo");
	check("D1(ppZFBppZFBp)", "000000000000000", "d.....fboo.fboo");
	/* in a range of the program's, which no phase cuts */
	check("D1([FB]p)", "000000000", "d...fb.oo");
	check("D1([F[B]o]p)", "000000000000", "d...f.b...oo");
	check("D1([FB][p])", "00000000000", "d...fb..o..");
	check("D1([F[B]])", "0000000000", "d...f.b..o");
	check("D1(FB)D1(FB)", "000000111111", NULL);
	check("oP(FB)P(FB)", ".0000011111", NULL);
	/* an optimizer around another one */
	check("DFB1(2)DFB1(2)", "00000001111111", NULL);
}

static void accumulation_is_one_step(void **state)
{
	check("DFBDFBDFB1ZDFBDFB1", "000000000011111111", NULL);
	check("DFBDFBDFBPZDFBDFBP", "000000000011111111", "dfbdfbdfbo.dfbdfbo");
}

/* An attack leaves gradients, which are thrown away before the batch is learnt from; and is evaluated without one. */
static void gradients_of_the_same_batch_are_no_skipped_update(void **state)
{
	check("DFBZFB1FaDFaZFB1DFaZFB1", "00000001111111112222222", NULL);
	check("DFBZDFB1", "00011111", NULL);
	check("DFBDFBZDFB1", "00000011111", NULL); /* gathered, then thrown away */
}

static void optimizers_of_different_rates_are_said(void **state)
{
	struct loop loop;

	read_loop(&loop, "DFB1DFB1DFB12DFB1DFB1DFB12");
	assert_int_equal(loop.inference.step_count, 6);
	assert_int_equal(loop.inference.rare_calls, 2);
	assert_int_equal(loop.inference.rare_steps, 4);
	inference_release(&loop.inference);
	/* the policy learns twice at every second step of its critic */
	read_loop(&loop, "FB1FB2FB3FB2FB3FB1FB1FB2FB3FB2FB3FB1");
	assert_int_equal(loop.inference.step_count, 4);
	assert_int_equal(loop.inference.rare_calls, 2);
	assert_int_equal(loop.inference.rare_steps, 3);
	inference_release(&loop.inference);
	for (const char *const *even = (const char *const[]){"DFB12DFB12", "DFB1DFB1DFB2DFB2", "DZFB1DZFBDZFB1", NULL};
	     *even; even++) {
		read_loop(&loop, *even);
		assert_int_equal(loop.inference.rare_calls, 0);
		inference_release(&loop.inference);
	}
}

/* None is called more often than the one that is called first, over all. */
static void the_first_optimizer_sets_the_pace_of_others(void **state)
{
	check("FB1FB2FB3FB2FB3FB1FB1FB2FB3FB2FB3FB1", "000000000000000111222222222222222333", NULL);
	check("FB1FB1FB2FB3FB2FB3FB1FB1FB2FB3FB2FB3", "000111111111111111222333333333333333", NULL);
	/* ends behind a turn: once more of the others */
	check("FB1FB2FB3FB2FB3FB1FB1FB2FB3FB2FB3", "000000000000000111222222222222222", NULL);
	/* behind an optimizer that is called no more */
	check("FB9FB9FB1FB2FB3FB2FB3FB1FB1FB2FB3FB2FB3FB1", "000111111111111111111222333333333333333444", NULL);
	/* others that are called more often make steps of their own */
	check("FB1FB2FB3FB2FB3FB1FB2FB3FB2FB3FB1FB2FB3FB2FB3", "000000000111111111222222333333333444444555555", NULL);
	/* nor does one that is called no more set their pace */
	check("FB1FB1FB1FB1FB1FB2FB3FB2FB3", "000111222333444444444555555", NULL);
}

static void skipped_updates_are_steps(void **state)
{
	check("DZFB1DZFBDZFB1", "00000111122222", NULL);
	check("DZFBPDZFBDZFBP", "00000111122222", NULL);
	check("DFZBDFZB1", "000011111", NULL);
	check("ZFB1SZFBSZFB1S", "0000111122222.", NULL);
	/* two optimizers, of which one skips; two backwards */
	check("DZFB1ZFBSDZFB1ZFB2S", "000000001111111111.", NULL);
	check("DZFBZFB1DZFBZFB1", "0000000011111111", NULL);
}

static size_t thrown_away(const char *text)
{
	struct loop loop;

	read_loop(&loop, text);
	size_t result = loop.inference.thrown_away;
	inference_release(&loop.inference);
	return result;
}

static void skipped_updates_without_batches_are_steps_and_said(void **state)
{
	check("FB1ZFB1ZFB1ZFBZFB1Z", "000111122223334444.", NULL);
	check("ZFB1ZFB1ZFB1ZFBZFB1", "0000111122223334444", NULL);
	check("FZB1FZB1FZB1FZBFZB1", "0000111122223334444", NULL);
	assert_int_equal(thrown_away("FB1ZFB1ZFB1ZFBZFB1Z"), 1);
	/* set to None by hand: the next backward makes as many anew */
	check("FB1FB1FB1FBFB1", "00011122233444", NULL);
	check("DFB1DFB1DFB1DFBDFB1", "0000111122223334444", NULL);
	assert_int_equal(thrown_away("FB1FB1FB1FBFB1"), 1);
	assert_int_equal(thrown_away("FB1FB1FB1FBB1"), 0);  /* of one forward */
	assert_int_equal(thrown_away("FB1FB1FB1FBFa1"), 0); /* they add up */
	assert_int_equal(thrown_away("FB1FB1FB1FcFB1"), 0); /* of others */
	assert_int_equal(thrown_away("FB1FBFB1"), 0);       /* as often as not */
	/* several losses that are looked at one by one, in each step; parts of networks */
	check("FBZFBZFB1FBZFBZFB1", "000000000111111111", NULL);
	check("ZFBZFB12ZFBZFB12", "0000000011111111", NULL);
	assert_int_equal(thrown_away("FBZFBZFB1FBZFBZFB1"), 0);
	assert_int_equal(thrown_away("DZFB1DZFB1DZFB1DZFBDZFB1"), 0); /* what is told by batches */
	assert_int_equal(thrown_away("ZFB1SZFB1SZFBSZFB1S"), 0);      /* and by a scaler */
}

static void a_kill_leaves_a_step_open(void **state)
{
	check("DFB1DF!", "0000111", "dfbodf.");
	check("DFB1DFB!", "00001111", NULL);
	check("DFB1D!", "0000..", "dfbod.");
	check("DFB1DoDo!", "0000.....", NULL);
	check("DF!", "000", NULL);
	check("[DFB1DF!", ".0000111", NULL);
	check("DFB1[DF!", "0000.111", NULL);
	check("DFB1[DF]B!", "0000111111", NULL);
	check("DFBDF!", "000111", NULL);
}

static void a_kill_in_the_optimizer(void **state)
{
	struct loop loop;

	read_loop(&loop, "DFB1DFB1(!");
	assert_int_equal(loop.inference.step_count, 2);
	for (size_t i = 0; i < loop.inference.count; i++)
		if (loop.inference.list[i].what == INFERRED_STEP)
			assert_int_equal(loop.inference.list[i].end_ns == INFERRED_IS_OPEN,
			                 loop.inference.list[i].number == 1);
	inference_release(&loop.inference);
}

static void nothing_is_inferred_from_nothing(void **state)
{
	struct inference inference;

	infer_steps(&inference, &(struct train_loop){0});
	assert_int_equal(inference.count, 0);
	inference_release(&inference);
	inference_release(&inference);
	check("!", ".", ".");
	check("oDEFb", ".....", ".dd.."); /* nobody trains: waits for data alone are known */
	check("1", "0", "o");
	check("P", "0", "o");
	check("B", "0", "b");
}

static void more_optimizers_than_one_remembers_at_a_glance(void **state)
{
	static struct train_record records[1000];
	struct inference inference;

	for (size_t i = 0; i < 1000; i++)
		records[i] = (struct train_record){.start_ns = (int64_t)i,
		                                   .end_ns = (int64_t)i + 1,
		                                   .range = NO_RANGE,
		                                   .token = TOKEN_OPTIMIZER,
		                                   .object = 1 + i % 250};
	infer_steps(&inference, &(struct train_loop){.records = records, .count = 1000});
	assert_int_equal(inference.step_count, 4);
	inference_release(&inference);
}

static void a_million_updates_take_linear_time(void **state)
{
	static const char names[] = "DFBP", joined[] = "FBFP";
	size_t count = 2000000;
	struct train_record *records = memory_resize(NULL, count, sizeof(*records));

	for (int kind = 0; kind < 2; kind++) {
		struct inference inference;

		for (size_t i = 0; i < count; i++) {
			char letter = (kind ? joined : names)[i % 4];

			records[i] = (struct train_record){
				.start_ns = (int64_t)i * 10, .end_ns = (int64_t)i * 10 + 9, .range = NO_RANGE};
			records[i].token = letter == 'D' ? TOKEN_DATA : letter == 'F' ? TOKEN_FORWARD : TOKEN_BACKWARD;
			records[i].is_training = letter == 'B';
			if (letter == 'P')
				records[i].token = TOKEN_OPTIMIZER;
		}
		if (kind) /* data, but far away */
			records[count - 1].token = TOKEN_DATA;
		infer_steps(&inference, &(struct train_loop){.records = records, .count = count});
		assert_int_equal(inference.step_count, kind ? 1 : count / 4);
		inference_release(&inference);
	}
	free(records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_ends_with_the_optimizer),
		cmocka_unit_test(operators_between_belong_to_the_forward),
		cmocka_unit_test(several_optimizers_make_one_step),
		cmocka_unit_test(names_alone_join_what_has_one_batch),
		cmocka_unit_test(without_any_backward_each_update_ends_a_step),
		cmocka_unit_test(several_updates_of_a_batch),
		cmocka_unit_test(training_goes_on_with_another_optimizer),
		cmocka_unit_test(an_optimizer_that_is_made_anew_begins_a_step),
		cmocka_unit_test(a_closure_is_a_step),
		cmocka_unit_test(accumulation_is_one_step),
		cmocka_unit_test(gradients_of_the_same_batch_are_no_skipped_update),
		cmocka_unit_test(optimizers_of_different_rates_are_said),
		cmocka_unit_test(the_first_optimizer_sets_the_pace_of_others),
		cmocka_unit_test(skipped_updates_are_steps),
		cmocka_unit_test(skipped_updates_without_batches_are_steps_and_said),
		cmocka_unit_test(a_kill_leaves_a_step_open),
		cmocka_unit_test(a_kill_in_the_optimizer),
		cmocka_unit_test(nothing_is_inferred_from_nothing),
		cmocka_unit_test(more_optimizers_than_one_remembers_at_a_glance),
		cmocka_unit_test(a_million_updates_take_linear_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
