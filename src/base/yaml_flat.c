/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml_flat.c: follows libyaml's events and keeps the path of the value in a buffer. Each level knows the length of the
 * path before it. This is the only file that uses libyaml.
 */
#include "base/yaml_flat.h"

#include "base/buffer.h"
#include "base/intern.h"
#include "base/read_file.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define MAXIMUM_ENTRIES 10000
#define MAXIMUM_DEPTH 32
#define MAXIMUM_FILE_BYTES ((size_t)4 * 1024 * 1024)
#define MAXIMUM_ARENA_BYTES ((size_t)64 * 1024 * 1024)
#define MAXIMUM_PATH_BYTES ((size_t)4096)

struct yaml_flat_level {
	size_t path_length; /* before this level's part */
	long index;         /* of the next item; -1 in a mapping */
	bool is_key_next;
	bool has_items;
};

struct flattener {
	struct yaml_flat *yaml;
	const char *what;
	struct error *err;
	struct intern keys; /* finds duplicate keys */
	struct buffer path;
	struct yaml_flat_level levels[MAXIMUM_DEPTH];
	int depth;
	int documents;
};

static enum status yaml_flat_refuse(struct flattener *state, const yaml_event_t *event, const char *problem)
{
	return error_set(state->err, STATUS_USAGE, "'%s' line %zu: %s", state->what, event->start_mark.line + 1,
	                 problem);
}

static enum status too_large(struct flattener *state)
{
	return error_set(state->err, STATUS_USAGE, "'%s' is too large: at most %d values", state->what,
	                 MAXIMUM_ENTRIES);
}

static struct yaml_flat_level *level_now(struct flattener *state)
{
	return state->depth ? &state->levels[state->depth - 1] : NULL;
}

static void cut_path(struct flattener *state, size_t length)
{
	state->path.length = length;
	if (state->path.capacity)
		state->path.data[length] = '\0';
}

static bool yaml_flat_add_part(struct flattener *state, const char *text, size_t length)
{
	if (state->path.length)
		buffer_add_byte(&state->path, '.');
	return buffer_add(&state->path, text, length);
}

/* Before a value: appends the number of a sequence's item to the path. */
static bool yaml_flat_begin_value(struct flattener *state)
{
	struct yaml_flat_level *level = level_now(state);
	char number[24];

	if (!level || level->index < 0)
		return true;
	cut_path(state, level->path_length);
	return yaml_flat_add_part(state, number, (size_t)snprintf(number, sizeof(number), "%ld", level->index++));
}

static void end_value(struct flattener *state)
{
	struct yaml_flat_level *level = level_now(state);

	if (level && level->index < 0)
		level->is_key_next = true;
}

static enum status grow_entries(struct flattener *state)
{
	struct yaml_flat *yaml = state->yaml;
	struct yaml_entry *entries;

	/* the array is full at counts 0, 16, 32, 64... */
	if (yaml->count && (yaml->count < 16 || (yaml->count & (yaml->count - 1))))
		return STATUS_OK;
	entries = arena_array(&yaml->arena, yaml->count ? (size_t)yaml->count * 2 : 16, sizeof(*entries));
	if (!entries)
		return too_large(state);
	if (yaml->count)
		memcpy(entries, yaml->entries, (size_t)yaml->count * sizeof(*entries));
	yaml->entries = entries;
	return STATUS_OK;
}

/* C strings cannot hold a NUL, and a truncated value is worse than none. */
static bool has_nul(const yaml_event_t *event)
{
	return memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL;
}

/* Adds the value for the current path. */
static enum status yaml_flat_add_entry(struct flattener *state, const yaml_event_t *event, const char *value,
                                       size_t length)
{
	struct yaml_flat *yaml = state->yaml;
	struct yaml_entry entry = {.line = (int)event->start_mark.line + 1,
	                           .document = state->documents,
	                           .is_alias = event->type == YAML_ALIAS_EVENT};

	if (yaml->count >= MAXIMUM_ENTRIES)
		return too_large(state);
	if (grow_entries(state))
		return STATUS_USAGE;
	entry.key = arena_dup_n(&yaml->arena, state->path.data, state->path.length);
	entry.value = arena_dup_n(&yaml->arena, value, length);
	if (!entry.key || !entry.value)
		return too_large(state);
	yaml->entries[yaml->count++] = entry;
	return STATUS_OK;
}

