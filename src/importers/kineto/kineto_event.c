/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_event.c: see kineto_event.h. The text of an event is scanned once; values are slices of it, and lists are only
 * measured.
 */
#include "importers/kineto/kineto_event.h"

#include "importers/kineto/kineto_bytes.h"
#include "importers/kineto/kineto_keys.h"

#include <assert.h>
#include <string.h>

#define STOPS 8u /* in byte_flags: a quote, a backslash, a NUL */

struct scanner {
	const char *at, *end;
	struct kineto_event *event; /* NULL: it is a list in memory */
	uint32_t *repairs;
	bool is_lenient;
	bool is_partial; /* it stopped because the text ended */
	/* while reading an event */
	const char *args; /* their bracket, once they begin; NULL: not in the args */
	bool is_first;    /* no key of the object has been read */
	bool is_field;    /* the value being read is the event's own, not an arg */
};

/* The meaning of a byte in a string: enum kineto_text_flag and STOPS. */
#define C TEXT_HAS_CONTROL
#define Q STOPS
#define E (TEXT_HAS_ESCAPE | STOPS)
#define H TEXT_IS_NOT_ASCII
#define H8 H, H, H, H, H, H, H, H
#define H32 H8, H8, H8, H8
/* clang-format off */
static const uint8_t byte_flags[256] = {
	C | STOPS, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
	0, 0, Q, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, E, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	H32, H32, H32, H32,
};
/* clang-format on */
#undef C
#undef Q
#undef E
#undef H
#undef H8
#undef H32

static bool kineto_event_fail(struct scanner *scanner)
{
	scanner->is_partial = scanner->at >= scanner->end;
	return false;
}

static char skip_blanks(struct scanner *scanner)
{
	scanner->at = kineto_past_blanks(scanner->at);
	return *scanner->at;
}

/* ---- strings ---- */

/* Returns true if a key and its colon start here; with is_of_event, only for an event's own keys. */
static bool is_key_here(const char *at, const char *end, bool is_of_event)
{
	if (*at != '"')
		return false;
	const char *first = ++at;
	while (at < end && *at != '"' && *at != '\\' && at - first < 64)
		at++;
	return at < end && *at == '"' &&
	       (!is_of_event || kineto_field_of(first, (size_t)(at - first)) < KINETO_EVENT_FIELD_COUNT) &&
	       *kineto_past_blanks(at + 1) == ':';
}

/* Returns true if the text after a quote continues an object after a string. */
static bool is_end_of_value(const char *at, const char *end, bool is_of_event)
{
	at = kineto_past_blanks(at);
	if (*at == '}') {
		at = kineto_past_blanks(at + 1);
		return at >= end || *at == ',' || *at == ']' || *at == '}' || *at == '{';
	}
	return *at == ',' && is_key_here(kineto_past_blanks(at + 1), end, is_of_event);
}

/* Starts at the string's first byte; leaves the scanner after the quote. */
static bool read_lenient_string(struct scanner *scanner, struct kineto_value *value, bool is_of_event)
{
	for (const char *at = scanner->at; at < scanner->end; at++) {
		value->flags |= byte_flags[(unsigned char)*at] & ~STOPS;
		if (*at != '"' || !is_end_of_value(at + 1, scanner->end, is_of_event))
			continue;
		value->length = (uint32_t)(at - scanner->at);
		if (memchr(scanner->at, '"', value->length))
			*scanner->repairs |= 1u << REPAIR_QUOTES;
		scanner->at = at + 1;
		return true;
	}
	scanner->at = scanner->end;
	return kineto_event_fail(scanner);
}

static bool kineto_event_read_string(struct scanner *scanner, struct kineto_value *value)
{
	const char *at = ++scanner->at;
	uint8_t flags = 0;
	*value = (struct kineto_value){.at = at, .type = VALUE_STRING};
	for (;;) {
		at = kineto_past_plain(at, &flags);
		if (*at == '"')
			break;
		flags |= byte_flags[(unsigned char)*at];
		if (at >= scanner->end || (*at == '\\' && at + 1 >= scanner->end)) {
			scanner->at = scanner->end;
			return kineto_event_fail(scanner);
		}
		at += *at == '\\' ? 2 : 1;
	}
	value->length = (uint32_t)(at - value->at);
	value->flags = flags & ~STOPS;
	scanner->at = at + 1;
	return true;
}

