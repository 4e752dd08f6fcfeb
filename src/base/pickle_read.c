/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_read.c: see the header. A pickle is a program for a machine with a stack of values, marks on it, and a memo.
 * Each opcode has a function that changes our stack as Python changes its stack. Opcodes that would do more have no
 * function.
 */
#include "base/pickle_read.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)256 << 10)
#define TEXT_BYTES ((size_t)1 << 20) /* longest part of a text that is kept */
#define FREE_BYTES ((uint64_t)256 << 20)
#define BYTES_PER_BYTE 16u /* of memory, per byte of the file */
#define KEYS_LOOKED_AT 64u

enum next { /* result of an opcode */
	GO_ON,
	IS_OVER, /* STOP */
	IS_CUT,
	IS_MALFORMED,
	IS_TOO_LARGE,
};

typedef enum next (*run_opcode)(struct pickle *pickle);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool is_too_large(const struct pickle *pickle)
{
	return pickle->used_bytes > FREE_BYTES + BYTES_PER_BYTE * input_file_bytes(pickle->input);
}

static bool room_for(struct pickle *pickle, void **array, uint32_t *capacity, uint32_t wanted, size_t element_bytes)
{
	uint64_t next = *capacity ? *capacity : 256;
	if (wanted <= *capacity)
		return true;
	while (next < wanted)
		next *= 2;
	if (next > UINT32_MAX)
		return false;
	pickle->used_bytes += (next - *capacity) * element_bytes;
	if (is_too_large(pickle))
		return false;
	*array = memory_resize(*array, next, element_bytes);
	*capacity = (uint32_t)next;
	return true;
}

/* ---- bytes of the file ------------------------------------------------------------------------------------------- */

static void fill_window(struct pickle *pickle)
{
	size_t left = pickle->window_end - pickle->begin, length = 1;
	memmove(pickle->window, pickle->window + pickle->begin, left);
	pickle->window_offset += pickle->begin;
	pickle->begin = 0;
	pickle->window_end = left;
	while (length && pickle->window_end < WINDOW_BYTES && pickle->input_error.status == STATUS_OK) {
		if (input_read(pickle->input, (char *)pickle->window + pickle->window_end,
		               WINDOW_BYTES - pickle->window_end, &length, &pickle->input_error) != STATUS_OK)
			return;
		pickle->window_end += length;
	}
	if (pickle->client.progress)
		pickle->client.progress(pickle->client.context);
}

/* Returns the next bytes, at most a window full. NULL: there are fewer. */
static const uint8_t *get(struct pickle *pickle, size_t length)
{
	if (pickle->window_end - pickle->begin < length)
		fill_window(pickle);
	if (pickle->window_end - pickle->begin < length)
		return NULL;
	pickle->begin += length;
	return pickle->window + pickle->begin - length;
}

static bool get_number(struct pickle *pickle, size_t length, uint64_t *number)
{
	const uint8_t *bytes = get(pickle, length);
	*number = 0;
	for (size_t i = 0; bytes && i < length; i++)
		*number |= (uint64_t)bytes[i] << 8 * i;
	return bytes;
}

/* Copies up to `kept` bytes into `out` and skips the others. */
static bool get_long(struct pickle *pickle, uint64_t length, char *out, size_t kept)
{
	uint64_t done = 0;
	while (done < length) {
		size_t part = length - done < WINDOW_BYTES / 2 ? (size_t)(length - done) : WINDOW_BYTES / 2;
		const uint8_t *bytes = get(pickle, part);
		if (!bytes)
			return false;
		if (done < kept)
			memcpy(out + done, bytes, part < kept - done ? part : kept - (size_t)done);
		done += part;
	}
	return true;
}

/* ---- the stack --------------------------------------------------------------------------------------------------- */

