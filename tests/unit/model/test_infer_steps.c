/* SPDX-License-Identifier: Apache-2.0
 *
 * test_infer_steps.c: steps and phases of small training loops, and what holds for any records.
 *
 * A loop is a line of text, one record per letter, ten nanoseconds each:
 *
 *     D batch    E end of the loop's batches    o operator    F operator of a graph    Z zero_grad    S scaler    ! cut off
 *     B backward that trains    b one that does not    P optimizer, unknown    1..9 known ones    P(...) what lies in its call
 *     W torch.save    v a call of a module that evaluates    m one that trains    [...] a range
 *     i j k known optimizers that were made since the call before
 *     a backward that adds to the gradients of the one before; B and a have two of them    c adds to two, and has one of its own    A makes three anew    n does what is not known    u two writes in place    w one    z two zeroed
 *     t a call in training mode, without a graph, of a module that evaluates at other times    q one of another module
 *     f operator of a graph that no backward worked on    x a call of a module that made such a graph    N backward without detail
 *     <...> the first range of a profiler in the program, {...} one that its step() begins; one that is not closed goes on
 *     L start of a loader's workers    l end of them    h an optimizer's call in a node of the backward around it
 *
 * What is expected stands below: for each letter the number of the step it is in, and the phase.
 */
#include "base/memory.h"
#include "model/infer_steps.h"
#include "model/inference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include <cmocka.h>

#define LETTERS 200u

struct loop {
	struct train_record records[LETTERS];
	struct train_range ranges[LETTERS];
	struct train_call hooked[LETTERS];
	size_t count, hooked_count, range_count;
	struct inference inference;
};

static void add_letter(struct loop *loop, char letter, int64_t start_ns, uint32_t range, bool is_inside)
{
	static const char tokens[] = {
		[TOKEN_OP] = 'o',        [TOKEN_FORWARD] = 'F',   [TOKEN_DATA] = 'D',       [TOKEN_BACKWARD] = 'B',
		[TOKEN_OPTIMIZER] = 'P', [TOKEN_ZERO_GRAD] = 'Z', [TOKEN_SCALER] = 'S',     [TOKEN_SAVE] = 'W',
		[TOKEN_CUT] = '!',       [TOKEN_LOADER] = 'L',    [TOKEN_LOADER_END] = 'l', [TOKEN_UPDATE] = 'u'};
	bool is_new = letter >= 'i' && letter <= 'k', is_known = is_new || (letter >= '1' && letter <= '9');
	struct train_record *record = &loop->records[loop->count++];
	char token = letter;

	if (is_known || letter == 'E' || letter == 'b' || letter == 'v' || letter == 'm')
		token = is_known ? 'P' : letter == 'E' ? 'D' : letter == 'v' ? 'o' : letter == 'm' ? 'F' : 'B';
	if (letter == 'n' || letter == 'N')
		token = 'B';
	if (letter == 's' || letter == 't' || letter == 'q')
		token = 'o';
	if (letter == 'f' || letter == 'x')
		token = 'F';
	if (letter == 'a' || letter == 'c' || letter == 'A')
		token = 'B';
	if (letter == 'w' || letter == 'z')
		token = 'u';
	*record = (struct train_record){
		.start_ns = start_ns, .end_ns = start_ns + 9, .range = range, .is_inside = is_inside};
	record->is_training = token == 'B' && letter != 'b';
	record->is_first = token == 'B';
	record->is_empty = letter == 'E';
	record->is_evaluating = letter == 'v';
	record->is_learning = letter == 't';
	record->is_module = strchr("vmxtq", letter) != NULL;
	record->is_unused = letter == 'f' || letter == 'x';
	record->is_noted = letter == 'N';
	record->is_new = is_new;
	record->is_seed = letter == 's';
	record->object = is_known ? (uint64_t)(letter - '0') << 40 : 0;
	if (token == 'B' && letter != 'b' && letter != 'n' && letter != 'N') {
		record->count = letter == 'c' || letter == 'A' ? 3 : 2;
		record->part = letter == 'B' || letter == 'A' ? 0 : 2;
	} else if (token == 'u') {
		record->count = letter == 'u' ? 2 : letter == 'w';
		record->part = letter == 'z' ? 2 : 0;
	}
	while (tokens[record->token] != token)
		record->token++;
}

