/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_file.c: see kineto_file.h. An event is first read strictly. If that fails, it is read again with lenient
 * strings, up to the next place where a readable event begins. If that fails, too, reading continues at that place.
 */
#include "importers/kineto/kineto_file.h"

#include "importers/kineto/kineto_bytes.h"
#include "importers/kineto/kineto_keys.h"
#include "importers/kineto/kineto_large.h"

#include <string.h>

/* larger events are examined twice: they may really be large, or contain a string that does not end */
#define EVENT_BYTES ((size_t)16 << 10)
#define SMALL_BYTES ((size_t)1 << 10)
#define VAIN_BYTES ((size_t)256 << 20) /* total examined in vain because an event seemed large */
#define SEARCH_BYTES ((size_t)1 << 20) /* distance to search for the next event */
#define FACT_BYTES ((size_t)1 << 20)   /* larger values are skipped */
#define KEY_BYTES ((size_t)4096)

#define BREAKS (1u << REPAIR_UNREADABLE | 1u << REPAIR_GARBAGE | 1u << REPAIR_DOCUMENTS | 1u << REPAIR_METADATA)

static const char events_key[] = "\"traceEvents\"";

void kineto_repair_note(struct kineto_repairs *repairs, enum kineto_repair repair, uint64_t count, uint64_t offset)
{
	if (count && !repairs->count[repair])
		repairs->first_offset[repair] = offset;
	repairs->count[repair] += count;
	if (!count || !(BREAKS >> repair & 1))
		return;
	repairs->has_break = true;
	repairs->break_offset = offset;
}

static void kineto_file_note(struct kineto_file *file, enum kineto_repair repair, uint64_t count)
{
	kineto_repair_note(&file->repairs, repair, count, file->text.offset + file->text.begin);
}

/* Notes that the text ends too early. If its compressed data is damaged, that is reported instead. */
static void kineto_file_note_cut(struct kineto_file *file, enum kineto_repair repair, uint64_t offset)
{
	kineto_repair_note(&file->repairs, repair, file->text.error.status == STATUS_OK, offset);
}

void kineto_file_init(struct kineto_file *file, struct input_stream *input, const struct kineto_visitor *visitor)
{
	memset(file, 0, sizeof *file);
	kineto_text_init(&file->text, input);
	buffer_init(&file->fact, FACT_BYTES + KINETO_PADDING);
	buffer_init(&file->large, KINETO_LARGE_MAX + KINETO_PADDING);
	buffer_init(&file->key, KEY_BYTES);
	file->visitor = visitor;
}

void kineto_file_release(struct kineto_file *file)
{
	kineto_text_release(&file->text);
	buffer_release(&file->fact);
	buffer_release(&file->large);
	buffer_release(&file->key);
}

/* ---- where events begin ---- */

/* Reads an event of the window as if the text ended at `limit`. */
static enum kineto_read read_up_to(struct kineto_file *file, struct kineto_event *event, size_t at, size_t limit,
                                   unsigned flags)
{
	char *window = file->text.window, kept = window[limit];
	window[limit] = '\0';
	enum kineto_read result = kineto_event_read(event, window + at, window + limit, flags);
	window[limit] = kept;
	return result;
}

static size_t limit_of(const struct kineto_text *text, size_t at, size_t bytes)
{
	return text->end - at > bytes ? at + bytes : text->end;
}

/* Returns true for a bracket that is not the value of a key and has a key of events after it. */
static bool looks_like_event(const struct kineto_text *text, size_t at)
{
	const char *window = text->window, *end = window + text->end, *key;
	size_t before = at;
	while (before > text->begin && strchr(" \t\r\n", window[before - 1]) && window[before - 1])
		before--;
	if (before > text->begin && window[before - 1] == ':')
		return false;
	for (key = window + at + 1; key < end && strchr(" \t\r\n", *key) && *key;)
		key++;
	if (*key != '"')
		return false;
	const char *quote = memchr(key + 1, '"', (size_t)(end - key - 1));
	return quote && kineto_field_of(key + 1, (size_t)(quote - key - 1)) < KINETO_EVENT_FIELD_COUNT;
}

