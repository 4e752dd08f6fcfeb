/* SPDX-License-Identifier: Apache-2.0
 *
 * frames.c: see frames.h. In all versions, an object has its type at 8. A bytes or code object has its size at 16 and
 * its bytes at 32. A str has its length at 16 and its state at 32.
 */
#include "pyframes/frames.h"

#include "pyframes/line_table.h"

#include <stdio.h>

#define TYPE 8u
#define SIZE 16u
#define TEXT_STATE 32u
#define BYTES 32u
#define FRAMES_PASSED 100000u /* limit for a chain without an end */
#define TABLE_MAX (64u << 20) /* bytes */
#define TEXT_MAX (1u << 20)

static bool read_bytes(const struct pyframes_memory *memory, uint64_t address, void *to, size_t bytes)
{
	if (address < 4096)
		return false;
	if (memory->read)
		return memory->read(memory->context, address, to, bytes);
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return true;
}

/* Reads a pointer. Returns false if no object can have this address. */
static bool read_pointer(const struct pyframes_memory *memory, uint64_t address, uint64_t *pointer)
{
	return read_bytes(memory, address, pointer, sizeof(*pointer)) && *pointer % 8 == 0;
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static bool read_frame(const struct pyframes_layout *layout, const struct pyframes_memory *memory, uint64_t at,
                       struct pyframes_frame *frame)
{
	uint64_t instruction = 0;
	size_t bytes = layout->is_pointer ? sizeof(uint64_t) : sizeof(int32_t);
	if (!read_bytes(memory, at + layout->code, &frame->code, sizeof(frame->code)) ||
	    !read_bytes(memory, at + layout->instruction, &instruction, bytes))
		return false;
	frame->code &= ~(uint64_t)3;
	frame->offset = layout->is_pointer ? (int64_t)(instruction - frame->code - layout->bytecode)
	                                   : (int64_t)(int32_t)instruction * layout->unit;
	return frame->code % 8 == 0;
}

unsigned pyframes_walk(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                       uint64_t thread_state, struct pyframes_frame *frames, unsigned max, enum pyframes_end *end)
{
	unsigned count = 0, passed = 0;
	uint64_t at;
	*end = PYFRAMES_BROKEN;
	if (!read_pointer(memory, thread_state + layout->thread_frame, &at) ||
	    (layout->is_indirect && at && !read_pointer(memory, at + layout->c_frame, &at)))
		return 0;
	for (; at && passed < FRAMES_PASSED; passed++) {
		uint8_t owner = 0;
		if (layout->no_code && !read_bytes(memory, at + layout->owner, &owner, 1))
			return count;
		if (!layout->no_code || owner < layout->no_code) {
			if (count == max) {
				*end = PYFRAMES_CUT;
				return count;
			}
			if (!read_frame(layout, memory, at, &frames[count]))
				return count;
			count++;
		}
		if (!read_pointer(memory, at + layout->previous, &at))
			return count;
	}
	*end = at ? PYFRAMES_BROKEN : PYFRAMES_ROOT;
	return count;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd; /* half of a surrogate pair: a file name with bytes that are not text */
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* Copies characters from `from` on as UTF-8, until `to` is full. */
static bool frames_copy_text(const struct pyframes_memory *memory, uint64_t at, unsigned width, uint64_t from,
                             uint64_t count, char *to, size_t bytes)
{
	char window[64];
	size_t length = 0;
	for (uint64_t i = from; i < count && length + 4 < bytes;) {
		uint64_t some = count - i < sizeof(window) / 4 ? count - i : sizeof(window) / 4;
		if (!read_bytes(memory, at + i * width, window, some * width))
			return false;
		for (uint64_t k = 0; k < some && length + 4 < bytes; k++, i++) {
			uint32_t c = 0;
			memcpy(&c, window + k * width, width);
			length += put_utf8(to + length, c ? c : ' ');
		}
	}
	to[length] = 0;
	return true;
}

/* Reads a str. If it is too long, is_tail keeps its end; otherwise its beginning is kept. */
static bool frames_read_text(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                             uint64_t address, bool is_tail, char *to, size_t bytes)
{
	uint64_t count, text;
	uint32_t state;
	if (!read_pointer(memory, address, &text) || !read_bytes(memory, text + SIZE, &count, sizeof(count)) ||
	    !read_bytes(memory, text + TEXT_STATE, &state, sizeof(state)))
		return false;
	unsigned width = state >> 2 & 7;
	bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
	if (!is_compact || (width != 1 && width != 2 && width != 4) || (is_ascii && width != 1) || count > TEXT_MAX)
		return false;
	uint64_t room = (bytes - 4) / (is_ascii ? 1 : 4);
	uint64_t from = is_tail && count > room - 4 ? count - (room - 4) : 0;
	if (from) {
		memcpy(to, "...", 3);
		to += 3;
		bytes -= 3;
	}
	return frames_copy_text(memory, text + (is_ascii ? layout->ascii_text : layout->other_text), width, from, count,
	                        to, bytes);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

struct frames_window {
	struct pyframes_bytes bytes; /* must be the first member */
	const struct pyframes_memory *memory;
	uint64_t at, end;
	unsigned have, used;
	uint8_t data[256];
};

static int next_byte(struct pyframes_bytes *bytes)
{
	struct frames_window *window = (struct frames_window *)bytes;
	if (window->used == window->have) {
		uint64_t left = window->end - window->at;
		window->have = left < sizeof(window->data) ? (unsigned)left : (unsigned)sizeof(window->data);
		window->used = 0;
		if (!window->have || !read_bytes(window->memory, window->at, window->data, window->have)) {
			window->have = 0;
			return -1;
		}
		window->at += window->have;
	}
	return window->data[window->used++];
}

static bool read_line(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                      const struct pyframes_frame *frame, uint32_t *line)
{
	uint64_t table, size;
	int32_t first_line;
	if (!read_bytes(memory, frame->code + layout->first_line, &first_line, sizeof(first_line)) ||
	    !read_pointer(memory, frame->code + layout->line_table, &table) ||
	    !read_bytes(memory, table + SIZE, &size, sizeof(size)) || size > TABLE_MAX || first_line < 0)
		return false;
	struct frames_window window = {
		.bytes.next = next_byte, .memory = memory, .at = table + BYTES, .end = table + BYTES + size};
	*line = pyframes_line((enum pyframes_lines)layout->lines, &window.bytes, (uint32_t)first_line, frame->offset);
	return true;
}

/* Returns true if the instruction is in the code object. */
static bool is_inside(const struct pyframes_layout *layout, const struct pyframes_memory *memory,
                      const struct pyframes_frame *frame)
{
	uint64_t holder = frame->code, size;
	if (!layout->is_pointer && !read_pointer(memory, frame->code + layout->bytecode, &holder))
		return false;
	if (!read_bytes(memory, holder + SIZE, &size, sizeof(size)) || size > TABLE_MAX)
		return false;
	/* the offset before the first instruction is one step outside */
	return frame->offset >= -2 && frame->offset < (int64_t)(layout->is_pointer ? 2 * size : size);
}

bool pyframes_describe(const struct pyframes_layout *layout, const struct pyframes_memory *memory, uint64_t code_type,
                       const struct pyframes_frame *frame, struct pyframes_place *place)
{
	uint64_t type;
	uint16_t name = layout->qualified_name ? layout->qualified_name : layout->name;
	if (!read_pointer(memory, frame->code + TYPE, &type) || (code_type && type != code_type) ||
	    !is_inside(layout, memory, frame))
		return false;
	return frames_read_text(layout, memory, frame->code + layout->file, true, place->file, sizeof(place->file)) &&
	       frames_read_text(layout, memory, frame->code + name, false, place->name, sizeof(place->name)) &&
	       read_line(layout, memory, frame, &place->line);
}
