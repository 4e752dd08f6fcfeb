/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia_smi.h: the text that nvidia-smi prints, line by line: `--query-gpu=... --format=csv` with its dialects, `--query-compute-apps=...` and
 * the tables of `dmon` and `pmon`. Columns are found by their names; where the file has none, by what is in them.
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
	SMI_DATE,      /* of dmon: 20261121 */
	SMI_CLOCK,     /* of dmon: 07:03:09 */
	SMI_INDEX,
	SMI_ID, /* another text that only one GPU has */
	SMI_PID,
	SMI_IGNORED, /* also a column that is there twice */
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
	const char *text; /* of the line, without the blanks around it */
	size_t length;
	enum smi_kind kind;
	double number;
	char unit[16]; /* behind the number; "" none */
};

struct smi_layout {
	struct smi_column columns[SMI_COLUMNS];
	uint32_t count, beyond; /* columns that there is no room for are not read */
	char separator;         /* ' ': blanks */
	bool is_strict;         /* a blank follows each comma, so one without is part of a number */
	bool has_header;        /* false: columns are numbered */
};

/* Most lines of values are not, by their first byte. */
bool smi_may_be_header(const char *line, size_t length);
/* Is it a line of names? Then layout is what it says. dmon's second line, of units, adds them. */
bool smi_header(struct smi_layout *layout, const char *line, size_t length);
/* Do all cells begin with a letter? Where that is no header, the table is another one. */
bool smi_is_names(const char *line, size_t length);
/* For a file without names: what a line of values says of its columns. */
bool smi_guess(struct smi_layout *layout, const char *line, size_t length);
/* The cells of a line, at most SMI_COLUMNS. Returns how many there are. */
uint32_t smi_cells(const struct smi_layout *layout, const char *line, size_t length, struct smi_cell *cells);
/* Nanoseconds since 1970 as if the local time was UTC, or since midnight where there is no date. False: the row has none that can be read. */
bool smi_time(const struct smi_layout *layout, const struct smi_cell *cells, int64_t *time_ns);
/* Has it times of day, but no date, as `dmon -o T` writes? */
bool smi_has_clock_only(const struct smi_layout *layout);
/* Does it say a time at all? */
bool smi_has_time(const struct smi_layout *layout, const struct smi_cell *cells);

/* Adds what the files in a folder say of the time that the model is of. The model is finished; its other tables stay as they are. */
void smi_add_beside(struct model *model, const char *folder);

#endif