/* Returns the next readable event in the window, from `from` on; text->end: there is none. */
static size_t find_event(struct kineto_file *file, size_t from)
{
	const struct kineto_text *text = &file->text;
	while (from < text->end) {
		const char *bracket = memchr(text->window + from, '{', text->end - from);
		if (!bracket)
			break;
		size_t at = (size_t)(bracket - text->window);
		if (looks_like_event(text, at)) {
			enum kineto_read read = read_up_to(file, &file->probe, at, limit_of(text, at, EVENT_BYTES), 0);
			if (read == KINETO_PARTIAL ||
			    (read == KINETO_COMPLETE && file->probe.fields[KINETO_EVENT_PH].type))
				return at;
		}
		from = at + 1;
	}
	return text->end;
}

/* Skips to the next readable place, `"traceEvents"` or an event, and counts the garbage. Returns false if the text ends
 * first. */
static bool skip_garbage(struct kineto_file *file, enum kineto_repair repair, bool is_in_list)
{
	struct kineto_text *text = &file->text;
	size_t passed = text->begin < text->end; /* bytes from text->begin on that are not examined */
	kineto_file_note(file, repair, 1);
	file->is_lost = true;
	for (;;) {
		size_t from = text->begin + passed, at = find_event(file, from);
		const char *key = is_in_list ? NULL
		                             : memmem(text->window + from, text->end - from, events_key,
		                                      sizeof events_key - 1);
		if (key && (size_t)(key - text->window) < at)
			at = (size_t)(key - text->window);
		if (at < text->end || text->is_at_end) {
			text->begin = at;
			return at < text->end;
		}
		if (text->end - from > EVENT_BYTES) { /* an event may begin at the end of the window */
			text->begin = text->end - EVENT_BYTES;
			passed = 0;
		}
		kineto_text_more(text);
	}
}

/* ---- events ---- */

enum kineto_file_outcome {
	GOES_ON,
	ENDS,
	IS_DOCUMENT
};

static void hand_out(struct kineto_file *file, const struct kineto_event *event, uint64_t offset)
{
	for (uint32_t left = event->repairs; left; left &= left - 1)
		kineto_repair_note(&file->repairs, (enum kineto_repair)__builtin_ctz(left), 1, offset);
	file->event_count++;
	file->is_lost = false;
	file->visitor->event(file->visitor->context, event, offset);
	if (file->event_count % 65536 == 0)
		file->visitor->progress(file->visitor->context);
}

/* Notes an unreadable event at `offset`. If the text ends there, the file counts as cut off. */
static void note_unread(struct kineto_file *file, bool is_last, uint64_t offset)
{
	if (is_last && file->text.is_at_end)
		kineto_file_note_cut(file, REPAIR_CUT, offset);
	else
		kineto_repair_note(&file->repairs, REPAIR_UNREADABLE, 1, offset);
	file->is_lost = true;
}

/* Handles an event at text->begin that is large or malformed; a good one may follow at `next`. */
static void salvage(struct kineto_file *file, size_t next)
{
	struct kineto_text *text = &file->text;
	while (next >= text->end && text->end - text->begin < SEARCH_BYTES && kineto_text_more(text))
		next = find_event(file, text->begin + 1);
	enum kineto_read read = read_up_to(file, &file->event, text->begin, next, 0); /* in case it is only large */
	if (read != KINETO_COMPLETE)
		read = read_up_to(file, &file->event, text->begin, next, KINETO_IS_LENIENT);
	if (read == KINETO_COMPLETE && file->event.fields[KINETO_EVENT_PH].type) {
		hand_out(file, &file->event, text->offset + text->begin);
		text->begin = (size_t)(file->event.end - text->window);
		return;
	}
	note_unread(file, next >= text->end, text->offset + text->begin);
	text->begin = next;
}

/* Reads an event that does not fit into the window and has no other event in it: its texts are cut, its lists left
 * out. */
static void read_large(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	uint64_t offset = text->offset + text->begin;
	enum kineto_read read = KINETO_BROKEN;
	bool is_whole = kineto_large_read(text, &file->large);
	char *padding = buffer_reserve(&file->large, KINETO_PADDING);
	if (is_whole && padding) {
		memset(padding, 0, KINETO_PADDING);
		read = kineto_event_read(&file->event, file->large.data, padding, 0);
	}
	if (read == KINETO_COMPLETE) {
		file->event.repairs |= 1u << REPAIR_LARGE;
		hand_out(file, &file->event, offset);
		return;
	}
	note_unread(file, true, offset);
}

