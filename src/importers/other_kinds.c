/* SPDX-License-Identifier: Apache-2.0
 *
 * other_kinds.c: see other_kinds.h.
 */
#include "importers/other_kinds.h"

#include "base/input_stream.h"
#include "base/pickle_read.h"
#include "importers/nvidia_smi.h"

#include <string.h>

bool other_kind_is_speedscope(const char *head, size_t length)
{
	static const char *const signs[] = {"speedscope.app/file-format", "\"exporter\":\"speedscope@",
	                                    "\"exporter\": \"speedscope@", "\"shared\":{\"frames\"",
	                                    "\"shared\": {\"frames\""};
	bool is_found = false;
	for (size_t i = 0; i < sizeof signs / sizeof *signs && !is_found; i++)
		is_found = memmem(head, length, signs[i], strlen(signs[i])) != NULL;
	return is_found;
}

/* "frame;frame 12" */
static bool is_stack(const char *line, size_t length)
{
	size_t end = length;
	while (end && line[end - 1] >= '0' && line[end - 1] <= '9')
		end--;
	return end && end < length && line[end - 1] == ' ' && memchr(line, ';', end);
}

static const char *kind_of_lines(const char *head, size_t length)
{
	struct smi_layout layout = {0};
	const char *line = head, *end;
	bool has_stack = false;
	for (; (end = memchr(line, '\n', length - (size_t)(line - head))); line = end + 1) {
		size_t bytes = (size_t)(end - line) - (end > line && end[-1] == '\r');
		if (smi_header(&layout, line, bytes) || smi_guess(&layout, line, bytes))
			return "a table of nvidia-smi";
		has_stack |= is_stack(line, bytes);
	}
	return has_stack ? "a profile of stacks (collapsed)" : NULL;
}

const char *other_kind(const char *head, size_t length)
{
	static const char magic[] = "SQLite format 3";
	if (length >= sizeof magic && memcmp(head, magic, sizeof magic) == 0)
		return "an export of nsys (SQLite)";
	if (pickle_begins(head, length))
		return "a pickle, as snapshots of CUDA memory are";
	if (other_kind_is_speedscope(head, length))
		return "a profile of stacks (speedscope)";
	size_t blanks = 0;
	while (blanks < length && strchr(" \t\r\n", head[blanks]))
		blanks++;
	bool is_json = blanks + 1 < length && (head[blanks] == '{' || head[blanks] == '[') &&
	               memchr("\"{ \t\r\n],", head[blanks + 1], 8);
	return is_json ? NULL : kind_of_lines(head, length);
}

const char *other_kind_of_file(const char *path)
{
	struct input_stream *input;
	struct error ignored;
	const char *head, *kind = NULL;
	size_t length;
	if (input_open(path, &input, &ignored) != STATUS_OK)
		return NULL;
	if (input_peek(input, &head, &length, &ignored) == STATUS_OK)
		kind = other_kind(head, length);
	input_close(input);
	return kind;
}