static void begin_range(struct loop *loop, char letter, int64_t start_ns, uint32_t parent)
{
	uint32_t step = letter == '<';

	for (size_t i = loop->range_count; letter == '{' && i-- > 0 && !step;)
		step = loop->ranges[i].parent == parent && loop->ranges[i].step ? loop->ranges[i].step + 1 : 0;
	loop->ranges[loop->range_count++] = (struct train_range){
		.start_ns = start_ns, .end_ns = start_ns + 9, .parent = parent, .step = step, .is_open = true};
}

static void read_loop(struct loop *loop, const char *text)
{
	uint32_t open[LETTERS], depth = 0;
	size_t call[LETTERS], calls = 0;

	loop->count = loop->hooked_count = loop->range_count = 0;
	for (size_t i = 0; text[i]; i++) {
		int64_t start_ns = (int64_t)i * 10;
		uint32_t range = depth ? open[depth - 1] : NO_RANGE;

		if (strchr("[<{", text[i])) {
			open[depth++] = (uint32_t)loop->range_count;
			begin_range(loop, text[i], start_ns, range);
		} else if (strchr("]>}", text[i])) {
			loop->ranges[open[--depth]].end_ns = start_ns + 9;
			loop->ranges[open[depth]].is_open = false;
		} else if (text[i] == '(') {
			call[calls++] = loop->count - 1;
		} else if (text[i] == ')') {
			loop->records[call[--calls]].end_ns = start_ns + 9;
		} else if (text[i] == 'h') {
			loop->hooked[loop->hooked_count++] = (struct train_call){start_ns, start_ns + 9};
		} else {
			add_letter(loop, text[i], start_ns, range, calls > 0);
		}
	}
	while (depth)
		if (loop->ranges[open[--depth]].step)
			loop->ranges[open[depth]].end_ns = (int64_t)strlen(text) * 10;
	const struct train_loop train_loop = {.records = loop->records,
	                                      .count = loop->count,
	                                      .ranges = loop->ranges,
	                                      .range_count = loop->range_count,
	                                      .hooked = loop->hooked,
	                                      .hooked_count = loop->hooked_count};
	infer_steps(&loop->inference, &train_loop);
	inference_mark_steps(&loop->inference, &train_loop);
}

/* Of the records' and brackets' middles. */
static void draw(const struct inference *inference, size_t length, char *steps, char *phases)
{
	static const char letters[] = {[STEPSCOPE_PHASE_DATA] = 'd',       [STEPSCOPE_PHASE_FORWARD] = 'f',
	                               [STEPSCOPE_PHASE_BACKWARD] = 'b',   [STEPSCOPE_PHASE_OPTIMIZER] = 'o',
	                               [STEPSCOPE_PHASE_CHECKPOINT] = 'c', [STEPSCOPE_PHASE_EVALUATION] = 'e'};

	memset(steps, '.', length);
	memset(phases, '.', length);
	steps[length] = phases[length] = 0;
	for (size_t i = 0; i < inference->count; i++) {
		const struct inferred *inferred = &inference->list[i];

		for (size_t k = 0; k < length; k++) {
			int64_t middle_ns = (int64_t)k * 10 + 5;

			if (middle_ns < inferred->start_ns || middle_ns > inferred->end_ns)
				continue;
			if (inferred->what == INFERRED_STEP)
				steps[k] = (char)('0' + inferred->number);
			else
				phases[k] = letters[inferred->what];
		}
	}
}

static void check(const char *text, const char *expected_steps, const char *expected_phases)
{
	struct loop loop;
	char steps[LETTERS], phases[LETTERS];

	read_loop(&loop, text);
	draw(&loop.inference, strlen(text), steps, phases);
	assert_string_equal(steps, expected_steps);
	if (expected_phases)
		assert_string_equal(phases, expected_phases);
	inference_release(&loop.inference);
}

static bool is_uncertain(const char *text)
{
	struct loop loop;
	bool result;

	read_loop(&loop, text);
	result = loop.inference.is_joined || loop.inference.is_each_update;
	inference_release(&loop.inference);
	return result;
}

/* ---- the rules -------------------------------------------------------------------------------------------------------------- */

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
	check("ooDP(ZFBZFB)DP(ZFB)", "..00000000001111111", "..dooofbofbodooofbo");
	check("D1(FoFBooFB)", "000000000000", "doofffboofbo");
	check("D1(DFB)", "0000000", "doodfbo");
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