static enum next pickle_read_push(struct pickle *pickle, struct pickle_value value)
{
	void *stack = pickle->stack;
	if (!room_for(pickle, &stack, &pickle->stack_capacity, pickle->stack_count + 1, sizeof *pickle->stack))
		return IS_TOO_LARGE;
	pickle->stack = stack;
	pickle->stack[pickle->stack_count++] = value;
	return GO_ON;
}

static enum next push_integer(struct pickle *pickle, int64_t number)
{
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_INT, .i64 = number});
}

/* Returns the value `depth` below the top. NULL: a mark, or nothing, is in the way. */
static struct pickle_value *below(struct pickle *pickle, uint32_t depth)
{
	for (uint32_t i = 0; i <= depth; i++)
		if (i >= pickle->stack_count || pickle->stack[pickle->stack_count - 1 - i].type == PICKLE_MARK)
			return NULL;
	return &pickle->stack[pickle->stack_count - 1 - depth];
}

/* Finds the topmost mark. */
static bool find_mark(const struct pickle *pickle, uint32_t *mark)
{
	for (uint32_t i = pickle->stack_count; i > 0; i--) {
		if (pickle->stack[i - 1].type != PICKLE_MARK)
			continue;
		*mark = i - 1;
		return true;
	}
	return false;
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

static enum next push_object(struct pickle *pickle, enum pickle_kind kind)
{
	void *objects = pickle->objects;
	if (!room_for(pickle, &objects, &pickle->object_capacity, pickle->object_count + 1, sizeof *pickle->objects))
		return IS_TOO_LARGE;
	pickle->objects = objects;
	pickle->objects[pickle->object_count] = (struct pickle_object){.kind = (uint8_t)kind};
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_OBJECT, .number = pickle->object_count++});
}

static enum next keep_items(struct pickle *pickle, struct pickle_object *object, const struct pickle_value *items,
                            uint32_t count)
{
	uint64_t wanted = (uint64_t)object->count + count, capacity = object->items ? 1u << object->capacity_log : 0;
	if (!count)
		return GO_ON;
	if (wanted > UINT32_MAX / 2)
		return IS_TOO_LARGE;
	while (capacity < wanted) {
		pickle->used_bytes += (capacity ? capacity : 1) * sizeof *items;
		capacity = capacity ? 2 * capacity : 1;
		object->capacity_log = (uint8_t)__builtin_ctzll(capacity);
	}
	if (is_too_large(pickle)) {
		object->capacity_log = 0; /* it is not used any more */
		return IS_TOO_LARGE;
	}
	object->items = memory_resize(object->items, capacity, sizeof *items);
	for (uint32_t i = 0; i < count; i++)
		object->items[object->count++] = items[i];
	return GO_ON;
}

static enum next put_items(struct pickle *pickle, uint32_t number, const struct pickle_value *items, uint32_t count)
{
	const struct pickle_client *client = &pickle->client;
	if (!count)
		return GO_ON;
	if (client->take && client->take(client->context, pickle, number, items, count))
		return is_too_large(pickle) ? IS_TOO_LARGE : GO_ON;
	if (pickle->objects[number].kind == PICKLE_TAKEN) {
		pickle->refused_items += count;
		return GO_ON;
	}
	return keep_items(pickle, &pickle->objects[number], items, count);
}

/* Moves the values above the mark from the stack into the container below it. */
static enum next put_marked(struct pickle *pickle, bool is_dictionary)
{
	uint32_t mark;
	if (!find_mark(pickle, &mark) || mark == 0 || pickle->stack[mark - 1].type != PICKLE_OBJECT)
		return IS_MALFORMED;
	uint32_t count = pickle->stack_count - mark - 1, number = pickle->stack[mark - 1].number;
	const struct pickle_object *object = &pickle->objects[number];
	if (object->kind != PICKLE_TAKEN && object->kind != (is_dictionary ? PICKLE_DICTIONARY : PICKLE_LIST))
		return IS_MALFORMED;
	if (is_dictionary && count % 2)
		return IS_MALFORMED;
	pickle->stack_count = mark;
	return put_items(pickle, number, pickle->stack + mark + 1, count);
}