/* Returns true if the apparent event at `next` is an element of a list in the args of the current event, which then
 * goes on. */
static bool is_inside(const struct kineto_file *file, size_t next)
{
	const struct kineto_text *text = &file->text;
	return next < text->end && file->vain_bytes < VAIN_BYTES &&
	       kineto_is_element(text->window + text->begin, text->window + next);
}

/* Reads until the window has at least `bytes` of the event. Returns false if no more text comes. */
static bool kineto_file_fill(struct kineto_text *text, size_t bytes)
{
	size_t before = text->end - text->begin;
	while (text->end - text->begin < bytes && kineto_text_more(text))
		;
	return text->end - text->begin > before;
}

static enum kineto_file_outcome kineto_file_read_event(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	bool has_inside = false;
	for (size_t bytes = EVENT_BYTES;; bytes *= 4) {
		size_t limit = limit_of(text, text->begin, bytes);
		enum kineto_read read = read_up_to(file, &file->event, text->begin, limit, 0);
		while (read == KINETO_PARTIAL && limit == text->end && kineto_file_fill(text, bytes + 1)) {
			limit = limit_of(text, text->begin, bytes);
			read = read_up_to(file, &file->event, text->begin, limit, 0);
		}
		if (read == KINETO_COMPLETE) {
			hand_out(file, &file->event, text->offset + text->begin);
			text->begin = (size_t)(file->event.end - text->window);
			return GOES_ON;
		}
		if (file->event.is_document)
			return IS_DOCUMENT;
		size_t next = text->end;
		if (read == KINETO_BROKEN || limit == text->end || bytes == EVENT_BYTES)
			next = find_event(file, text->begin + 1);
		if (read == KINETO_PARTIAL && limit < text->end && is_inside(file, next)) {
			has_inside = true;
			continue;
		}
		if (read == KINETO_PARTIAL && limit == text->end && next == text->end && !text->is_at_end) {
			read_large(file);
			return GOES_ON;
		}
		if (read == KINETO_BROKEN || next < text->end || limit == text->end) {
			file->vain_bytes += has_inside ? text->end - text->begin : 0;
			salvage(file, next);
			return GOES_ON;
		}
	}
}

/* Returns the length of a short value without an object in it; 0: it is not such a value, or does not end here. */
static size_t length_of_small(const char *at, const char *end)
{
	uint32_t depth = 0;
	bool is_string = false;
	if (at == end || !strchr("ntf\"[-0123456789", *at))
		return 0;
	for (const char *c = at; c < end; c++) {
		if (*c == '\\' && is_string) {
			c++;
		} else if (*c == '"' || is_string) {
			is_string ^= *c == '"';
		} else if (*c == '{' || *c == ':') {
			return 0;
		} else if (!depth && (*c == ',' || *c == ']')) {
			return (size_t)(c - at);
		} else {
			depth += *c == '[';
			depth -= *c == ']';
		}
	}
	return 0;
}

/* Skips a small element of the list that is not an event, such as null. Then no search for the next event is needed. */
static bool pass_small(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	while (text->end - text->begin < SMALL_BYTES && kineto_text_more(text))
		;
	size_t most = text->end - text->begin < SMALL_BYTES ? text->end - text->begin : SMALL_BYTES;
	size_t length = length_of_small(text->window + text->begin, text->window + text->begin + most);
	if (!length)
		return false;
	kineto_file_note(file, REPAIR_GARBAGE, 1);
	file->is_lost = true;
	text->begin += length;
	return true;
}

/* Starts after the bracket of the list, if it has one. */
static enum kineto_file_outcome kineto_file_read_events(struct kineto_file *file, bool has_bracket)
{
	struct kineto_text *text = &file->text;
	bool has_comma = true, is_empty = true;
	file->has_list = true;
	for (;; is_empty = false) {
		int c = kineto_text_peek(text);
		for (; c == ','; c = kineto_text_peek(text)) {
			kineto_file_note(file, REPAIR_COMMA, has_comma && !file->is_lost);
			has_comma = true;
			text->begin++;
		}
		if (c < 0) {
			if (has_bracket)
				kineto_file_note_cut(file, REPAIR_LIST_END, text->offset + text->begin);
			return ENDS;
		}
		if (c == ']' || (c == '}' && !has_bracket)) {
			kineto_file_note(file, REPAIR_COMMA, has_comma && !is_empty && !file->is_lost);
			text->begin++;
			return GOES_ON;
		}
		if (c != '{' && pass_small(file))
			continue;
		if (c != '{' && !skip_garbage(file, REPAIR_GARBAGE, true)) {
			kineto_file_note_cut(file, REPAIR_LIST_END, text->offset + text->begin);
			return ENDS;
		}
		if (c != '{' && text->window[text->begin] != '{')
			continue;
		kineto_file_note(file, REPAIR_COMMA, !has_comma && has_bracket && !file->is_lost);
		has_comma = false;
		if (kineto_file_read_event(file) == IS_DOCUMENT)
			return IS_DOCUMENT;
	}
}