static void an_evaluation_between_steps_is_in_none(void **state)
{
	check("DFB1DoDoEDFB1", "0000.....1111", "dfboeeeeedfbo");
	check("DFB1DFDFEDFBP", "0000.....1111", NULL);
	check("DFB1oDoEDFB1", "0000....1111", NULL);
	check("DoDoEDFB1", ".....0000", NULL);
}

static void a_batch_that_is_fetched_ahead_is_data(void **state)
{
	check("DoDmBPDoDmBP", "000000111111", "d.dfbod.dfbo");
	check("DoDmBPDmBP", "..00001111", "d.dfbodfbo");
	check("DmBPDoDvDvEDmBP", "0000.......1111", "dfboeeeeeeedfbo");
}

static void a_look_at_the_model_before_the_loop_is_in_no_step(void **state)
{
	check("momB1mB1mB1", "..000111222", "f.fbofbofbo");
	check("mmmB1mmB1mB1", ".00001111222", "fffboffbofbo");
	check("mmB1", "0000", "ffbo"); /* nothing to compare with */
	check("mDmB1DmB1", ".00001111", "fdfbodfbo");
	check("mFmFB1FmFB1", "..000011111", NULL);
}

static void a_forward_that_leads_to_no_backward_is_no_phase(void **state)
{
	check("FB1ffFB1fFB1", "000111112222", "fbo..fbo.fbo");
	check("mB1xmB1xxmB1", "000111122222", "fbo.fbo..fbo");
	check("xxmB1xmB1xmB1", "..00011112222", "..fbo.fbo.fbo");
	check("FB1FBf1", "0001111", "fbofb.o");
	check("FB1ff", "000..", "fbo..");
	/* its backward may be there, but is not recorded, or did not come */
	check("FB1fN1fB1", "000111222", "fbofbo.bo");
	check("FB1fFB1f!", "000111122", "fbo.fbof.");
}

static void batches_that_were_put_aside_are_of_no_step(void **state)
{
	check("LDDDElFB1FB1", "......000111", "ddddddfbofbo");
	check("DDEoZFB1ZFB1", "....00001111", NULL);
	check("DEFBPDFBP", "000001111", NULL);     /* a single one */
	check("DDFBPDFBP", ".00001111", NULL);     /* one ahead */
	check("DDDFBPDDFBP", ".0000011111", NULL); /* one ahead of two loaders */
}

static void batches_of_several_loaders_are_of_one_step(void **state)
{
	check("DDFB1DDFB1", "0000011111", "ddfboddfbo");
	check("oLLDDFB1DDFB1", ".000000011111", NULL);
}

/* An attack leaves gradients, which are thrown away before the batch is learnt from; and is evaluated without one. */
static void gradients_of_the_same_batch_are_no_skipped_update(void **state)
{
	check("DFBZFB1FaDFaZFB1DFaZFB1", "00000001111111112222222", NULL);
	check("DFBZDFB1", "00011111", NULL);
	check("DFBDFBZDFB1", "00000011111", NULL); /* gathered, then thrown away */
}

static void an_evaluation_without_batches_is_told_by_the_mode(void **state)
{
	check("FB1vovoFB1FB1", "000....111222", "fboeeeefbofbo");
	check("FBPvFBPvv", "000.111..", "fboefboee");
	check("vvFB1", "..000", "eefbo");
	check("DFB1vvDFB1", "0000..1111", "dfboeedfbo");
	/* labels from the model itself, on the batch; while gradients are gathered */
	check("DvFB1DvFB1", "0000011111", "d.fbod.fbo");
	check("FBvFB1FB1", "000000111", "fb.fbofbo");
	/* without optimizers */
	check("FBvFB", "00.11", "fbefb");
}