/* Moves the `count` values on top into the container below them. */
static enum next put_top(struct pickle *pickle, uint32_t count)
{
	const struct pickle_value *container = below(pickle, count);
	if (!container || container->type != PICKLE_OBJECT)
		return IS_MALFORMED;
	const struct pickle_object *object = &pickle->objects[container->number];
	if (object->kind != PICKLE_TAKEN && object->kind != (count == 2 ? PICKLE_DICTIONARY : PICKLE_LIST))
		return IS_MALFORMED;
	pickle->stack_count -= count;
	return put_items(pickle, container->number, pickle->stack + pickle->stack_count, count);
}

/* Replaces the values from `first` on by a new container of them. */
static enum next make_of(struct pickle *pickle, uint32_t first, uint32_t dropped, enum pickle_kind kind)
{
	uint32_t count = pickle->stack_count - first;
	struct pickle_value *items = memory_resize(NULL, (size_t)count + 1, sizeof *items);
	memcpy(items, pickle->stack + first, count * sizeof *items);
	pickle->stack_count = first - dropped;
	enum next next = push_object(pickle, kind);
	if (next == GO_ON && kind == PICKLE_TUPLE)
		next = keep_items(pickle, &pickle->objects[pickle->object_count - 1], items, count);
	else if (next == GO_ON)
		next = put_items(pickle, pickle->object_count - 1, items, count);
	free(items);
	return next;
}

static enum next make_of_marked(struct pickle *pickle, enum pickle_kind kind)
{
	uint32_t mark;
	if (!find_mark(pickle, &mark))
		return IS_MALFORMED;
	if (kind == PICKLE_DICTIONARY && (pickle->stack_count - mark - 1) % 2)
		return IS_MALFORMED;
	return make_of(pickle, mark + 1, 1, kind);
}

static enum next make_tuple(struct pickle *pickle, uint32_t count)
{
	return below(pickle, count - 1) ? make_of(pickle, pickle->stack_count - count, 0, PICKLE_TUPLE) : IS_MALFORMED;
}

/* ---- the memo ---------------------------------------------------------------------------------------------------- */

static enum next pickle_read_remember(struct pickle *pickle, uint64_t number)
{
	const struct pickle_value *value = below(pickle, 0);
	void *memo = pickle->memo;
	/* Python numbers its memo in order, so no number is larger than the number of bytes before it */
	if (!value || number > pickle->offset ||
	    (value->type != PICKLE_TEXT && value->type != PICKLE_OBJECT && value->type != PICKLE_BYTES))
		return IS_MALFORMED;
	if (number >= UINT32_MAX ||
	    !room_for(pickle, &memo, &pickle->memo_capacity, (uint32_t)number + 1, sizeof *pickle->memo))
		return IS_TOO_LARGE;
	pickle->memo = memo;
	while (pickle->memo_count <= number)
		pickle->memo[pickle->memo_count++] = 0;
	pickle->memo[number] = (uint64_t)value->type << 32 | value->number;
	return GO_ON;
}

static enum next recall(struct pickle *pickle, uint64_t number)
{
	uint64_t found = number < pickle->memo_count ? pickle->memo[number] : 0;
	if (!found)
		return IS_MALFORMED;
	return pickle_read_push(pickle,
	                        (struct pickle_value){.type = (uint32_t)(found >> 32), .number = (uint32_t)found});
}

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

static enum next run_proto(struct pickle *pickle)
{
	const uint8_t *version = get(pickle, 1);
	if (!version)
		return IS_CUT;
	return *version >= 2 && *version <= 5 ? GO_ON : IS_MALFORMED;
}

static enum next run_frame(struct pickle *pickle) /* it only says how much to read ahead */
{
	return get(pickle, 8) ? GO_ON : IS_CUT;
}

static enum next run_stop(struct pickle *pickle)
{
	const struct pickle_value *value = below(pickle, 0);
	if (value)
		pickle->result = *value;
	return value ? IS_OVER : IS_MALFORMED;
}

