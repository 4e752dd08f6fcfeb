/* SPDX-License-Identifier: Apache-2.0
 *
 * model_tables.h: the model as tables of plain fields, for code that stores it in a file (docs/file-format.md,
 * "Converted recordings"). It says which tables exist, which fields their rows have, and the offsets of the fields in
 * our structs. Numbers and order are those of the file: append new ones at the end.
 */
#ifndef MODEL_MODEL_TABLES_H
#define MODEL_MODEL_TABLES_H

#include "model/model.h"

#include <stddef.h>

enum model_table_number {
	MODEL_TABLE_STRINGS = 1, /* not described here: lengths (u32), then the texts */
	MODEL_TABLE_PROCESSES = 2,
	MODEL_TABLE_TRACKS = 3,
	MODEL_TABLE_SPANS = 4, /* owner: track */
	MODEL_TABLE_STEPS = 5,
	MODEL_TABLE_SERIES = 6,
	MODEL_TABLE_VALUES = 7, /* owner: series */
	MODEL_TABLE_MEMORY = 8,
	MODEL_TABLE_OWNERS = 9,
	MODEL_TABLE_MARKS = 10,
	MODEL_TABLE_STACKS = 11,
	MODEL_TABLE_ARGS = 12,
	MODEL_TABLE_LINKS = 13,
	MODEL_TABLE_SAMPLES = 14,
	MODEL_TABLE_META = 15,
	MODEL_TABLE_LEDGER = 16,
	MODEL_TABLE_SEGMENTS = 17,
	MODEL_TABLE_READINGS = 18,
	MODEL_TABLE_END = 19,
};

struct model_field {
	uint16_t offset; /* in the struct of a row */
	uint8_t bytes;   /* 0: ends the list */
	bool is_string;  /* a number of the file's strings */
	bool is_bool;
};

#define MODEL_FIELDS_MAX 32u

/* Rows of a model array have a struct in model.h. Rows of spans, tracks, series and values have these: */
struct track_row {
	uint32_t process, kind, name, sort, torch_thread;
	int64_t tid;
	int32_t device;
	bool is_main, is_profiled;
};

struct span_row {
	int64_t start_ns, dur_ns;
	uint64_t sequence, correlation;
	uint32_t name, parent, shape, inputs, stack;
	uint16_t depth;
	uint8_t kind, flags, phase;
};

struct series_row {
	uint32_t process, name;
	bool is_metric;
	uint32_t subject, unit;
};

struct value_row {
	int64_t time_ns;
	double value;
};

/* Returns the fields of a table, ended by a field of 0 bytes, or NULL if there is no such table. */
const struct model_field *model_table_fields(uint32_t table);
size_t model_table_row_bytes(uint32_t table); /* size of the struct */

#endif
