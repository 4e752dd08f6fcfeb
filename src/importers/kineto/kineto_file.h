/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_file.h: goes through the text of a trace and hands out its events and the values around them. However damaged
 * the text is, every readable event is handed out exactly once, and irregularities are counted.
 */
#ifndef IMPORTERS_KINETO_KINETO_FILE_H
#define IMPORTERS_KINETO_KINETO_FILE_H

#include "importers/kineto/kineto_event.h"
#include "importers/kineto/kineto_text.h"

#define KINETO_NO_PLACE UINT64_MAX /* offset of repairs found after the file was read */

struct kineto_repairs {
	uint64_t count[REPAIR_COUNT];        /* events, or bytes for REPAIR_GARBAGE */
	uint64_t first_offset[REPAIR_COUNT]; /* in the decompressed text */
	bool has_break;
	uint64_t break_offset; /* the last place where one writer's text may end and another text continue */
};

struct kineto_visitor {
	/* The event and its texts are valid until it returns. */
	void (*event)(void *context, const struct kineto_event *event, uint64_t offset);
	/* A key of the document's own object, except traceEvents. */
	void (*fact)(void *context, const struct kineto_value *key, const struct kineto_value *value);
	void (*progress)(void *context); /* called now and then */
	void *context;
};

struct kineto_file {
	struct kineto_text text;
	struct kineto_repairs repairs;
	const struct kineto_visitor *visitor;
	struct kineto_event event, probe;
	struct buffer fact, key, large;
	uint64_t event_count, document_count;
	uint64_t vain_bytes; /* see VAIN_BYTES in kineto_file.c */
	bool has_list;       /* it has a list of events, even an empty one */
	bool is_object;      /* the document is an object that contains the list of events */
	bool is_lost;        /* text was skipped since the last event, so commas are not expected */
};

void kineto_repair_note(struct kineto_repairs *repairs, enum kineto_repair repair, uint64_t count, uint64_t offset);

void kineto_file_init(struct kineto_file *file, struct input_stream *input, const struct kineto_visitor *visitor);
void kineto_file_release(struct kineto_file *file);
/* Reads the whole file. If reading stops before its end, file->text.error says why. */
void kineto_file_read(struct kineto_file *file);

#endif