static void note_text(struct scanner *scanner, const struct kineto_value *value)
{
	if (value->flags & TEXT_HAS_CONTROL)
		*scanner->repairs |= 1u << REPAIR_CONTROL;
}

/* ---- values ---- */

/* Like read_lenient_string(), in a list or an object in the args, where keys may be any. */
static bool read_lenient_inner(struct scanner *scanner, struct kineto_value *value)
{
	const char *first = ++scanner->at;
	*value = (struct kineto_value){.at = first, .type = VALUE_STRING};
	for (const char *at = first; at < scanner->end; at++) {
		value->flags |= byte_flags[(unsigned char)*at] & ~STOPS;
		if (*at != '"' || !memchr(",:]}", *kineto_past_blanks(at + 1), 4))
			continue;
		if (memchr(first, '"', (size_t)(at - first)))
			*scanner->repairs |= 1u << REPAIR_QUOTES;
		scanner->at = at + 1;
		return true;
	}
	scanner->at = scanner->end;
	return kineto_event_fail(scanner);
}

/* Goes past the bracket that closes the one here. The contents are not checked. */
static bool read_container(struct scanner *scanner, struct kineto_value *value)
{
	uint32_t depth = 0;
	*value = (struct kineto_value){.at = scanner->at, .type = *scanner->at == '{' ? VALUE_OBJECT : VALUE_ARRAY};
	for (;;) {
		scanner->at = kineto_past_contents(scanner->at);
		char c = *scanner->at;
		if (c == '"') {
			struct kineto_value inner;
			if (!(scanner->is_lenient ? read_lenient_inner : kineto_event_read_string)(scanner, &inner))
				return false;
			value->flags |= inner.flags;
			continue;
		}
		if (c == '\0' && scanner->at >= scanner->end)
			return kineto_event_fail(scanner);
		value->flags |= c ? 0 : TEXT_HAS_CONTROL;
		scanner->at++;
		depth += c == '{' || c == '[';
		if ((c == '}' || c == ']') && --depth == 0)
			break;
	}
	value->length = (uint32_t)(scanner->at - value->at);
	return true;
}

static uint8_t type_of_word(const char *at, size_t length)
{
	static const struct {
		const char *text;
		uint8_t type;
	} words[] = {
		{"true", VALUE_TRUE}, {"false", VALUE_FALSE}, {"null", VALUE_NULL},      {"NaN", VALUE_BARE},
		{"-NaN", VALUE_BARE}, {"nan", VALUE_BARE},    {"-nan", VALUE_BARE},      {"Infinity", VALUE_BARE},
		{"inf", VALUE_BARE},  {"-inf", VALUE_BARE},   {"-Infinity", VALUE_BARE}, {"N/A", VALUE_BARE},
		{"None", VALUE_BARE}, {"True", VALUE_BARE},   {"False", VALUE_BARE},
	};
	if ((*at >= '0' && *at <= '9') || (length > 1 && *at == '-' && at[1] >= '0' && at[1] <= '9'))
		return VALUE_NUMBER;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].text) == length && memcmp(words[i].text, at, length) == 0)
			return words[i].type;
	return VALUE_NONE;
}

static bool kineto_event_read_word(struct scanner *scanner, struct kineto_value *value)
{
	const char *at = kineto_past_word(scanner->at);
	*value = (struct kineto_value){.at = scanner->at, .length = (uint32_t)(at - scanner->at)};
	if (at >= scanner->end) { /* the rest of it may follow */
		scanner->at = scanner->end;
		return kineto_event_fail(scanner);
	}
	value->type = type_of_word(value->at, value->length);
	if (value->type == VALUE_NONE && scanner->is_lenient && memchr(",]}", *kineto_past_blanks(at), 3))
		value->type = VALUE_BARE; /* a word of another language, or a missing value */
	if (value->type == VALUE_NONE)
		return kineto_event_fail(scanner);
	if (value->type == VALUE_BARE)
		*scanner->repairs |= 1u << REPAIR_WORD;
	scanner->at = at;
	return true;
}