static enum next run_mark(struct pickle *pickle)
{
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_MARK});
}

static enum next run_pop(struct pickle *pickle)
{
	if (!pickle->stack_count)
		return IS_MALFORMED;
	pickle->stack_count--;
	return GO_ON;
}

static enum next run_pop_mark(struct pickle *pickle)
{
	return find_mark(pickle, &pickle->stack_count) ? GO_ON : IS_MALFORMED;
}

static enum next run_dup(struct pickle *pickle)
{
	const struct pickle_value *value = below(pickle, 0);
	return value ? pickle_read_push(pickle, *value) : IS_MALFORMED;
}

static enum next run_none(struct pickle *pickle)
{
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_NONE});
}

static enum next run_bool(struct pickle *pickle)
{
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_BOOL, .i64 = pickle->opcode == 0x88});
}

static enum next run_integer(struct pickle *pickle)
{
	uint64_t number;
	size_t length = pickle->opcode == 'K' ? 1 : pickle->opcode == 'M' ? 2 : 4;
	if (!get_number(pickle, length, &number))
		return IS_CUT;
	return push_integer(pickle, length == 4 ? (int32_t)(uint32_t)number : (int64_t)number);
}

static enum next run_long(struct pickle *pickle)
{
	uint64_t length, low = 0;
	uint8_t bytes[9] = {0}; /* one byte more than i64 holds */
	if (!get_number(pickle, pickle->opcode == 0x8a ? 1 : 4, &length) ||
	    !get_long(pickle, length, (char *)bytes, sizeof bytes))
		return IS_CUT;
	if (length > INT32_MAX)
		return IS_MALFORMED;
	for (size_t i = 0; i < 8 && i < length; i++)
		low |= (uint64_t)bytes[i] << 8 * i;
	if (length && length < 8 && bytes[length - 1] & 0x80) /* negative */
		low |= UINT64_MAX << 8 * length;
	bool is_padded = length == 9 && bytes[8] == 0 && !(low >> 63);
	if (length > 8 && !is_padded)
		return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_LARGE});
	return push_integer(pickle, (int64_t)low);
}

static enum next run_float(struct pickle *pickle)
{
	const uint8_t *bytes = get(pickle, 8);
	uint64_t bits = 0;
	struct pickle_value value = {.type = PICKLE_FLOAT};
	for (size_t i = 0; bytes && i < 8; i++)
		bits = bits << 8 | bytes[i];
	memcpy(&value.f64, &bits, 8);
	return bytes ? pickle_read_push(pickle, value) : IS_CUT;
}

/* Returns the size of the length that follows the opcode. */
static size_t length_bytes(uint8_t opcode)
{
	return opcode == 0x8c || opcode == 'C' || opcode == 'U'     ? 1
	       : opcode == 0x8d || opcode == 0x8e || opcode == 0x96 ? 8
	                                                            : 4;
}

static enum next run_text(struct pickle *pickle)
{
	uint64_t length;
	char small[512], *text = small;
	if (!get_number(pickle, length_bytes(pickle->opcode), &length))
		return IS_CUT;
	size_t kept = length < TEXT_BYTES ? (size_t)length : TEXT_BYTES;
	if (kept > sizeof small)
		text = memory_resize(NULL, kept, 1);
	bool is_whole = get_long(pickle, length, text, kept);
	enum next next = IS_CUT;
	if (is_whole) {
		uint32_t before = pickle->texts.count;
		buffer_clear(&pickle->text);
		pickle->odd_texts += !utf8_append_valid(&pickle->text, text,
		                                        kept < length ? utf8_cut(text, kept, kept - 4) : kept);
		uint32_t number = intern_add_n(&pickle->texts, pickle->text.data, pickle->text.length);
		pickle->used_bytes += pickle->texts.count > before ? kept + 64 : 0;
		pickle->cut_texts += kept < length;
		next = is_too_large(pickle) ? IS_TOO_LARGE
		                            : pickle_read_push(pickle, (struct pickle_value){PICKLE_TEXT, number, {0}});
	}
	if (text != small)
		free(text);
	return next;
}