/* ---- values around the events ---- */

/* Reads the key at text->begin and its colon into file->key. */
static bool kineto_file_read_key(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	size_t bytes = 1;
	for (;; bytes++) {
		if (text->begin + bytes >= text->end && !kineto_text_more(text))
			return false;
		if (text->window[text->begin + bytes] == '"')
			break;
		if (bytes >= KEY_BYTES - 1)
			return false;
	}
	buffer_clear(&file->key);
	buffer_add(&file->key, text->window + text->begin + 1, bytes - 1);
	text->begin += bytes + 1;
	if (kineto_text_peek(text) != ':')
		return false;
	text->begin++;
	return true;
}

static bool is_events_key_here(struct kineto_text *text, bool is_escaped)
{
	size_t length = sizeof events_key - 1;
	while (text->end - text->begin < length && kineto_text_more(text))
		;
	return !is_escaped && text->end - text->begin >= length &&
	       memcmp(text->window + text->begin, events_key, length) == 0;
}

/* Copies a value of any size into file->fact, up to the buffer's limit. Returns false if the value does not end, or
 * events begin in it. */
static bool kineto_file_take_fact(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	bool is_string = false, is_escaped = false;
	uint32_t depth = 0;
	buffer_clear(&file->fact);
	for (;; text->begin++) {
		if (text->begin == text->end && !kineto_text_more(text))
			return false;
		char c = text->window[text->begin];
		if (c == '"' && is_events_key_here(text, is_escaped))
			return false;
		if (!is_string && depth == 0 && strchr(",}] \t\r\n", c) && c)
			return true;
		buffer_add_byte(&file->fact, (uint8_t)c);
		if (is_string) {
			is_string = is_escaped || c != '"';
			is_escaped = !is_escaped && c == '\\';
		} else {
			is_string = c == '"';
			depth += c == '{' || c == '[';
			depth -= (c == '}' || c == ']') && depth;
		}
		if (!is_string && depth == 0 && strchr("\"}]", c) && c) {
			text->begin++;
			return true;
		}
	}
}

static uint8_t type_of_fact(const char *text)
{
	switch (*text) {
	case '"':
		return VALUE_STRING;
	case '{':
		return VALUE_OBJECT;
	case '[':
		return VALUE_ARRAY;
	case 't':
		return VALUE_TRUE;
	case 'f':
		return VALUE_FALSE;
	case 'n':
		return VALUE_NULL;
	default:
		return VALUE_NUMBER;
	}
}

/* Returns true if the text has NULs, which are a hole in the file: the parts around it may not belong together. */
static bool has_hole(const struct buffer *text)
{
	return text->length && memchr(text->data, '\0', text->length);
}

static bool read_fact(struct kineto_file *file)
{
	if (!kineto_file_take_fact(file))
		return false;
	char *padding = buffer_reserve(&file->fact, KINETO_PADDING);
	if (!padding || !file->fact.length)
		return true;
	if (has_hole(&file->key) || has_hole(&file->fact)) {
		kineto_file_note(file, REPAIR_METADATA, 1);
		return true;
	}
	memset(padding, 0, KINETO_PADDING);
	const struct kineto_value key = {
		.at = file->key.data, .length = (uint32_t)file->key.length, .type = VALUE_STRING};
	struct kineto_value value = {.at = file->fact.data,
	                             .length = (uint32_t)file->fact.length,
	                             .type = type_of_fact(file->fact.data),
	                             .flags = TEXT_HAS_ESCAPE | TEXT_IS_NOT_ASCII};
	if (value.type == VALUE_STRING) {
		value.at++;
		value.length -= value.length > 1 ? 2 : 1;
	}
	file->visitor->fact(file->visitor->context, &key, &value);
	return true;
}

