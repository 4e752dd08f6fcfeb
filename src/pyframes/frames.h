/* SPDX-License-Identifier: Apache-2.0
 *
 * frames.h: reads the stacks of CPython, frame by frame, and the place that a frame's code object names. Nothing is
 * written, allocated, locked or called in the interpreter, and no reference count changes.
 *
 *     struct pyframes_frame frames[PYFRAMES_MAX];
 *     enum pyframes_end end;
 *     unsigned count = pyframes_walk(layout, memory, thread_state, frames, PYFRAMES_MAX, &end);    innermost first
 *     struct pyframes_place place;
 *     if (count && pyframes_describe(layout, memory, &frames[0], &place)) ... place.file, place.name, place.line
 *
 * The caller guarantees that the thread state is alive. Its frames and their code objects are alive while the thread
 * stands still: it is the caller's own thread, or it is stopped. All other addresses are found from the thread state.
 * With memory->read nothing is trusted: a failed read, or an object in an unexpected form, ends the walk.
 */
#ifndef PYFRAMES_FRAMES_H
#define PYFRAMES_FRAMES_H

#include "pyframes/versions.h"

#include <string.h>

#define PYFRAMES_MAX 128u /* innermost frames of a stack that are kept */
#define PYFRAMES_FILE_BYTES 1024
#define PYFRAMES_NAME_BYTES 512

struct pyframes_memory {
	/* Returns false if the address is not readable. NULL: read this process's own memory directly. */
	bool (*read)(void *context, uint64_t address, void *to, size_t bytes);
	void *context;
};

struct pyframes_frame {
	uint64_t code;
	int64_t offset; /* offset in the bytecode, in bytes, of the instruction that runs or calls the next frame;
	                 * negative: none has run yet */
};

enum pyframes_end {
	PYFRAMES_ROOT,   /* the outermost frame was reached */
	PYFRAMES_CUT,    /* there are more frames, further out */
	PYFRAMES_BROKEN, /* a value was unexpected: do not trust the frames found so far */
};

struct pyframes_place {
	char file[PYFRAMES_FILE_BYTES]; /* UTF-8; if too long, "..." and its end */
	char name[PYFRAMES_NAME_BYTES];
	uint32_t line; /* 0: the instruction has no line */
};

unsigned pyframes_walk(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                       uint64_t thread_state, struct pyframes_frame *frames, unsigned max, enum pyframes_end *end);

/* Returns false if the code object has an unexpected form. code_type: address of PyCode_Type, 0 if unknown. */
bool pyframes_describe(const struct pyframes_layout *layout, const struct pyframes_memory *memory, uint64_t code_type,
                       const struct pyframes_frame *frame, struct pyframes_place *place);

/* ---- this process's own memory, in a few instructions per frame -------------------------------------------------- */

static inline __attribute__((always_inline)) uint64_t pyframes_word(uint64_t address)
{
	uint64_t word;
	memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
	return word;
}

/* Returns the innermost frame of a thread state, of Python code or not; 0: no frame. */
static inline uint64_t pyframes_innermost(const struct pyframes_layout *layout, uint64_t thread_state)
{
	uint64_t frame = pyframes_word(thread_state + layout->thread_frame);
	return layout->is_indirect && frame ? pyframes_word(frame + layout->c_frame) : frame;
}

/* Walks outwards from *frame until the frame `until` (0: the root) or until it has `max` frames. Sets *frame to where
 * it stopped; 0: the root. */
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
