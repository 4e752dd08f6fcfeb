/* SPDX-License-Identifier: Apache-2.0
 *
 * text_lines.h: the lines of a text file, decompressed and decoded like those of traces (kineto_text.h). Memory does
 * not depend on the size of the file.
 *
 *     text_lines_open(&lines, path, &err);
 *     while (text_lines_next(&lines)) use(lines.line, lines.length);
 *     text_lines_report(&lines, model, path);
 */
#ifndef IMPORTERS_TEXT_LINES_H
#define IMPORTERS_TEXT_LINES_H

#include "importers/kineto/kineto_text.h"
#include "model/model.h"

/* Ledger texts for damaged compressed data, shared by all importers that read text. */
#define DAMAGED_END "the compressed data is cut off or damaged; the data before is read"
#define DAMAGED_MEMBERS                                                                                                \
	"places where the compressed data is damaged; the data before is read, and reading resumes at the next readable part"

struct repair_count {
	uint64_t count, first_offset;
};

struct text_lines {
	struct input_stream *owned; /* NULL: the caller owns the stream */
	struct kineto_text text;
	char *line; /* without its line end; valid until the next call */
	size_t length;
	uint64_t offset;     /* offset of its first byte in the text */
	bool is_terminated;  /* a line end follows, so the line is complete */
	uint64_t most_bytes; /* limit for callers that only look at the first lines; 0: all of the file */
	struct repair_count long_lines, damaged_members;
};

enum status text_lines_open(struct text_lines *lines, const char *path, struct error *err) MUST_CHECK;
/* Like text_lines_open(), for a stream, which must outlive the lines. */
enum status text_lines_begin(struct text_lines *lines, struct input_stream *input, struct error *err) MUST_CHECK;
/* Moves to the next line. Lines end with \n, \r\n or \r\r\n; lines of more than 32 MiB are skipped. Returns false at
 * the end of the file. */
bool text_lines_next(struct text_lines *lines);
/* Adds long lines and damage to the ledger. */
void text_lines_report(const struct text_lines *lines, struct model *model, const char *path);
void text_lines_close(struct text_lines *lines); /* also for a zeroed struct that was never opened */

/* Adds one line to the ledger per kind of repair, with the count and the offset of the first. */
void repair_note(struct repair_count *repair, uint64_t offset);
void repair_report(const struct repair_count *repair, struct model *model, const char *path, const char *sentence);
/* Returns the part after the last slash. */
const char *file_name_of(const char *path);

#endif
