/* SPDX-License-Identifier: Apache-2.0
 *
 * text_lines.c: see text_lines.h.
 */
#include "importers/text_lines.h"

#include <assert.h>
#include <string.h>

enum status text_lines_begin(struct text_lines *lines, struct input_stream *input, struct error *err)
{
	*lines = (struct text_lines){0};
	kineto_text_init(&lines->text, input);
	if (!kineto_text_more(&lines->text) && lines->text.error.status != STATUS_OK) {
		*err = lines->text.error;
		text_lines_close(lines);
		return STATUS_INPUT;
	}
	static const char mark[] = "\xef\xbb\xbf";
	struct kineto_text *text = &lines->text;
	if (text->end >= 3 && memcmp(text->window, mark, 3) == 0)
		text->begin = 3;
	return STATUS_OK;
}

enum status text_lines_open(struct text_lines *lines, const char *path, struct error *err)
{
	struct input_stream *input;
	*lines = (struct text_lines){0};
	enum status status = input_open(path, &input, err);
	if (status != STATUS_OK)
		return status;
	status = text_lines_begin(lines, input, err);
	if (status == STATUS_OK)
		lines->owned = input;
	else
		input_close(input);
	return status;
}

void text_lines_close(struct text_lines *lines)
{
	if (lines->text.window)
		kineto_text_release(&lines->text);
	input_close(lines->owned);
	*lines = (struct text_lines){0};
}

/* Returns the end of the line that starts at text->begin; NULL if the line does not fit into the window. */
static char *find_end(struct text_lines *lines)
{
	struct kineto_text *text = &lines->text;
	size_t looked = 0;
	for (;;) {
		assert(text->window); /* kineto_text_init() allocates it */
		char *from = text->window + text->begin + looked;
		char *end = memchr(from, '\n', text->end - text->begin - looked);
		if (end)
			return end;
		looked = text->end - text->begin;
		if (lines->most_bytes && text->offset + text->end >= lines->most_bytes)
			return text->window + text->end;
		if (!kineto_text_more(text))
			return text->is_at_end ? text->window + text->end : NULL;
	}
}

static void pass_over(struct text_lines *lines)
{
	struct kineto_text *text = &lines->text;
	char *end = NULL;
	while (!end) {
		text->begin = text->end;
		end = find_end(lines);
	}
	text->begin = (size_t)(end - text->window) + (end < text->window + text->end);
}

/* Like text_lines_next(), up to the first damage in the compressed data. */
static bool take_line(struct text_lines *lines)
{
	struct kineto_text *text = &lines->text;
	char *end;
	while (!(end = find_end(lines))) {
		repair_note(&lines->long_lines, text->offset + text->begin);
		pass_over(lines);
	}
	lines->line = text->window + text->begin;
	assert(end >= lines->line);
	lines->offset = text->offset + text->begin;
	lines->is_terminated = end < text->window + text->end;
	if (!lines->is_terminated && end == lines->line)
		return false;
	text->begin = (size_t)(end - text->window) + lines->is_terminated;
	while (end > lines->line && end[-1] == '\r')
		end--;
	lines->length = (size_t)(end - lines->line);
	return true;
}

bool text_lines_next(struct text_lines *lines)
{
	bool is_line = take_line(lines);
	while ((!is_line || !lines->is_terminated) && kineto_text_go_on(&lines->text)) {
		repair_note(&lines->damaged_members, lines->offset);
		pass_over(lines); /* the line that contains the damage has lost its start */
		is_line = take_line(lines);
	}
	return is_line;
}

/* ---- repairs ---- */

void repair_note(struct repair_count *repair, uint64_t offset)
{
	if (!repair->count++)
		repair->first_offset = offset;
}

const char *file_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void report(enum ledger_kind kind, const struct repair_count *repair, struct model *model, const char *path,
                   const char *sentence)
{
	if (!repair->count)
		return;
	struct ledger_entry *entry = model_add_ledger(model, kind, MODEL_NONE, file_name_of(path), repair->count,
	                                              sentence);
	entry->has_first_offset = true;
	entry->first_offset = repair->first_offset;
}

void repair_report(const struct repair_count *repair, struct model *model, const char *path, const char *sentence)
{
	report(LEDGER_REPAIRED, repair, model, path, sentence);
}

void text_lines_report(const struct text_lines *lines, struct model *model, const char *path)
{
	struct repair_count damaged = {lines->text.error.status != STATUS_OK, lines->text.offset + lines->text.end};
	repair_report(&lines->long_lines, model, path, "lines of more than 32 MiB were left out");
	report(LEDGER_DAMAGED, &lines->damaged_members, model, path, DAMAGED_MEMBERS);
	report(LEDGER_DAMAGED, &damaged, model, path, DAMAGED_END);
}
