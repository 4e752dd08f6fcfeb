/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia_smi.h: the text that nvidia-smi prints, line by line: the variants of `--query-gpu=... --format=csv`,
 * `--query-compute-apps=...`, and the tables of `dmon` and `pmon`. Columns are found by their names or, if the file has
 * none, by their contents.
 */
#ifndef IMPORTERS_SMI_NVIDIA_SMI_H
#define IMPORTERS_SMI_NVIDIA_SMI_H

#include "model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SMI_COLUMNS 512

enum smi_role {
	SMI_VALUE,
	SMI_TIMESTAMP, /* 2026/11/21 07:03:09.412 */
	SMI_DATE,      /* in dmon: 20261121 */
	SMI_CLOCK,     /* in dmon: 07:03:09 */
	SMI_INDEX,
	SMI_ID, /* another text that identifies one GPU */
	SMI_PID,
	SMI_IGNORED, /* also a repeated column */
};

struct smi_column {
	char name[64], unit[16];
	enum smi_role role;
};

enum smi_kind {
	SMI_MISSING, /* [N/A], [Not Supported], - */
	SMI_NUMBER,
	SMI_TEXT,
};

struct smi_cell {
	const char *text; /* in the line, without the blanks around it */
	size_t length;
	enum smi_kind kind;
	double number;
	char unit[16]; /* after the number; "" none */
};

struct smi_layout {
	struct smi_column columns[SMI_COLUMNS];
	uint32_t count, beyond; /* number of further columns, which are not read */
	char separator;         /* ' ': blanks */
	bool is_strict;         /* a blank follows each comma; a comma without one is part of a number */
	bool has_header;        /* false: columns are numbered */
};

/* Returns false for most lines of values, by their first byte. */
bool smi_may_be_header(const char *line, size_t length);
/* Returns true for a line of names, and fills layout. dmon's second line, of units, adds to layout. */
bool smi_header(struct smi_layout *layout, const char *line, size_t length);
/* Returns true if all cells begin with a letter. If such a line is not a header, the table is of another kind. */
bool smi_is_names(const char *line, size_t length);
/* Guesses the columns from a line of values, for a file without names. */
bool smi_guess(struct smi_layout *layout, const char *line, size_t length);
/* Splits a line into cells, at most SMI_COLUMNS. Returns the number of cells in the line. */
uint32_t smi_cells(const struct smi_layout *layout, const char *line, size_t length, struct smi_cell *cells);
/* Returns nanoseconds since 1970 as if local time were UTC, or since midnight if there is no date. Returns false if the
 * row has no readable time. */
bool smi_time(const struct smi_layout *layout, const struct smi_cell *cells, int64_t *time_ns);
/* Returns true for times of day without a date, as `dmon -o T` writes. */
bool smi_has_clock_only(const struct smi_layout *layout);
/* Returns true if the row has any time, readable or not. */
bool smi_has_time(const struct smi_layout *layout, const struct smi_cell *cells);

/* Adds telemetry from files in the folder that cover the model's time. The model is finished; its other tables do not
 * change. */
void smi_add_beside(struct model *model, const char *folder);

#endif