static bool kineto_event_read_value(struct scanner *scanner, struct kineto_value *value, bool is_of_event)
{
	char c = skip_blanks(scanner);
	if (c == '"' && scanner->is_lenient) {
		*value = (struct kineto_value){.at = ++scanner->at, .type = VALUE_STRING};
		if (!read_lenient_string(scanner, value, is_of_event))
			return false;
		note_text(scanner, value);
		return true;
	}
	if (c == '"') {
		if (!kineto_event_read_string(scanner, value))
			return false;
		note_text(scanner, value);
		return true;
	}
	if (c != '{' && c != '[')
		return kineto_event_read_word(scanner, value);
	bool is_read = read_container(scanner, value);
	note_text(scanner, value);
	return is_read;
}

/* ---- objects ---- */

enum kineto_event_member {
	MEMBER_NONE,
	MEMBER_KEY,
	MEMBER_END
};

/* Goes from after the bracket or a value to the next value, with its key read, or past the closing bracket. */
static enum kineto_event_member next_key(struct scanner *scanner, struct kineto_value *key)
{
	char c = skip_blanks(scanner);
	bool is_first = scanner->is_first, has_comma = is_first;
	scanner->is_first = false;
	while (c == ',') {
		if (has_comma)
			*scanner->repairs |= 1u << REPAIR_COMMA;
		has_comma = true;
		scanner->at++;
		c = skip_blanks(scanner);
	}
	if (c == '}') {
		if (has_comma && !is_first)
			*scanner->repairs |= 1u << REPAIR_COMMA;
		scanner->at++;
		return MEMBER_END;
	}
	if (c != '"' || !has_comma) {
		kineto_event_fail(scanner);
		return MEMBER_NONE;
	}
	if (!kineto_event_read_string(scanner, key))
		return MEMBER_NONE;
	note_text(scanner, key);
	if (skip_blanks(scanner) != ':') {
		kineto_event_fail(scanner);
		return MEMBER_NONE;
	}
	scanner->at++;
	return MEMBER_KEY;
}

/* Returns the index in kineto_event.values for a key; nearly all have their own. */
static uint8_t kineto_event_place_of(const struct kineto_value *key, bool is_arg)
{
	if (!is_arg) {
		enum kineto_field field = kineto_field_of(key->at, key->length);
		return field == KINETO_EVENT_FIELD_COUNT ? EVENT_VALUES - 1 : (uint8_t)field;
	}
	enum kineto_key known = kineto_key_of(key->at, key->length);
	if (known == KINETO_ARG_IGNORED)
		return EVENT_VALUES - 1;
	return known == KINETO_ARG_OTHER ? KINETO_PLACE_OTHER : (uint8_t)(KINETO_EVENT_FIELD_COUNT + known);
}

static struct kineto_value *kineto_event_add_arg(struct kineto_event *event, const char *key, uint32_t length,
                                                 uint8_t flags)
{
	if (event->arg_count == KINETO_ARGS_MAX) {
		event->args_left_out++;
		return &event->unused;
	}
	struct kineto_arg *arg = &event->args[event->arg_count++];
	arg->key = (struct kineto_value){key, length, VALUE_STRING, flags};
	return &arg->value;
}

static void end_args(struct scanner *scanner, const char *end)
{
	struct kineto_event *event = scanner->event;
	event->set |= UINT64_C(1) << KINETO_EVENT_ARGS;
	event->fields[KINETO_EVENT_ARGS] = (struct kineto_value){
		.at = scanner->args, .length = (uint32_t)(end - scanner->args), .type = VALUE_OBJECT};
	scanner->args = NULL;
}

/* Remembers the text from `at` on as a gap. Not if the value of "args" is not an object, since other gaps start the
 * same way. */
