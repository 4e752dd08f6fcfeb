/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_event.c: see kineto_event.h. The text of an event is gone through once; values are slices of it, lists are only measured.
 */
#include "importers/kineto_event.h"

#include "importers/kineto_bytes.h"

#include <assert.h>
#include <string.h>

#define STOPS 8u /* in byte_flags: a quote, a backslash, a NUL */

struct scanner {
	const char *at, *end;
	struct kineto_event *event; /* NULL: a list in memory */
	uint32_t *repairs;
	bool is_lenient;
	bool is_partial; /* it stopped because the text ended */
};

/* What a byte means inside of a string: enum kineto_text_flag and STOPS. */
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

static bool fail(struct scanner *scanner)
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

/* A key and its colon begin here; of an event's own keys, or any. */
static bool is_key_here(const char *at, const char *end, bool is_of_event)
{
	if (*at != '"')
		return false;
	const char *first = ++at;
	while (at < end && *at != '"' && *at != '\\' && at - first < 64)
		at++;
	return at < end && *at == '"' &&
	       (!is_of_event || kineto_field_of(first, (size_t)(at - first)) < EVENT_FIELD_COUNT) &&
	       *kineto_past_blanks(at + 1) == ':';
}

/* Does what follows a quote continue an object behind a string? */
static bool is_end_of_value(const char *at, const char *end, bool is_of_event)
{
	at = kineto_past_blanks(at);
	if (*at == '}') {
		at = kineto_past_blanks(at + 1);
		return at >= end || *at == ',' || *at == ']' || *at == '}' || *at == '{';
	}
	return *at == ',' && is_key_here(kineto_past_blanks(at + 1), end, is_of_event);
}

/* At its first byte; leaves the scanner behind the quote. */
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
	return fail(scanner);
}

static bool read_string(struct scanner *scanner, struct kineto_value *value)
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
			return fail(scanner);
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

/* Of a list or an object in the args: the same, where its keys may be any. */
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
	return fail(scanner);
}

/* To behind the bracket that closes the one here. What is inside is not checked. */
static bool read_container(struct scanner *scanner, struct kineto_value *value)
{
	uint32_t depth = 0;
	*value = (struct kineto_value){.at = scanner->at, .type = *scanner->at == '{' ? VALUE_OBJECT : VALUE_ARRAY};
	for (;;) {
		scanner->at = kineto_past_contents(scanner->at);
		char c = *scanner->at;
		if (c == '"') {
			struct kineto_value inner;
			if (!(scanner->is_lenient ? read_lenient_inner : read_string)(scanner, &inner))
				return false;
			value->flags |= inner.flags;
			continue;
		}
		if (c == '\0' && scanner->at >= scanner->end)
			return fail(scanner);
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

static bool read_word(struct scanner *scanner, struct kineto_value *value)
{
	const char *at = kineto_past_word(scanner->at);
	*value = (struct kineto_value){.at = scanner->at, .length = (uint32_t)(at - scanner->at)};
	if (at >= scanner->end) { /* the rest of it may follow */
		scanner->at = scanner->end;
		return fail(scanner);
	}
	value->type = type_of_word(value->at, value->length);
	if (value->type == VALUE_NONE && scanner->is_lenient && memchr(",]}", *kineto_past_blanks(at), 3))
		value->type = VALUE_BARE; /* another language's, or none at all */
	if (value->type == VALUE_NONE)
		return fail(scanner);
	if (value->type == VALUE_BARE)
		*scanner->repairs |= 1u << REPAIR_WORD;
	scanner->at = at;
	return true;
}

static bool read_value(struct scanner *scanner, struct kineto_value *value, bool is_of_event)
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
		if (!read_string(scanner, value))
			return false;
		note_text(scanner, value);
		return true;
	}
	return c == '{' || c == '[' ? read_container(scanner, value) : read_word(scanner, value);
}

/* ---- objects ---- */

enum member {
	MEMBER_NONE,
	MEMBER_KEY,
	MEMBER_END
};

/* Behind the bracket or a value: to the next value, with its key read, or behind the closing bracket. */
static enum member next_key(struct scanner *scanner, struct kineto_value *key, bool is_first)
{
	char c = skip_blanks(scanner);
	bool has_comma = is_first;
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
		fail(scanner);
		return MEMBER_NONE;
	}
	if (!read_string(scanner, key))
		return MEMBER_NONE;
	if (skip_blanks(scanner) != ':') {
		fail(scanner);
		return MEMBER_NONE;
	}
	scanner->at++;
	return MEMBER_KEY;
}

/* Keeps what was read from `at` on as the gap that it is. */
static void remember(struct scanner *scanner, const char *at, const struct kineto_value *key, struct kineto_gap *gap)
{
	const char *to = gap->is_end ? scanner->at : kineto_past_blanks(scanner->at);
	bool is_kept = to < scanner->end && to - at <= KINETO_GAP_BYTES && (gap->is_end || !key->flags);
	if (is_kept) {
		gap->length = (uint8_t)(to - at);
		memcpy(gap->text, at, gap->length);
		gap->key_at = gap->is_end ? 0 : (uint8_t)(key->at - at);
		gap->key_length = gap->is_end ? 0 : (uint8_t)key->length;
	}
	kineto_gap_add(&scanner->event->gaps, is_kept ? gap : NULL);
}

