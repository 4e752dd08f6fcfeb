/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes records of letters and draws the steps and phases that are inferred from them.
 */
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include <cmocka.h>

static void add_letter(struct loop *loop, char letter, int64_t start_ns, uint32_t range, bool is_inside)
{
	static const char tokens[] = {
		[TOKEN_OP] = 'o',        [TOKEN_FORWARD] = 'F',   [TOKEN_DATA] = 'D',       [TOKEN_BACKWARD] = 'B',
		[TOKEN_OPTIMIZER] = 'P', [TOKEN_ZERO_GRAD] = 'Z', [TOKEN_SCALER] = 'S',     [TOKEN_SAVE] = 'W',
		[TOKEN_CUT] = '!',       [TOKEN_LOADER] = 'L',    [TOKEN_LOADER_END] = 'l', [TOKEN_UPDATE] = 'u'};
	bool is_new = letter >= 'i' && letter <= 'k', is_known = is_new || (letter >= '1' && letter <= '9');
	struct train_record *record = &loop->records[loop->count++];
	char token = letter;

	if (letter == 'M' || letter == 'r' || letter == 'R')
		token = letter == 'M' ? 'F' : 'o';
	if (is_known || letter == 'E' || letter == 'b' || letter == 'v' || letter == 'm')
		token = is_known ? 'P' : letter == 'E' ? 'D' : letter == 'v' ? 'o' : letter == 'm' ? 'F' : 'B';
	if (letter == 'n' || letter == 'N')
		token = 'B';
	if (letter == 'p' || letter == 'g' || letter == 'y' || letter == 's' || letter == 't' || letter == 'q')
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
	record->is_evaluating = letter == 'v' || letter == 'R';
	record->is_learning = letter == 't';
	record->is_module = strchr("vmxtqMrR", letter) != NULL;
	record->is_unused = letter == 'f' || letter == 'x';
	record->is_noted = letter == 'N';
	record->is_new = is_new;
	record->is_seed = letter == 's';
	record->work = letter == 'p' ? WORK_PLAIN : letter == 'g' ? WORK_MOVE : letter == 'y' ? WORK_LAYER : WORK_ANY;
	record->object = is_known ? (uint64_t)(letter - '0') << 40 : 0;
	if (letter == 'M' || letter == 'r' || letter == 'R')
		record->object = 16 | (letter != 'R');
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

void read_loop(struct loop *loop, const char *text)
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
void draw(const struct inference *inference, size_t length, char *steps, char *phases)
{
	static const char letters[] = {[STEPSCOPE_PHASE_DATA] = 'd',       [STEPSCOPE_PHASE_FORWARD] = 'f',
	                               [STEPSCOPE_PHASE_BACKWARD] = 'b',   [STEPSCOPE_PHASE_OPTIMIZER] = 'o',
	                               [STEPSCOPE_PHASE_CHECKPOINT] = 'c', [STEPSCOPE_PHASE_EVALUATION] = 'e',
	                               [INFERRED_GENERATION] = 'g'};

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

void check(const char *text, const char *expected_steps, const char *expected_phases)
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
