/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases of small training loops, which are drawn as letters: batches, evaluations, checkpoints, graphs that no backward uses, hooks,
 * pauses, and the workers of loaders.
 */
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

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
	/* calls of modules are not known: batches that are put on a device, or prepared, for a backward each */
	check("DgDgFBFBPDgDgFBFBP", "000000000111111111", "d.d.fbfbod.d.fbfbo");
	check("DoDoDoFBFBFBPDoDoDoFBFBFBP", "00000000000001111111111111", "d.d.d.fbfbfbod.d.d.fbfbfbo");
	check("DoDoFBFBPDoDoFBFBP", "000000000111111111", "d.d.fbfbod.d.fbfbo");
	/* an evaluation of one batch before each step of two losses */
	check("DyDFBFBPDyDFBFBP", "..000000..111111", "eedfbfboeedfbfbo");
	check("DoDoFBPDoDoFBP", "..00000..11111", "eed.fboeed.fbo");
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

static void fault_F13_many_calls_in_a_row_are_a_generation(void **state)
{
	check("rorrrrrrrqMB1rorrrrrrrqMB1", "00000000000001111111111111", "ggggggggg.fboggggggggg.fbo");
	/* few, or as many as there are micro-batches */
	check("rrrrrrrMB1rrrrrrrMB1", ".......0001111111111", ".......fbo.......fbo");
	check("rrrrrrrrMBMBMBMBMB1rrrrrrrrMBMBMBMBMB1", "........000000000001111111111111111111", NULL);
	/* in ranges, which it takes in; of which the last one holds more; of another model */
	check("[r][rrr][rrrro]MB1[r][rrr][rrrro]MB1", "000000000000000000111111111111111111",
	      "gggggggggggggggfbogggggggggggggggfbo");
	check("[rrr][rrrrrMB]1[rrr][rrrrrMB]1", "000000000000000111111111111111", ".ggg..gggggfb.o.ggg..gggggfb.o");
	check("qqqqqqqqMB1qqqqqqqqMB1", "........00011111111111", "........fbo........fbo");
}

/* In evaluation mode: before most of the steps it is no evaluation. */
static void fault_F13_calls_in_evaluation_mode_may_be_a_generation(void **state)
{
	check("MB1RRRRRRRRMB1RRRRRRRRMB1", "0001111111111122222222222", "fboggggggggfboggggggggfbo");
	check("MB1MB1MB1RRRRRRRRMB1", "000111222........333", "fbofbofboeeeeeeeefbo");
	check("DRRRRRRRRMB1DRRRRRRRRMB1", "000000000000111111111111", "dggggggggfbodggggggggfbo");
}

/* A letter is a millisecond; a digit N from 2 on is 2^N ms without a record. Draws which letters are of a generation. */
static void check_paused(const char *text, const char *expected)
{
	struct train_record records[LETTERS];
	struct inference inference;
	char found[LETTERS + 1];
	int64_t now_ns = 0;
	size_t count = 0;

	for (size_t i = 0; text[i]; i++) {
		if (text[i] >= '2' && text[i] <= '9') {
			now_ns += INT64_C(1000000) << (text[i] - '0');
			continue;
		}
		records[count++] = (struct train_record){
			.token = text[i] == 'M'   ? TOKEN_FORWARD
		                 : text[i] == 'B' ? TOKEN_BACKWARD
		                 : text[i] == '1' ? TOKEN_OPTIMIZER
		                                  : TOKEN_OP,
			.start_ns = now_ns,
			.end_ns = now_ns + 900000,
			.range = NO_RANGE,
			.object = text[i] == 'r' || text[i] == 'M' ? 17 : 0,
			.is_module = text[i] == 'r' || text[i] == 'M',
			.is_training = text[i] == 'B',
			.is_first = text[i] == 'B',
		};
		now_ns += 1000000;
	}
	infer_steps(&inference, &(struct train_loop){.records = records, .count = count});
	for (size_t i = 0, k = 0; text[i]; i++) {
		found[i] = text[i] >= '2' && text[i] <= '9' ? text[i] : '.';
		found[i + 1] = 0;
		for (size_t j = 0; found[i] == '.' && j < inference.count; j++) {
			if (inference.list[j].what == INFERRED_GENERATION &&
			    records[k].start_ns >= inference.list[j].start_ns &&
			    records[k].end_ns <= inference.list[j].end_ns)
				found[i] = 'g';
		}
		k += found[i] == '.' || found[i] == 'g';
	}
	assert_string_equal(found, expected);
	inference_release(&inference);
}