static enum kineto_file_outcome read_member(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	if (!kineto_file_read_key(file))
		return skip_garbage(file, REPAIR_METADATA, false) ? GOES_ON : ENDS;
	int c = kineto_text_peek(text);
	if (file->key.length == 11 && memcmp(file->key.data, "traceEvents", 11) == 0 && c == '[') {
		text->begin++;
		return kineto_file_read_events(file, true);
	}
	if (c >= 0 && read_fact(file))
		return GOES_ON;
	if (c >= 0 && text->begin < text->end) { /* the value ran into the events */
		kineto_file_note(file, REPAIR_METADATA, 1);
		return GOES_ON;
	}
	kineto_file_note_cut(file, REPAIR_CUT, text->offset + text->begin);
	return ENDS;
}

/* Reads the document's own object, from after its bracket. */
static enum kineto_file_outcome kineto_file_read_object(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	for (;;) {
		enum kineto_file_outcome outcome = GOES_ON;
		int c = kineto_text_peek(text);
		if (c < 0) {
			kineto_file_note_cut(file, REPAIR_CUT, text->offset + text->begin);
			return ENDS;
		}
		if (c == '}' || c == ',')
			text->begin++;
		if (c == '}')
			return GOES_ON;
		if (c == '"')
			outcome = read_member(file);
		else if (c == '{') /* after garbage, in a list whose start was not found */
			outcome = kineto_file_read_events(file, true);
		else if (c != ',')
			outcome = skip_garbage(file, REPAIR_METADATA, false) ? GOES_ON : ENDS;
		if (outcome != GOES_ON)
			return outcome;
	}
}

/* Returns true if the top-level object is itself an event: some writers write one event per line, without a list. */
static bool is_event_here(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	while (text->end - text->begin < EVENT_BYTES && kineto_text_more(text))
		;
	return looks_like_event(text, text->begin) &&
	       read_up_to(file, &file->probe, text->begin, limit_of(text, text->begin, EVENT_BYTES), 0) ==
	               KINETO_COMPLETE &&
	       file->probe.fields[KINETO_EVENT_PH].type;
}

static enum kineto_file_outcome read_document(struct kineto_file *file, int c)
{
	struct kineto_text *text = &file->text;
	if (c == '[') {
		text->begin++;
		return kineto_file_read_events(file, true);
	}
	if (c == '{' && is_event_here(file))
		return kineto_file_read_events(file, false);
	if (c == '{')
		text->begin++;
	file->is_object = c == '{' || c == '"';
	if (file->is_object)
		return kineto_file_read_object(file);
	return skip_garbage(file, REPAIR_GARBAGE, false) ? GOES_ON : ENDS;
}

/* Reads documents until the text ends. */
static void read_documents(struct kineto_file *file, enum kineto_file_outcome outcome)
{
	while (outcome != ENDS) {
		int c = kineto_text_peek(&file->text);
		if (c < 0)
			break;
		if (file->document_count++ && (c == '{' || c == '['))
			kineto_file_note(file, REPAIR_DOCUMENTS, 1);
		outcome = read_document(file, c);
	}
}

/* Resumes after damage: the list of events goes on, then the values after it. */
static enum kineto_file_outcome read_behind_damage(struct kineto_file *file)
{
	enum kineto_file_outcome outcome = GOES_ON;
	if (!skip_garbage(file, REPAIR_MEMBER, false))
		return ENDS;
	if (file->text.window[file->text.begin] == '{')
		outcome = kineto_file_read_events(file, true);
	return outcome == GOES_ON && file->is_object ? kineto_file_read_object(file) : outcome;
}

void kineto_file_read(struct kineto_file *file)
{
	struct kineto_text *text = &file->text;
	kineto_file_note(file, REPAIR_UTF16, text->encoding != KINETO_UTF8);
	kineto_text_peek(text);
	if (text->end - text->begin >= 3 && memcmp(text->window + text->begin, "\xef\xbb\xbf", 3) == 0)
		text->begin += 3;
	read_documents(file, GOES_ON);
	while (kineto_text_go_on(text))
		read_documents(file, read_behind_damage(file));
	if (text->error.status != STATUS_OK)
		kineto_file_note(file, REPAIR_DAMAGED, 1);
}