static void what_is_made_of_an_evaluation_is_in_no_step(void **state)
{
	check("FB1FB1vooFB1", "000111...222", "fbofboeeefbo");
	check("ZFB1ZFB1voZFB1", "00001111..2222", ".fbo.fboee.fbo");
	check("DFB1DoDoEooDFB1", "0000.......1111", "dfboeeeeeeedfbo");
	check("DFB1DoDoEoloLDFB1", "0000........11111", "dfboeeeeeeeeddfbo");
	check("FB1voo", "000...", "fboeee");
	check("1(FB)1(FB)vo1(FB)", "0000011111..22222", NULL);
	check("FBuFBuvowFBu", "000111...222", "fbofboeeefbo");
	/* a step begins as long before its forward as others do */
	check("FB1ooFB1vooooFB1", "00011111...22222", "fbo..fboeee..fbo");
	/* with a teacher; a loss is computed of the evaluation, too */
	check("qFB1qFB1vooqFB1", ".0001111...2222", ".fbo.fboeee.fbo");
	check("oqFB1oqFB1vqooqFB1", "..00011111...22222", "..fbo..fboeee..fbo");
	check("FB1oooFB1vqoFB1", "000111111..2222", "fbo...fboee.fbo");
	/* in training mode again */
	check("FB1tFB1votoFB1", "0001111..22222", "fbo.fboee..fbo");
	/* ranges */
	check("FB1oFB1[vo]oFB1", "0001111....2222", NULL);
	check("FB1FB1v[oFB1]FB1", "000111.222222333", "fbofboe..fbo.fbo");
	/* within a step */
	check("DFB1DFB1DFBvFoa1", "0000111122222222", NULL);
	check("DFB1DvoFB1DvoFB1", "0000111111222222", "dfbod..fbod..fbo");
}