static void kineto_event_remember(struct scanner *scanner, const char *at, const struct kineto_value *key,
                                  struct kineto_gap *gap)
{
	const char *to = gap->is_end ? scanner->at : kineto_past_blanks(scanner->at);
	bool is_args = gap->members[0].place == KINETO_EVENT_ARGS;
	bool is_kept = (gap->is_end || (to < scanner->end && !key->flags && !is_args)) && to - at <= KINETO_GAP_BYTES &&
	               !*scanner->repairs && !(gap->args_begin && gap->args_end && gap->args_end < gap->args_begin);
	if (is_kept) {
		gap->length = (uint8_t)(to - at);
		gap->mask = gap->length < 16 ? (1u << gap->length) - 1 : 0xffff;
		memcpy(gap->text, at, gap->length);
	}
	if (is_kept && !gap->is_end) {
		gap->members[0].key_at = (uint8_t)(key->at - at);
		gap->members[0].key_length = (uint8_t)key->length;
		gap->member_count = 1;
		gap->set = gap->members[0].place < EVENT_VALUES ? UINT64_C(1) << gap->members[0].place : 0;
	}
	kineto_gap_add(&scanner->event->gaps, is_kept ? gap : NULL);
}

/* Reads keys until a value is to be read or the event ends. */
static enum kineto_event_member read_gap(struct scanner *scanner, const char *from, struct kineto_value *key,
                                         struct kineto_gap *gap)
{
	struct kineto_gap_member *member = &gap->members[0];
	for (;;) {
		bool is_first = scanner->is_first;
		enum kineto_event_member found = next_key(scanner, key);
		if (found == MEMBER_NONE)
			return found;
		if (found == MEMBER_END && scanner->args) {
			end_args(scanner, scanner->at);
			gap->args_end = (uint8_t)(scanner->at - from);
			continue;
		}
		gap->is_end = found == MEMBER_END;
		if (gap->is_end)
			return found;
		member->place = kineto_event_place_of(key, scanner->args != NULL);
		if (member->place == KINETO_EVENT_ARGS && skip_blanks(scanner) == '{') {
			scanner->args = scanner->at++;
			scanner->is_first = true;
			gap->args_begin = (uint8_t)(scanner->args - from);
			continue;
		}
		scanner->event->is_document = is_first && !scanner->args && member->place == EVENT_VALUES - 1 &&
		                              kineto_is_document_key(key->at, key->length);
		return scanner->event->is_document ? MEMBER_NONE : found;
	}
}

/* Goes the long way to the next value, with *value as its place, or past the event. */
static enum kineto_event_member next_unknown(struct scanner *scanner, struct kineto_value **value)
{
	struct kineto_gap gap = {0};
	struct kineto_value key = {0};
	const char *at = scanner->at;
	uint32_t repairs = *scanner->repairs;
	*scanner->repairs = 0;
	enum kineto_event_member member = read_gap(scanner, at, &key, &gap);
	if (member != MEMBER_NONE)
		kineto_event_remember(scanner, at, &key, &gap);
	*scanner->repairs |= repairs;
	if (member != MEMBER_KEY)
		return member;
	uint8_t place = gap.members[0].place;
	scanner->is_field = !scanner->args && place != KINETO_EVENT_ARGS;
	if (place == KINETO_PLACE_OTHER)
		*value = kineto_event_add_arg(scanner->event, key.at, key.length, key.flags);
	else /* "args" without an object have no meaning for us */
		*value = &scanner->event->values[place == KINETO_EVENT_ARGS ? EVENT_VALUES - 1 : place];
	scanner->event->set |= place < EVENT_VALUES ? UINT64_C(1) << place : 0;
	return member;
}

/* Applies the gap that was found at `at`. */
static inline void take_gap(struct scanner *scanner, const struct kineto_gap *gap, const char *at,
                            struct kineto_value **value)
{
	struct kineto_event *event = scanner->event;
	event->set |= gap->set;
	if (gap->args_begin)
		scanner->args = at + gap->args_begin;
	for (const struct kineto_gap_member *member = gap->members, *end = member + gap->member_count; member < end;
	     member++) {
		struct kineto_value *to = member->place == KINETO_PLACE_OTHER
		                                  ? kineto_event_add_arg(event, at + member->key_at, member->key_length,
		                                                         0)
		                                  : &event->values[member->place];
		*to = member->value;
		to->at = at + member->value_at;
		*value = to;
	}
	if (gap->args_end)
		end_args(scanner, at + gap->args_end);
	scanner->is_first = false;
	scanner->at = at + gap->length;
}

