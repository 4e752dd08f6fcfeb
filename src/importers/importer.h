/* SPDX-License-Identifier: Apache-2.0
 *
 * importer.h: file or directory -> model. One file per format, one line in importers/registry.c; found by content.
 */
#ifndef IMPORTERS_IMPORTER_H
#define IMPORTERS_IMPORTER_H

#include "base/error.h"
#include "base/input_stream.h"
#include "model/model.h"

#include <stddef.h>

/* What files that nobody trusts may say, in nanoseconds: times, durations, and the wall time of their 0. Also moved to the time line of several
 * files, what lies between a begin and another span's end still fits. */
#define IMPORTED_TIME_MIN (-400000000000000000LL)
#define IMPORTED_TIME_MAX 3000000000000000000LL
#define IMPORTED_DURATION_MAX 1000000000000000000LL
#define IMPORTED_BASE_MAX (INT64_MAX / 4)

struct importer {
	const char *name;   /* "recording", "kineto" */
	const char *format; /* of the fact trace.format in its models; NULL: the name */
	const char *kind;   /* "a profile of stacks": what a file is, in errors; NULL: a trace or a recording */
	const char *
		looked_for; /* (optional) "traces of torch.profiler (JSON)": in the error about a file of no known format */
	/* Does a file that starts with these bytes belong to it? is_directory: `path` is one, length is 0. */
	bool (*recognises)(const char *path, bool is_directory, const char *head, size_t length);
	/* (optional) The same by the name ("": unknown) and the first bytes, decompressed, INPUT_LONG_HEAD_BYTES where the file has so many: of a
	 * member of an archive, or where another file is wanted. */
	bool (*begins)(const char *name, const char *head, size_t length);
	bool (*is_archive)(const char *path); /* (optional) the file may hold files of other importers */
	/* NULL: load_input() does it, see importer_load(). */
	enum status (*load)(const char *path, const struct model_filter *filter, struct model *model,
	                    struct error *err);
	/* Instead of load(), of a stream that can be read once only: is_rank, also in an archive. */
	enum status (*load_input)(struct input_stream *input, const char *name, const struct model_filter *filter,
	                          struct model *model, struct error *err);
	/* (one importer) Two or more files as one run. Its load() also reads standard input and pipes. */
	enum status (*load_set)(const char *const *paths, uint32_t count, const struct model_filter *filter,
	                        struct model *model, struct error *err);
	const char *const *reasons; /* by enum reason, see model/reasons.h; an entry NULL, or NULL: as in recordings */
	bool is_rank;               /* several such files are the ranks of one job; load() adds to what the model has */
	bool has_steps;             /* false: choosing steps is an error of usage */
	bool selects_steps;         /* load() reads only the chosen steps, and reports it if they are missing */
	bool has_windows;           /* windows of a profiler can be chosen */
	bool has_telemetry_beside;  /* tables of nvidia-smi in its folder belong to it */
};

extern const struct importer *const importers[]; /* NULL-terminated */

/* By the importer's load(), or its load_input() of the opened file. */
enum status importer_load(const struct importer *importer, const char *path, const struct model_filter *filter,
                          struct model *model, struct error *err) MUST_CHECK;

/* Loads `path` ("latest" is resolved by the caller) with the importer that recognises it, then model_finish().
 * STATUS_INPUT says what was looked for when nothing recognises it. */
enum status import_path(const char *path, const struct model_filter *filter, struct model *model,
                        struct error *err) MUST_CHECK;
/* The same for one or more paths, as one run: ranks of a job. */
enum status import_paths(const char *const *paths, uint32_t count, const struct model_filter *filter,
                         struct model *model, struct error *err) MUST_CHECK;

#endif
