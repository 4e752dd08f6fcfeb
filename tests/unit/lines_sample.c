/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_sample DIR: writes a recording of two steps with stacks of Python, for golden tests. Per step, in ms: data.py line 5 issues add (1); the
 * layer at net.py line 12 linear (4, of which addmm 3 by the same frame, and within that a mul (1) that Python code of the user's own called);
 * the backward (2) of that linear is started by train.py line 4; then an operator (1) of no Python at all.
 */
#include "segment_builder.h"

#include <stdio.h>

#define MAIN 1
#define MS UINT64_C(1000000)

enum {
	OP_ADD = 20,
	OP_LINEAR,
	OP_ADDMM,
	OP_MUL,
	OP_BACKWARD,
	OP_EMPTY,
	FRAME_TRAIN = 40,
	FRAME_NET,
	FRAME_TORCH,
	FRAME_MODE,
	FRAME_BACKWARD,
	FRAME_DATA,
	FRAME_DEEP,
	FRAME_UNKNOWN,
};

static struct segment_builder segment;
static uint64_t now = SEGMENT_SAMPLE_START;

static void frame(uint32_t id, uint32_t caller, uint32_t line, const char *name, const char *file)
{
	char text[256];
	int length = snprintf(text, sizeof text, "%u%c%u%c%s%c%s", caller, 0, line, 0, name, 0, file);
	segment_symbol_n(&segment, id, STEPSCOPE_SYMBOL_FRAME, text, (uint32_t)length);
}

static void begin(uint32_t op, uint64_t sequence, uint32_t python)
{
	if (python)
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_BEGIN, op, 2, sequence, (uint64_t)python << 32);
	else
		segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_BEGIN, op, 1, sequence);
}

static void end(uint64_t ms)
{
	now += ms * MS;
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
}

static void link_it(uint64_t number, bool is_incoming)
{
	segment_put(&segment, MAIN, now, STEPSCOPE_EVENT_LINK, STEPSCOPE_LINK_BACKWARD * 2 + is_incoming, 1, number);
}

static void put_step(int64_t number)
{
	segment_step(&segment, MAIN, now, STEPSCOPE_STEP_BEGIN, number);
	begin(OP_ADD, STEPSCOPE_NO_SEQUENCE, number ? FRAME_DEEP : FRAME_DATA);
	end(1);
	begin(OP_LINEAR, 7, FRAME_TORCH);
	link_it((uint64_t)number + 1, false);
	begin(OP_ADDMM, STEPSCOPE_NO_SEQUENCE, 0);
	begin(OP_MUL, STEPSCOPE_NO_SEQUENCE, FRAME_MODE);
	end(1);
	end(2);
	end(1);
	begin(OP_ADD, STEPSCOPE_NO_SEQUENCE, FRAME_NET);
	end(1);
	begin(OP_BACKWARD, 7, FRAME_BACKWARD);
	link_it((uint64_t)number + 1, true);
	end(2);
	begin(OP_EMPTY, STEPSCOPE_NO_SEQUENCE, 0);
	end(1);
	segment_step(&segment, MAIN, now, STEPSCOPE_STEP_END, number);
	now += MS;
}

static void name_all(void)
{
	segment_symbol(&segment, OP_ADD, STEPSCOPE_SYMBOL_OP, "aten::add");
	segment_symbol(&segment, OP_LINEAR, STEPSCOPE_SYMBOL_OP, "aten::linear");
	segment_symbol(&segment, OP_ADDMM, STEPSCOPE_SYMBOL_OP, "aten::addmm");
	segment_symbol(&segment, OP_MUL, STEPSCOPE_SYMBOL_OP, "aten::mul");
	segment_symbol(&segment, OP_BACKWARD, STEPSCOPE_SYMBOL_BACKWARD, "AddmmBackward0");
	segment_symbol(&segment, OP_EMPTY, STEPSCOPE_SYMBOL_OP, "aten::empty");
	/* a frame may stand before its caller */
	frame(FRAME_TORCH, FRAME_NET, 1778, "Module._call_impl",
	      "/usr/lib/python3/dist-packages/torch/nn/modules/module.py");
	frame(FRAME_NET, FRAME_TRAIN, 12, "Net.forward", "/job/net.py");
	frame(FRAME_TRAIN, 0, 3, "<module>", "/job/train.py");
	frame(FRAME_MODE, FRAME_TORCH, 2, "Mode.__torch_function__", "modes/own mode.py");
	frame(FRAME_BACKWARD, 0, 4, "<module>", "/job/train.py");
	frame(FRAME_DATA, FRAME_TRAIN, 5, "<listcomp>", "/data/data.py");
	frame(FRAME_UNKNOWN, 0, 0, "", "");
	frame(FRAME_DEEP, FRAME_UNKNOWN, 0, "deep", "<made; 1>");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	segment_begin_sample(&segment, 4242, -1, STEPSCOPE_ROLE_TRAINER);
	segment_stream(&segment, MAIN, 4242, "main");
	segment_meta(&segment, "cwd", "/job");
	segment_meta(&segment, "torch.lines", "yes");
	name_all();
	put_step(0);
	put_step(1);
	segment_end(&segment, "exit");
	return !segment_save_sample(&segment, argv[1]);
}
