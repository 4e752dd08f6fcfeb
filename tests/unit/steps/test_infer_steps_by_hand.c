/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of loops without optimizers, which are drawn as letters: updates by hand, gradients that add up, and doubts that the inference
 * tells.
 */
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void without_optimizers_a_backward_is_a_step(void **state)
{
	check("DFBoDFBo", "0001111.", NULL);
	check("FBoFBo", "00111.", NULL);
	check("FbFB", "0000", NULL); /* may be its gradient penalty */
	check("DoDoE", ".....", "d.d.d");
}

static enum step_doubt doubt(const char *text)
{
	struct loop loop;

	read_loop(&loop, text);
	enum step_doubt doubt = loop.inference.doubt;
	inference_release(&loop.inference);
	return doubt;
}

static void an_update_by_hand_ends_a_step(void **state)
{
	check("DFBuDFBu", "00001111", "dfbodfbo");
	check("DFBuzDFauz", "000011111.", "dfbo.dfbo.");
	check("FBouoFBou", "000011111", "fb.o.fb.o");
	/* clipping, and then the update: one phase each where something lies between */
	check("FBuouFBuou", "0000011111", "fbooofbooo");
	/* the forward of the second backward came first */
	check("FBuBuFBuBu", "0001122233", NULL);
	/* one tensor, while the gradients of a model that it goes through add up: the first backward makes all three */
	check("FAwFcwFcw", "000111222", "fbofbofbo");
	assert_int_equal(doubt("FAwFcwFcw"), DOUBT_NONE);
	/* no update of one of them alone: the next one has both, or another number of its own */
	check("FBwFauFBwFau", "000000111111", "fb.fbofb.fbo");
	check("FBwFcuFBwFcu", "000000111111", "fb.fbofb.fbo");
	/* with optimizers they are none */
	check("DFBu1uDFBu1u", "00000111111.", "dfb.o.dfb.o.");
}

static void gradients_that_add_up_are_one_step(void **state)
{
	check("DFBDFaDFauDFBDFaDFau", "00000000001111111111", "dfbdfbdfbodfbdfbdfbo");
	/* zeroed, not made anew */
	check("DFBDFauzDFaDFauz", "000000011111111.", NULL);
	check("zDFBDFauzDFaDFau", ".000000011111111", NULL);
	/* no update is seen: compiled, or not of PyTorch */
	check("DFBDFaDFBDFa", "000000111111", NULL);
	/* statistics in place behind each backward */
	check("FBuFauFBuFau", "000000111111", NULL);
	/* gradients are thrown away in a way that is not seen */
	check("DFaDFauDFaDFau", "00000001111111", NULL);
	/* what is left of an epoch was no step */
	check("DFBDFauDFBDFauDFB", "00000001111111...", NULL);
	check("DFBDFaDFBDFaDFB", "000000111111222", NULL);
	/* nor what a kill left */
	check("DFBDFauDFBDF!", "0000000111111", NULL);
	for (const char *const *clear =
	             (const char *const[]){"DFBDFauDFBDFau", "DFaDFauDFaDFau", "DFBDFBDFB", "DFB", NULL};
	     *clear; clear++)
		assert_int_equal(doubt(*clear), DOUBT_NONE);
}

/* The second network learns from the first one's gradients, which are not zeroed before. */
static void two_networks_by_hand_make_one_step(void **state)
{
	check("DFBuFcuDFBuFcu", "00000001111111", "dfbofbodfbofbo");
}

static void what_cannot_be_told_is_said(void **state)
{
	check("FBFaFa", "001122", NULL);
	assert_int_equal(doubt("FBFaFa"), DOUBT_ADDING);
	check("FBFBFBFBuFB", "00112233344", NULL);
	assert_int_equal(doubt("FBFBFBFBuFBFBFBFBu"), DOUBT_RARE);
	check("DFBuFBuDFBuFBu", "00001112222333", NULL);
	assert_int_equal(doubt("DFBuFBuDFBuFBu"), DOUBT_OF_BATCH);
	assert_int_equal(doubt("DFBuDFBuFBu"), DOUBT_NONE);
	assert_int_equal(doubt("DFBhFBhDFBhFBh"), DOUBT_NONE);
	/* what n did with gradients is not known */
	check("FnFnFaFaFnFn", "001122334455", NULL);
	assert_int_equal(doubt("FnFnFaFaFnFn"), DOUBT_ADDING);
	check("FnFnFBuFBuFnFn", "00112223334455", NULL);
	assert_int_equal(doubt("FnFnFBuFBuFnFn"), DOUBT_NONE);
	check("FnFnFBFauFBFauFnFn", "001122222333334455", NULL);
	assert_int_equal(doubt("FnFnFBFauFBFauFnFn"), DOUBT_NO_DETAIL);
	assert_int_equal(doubt("FnFnFn"), DOUBT_NO_DETAIL);
	/* a skipped one */
	assert_int_equal(doubt("FBuFBuFBFBu"), DOUBT_NONE);
	check("FbwFbw", "000111", "fbofbo");
	assert_int_equal(doubt("FbwFbw"), DOUBT_NO_GRADIENTS);
	check("FbFb", "....", NULL);
	struct loop loop;
	read_loop(&loop, "FbFb");
	assert_int_equal(loop.inference.backwards, 2);
	inference_release(&loop.inference);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_optimizers_a_backward_is_a_step),
		cmocka_unit_test(an_update_by_hand_ends_a_step),
		cmocka_unit_test(gradients_that_add_up_are_one_step),
		cmocka_unit_test(two_networks_by_hand_make_one_step),
		cmocka_unit_test(what_cannot_be_told_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