static enum member next_unknown_member(struct scanner *scanner, struct kineto_value *key, uint8_t place,
                                       uint8_t *meaning)
{
	const char *at = scanner->at;
	uint32_t repairs = *scanner->repairs;
	*scanner->repairs = 0;
	enum member member = next_key(scanner, key, place & GAP_IS_FIRST);
	if (member == MEMBER_KEY)
		*meaning = place & GAP_IN_ARGS ? (uint8_t)kineto_key_of(key->at, key->length)
		                               : (uint8_t)kineto_field_of(key->at, key->length);
	struct kineto_gap gap = {.is_end = member == MEMBER_END, .place = place, .meaning = *meaning};
	if (member != MEMBER_NONE && !*scanner->repairs)
		remember(scanner, at, key, &gap);
	else
		kineto_gap_add(&scanner->event->gaps, NULL);
	*scanner->repairs |= repairs;
	return member;
}

/* As next_key(), with what the key means in *meaning. place: bits by enum kineto_gap_place. */
static inline enum member next_member(struct scanner *scanner, struct kineto_value *key, uint8_t place,
                                      uint8_t *meaning)
{
	const char *at = scanner->at;
	if (scanner->end - at < KINETO_GAP_BYTES - KINETO_PADDING)
		return next_unknown_member(scanner, key, place, meaning);
	const struct kineto_gap *known = kineto_gap_here(&scanner->event->gaps, at, place);
	if (!known)
		return next_unknown_member(scanner, key, place, meaning);
	*key = (struct kineto_value){.at = at + known->key_at, .length = known->key_length, .type = VALUE_STRING};
	*meaning = known->meaning;
	scanner->at = at + known->length;
	return known->is_end ? MEMBER_END : MEMBER_KEY;
}

/* Where the value of an arg is read to: moving it afterwards would wait for its parts to be stored. */
static struct kineto_value *place_of_arg(struct kineto_event *event, const struct kineto_value *key,
                                         enum kineto_key known)
{
	if (known != ARG_OTHER) {
		event->known_set |= UINT64_C(1) << known;
		return &event->known[known];
	}
	if (event->arg_count == KINETO_ARGS_MAX) {
		event->args_left_out++;
		return &event->unused;
	}
	struct kineto_arg *arg = &event->args[event->arg_count++];
	arg->key = *key;
	return &arg->value;
}

static bool read_args(struct scanner *scanner)
{
	struct kineto_event *event = scanner->event;
	struct kineto_value key;
	if (skip_blanks(scanner) != '{')
		return read_value(scanner, &event->unused, false); /* null, or nothing that we know */
	const char *first = scanner->at++;
	uint8_t meaning = 0;
	for (uint8_t place = GAP_IN_ARGS | GAP_IS_FIRST;; place = GAP_IN_ARGS) {
		enum member member = next_member(scanner, &key, place, &meaning);
		if (member == MEMBER_END)
			break;
		if (member == MEMBER_NONE ||
		    !read_value(scanner, place_of_arg(event, &key, (enum kineto_key)meaning), false))
			return false;
	}
	event->field_set |= UINT64_C(1) << EVENT_ARGS;
	event->fields[EVENT_ARGS] = (struct kineto_value){
		.at = first, .length = (uint32_t)(scanner->at - first), .type = VALUE_OBJECT};
	return true;
}

/* The same of a field. */
static struct kineto_value *place_of_field(struct kineto_event *event, enum kineto_field field)
{
	if (field == EVENT_FIELD_COUNT)
		return &event->unused;
	event->field_set |= UINT64_C(1) << field;
	return &event->fields[field];
}

static bool read_fields(struct scanner *scanner)
{
	struct kineto_event *event = scanner->event;
	struct kineto_value key;
	uint8_t meaning = 0;
	scanner->at++;
	for (uint8_t place = GAP_IS_FIRST;; place = 0) {
		enum member member = next_member(scanner, &key, place, &meaning);
		if (member != MEMBER_KEY)
			return member == MEMBER_END;
		enum kineto_field field = (enum kineto_field)meaning;
		if (field == EVENT_ARGS) {
			if (!read_args(scanner))
				return false;
			continue;
		}
		if (place && field == EVENT_FIELD_COUNT && kineto_is_document_key(key.at, key.length)) {
			event->is_document = true;
			return false;
		}
		if (!read_value(scanner, place_of_field(event, field), true))
			return false;
	}
}

/* Those that may be there, as most are not. */
static void clear_values(struct kineto_value *values, uint64_t *set)
{
	for (uint64_t left = *set; left; left &= left - 1)
		values[__builtin_ctzll(left)] = (struct kineto_value){0};
	*set = 0;
}

enum kineto_read kineto_event_read(struct kineto_event *event, const char *at, const char *end, unsigned flags)
{
	struct scanner scanner = {at, end, event, &event->repairs, .is_lenient = flags & KINETO_IS_LENIENT};
	assert(*at == '{' && *end == '\0');
	clear_values(event->fields, &event->field_set);
	clear_values(event->known, &event->known_set);
	event->arg_count = event->args_left_out = event->repairs = 0;
	event->is_document = false;
	event->gaps.last = 0;
	bool is_read = read_fields(&scanner);
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
		walk.end = value->at + value->length; /* behind the closing bracket */
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
		if (*scanner.at != '"' || !read_string(&scanner, &walk->key) || skip_blanks(&scanner) != ':')
			return false;
		scanner.at++;
	}
	if (!read_value(&scanner, &walk->value, false) || scanner.at > walk->end)
		return false;
	walk->at = scanner.at;
	return true;
}