static enum next run_bytes(struct pickle *pickle)
{
	uint64_t length;
	if (!get_number(pickle, length_bytes(pickle->opcode), &length) || !get_long(pickle, length, NULL, 0))
		return IS_CUT;
	return pickle_read_push(pickle, (struct pickle_value){.type = PICKLE_BYTES});
}

static enum next run_empty(struct pickle *pickle)
{
	return push_object(pickle, pickle->opcode == '}'   ? PICKLE_DICTIONARY
	                           : pickle->opcode == ')' ? PICKLE_TUPLE
	                                                   : PICKLE_LIST);
}

static enum next run_make(struct pickle *pickle)
{
	return make_of_marked(pickle, pickle->opcode == 'd'   ? PICKLE_DICTIONARY
	                              : pickle->opcode == 't' ? PICKLE_TUPLE
	                                                      : PICKLE_LIST);
}

static enum next run_tuple(struct pickle *pickle)
{
	return make_tuple(pickle, pickle->opcode - 0x84u);
}

static enum next run_append(struct pickle *pickle)
{
	return put_top(pickle, 1);
}

static enum next run_appends(struct pickle *pickle)
{
	return put_marked(pickle, false);
}

static enum next run_set_item(struct pickle *pickle)
{
	return put_top(pickle, 2);
}

static enum next run_set_items(struct pickle *pickle)
{
	return put_marked(pickle, true);
}

static enum next run_memo(struct pickle *pickle)
{
	uint64_t number = pickle->memo_count;
	if (pickle->opcode != 0x94 && !get_number(pickle, pickle->opcode == 'q' ? 1 : 4, &number))
		return IS_CUT;
	return pickle_read_remember(pickle, number);
}

static enum next run_get(struct pickle *pickle)
{
	uint64_t number;
	if (!get_number(pickle, pickle->opcode == 'h' ? 1 : 4, &number))
		return IS_CUT;
	return recall(pickle, number);
}

/* Sets are read as lists. */
static const run_opcode runs[256] = {
	[0x80] = run_proto,    [0x95] = run_frame,  ['.'] = run_stop,    ['('] = run_mark,     ['0'] = run_pop,
	['1'] = run_pop_mark,  ['2'] = run_dup,     ['N'] = run_none,    [0x88] = run_bool,    [0x89] = run_bool,
	['J'] = run_integer,   ['K'] = run_integer, ['M'] = run_integer, [0x8a] = run_long,    [0x8b] = run_long,
	['G'] = run_float,     [0x8c] = run_text,   ['X'] = run_text,    [0x8d] = run_text,    ['U'] = run_text,
	['T'] = run_text,      ['C'] = run_bytes,   ['B'] = run_bytes,   [0x8e] = run_bytes,   [0x96] = run_bytes,
	['}'] = run_empty,     [']'] = run_empty,   [')'] = run_empty,   [0x8f] = run_empty,   ['d'] = run_make,
	['l'] = run_make,      ['t'] = run_make,    [0x91] = run_make,   [0x85] = run_tuple,   [0x86] = run_tuple,
	[0x87] = run_tuple,    ['a'] = run_append,  ['e'] = run_appends, [0x90] = run_appends, ['s'] = run_set_item,
	['u'] = run_set_items, [0x94] = run_memo,   ['q'] = run_memo,    ['r'] = run_memo,     ['h'] = run_get,
	['j'] = run_get,
};

/* Opcodes that make Python import, call or build something, or use data from outside the pickle; names as in Python's
 * pickletools. */