/* A block must not appear twice, even if all its keys differ. "<<" only merges keys of other blocks. */
static enum status remember_key(struct flattener *state, const yaml_event_t *event)
{
	const char *key = state->path.data;

	if (event->data.scalar.length == 2 && !memcmp(event->data.scalar.value, "<<", 2))
		return STATUS_OK;
	if (intern_find(&state->keys, key))
		return error_set(state->err, STATUS_USAGE, "'%s' line %zu: duplicate key '%s'", state->what,
		                 event->start_mark.line + 1, key);
	intern_add(&state->keys, key);
	return STATUS_OK;
}

/* Handles "*name : value". No caller looks for a key of this name. */
static enum status on_alias_key(struct flattener *state, struct yaml_flat_level *level, const yaml_event_t *event)
{
	const char *anchor = (const char *)event->data.alias.anchor;

	cut_path(state, level->path_length);
	if (!yaml_flat_add_part(state, "*", 1) || !buffer_add_text(&state->path, anchor))
		return yaml_flat_refuse(state, event, "a key is longer than 4096 bytes");
	level->is_key_next = false;
	return STATUS_OK;
}

static enum status on_key(struct flattener *state, struct yaml_flat_level *level, const yaml_event_t *event)
{
	level->has_items = true;
	if (event->type == YAML_ALIAS_EVENT)
		return on_alias_key(state, level, event);
	if (event->type != YAML_SCALAR_EVENT)
		return yaml_flat_refuse(state, event, "a key is not plain text");
	if (!event->data.scalar.length || has_nul(event))
		return yaml_flat_refuse(state, event, "a key is empty or contains a NUL");
	cut_path(state, level->path_length);
	if (!yaml_flat_add_part(state, (const char *)event->data.scalar.value, event->data.scalar.length))
		return yaml_flat_refuse(state, event, "a key is longer than 4096 bytes");
	level->is_key_next = false;
	return remember_key(state, event);
}

/* Further documents are not for us. */
static enum status refuse_bare(struct flattener *state, const yaml_event_t *event)
{
	return state->documents == 1 ? yaml_flat_refuse(state, event, "'key: value' is expected") : STATUS_OK;
}

static enum status on_scalar(struct flattener *state, const yaml_event_t *event)
{
	enum status status;

	if (!state->depth) /* an empty file is one empty value */
		return event->data.scalar.length ? refuse_bare(state, event) : STATUS_OK;
	if (has_nul(event))
		return yaml_flat_refuse(state, event, "a value contains a NUL");
	if (!yaml_flat_begin_value(state))
		return yaml_flat_refuse(state, event, "a key is longer than 4096 bytes");
	status = yaml_flat_add_entry(state, event, (const char *)event->data.scalar.value, event->data.scalar.length);
	end_value(state);
	return status;
}

static enum status on_alias(struct flattener *state, const yaml_event_t *event)
{
	enum status status;

	if (!state->depth)
		return refuse_bare(state, event);
	if (!yaml_flat_begin_value(state))
		return yaml_flat_refuse(state, event, "a key is longer than 4096 bytes");
	status = yaml_flat_add_entry(state, event, "", 0);
	end_value(state);
	return status;
}

static enum status yaml_flat_on_begin(struct flattener *state, const yaml_event_t *event)
{
	if (state->depth == MAXIMUM_DEPTH)
		return yaml_flat_refuse(state, event, "nested more than 32 deep");
	if (!yaml_flat_begin_value(state))
		return yaml_flat_refuse(state, event, "a key is longer than 4096 bytes");
	state->levels[state->depth++] = (struct yaml_flat_level){
		.path_length = state->path.length,
		.index = event->type == YAML_SEQUENCE_START_EVENT ? 0 : -1,
		.is_key_next = event->type == YAML_MAPPING_START_EVENT,
	};
	return STATUS_OK;
}