/* Like next_unknown(), with gaps. from: start of the value before. */
static inline enum kineto_event_member next_value(struct scanner *scanner, const char *from,
                                                  struct kineto_value **value)
{
	struct kineto_gaps *gaps = &scanner->event->gaps;
	const char *at = scanner->at;
	uint16_t number = kineto_gap_here(gaps, at);
	if (!number)
		return next_unknown(scanner, value);
	const struct kineto_gap *gap = &gaps->list[number];
	kineto_gap_pass(gaps, number, from, (size_t)(at - from), *value);
	take_gap(scanner, gap, at, value);
	return gap->is_end ? MEMBER_END : MEMBER_KEY;
}

/* Reads texts and numbers, which are nearly all values. Returns false for values that must be read the long way. */
static inline bool kineto_event_read_plain(struct scanner *scanner, struct kineto_value *value)
{
	const char *at = scanner->at;
	uint8_t flags = 0;
	if (*at == '"' && !scanner->is_lenient) {
		const char *to = kineto_past_plain(++at, &flags);
		if (*to != '"')
			return false;
		*value = (struct kineto_value){at, (uint32_t)(to - at), VALUE_STRING, flags};
		scanner->at = to + 1;
		return true;
	}
	if (*at < '0' || *at > '9')
		return false;
	const char *to = kineto_past_word(at);
	if (to >= scanner->end)
		return false;
	*value = (struct kineto_value){at, (uint32_t)(to - at), VALUE_NUMBER, 0};
	scanner->at = to;
	return true;
}

static bool read_members(struct scanner *scanner)
{
	struct kineto_value *value = &scanner->event->unused;
	const char *from = ++scanner->at;
	for (;;) {
		enum kineto_event_member member = next_value(scanner, from, &value);
		if (member != MEMBER_KEY)
			return member == MEMBER_END;
		from = scanner->at;
		if (!kineto_event_read_plain(scanner, value) &&
		    !kineto_event_read_value(scanner, value, scanner->is_field))
			return false;
	}
}

/* Clears only the values that may be set; most are not. */
static void clear_values(struct kineto_event *event)
{
	for (uint64_t left = event->set; left; left &= left - 1)
		event->values[__builtin_ctzll(left)] = (struct kineto_value){0};
	event->set = 0;
}

enum kineto_read kineto_event_read(struct kineto_event *event, const char *at, const char *end, unsigned flags)
{
	struct scanner scanner = {
		at, end, event, &event->repairs, .is_lenient = flags & KINETO_IS_LENIENT, .is_first = true};
	assert(*at == '{' && *end == '\0');
	clear_values(event);
	event->arg_count = event->args_left_out = event->repairs = 0;
	event->is_document = false;
	kineto_gap_restart(&event->gaps, scanner.is_lenient);
	bool is_read = read_members(&scanner);
	event->end = scanner.at;
	if (is_read)
		return KINETO_COMPLETE;
	return scanner.is_partial && !event->is_document ? KINETO_PARTIAL : KINETO_BROKEN;
}

/* ---- lists in memory ---- */

struct kineto_walk kineto_walk_begin(const struct kineto_value *value)
{
	struct kineto_walk walk = {.is_object = value->type == VALUE_OBJECT};
	if ((value->type == VALUE_ARRAY || value->type == VALUE_OBJECT) && value->length >= 2) {
		walk.at = value->at + 1;
		walk.end = value->at + value->length; /* after the closing bracket */
	}
	return walk;
}

bool kineto_walk_next(struct kineto_walk *walk)
{
	uint32_t unused = 0;
	struct scanner scanner = {.at = walk->at, .end = walk->end, .repairs = &unused};
	if (!walk->at)
		return false;
	while (skip_blanks(&scanner) == ',')
		scanner.at++;
	if (scanner.at >= walk->end || *scanner.at == ']' || *scanner.at == '}')
		return false;
	if (walk->is_object) {
		if (*scanner.at != '"' || !kineto_event_read_string(&scanner, &walk->key) ||
		    skip_blanks(&scanner) != ':')
			return false;
		scanner.at++;
	}
	if (!kineto_event_read_value(&scanner, &walk->value, false) || scanner.at > walk->end)
		return false;
	walk->at = scanner.at;
	return true;
}
