/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_sample DIR: writes a recording whose every event and time is given on stdin, for tests/torch/test_torch_table.py. A line
 * each; ticks are nanoseconds and rise:
 *
 *     S id kind text        a symbol
 *     T stream              a thread
 *     G id text             a symbol of a frame of Python, with | for NUL
 *     B stream tick symbol [shape [frame]]
 *     E stream tick
 *     A stream tick address bytes
 *     F stream tick address
 *     N stream tick number  a step begins;  M ... ends
 *     W stream tick number is_begin
 */
#include "segment_builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stepscope/stepscope.h>
#include <string.h>

static void put(struct segment_builder *segment, char what, uint32_t stream, uint64_t tick, uint64_t first,
                uint64_t second, uint64_t third)
{
	switch (what) {
	case 'B':
		segment_put(segment, stream, tick, STEPSCOPE_EVENT_BEGIN, (uint32_t)first, third ? 2 : 0,
		            STEPSCOPE_NO_SEQUENCE, third << 32);
		if (second)
			segment_put(segment, stream, tick, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
			            (uint64_t)STEPSCOPE_ARG_SYMBOL, second);
		break;
	case 'E':
		segment_put(segment, stream, tick, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
		break;
	case 'A':
		segment_put(segment, stream, tick, STEPSCOPE_EVENT_ALLOC,
		            STEPSCOPE_MEMORY_ID(STEPSCOPE_MEMORY_OTHER, -1), 2, first, second);
		break;
	case 'F':
		segment_put(segment, stream, tick, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, -1), 1, first);
		break;
	case 'N':
	case 'M':
		segment_step(segment, stream, tick, what == 'N' ? STEPSCOPE_STEP_BEGIN : STEPSCOPE_STEP_END,
		             (int64_t)first);
		break;
	case 'W':
		segment_put(segment, stream, tick, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_WINDOW, 2, first, second);
		break;
	default:
		break;
	}
}

static void read_frame(struct segment_builder *segment, const char *line)
{
	char text[4096];
	uint64_t id = 0;
	int at = 0;

	sscanf(line, "%" SCNu64 " %n", &id, &at);
	size_t length = strlen(line + at);

	for (size_t i = 0; i < length && i < sizeof(text); i++)
		text[i] = line[at + (int)i] == '|' ? '\0' : line[at + (int)i];
	segment_symbol_n(segment, (uint32_t)id, STEPSCOPE_SYMBOL_FRAME, text, (uint32_t)length);
}

static void read_lines(struct segment_builder *segment)
{
	static char line[70000];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t numbers[5] = {0};
		int text = 0;

		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'S') {
			sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %n", &numbers[0], &numbers[1], &text);
			segment_symbol(segment, (uint32_t)numbers[0], (enum stepscope_symbol_kind)numbers[1],
			               line + 1 + text);
			continue;
		}
		if (line[0] == 'G') {
			read_frame(segment, line + 1);
			continue;
		}
		sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1],
		       &numbers[2], &numbers[3], &numbers[4]);
		if (line[0] == 'T')
			segment_stream(segment, (uint32_t)numbers[0], 4242 + (uint32_t)numbers[0], "thread");
		else
			put(segment, line[0], (uint32_t)numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
	}
}

int main(int argc, char **argv)
{
	struct segment_builder segment;

	if (argc != 2) {
		fprintf(stderr, "usage: torch_sample DIR < EVENTS\n");
		return 2;
	}
	segment_begin_sample(&segment, 4242, -1, STEPSCOPE_ROLE_TRAINER);
	read_lines(&segment);
	segment_end(&segment, "exit");
	return !segment_save_sample(&segment, argv[1]);
}