/* An empty list or block is an empty value, except for the whole file. */
static enum status yaml_flat_on_end(struct flattener *state, const yaml_event_t *event)
{
	struct yaml_flat_level *level = level_now(state);
	bool is_empty = !level->has_items && level->index <= 0;
	enum status status = STATUS_OK;

	cut_path(state, level->path_length);
	if (is_empty && state->depth > 1)
		status = yaml_flat_add_entry(state, event, "", 0);
	state->depth--;
	end_value(state);
	return status;
}

/* Each document has its own keys. */
static enum status on_document(struct flattener *state)
{
	if (state->documents++) {
		intern_release(&state->keys);
		intern_init(&state->keys);
		cut_path(state, 0);
	}
	return STATUS_OK;
}

static enum status on_event(struct flattener *state, const yaml_event_t *event)
{
	struct yaml_flat_level *level = level_now(state);

	if (event->type == YAML_DOCUMENT_START_EVENT)
		return on_document(state);
	if (level && level->is_key_next && event->type != YAML_MAPPING_END_EVENT)
		return on_key(state, level, event);
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(state, event);
	case YAML_ALIAS_EVENT:
		return on_alias(state, event);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return yaml_flat_on_begin(state, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return yaml_flat_on_end(state, event);
	default:
		return STATUS_OK;
	}
}

static enum status parser_failed(struct flattener *state, const yaml_parser_t *parser)
{
	size_t line = parser->problem_mark.line;

	if (parser->error == YAML_MEMORY_ERROR)
		return error_set(state->err, STATUS_NO_MEMORY, "'%s': out of memory", state->what);
	return error_set(state->err, STATUS_USAGE, "'%s' line %zu: %s", state->what, line + 1,
	                 parser->problem ? parser->problem : "invalid YAML");
}

static enum status flatten(struct flattener *state, yaml_parser_t *parser)
{
	enum status status = STATUS_OK;
	bool is_done = false;

	while (!status && !is_done) {
		yaml_event_t event;

		if (!yaml_parser_parse(parser, &event))
			return parser_failed(state, parser);
		is_done = event.type == YAML_STREAM_END_EVENT;
		status = on_event(state, &event);
		yaml_event_delete(&event);
	}
	return status;
}

enum status yaml_flat_parse(struct yaml_flat *yaml, const char *text, size_t length, const char *what,
                            struct error *err)
{
	struct flattener state = {.yaml = yaml, .what = what, .err = err};
	yaml_parser_t parser;
	enum status status;

	*yaml = (struct yaml_flat){0};
	if (length > MAXIMUM_FILE_BYTES)
		return error_set(err, STATUS_USAGE, "'%s' is too large: at most 4 MiB", what);
	if (!yaml_parser_initialize(&parser))
		return error_set(err, STATUS_NO_MEMORY, "'%s': out of memory", what);
	arena_init(&yaml->arena, MAXIMUM_ARENA_BYTES);
	intern_init(&state.keys);
	buffer_init(&state.path, MAXIMUM_PATH_BYTES);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	status = flatten(&state, &parser);
	yaml_parser_delete(&parser);
	buffer_release(&state.path);
	intern_release(&state.keys);
	if (status)
		yaml_flat_release(yaml);
	return status;
}

enum status yaml_flat_read(struct yaml_flat *yaml, const char *path, struct error *err)
{
	struct buffer text;
	enum status status;

	*yaml = (struct yaml_flat){0};
	buffer_init(&text, MAXIMUM_FILE_BYTES);
	status = read_file(&text, path, SIZE_MAX, err);
	if (!status)
		status = yaml_flat_parse(yaml, text.data, text.length, path, err);
	buffer_release(&text);
	return status;
}

void yaml_flat_release(struct yaml_flat *yaml)
{
	arena_release(&yaml->arena);
	*yaml = (struct yaml_flat){0};
}