static const char *const refused[256] = {
	['c'] = "GLOBAL",    [0x93] = "STACK_GLOBAL", ['R'] = "REDUCE",
	['b'] = "BUILD",     ['i'] = "INST",          ['o'] = "OBJ",
	[0x81] = "NEWOBJ",   [0x92] = "NEWOBJ_EX",    [0x82] = "EXT1",
	[0x83] = "EXT2",     [0x84] = "EXT4",         ['P'] = "PERSID",
	['Q'] = "BINPERSID", [0x97] = "NEXT_BUFFER",  [0x98] = "READONLY_BUFFER",
};

/* ---- the whole pickle -------------------------------------------------------------------------------------------- */

/* Appends printable characters only, so that a terminal shows the name. */
static void add_name(char *out, size_t capacity, const char *name, size_t length)
{
	size_t at = strlen(out);
	for (size_t i = 0; i < length && i < 60 && at + 1 < capacity; i++)
		out[at++] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	out[at] = 0;
}

/* Writes "os.system" for a GLOBAL, if its name is known. */
static void name_of_global(struct pickle *pickle, char *out, size_t capacity)
{
	out[0] = 0;
	if (pickle->opcode == 'c' || pickle->opcode == 'i') {
		for (int line = 0; line < 2; line++) {
			if (pickle->window_end - pickle->begin < 256)
				fill_window(pickle);
			const char *text = (const char *)pickle->window + pickle->begin;
			size_t left = pickle->window_end - pickle->begin;
			const char *end = left ? memchr(text, '\n', left < 256 ? left : 256) : NULL;
			if (!end)
				return;
			add_name(out, capacity, line ? "." : "", (size_t)line);
			add_name(out, capacity, text, (size_t)(end - text));
			pickle->begin += (size_t)(end - text) + 1;
		}
	} else if (pickle->opcode == 0x93) {
		const char *module = pickle_text(pickle, below(pickle, 1)),
			   *name = pickle_text(pickle, below(pickle, 0));
		if (!module || !name)
			return;
		add_name(out, capacity, module, strlen(module));
		add_name(out, capacity, ".", 1);
		add_name(out, capacity, name, strlen(name));
	}
}

static enum status pickle_read_refuse(struct pickle *pickle, const char *path, struct error *err)
{
	char name[192];
	pickle->end = PICKLE_REFUSED;
	name_of_global(pickle, name, sizeof name);
	enum status status = error_set(
		err, STATUS_INPUT, "'%s' is refused: byte %" PRIu64 " of the pickle is the opcode %s%s%s%s", path,
		pickle->offset, refused[pickle->opcode], name[0] ? " (" : "", name, name[0] ? ")" : "");
	error_hint(err,
	           "with it Python would run code of the file; only data is read, and nothing was run: do not load it "
	           "with Python unless you know where it is from");
	return status;
}

static enum status refuse_size(struct pickle *pickle, const char *path, struct error *err)
{
	pickle->end = PICKLE_REFUSED;
	return error_set(err, STATUS_INPUT,
	                 "'%s' is refused: at byte %" PRIu64
	                 " of the pickle it has taken more than %u times its size in memory",
	                 path, pickle->offset, BYTES_PER_BYTE);
}

/* Closes containers within the keys and values of a dictionary from `first` on. A value in the place of a key belongs
 * inside the value before it, the next one inside that value, and so on. */
static void close_values(struct pickle *pickle, uint32_t first)
{
	uint32_t end = first;
	while (end + 1 < pickle->stack_count && pickle->stack[end].type == PICKLE_TEXT)
		end += 2;
	while (pickle->stack_count > end)
		if (end == first || pickle->stack[pickle->stack_count - 1].type == PICKLE_TEXT ||
		    put_top(pickle, 1) != GO_ON)
			pickle->stack_count--;
}

