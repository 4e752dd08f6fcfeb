/* SPDX-License-Identifier: Apache-2.0
 *
 * other_kinds.c: see other_kinds.h.
 */
#include "importers/other_kinds.h"

#include "base/input_stream.h"
#include "base/pickle_read.h"
#include "importers/recording/converted.h"
#include "importers/smi/nvidia_smi.h"

#include <string.h>

static size_t count_blanks(const char *text, size_t length)
{
	size_t blanks = 0;
	while (blanks < length && text[blanks] && strchr(" \t\r\n", text[blanks]))
		blanks++;
	return blanks;
}

/* By what it begins with, too: an archive may hold such a file as it is. */
bool other_kind_is_speedscope(const char *head, size_t length)
{
	static const char *const signs[] = {"speedscope.app/file-format", "\"exporter\":\"speedscope@",
	                                    "\"exporter\": \"speedscope@", "\"shared\":{\"frames\"",
	                                    "\"shared\": {\"frames\""};
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	at += count_blanks(head + at, length - at);
	bool is_found = false;
	for (size_t i = 0; at < length && head[at] == '{' && i < sizeof signs / sizeof *signs && !is_found; i++)
		is_found = memmem(head, length, signs[i], strlen(signs[i])) != NULL;
	return is_found;
}

bool other_kind_is_smi(const char *head, size_t length)
{
	struct smi_layout layout = {0};
	const char *line = head, *end;
	bool is_found = false;
	for (; !is_found && (end = memchr(line, '\n', length - (size_t)(line - head))); line = end + 1) {
		size_t bytes = (size_t)(end - line) - (end > line && end[-1] == '\r');
		is_found = smi_header(&layout, line, bytes) || smi_guess(&layout, line, bytes);
	}
	return is_found;
}

const char *other_kind(const char *head, size_t length)
{
	static const char magic[] = "SQLite format 3";
	size_t first = length < INPUT_HEAD_BYTES ? length : INPUT_HEAD_BYTES, blanks = count_blanks(head, length);
	if (length >= sizeof magic && memcmp(head, magic, sizeof magic) == 0)
		return "an export of nsys (SQLite)";
	if (converted_begins(head, length))
		return "a recording that 'stepscope convert' made";
	if (pickle_begins(head, length))
		return "a pickle, as snapshots of CUDA memory are";
	if (other_kind_is_speedscope(head, first))
		return "a profile of stacks (speedscope)";
	bool is_json = blanks + 1 < length && (head[blanks] == '{' || head[blanks] == '[') &&
	               memchr("\"{ \t\r\n],", head[blanks + 1], 8);
	if (is_json)
		return NULL;
	if (other_kind_is_smi(head, first))
		return "a table of nvidia-smi";
	return folded_begins(head, length) ? "a profile of stacks (collapsed)" : NULL;
}

const char *other_kind_of_file(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	const char *head, *kind = NULL;
	size_t length;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return NULL;
	if (input_peek_long(input, &head, &length, &ignored) == STATUS_OK)
		kind = other_kind(head, length);
	input_close(input);
	return kind;
}