static void a_file_that_is_written_is_a_checkpoint(void **state)
{
	check("DFB1WDFB1", "000011111", "dfbocdfbo");
	check("DFWFB1", "000000", "dfcfbo");
	check("DFB1DoDoWEDFB1W", "0000......1111.", NULL);
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

static void an_evaluation_inside_of_a_range(void **state)
{
	check("DFB1[DoDoE]DFB1", "0000.......1111", NULL);
	check("[DFB1][DoE][DFB1]", "000000.....111111", NULL);
	check("[DFB1DoE][DFB1DoE]", "00000....11111....", NULL);
	check("[DoEDFB1][DoEDFB1]", "....0000.....1111.", NULL);
	/* the end of a loop with workers looks like a batch */
	check("DFB1[DoDoD]DFB1", "0000.......1111", NULL);
}

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

static void an_optimizer_in_a_hook_is_a_phase_of_the_backward(void **state)
{
	check("DFBhBhBDFBhBhB", "00000001111111", "dfbobobdfbobob");
	check("D1(FBhB)", "00000000", "doofbobo");
	/* not in a backward */
	check("DFhBDFBh", "0000111.", "df.bdfb.");
}

/* Two of a phase, each as long as a pause, and what is between them: so long are the phases. */
static int64_t with_pause(uint8_t token, int64_t gap_ns, uint8_t phase, bool has_operator, bool is_first)
{
	const int64_t long_ns = 10000000;
	struct inference inference;
	struct train_record records[] = {
		{.token = TOKEN_FORWARD, .end_ns = long_ns},
		{.token = token, .start_ns = long_ns, .end_ns = 2 * long_ns},
		{.token = TOKEN_OP, .start_ns = 2 * long_ns, .end_ns = 2 * long_ns + (has_operator ? gap_ns : 0)},
		{.token = token, .start_ns = 2 * long_ns + gap_ns, .end_ns = 3 * long_ns + gap_ns, .is_first = is_first},
		{.token = TOKEN_BACKWARD,
	         .start_ns = 3 * long_ns + gap_ns,
	         .end_ns = 4 * long_ns + gap_ns,
	         .is_training = true},
		{.token = TOKEN_OPTIMIZER, .start_ns = 4 * long_ns + gap_ns, .end_ns = 5 * long_ns + gap_ns},
	};
	int64_t sum_ns = 0;

	for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
		records[i].range = NO_RANGE;
	infer_steps(&inference, &(struct train_loop){.records = records, .count = sizeof records / sizeof records[0]});
	assert_int_equal(inference.step_count, 1);
	for (size_t i = 0; i < inference.count; i++)
		sum_ns += inference.list[i].what == phase ? inference.list[i].end_ns - inference.list[i].start_ns : 0;
	inference_release(&inference);
	return sum_ns;
}

static void a_pause_is_no_phase(void **state)
{
	const uint8_t forward = STEPSCOPE_PHASE_FORWARD, backward = STEPSCOPE_PHASE_BACKWARD;

	assert_int_equal(with_pause(TOKEN_FORWARD, 4999999, forward, false, false), 34999999);
	assert_int_equal(with_pause(TOKEN_FORWARD, 5000000, forward, false, false), 30000000);
	assert_int_equal(with_pause(TOKEN_FORWARD, 5000000, forward, true, false),
	                 35000000); /* it lies in the forward */
	assert_int_equal(with_pause(TOKEN_BACKWARD, 999999, backward, true, true), 30999999);
	assert_int_equal(with_pause(TOKEN_BACKWARD, 1000000, backward, true, true), 30000000);
	assert_int_equal(with_pause(TOKEN_BACKWARD, 1000000, backward, true, false), 31000000); /* one call */
}

/* The engine walks the graph for longer than a pause, and the program is at something else between two calls. */
static void a_backward_begins_with_its_first_gradient(void **state)
{
	const int64_t ms = 1000000;
	struct inference inference;
	struct train_record records[] = {
		{.token = TOKEN_FORWARD, .end_ns = 10 * ms},
		{.token = TOKEN_OP, .start_ns = 20 * ms, .end_ns = 21 * ms, .is_seed = true},
		{.token = TOKEN_BACKWARD, .start_ns = 30 * ms, .end_ns = 40 * ms, .is_first = true, .is_training = true},
		{.token = TOKEN_OP, .start_ns = 60 * ms, .end_ns = 61 * ms, .is_seed = true},
		{.token = TOKEN_BACKWARD, .start_ns = 70 * ms, .end_ns = 80 * ms, .is_first = true, .is_training = true},
		{.token = TOKEN_OPTIMIZER, .start_ns = 90 * ms, .end_ns = 100 * ms},
	};
	const struct train_call expected[] = {{20 * ms, 40 * ms}, {60 * ms, 80 * ms}};
	size_t found = 0;

	for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
		records[i].range = NO_RANGE;
	infer_steps(&inference, &(struct train_loop){.records = records, .count = sizeof records / sizeof records[0]});
	for (size_t i = 0; i < inference.count; i++) {
		if (inference.list[i].what != STEPSCOPE_PHASE_BACKWARD)
			continue;
		assert_true(found < 2);
		assert_int_equal(inference.list[i].start_ns, expected[found].start_ns);
		assert_int_equal(inference.list[i].end_ns, expected[found++].end_ns);
	}
	assert_int_equal(found, 2);
	inference_release(&inference);
	check("DFsB1DFsB1", "0000011111", "dfbbodfbbo");
	check("D1(FsB)DFsB1", "000000011111", "doofbbodfbbo");
	/* ones of the program's own: another operator is next, or a forward */
	check("DFsoB1DFsFB1", "000000111111", "df..bodfffbo");
}

static void workers_are_started_for_the_batch_behind(void **state)
{
	check("LDFB1DFB1ELDFB1", "000001111222222", "ddfbodfbodddfbo");
	check("DFB1LDoDoELDFB1", "0000......11111", "dfboeeeeeeddfbo");
	check("DFB1LDoDoLDFB1", "0000.....11111", "dfboeeeeeddfbo");
	check("LFB1", ".000", NULL);
}

static void workers_are_stopped_behind_a_batch(void **state)
{
	check("LDFB1lLDFB1", "00000111111", "ddfbodddfbo");
	check("DFB1LlDFB1", "0000111111", "dfbodddfbo");
	check("DFlB1DFlB1", "0000011111", "dfdbodfdbo");
	/* of an evaluation, and of the training's loop before one */
	check("DFB1DoDolDFB1", "0000.....1111", "dfboeeeeedfbo");
	check("DFB1lDoDoEDFB1", "0000......1111", "dfbodeeeeedfbo");
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

static void steps_take_in_whole_ranges(void **state)
{
	check("[D[FB1]][D[FB1]]", "0000000011111111", NULL);
	check("[[]oFB1[]][[]oFB1[]]", "00000000001111111111", NULL); /* also where nothing but the range begins */
	check("[[oFB1][oFB1]]", ".000000111111.", NULL);
	check("[oFB1][oFB1oFB1]", "000000.11112222.", NULL);
	check("[[]oFB1]", "....000.", NULL); /* of one step nobody knows what is around it */
	check("[DFB1DFB1]", ".00001111.", NULL);
	check("D[FB][1oZ]D[FB][1oZ]", "00000000001111111111", "d.fb..o...d.fb..o...");
	check("DFB[1F]DFB[1F]", "00000001111111", NULL);
}

static void a_range_with_several_steps_is_not_cut(void **state)
{
	check("D[FB1FB1]D[FB1FB1]", "..000111...222333.", NULL);
	check("[DFB1F]B1", "000000011", NULL);
	check("D[[FB1]F]B[1DF]B1", "00000000011111122", NULL);
}

static void ranges_of_a_profiler_are_the_steps(void **state)
{
	check("<FB1>{FB1}{FB1}{}", "000001111122222..", ".fbo..fbo..fbo...");
	check("<>{FB1}{FB1}", "..0000011111", NULL); /* step() comes first, and stop() behind the last one */
	check("<FB>{FB}{FB1}{FB}{FB}{FB1}{}", "00001111222223333444455555..", NULL);
	check("<FB1FB1>{FB1FB1}{}",
	      "00000000"
	      "11111111"
	      "..",
	      NULL);
	check("<DFB1>{DFB1}{E}DoDoE", "000000111111........", NULL);
	/* an older PyTorch gives the first two one number; two profilers; one in a range of another one's */
	check("<FB1><FB1>{FB1}{}", "000001111122222..", NULL);
	check("<FB1>{FB1}{}<FB1>{FB1}{}", "0000011111..2222233333..", NULL);
	check("<FB1>{<FB1>{FB1}{}}{FB1}{}", "00000.1111122222...33333..", NULL);
	/* where nothing trains */
	check("<Do>{Do}{E}", "00001111...", ".d...d...d.");
	check("<FB1>{FB!", "000001111", ".fbo..fb.");
}

static void where_no_ranges_are_steps_are_inferred(void **state)
{
	check("FB1FB1<FB1>{FB1}{}FB1FB1", "000111222223333344444555", "fbofbo.fbo..fbo...fbofbo");
	check("[FB1FB1<FB1>{FB1}{}]FB1FB1", ".0001112222233333...444555", NULL);
	/* step() is never called, or no more; or only while an evaluation goes on */
	check("<FB1FB1FB1>", ".000111222.", NULL);
	check("<FB1>{FB1}{FB1FB1FB1}FB1", "0000011111.222333444.555", NULL);
	check("<FB1FB1FB1>{FB1}{FB1}{}", ".000111222.3333344444..", NULL);
	check("FB1<vo>{vo}{}FB1", "000........11111", NULL); /* as with ranges of another kind */
	check("FB1<FB1>{FB1}{}FB", "0001111122222....", NULL);
	check("FB1<FB>{FB}{FB}{}FB!", "00011112222333344444", NULL);
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

/* ---- what always holds ------------------------------------------------------------------------------------------------------ */

static uint32_t random_below(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % below);
}

static void random_text(uint64_t *seed, char *text)
{
	static const char *const alphabets[] = {
		"DDFFBB1Zo[]()vW", "DEFBbP[]()oZSvW",     "DFB12[]",    "FBov1[]",       "FBvW12[]DL",
		"FB1[][][h",       "DEoFb12345S()[]ZBhL", "DFZBBhho[]", "DFBauwzbmho[]", "FB1[]<>{}{}",
		"DoFB1vE{}{}<>h()"};
	static const char begins[] = "([<{", ends[] = ")]>}";
	const char *alphabet = alphabets[random_below(seed, sizeof alphabets / sizeof *alphabets)];
	size_t length = random_below(seed, 60), used = 0;
	char open[LETTERS];
	uint32_t depth = 0;

	for (size_t i = 0; i < length; i++) {
		char letter = alphabet[random_below(seed, (uint32_t)strlen(alphabet))];
		bool is_call = used && strchr("P123456789", text[used - 1]);
		const char *begin = strchr(begins, letter);
		bool is_end = strchr(ends, letter) != NULL;

		if ((letter == '(' && !is_call) || (is_end && (!depth || open[depth - 1] != letter)))
			continue;
		if (begin && letter != '(' && depth && open[depth - 1] == ')')
			continue;
		if (begin)
			open[depth++] = ends[begin - begins];
		depth -= is_end;
		text[used++] = letter;
	}
	bool is_cut = random_below(seed, 3) == 0;
	if (is_cut)
		text[used++] = '!';
	while (depth && !is_cut)
		text[used++] = open[--depth];
	text[used] = 0;
}

static bool overlaps(int64_t a_start, int64_t a_end, int64_t b_start, int64_t b_end)
{
	bool is_apart = a_end <= b_start || b_end <= a_start;
	bool is_nested = (a_start <= b_start && b_end <= a_end) || (b_start <= a_start && a_end <= b_end);

	return !is_apart && !is_nested;
}

static bool is_hooked(const struct inferred *backward, const struct inferred *call)
{
	return backward->what == STEPSCOPE_PHASE_BACKWARD && call->what == STEPSCOPE_PHASE_OPTIMIZER &&
	       backward->start_ns <= call->start_ns && call->end_ns <= backward->end_ns;
}

static const char *problem_of(const struct loop *loop, size_t range_count)
{
	const struct inferred *step = NULL, *phase = NULL, *inner = NULL, *list = loop->inference.list;
	int64_t number = 0;

	for (size_t i = 0; i < loop->inference.count; i++) {
		if (list[i].end_ns < list[i].start_ns)
			return "ends before it starts";
		if (i && list[i].start_ns < list[i - 1].start_ns)
			return "is not in order";
		for (size_t r = 0; r < range_count; r++)
			if (list[i].end_ns != INFERRED_IS_OPEN &&
			    overlaps(list[i].start_ns, list[i].end_ns, loop->ranges[r].start_ns,
			             loop->ranges[r].end_ns))
				return "cuts a range";
		if (list[i].what == INFERRED_STEP) {
			if (list[i].number != number++)
				return "does not count up";
			if ((step && list[i].start_ns < step->end_ns) || (phase && list[i].start_ns < phase->end_ns))
				return "overlaps what is before it";
			step = &list[i];
		} else if (phase && phase->what == STEPSCOPE_PHASE_OPTIMIZER && list[i].start_ns < phase->end_ns) {
			bool is_call = list[i].what == STEPSCOPE_PHASE_OPTIMIZER;
			if (list[i].end_ns > phase->end_ns || (is_call && !(inner && is_hooked(inner, &list[i]))))
				return "is no part of a closure";
			if (inner && list[i].start_ns < inner->end_ns && !is_hooked(inner, &list[i]))
				return "overlaps what is before it in a closure";
			inner = inner && is_hooked(inner, &list[i]) ? inner : &list[i];
		} else if (!phase || !is_hooked(phase, &list[i])) {
			if (phase && list[i].start_ns < phase->end_ns)
				return "overlaps the phase before";
			if (step && list[i].start_ns < step->end_ns && list[i].end_ns > step->end_ns)
				return "leaves its step";
			phase = &list[i];
		}
	}
	return number == (int64_t)loop->inference.step_count ? NULL : "count is wrong";
}

/* Of pieces that begin together the outer one is first. */
static void phases_that_are_cut_stay_in_order(void **state)
{
	static const char text[] = "DF1(FBhhB)DFBhhB1";
	struct loop loop;
	char whole[LETTERS], cut[LETTERS], steps[LETTERS];

	for (int64_t bound = 0; bound < (int64_t)sizeof(text) * 10; bound++) {
		const int64_t bounds[] = {bound, bound + 12};

		read_loop(&loop, text);
		draw(&loop.inference, strlen(text), steps, whole);
		inference_cut_phases(&loop.inference, bounds, 2);
		const struct inferred *list = loop.inference.list;
		for (size_t i = 1; i < loop.inference.count; i++) {
			bool is_inside = list[i].start_ns < list[i - 1].end_ns;

			assert_true(list[i].start_ns >= list[i - 1].start_ns);
			assert_true(!is_inside || list[i].end_ns <= list[i - 1].end_ns);
		}
		draw(&loop.inference, strlen(text), steps, cut);
		assert_string_equal(cut, whole);
		inference_release(&loop.inference);
	}
}

static void any_records_give_ordered_nested_intervals(void **state)
{
	const char *rounds = getenv("ROUNDS");
	long count = rounds ? strtol(rounds, NULL, 10) : 100000;
	uint64_t seed = 7;

	for (long i = 0; i < count; i++) {
		struct loop loop;
		char text[LETTERS];

		random_text(&seed, text);
		read_loop(&loop, text);
		const char *problem = problem_of(&loop, loop.range_count);
		if (problem) {
			char steps[LETTERS], phases[LETTERS];

			draw(&loop.inference, strlen(text), steps, phases);
			fail_msg("round %ld: something %s\n%s\n%s\n%s", i, problem, text, steps, phases);
		}
		inference_release(&loop.inference);
	}
}

/* Times that make no sense must not matter either. */
static void records_of_nonsense_do_no_harm(void **state)
{
	uint64_t seed = 11;

	for (int round = 0; round < 20000; round++) {
		struct loop loop;

		loop.count = random_below(&seed, 50);
		for (uint32_t i = 0; i < 20; i++)
			loop.ranges[i] = (struct train_range){
				.start_ns = random_below(&seed, 50),
				.end_ns = random_below(&seed, 50),
				.parent = i && random_below(&seed, 2) ? random_below(&seed, i) : NO_RANGE,
				.step = random_below(&seed, 4),
				.is_open = random_below(&seed, 20) == 0};
		for (size_t i = 0; i < loop.count; i++)
			loop.records[i] = (struct train_record){
				.start_ns = random_below(&seed, 50),
				.end_ns = random_below(&seed, 50),
				.range = random_below(&seed, 2) ? random_below(&seed, 20) : NO_RANGE,
				.object = random_below(&seed, 3),
				.token = (uint8_t)random_below(&seed, TOKEN_CUT + 1),
				.is_training = random_below(&seed, 2),
				.is_inside = random_below(&seed, 4) == 0,
				.is_empty = random_below(&seed, 4) == 0};
		for (uint32_t i = 0; i < 5; i++)
			loop.hooked[i] = (struct train_call){random_below(&seed, 50), random_below(&seed, 50)};
		const struct train_loop nonsense = {.records = loop.records,
		                                    .count = loop.count,
		                                    .ranges = loop.ranges,
		                                    .range_count = 20,
		                                    .hooked = loop.hooked,
		                                    .hooked_count = 5};
		infer_steps(&loop.inference, &nonsense);
		inference_mark_steps(&loop.inference, &nonsense);
		inference_release(&loop.inference);
	}
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
		cmocka_unit_test(an_evaluation_between_steps_is_in_none),
		cmocka_unit_test(a_batch_that_is_fetched_ahead_is_data),
		cmocka_unit_test(a_look_at_the_model_before_the_loop_is_in_no_step),
		cmocka_unit_test(a_forward_that_leads_to_no_backward_is_no_phase),
		cmocka_unit_test(batches_that_were_put_aside_are_of_no_step),
		cmocka_unit_test(batches_of_several_loaders_are_of_one_step),
		cmocka_unit_test(gradients_of_the_same_batch_are_no_skipped_update),
		cmocka_unit_test(an_evaluation_without_batches_is_told_by_the_mode),
		cmocka_unit_test(what_is_made_of_an_evaluation_is_in_no_step),
		cmocka_unit_test(a_file_that_is_written_is_a_checkpoint),
		cmocka_unit_test(optimizers_of_different_rates_are_said),
		cmocka_unit_test(the_first_optimizer_sets_the_pace_of_others),
		cmocka_unit_test(an_evaluation_inside_of_a_range),
		cmocka_unit_test(without_optimizers_a_backward_is_a_step),
		cmocka_unit_test(an_update_by_hand_ends_a_step),
		cmocka_unit_test(gradients_that_add_up_are_one_step),
		cmocka_unit_test(two_networks_by_hand_make_one_step),
		cmocka_unit_test(what_cannot_be_told_is_said),
		cmocka_unit_test(an_optimizer_in_a_hook_is_a_phase_of_the_backward),
		cmocka_unit_test(a_pause_is_no_phase),
		cmocka_unit_test(a_backward_begins_with_its_first_gradient),
		cmocka_unit_test(workers_are_started_for_the_batch_behind),
		cmocka_unit_test(workers_are_stopped_behind_a_batch),
		cmocka_unit_test(skipped_updates_are_steps),
		cmocka_unit_test(skipped_updates_without_batches_are_steps_and_said),
		cmocka_unit_test(steps_take_in_whole_ranges),
		cmocka_unit_test(a_range_with_several_steps_is_not_cut),
		cmocka_unit_test(ranges_of_a_profiler_are_the_steps),
		cmocka_unit_test(where_no_ranges_are_steps_are_inferred),
		cmocka_unit_test(a_kill_leaves_a_step_open),
		cmocka_unit_test(a_kill_in_the_optimizer),
		cmocka_unit_test(nothing_is_inferred_from_nothing),
		cmocka_unit_test(more_optimizers_than_one_remembers_at_a_glance),
		cmocka_unit_test(phases_that_are_cut_stay_in_order),
		cmocka_unit_test(any_records_give_ordered_nested_intervals),
		cmocka_unit_test(records_of_nonsense_do_no_harm),
		cmocka_unit_test(a_million_updates_take_linear_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
