/* SPDX-License-Identifier: Apache-2.0
 *
 * frames.h: stacks of CPython, frame by frame, and what a frame's code object says of itself. Nothing is written, allocated, locked or
 * called in the interpreter, and no reference is counted.
 *
 *     struct pyframes_frame frames[PYFRAMES_MAX];
 *     enum pyframes_end end;
 *     unsigned count = pyframes_walk(layout, memory, thread_state, frames, PYFRAMES_MAX, &end);    innermost first
 *     struct pyframes_place place;
 *     if (count && pyframes_describe(layout, memory, &frames[0], &place)) ... place.file, place.name, place.line
 *
 * The caller says what is alive: the thread state, and with it its frames and their code objects while that thread stands still (it is the
 * caller's own, or stopped). Everything else comes from there. With memory->read nothing is trusted even so: a read that fails, or an
 * object that does not look as it should, ends the walk.
 */
#ifndef PYFRAMES_FRAMES_H
#define PYFRAMES_FRAMES_H

#include "pyframes/versions.h"

#include <string.h>

#define PYFRAMES_MAX 128u /* frames of a stack that are kept, innermost ones */
#define PYFRAMES_FILE_BYTES 1024
#define PYFRAMES_NAME_BYTES 512

struct pyframes_memory {
	/* False: not readable. NULL: this process's own memory, directly. */
	bool (*read)(void *context, uint64_t address, void *to, size_t bytes);
	void *context;
};

struct pyframes_frame {
	uint64_t code;
	int64_t offset; /* of the instruction that runs, or calls the next frame, in the bytecode; bytes; negative: none has run yet */
};

enum pyframes_end {
	PYFRAMES_ROOT,   /* the outermost frame was reached */
	PYFRAMES_CUT,    /* there are more, further out */
	PYFRAMES_BROKEN, /* something is not as it should be: what was found so far must not be believed */
};

struct pyframes_place {
	char file[PYFRAMES_FILE_BYTES]; /* UTF-8; of one that is longer, its end behind "..." */
	char name[PYFRAMES_NAME_BYTES];
	uint32_t line; /* 0: the instruction is on none */
};

unsigned pyframes_walk(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                       uint64_t thread_state, struct pyframes_frame *frames, unsigned max, enum pyframes_end *end);

/* False: the code object does not look like one. code_type: address of PyCode_Type, 0 when it is not known. */
bool pyframes_describe(const struct pyframes_layout *layout, const struct pyframes_memory *memory, uint64_t code_type,
                       const struct pyframes_frame *frame, struct pyframes_place *place);

/* ---- this process's own memory, in a few instructions per frame --------------------------------------------------------------- */

static inline __attribute__((always_inline)) uint64_t pyframes_word(uint64_t address)
{
	uint64_t word;
	memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
	return word;
}

/* The innermost frame of a thread state, be it of Python code or not; 0: none. */
static inline uint64_t pyframes_innermost(const struct pyframes_layout *layout, uint64_t thread_state)
{
	uint64_t frame = pyframes_word(thread_state + layout->thread_frame);
	return layout->is_indirect && frame ? pyframes_word(frame + layout->c_frame) : frame;
}

/* Walks outwards from *frame, to the frame `until` (0: to the root) or until `max` are found; *frame is where it stopped, 0 the root. */
static inline unsigned pyframes_walk_own(const struct pyframes_layout *layout, uint64_t *frame, uint64_t until,
                                         struct pyframes_frame *frames, unsigned max)
{
	unsigned count = 0;
	uint64_t at = *frame;
	for (; at && at != until; at = pyframes_word(at + layout->previous)) {
		if (!layout->no_code || *(const uint8_t *)(uintptr_t)(at + layout->owner) < layout->no_code) {
			if (count == max)
				break;
			/* the lowest bits of a reference are marks in 3.14 */
			uint64_t code = pyframes_word(at + layout->code) & ~(uint64_t)3;
			int64_t offset;
			if (layout->is_pointer) {
				offset = (int64_t)(pyframes_word(at + layout->instruction) - code - layout->bytecode);
			} else {
				int32_t number;
				memcpy(&number, (const void *)(uintptr_t)(at + layout->instruction), sizeof(number));
				offset = (int64_t)number * layout->unit;
			}
			frames[count].code = code;
			frames[count++].offset = offset;
		}
	}
	*frame = at;
	return count;
}

#endif