/* Puts complete values into their containers, as if all containers ended here. */
static void close_all(struct pickle *pickle)
{
	uint32_t mark;
	while (find_mark(pickle, &mark)) {
		const struct pickle_value *around = mark ? &pickle->stack[mark - 1] : NULL;
		bool is_list = pickle_object(pickle, around, PICKLE_LIST);
		if (!is_list)
			close_values(pickle, mark + 1);
		if (put_marked(pickle, !is_list) != GO_ON)
			pickle->stack_count = mark; /* they are items of a tuple, or cannot be used */
	}
	if (!pickle->stack_count)
		return;
	if (pickle_object(pickle, pickle->stack, PICKLE_DICTIONARY)) {
		close_values(pickle, 1);
		(void)put_items(pickle, pickle->stack[0].number, pickle->stack + 1, pickle->stack_count - 1);
	}
	pickle->result = pickle->stack[0];
}

static enum next run_all(struct pickle *pickle)
{
	for (;;) {
		pickle->offset = pickle->window_offset + pickle->begin;
		const uint8_t *opcode = get(pickle, 1);
		if (!opcode)
			return IS_CUT;
		pickle->opcode = *opcode;
		if (!runs[*opcode])
			return IS_MALFORMED;
		enum next next = runs[*opcode](pickle);
		if (next != GO_ON)
			return next;
	}
}

enum status pickle_read(struct pickle *pickle, struct input_stream *input, const char *path, struct error *err)
{
	pickle->input = input;
	pickle->window = memory_resize(NULL, WINDOW_BYTES, 1);
	enum next next = run_all(pickle);
	if (next == IS_MALFORMED && refused[pickle->opcode] && !runs[pickle->opcode])
		return pickle_read_refuse(pickle, path, err);
	if (next == IS_TOO_LARGE)
		return refuse_size(pickle, path, err);
	pickle->end = next == IS_OVER ? PICKLE_COMPLETE : next == IS_CUT ? PICKLE_CUT : PICKLE_MALFORMED;
	if (next != IS_OVER)
		close_all(pickle);
	return STATUS_OK;
}

bool pickle_begins(const char *head, size_t length)
{
	return length >= 3 && (uint8_t)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
	       (runs[(uint8_t)head[2]] || refused[(uint8_t)head[2]]);
}

void pickle_take(struct pickle *pickle, uint32_t object, uint8_t tag, uint32_t taken, uint32_t count)
{
	struct pickle_object *it = &pickle->objects[object];
	if (it->kind != PICKLE_TAKEN && it->items) {
		pickle->used_bytes -= ((uint64_t)1 << it->capacity_log) * sizeof *it->items;
		free(it->items);
	}
	*it = (struct pickle_object){.taken = taken, .count = count, .kind = PICKLE_TAKEN, .tag = tag};
}

const char *pickle_text(const struct pickle *pickle, const struct pickle_value *value)
{
	return value && value->type == PICKLE_TEXT ? intern_text(&pickle->texts, value->number) : NULL;
}

const struct pickle_value *pickle_find(const struct pickle *pickle, const struct pickle_object *dictionary,
                                       const char *key)
{
	uint32_t number = intern_find(&pickle->texts, key);
	bool is_known = number || !*key; /* 0 is "" */
	for (uint32_t i = 0; dictionary && is_known && i + 1 < dictionary->count && i < 2 * KEYS_LOOKED_AT; i += 2)
		if (dictionary->items[i].type == PICKLE_TEXT && dictionary->items[i].number == number)
			return &dictionary->items[i + 1];
	return NULL;
}

void pickle_init(struct pickle *pickle, struct pickle_client client)
{
	*pickle = (struct pickle){.client = client};
	intern_init(&pickle->texts);
	buffer_init(&pickle->text, 4 * TEXT_BYTES);
}

void pickle_release(struct pickle *pickle)
{
	for (uint32_t i = 0; i < pickle->object_count; i++)
		if (pickle->objects[i].kind != PICKLE_TAKEN)
			free(pickle->objects[i].items);
	free(pickle->objects);
	free(pickle->stack);
	free(pickle->memo);
	free(pickle->window);
	intern_release(&pickle->texts);
	buffer_release(&pickle->text);
	*pickle = (struct pickle){0};
}