static void fault_F13_a_wait_for_a_processor_is_in_the_generation(void **state)
{
	/* a tail and a head, which are few calls */
	check_paused("rrrrrrrrrrMB1rrrrrrr4orrrMB1rrrrrrrrrrMB1rrrrrrrrrrMB1rrrr4rrrrrrMB1",
	             "gggggggggg...ggggggg4gggg...gggggggggg...gggggggggg...gggg4gggggg...");
	/* two, and one that is too long */
	check_paused("rrrrrrrrrrMB1rrrr4rrrr4rrMB1rrrrrrrrrr9orMB1rrrrrrrrrrMB1rrrrrrrrrrMB1",
	             "gggggggggg...gggg4gggg4gg...gggggggggg9.....gggggggggg...gggggggggg...");
	/* most steps have a pause of the program's: it is the longest one */
	check_paused("rrrrrrrrrr5rrMB1rrrrrrr4rrr5rrMB1rrrrrrrrrr5rrMB1",
	             "gggggggggg5.....ggggggg4ggg5.....gggggggggg5.....");
	/* the steps differ */
	check_paused("rrrrrrrrrr4rrMB1rrrrrrrrrrMB1rrrrrrrrrr4rrrr4rrMB1",
	             "gggggggggg4.....gggggggggg...gggggggggg4....4.....");
}

static void a_file_that_is_written_is_a_checkpoint(void **state)
{
	check("DFB1WDFB1", "000011111", "dfbocdfbo");
	check("DFWFB1", "000000", "dfcfbo");
	check("DFB1DoDoWEDFB1W", "0000......1111.", NULL);
}

static void an_optimizer_in_a_hook_is_a_phase_of_the_backward(void **state)
{
	check("DFBhBhBDFBhBhB", "00000001111111", "dfbobobdfbobob");
	check("D1(FBhB)", "00000000", "d..fbobo");
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
	check("D1(FsB)DFsB1", "000000011111", "d..fbbodfbbo");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_evaluation_between_steps_is_in_none),
		cmocka_unit_test(a_batch_that_is_fetched_ahead_is_data),
		cmocka_unit_test(a_look_at_the_model_before_the_loop_is_in_no_step),
		cmocka_unit_test(a_forward_that_leads_to_no_backward_is_no_phase),
		cmocka_unit_test(batches_that_were_put_aside_are_of_no_step),
		cmocka_unit_test(batches_of_several_loaders_are_of_one_step),
		cmocka_unit_test(an_evaluation_without_batches_is_told_by_the_mode),
		cmocka_unit_test(what_is_made_of_an_evaluation_is_in_no_step),
		cmocka_unit_test(fault_F13_many_calls_in_a_row_are_a_generation),
		cmocka_unit_test(fault_F13_calls_in_evaluation_mode_may_be_a_generation),
		cmocka_unit_test(fault_F13_a_wait_for_a_processor_is_in_the_generation),
		cmocka_unit_test(a_file_that_is_written_is_a_checkpoint),
		cmocka_unit_test(an_optimizer_in_a_hook_is_a_phase_of_the_backward),
		cmocka_unit_test(a_pause_is_no_phase),
		cmocka_unit_test(a_backward_begins_with_its_first_gradient),
		cmocka_unit_test(workers_are_started_for_the_batch_behind),
		cmocka_unit_test(workers_are_stopped_behind_a_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
