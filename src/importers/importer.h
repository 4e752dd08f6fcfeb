/* SPDX-License-Identifier: Apache-2.0
 *
 * importer.h: turns a file or directory into a model. Each format has one file and one line in importers/registry.c,
 * and is recognised by its contents.
 */
#ifndef IMPORTERS_IMPORTER_H
#define IMPORTERS_IMPORTER_H

#include "base/error.h"
#include "base/input_stream.h"
#include "model/model.h"

#include <stddef.h>

/* Limits in nanoseconds for untrusted files: times, durations, and the wall time of time 0. Differences of two such
 * times fit in 64 bits, even after times move to the time line that several files share. */
#define IMPORTED_TIME_MIN (-400000000000000000LL)
#define IMPORTED_TIME_MAX 3000000000000000000LL
#define IMPORTED_DURATION_MAX 1000000000000000000LL
#define IMPORTED_BASE_MAX (INT64_MAX / 4)

struct importer {
	const char *name;       /* "recording", "kineto" */
	const char *format;     /* the fact trace.format of its models; NULL: the name */
	const char *kind;       /* names the file in errors: "a profile of stacks"; NULL: a trace or a recording */
	const char *looked_for; /* (optional) "traces of torch.profiler (JSON)": in the error about an unknown format */
	/* Returns true if a file that starts with these bytes has this format. If is_directory, `path` is a directory
	 * and length is 0. */
	bool (*recognises)(const char *path, bool is_directory, const char *head, size_t length);
	/* (optional) Like recognises(), for a member of an archive, or to name a file of the wrong kind. Gets the name
	 * ("": unknown) and the first bytes, decompressed: INPUT_LONG_HEAD_BYTES if the file has that many. */
	bool (*begins)(const char *name, const char *head, size_t length);
	bool (*is_archive)(const char *path); /* (optional) the file may hold files of other importers */
	/* NULL: load_input() is used, see importer_load(). */
	enum status (*load)(const char *path, const struct model_filter *filter, struct model *model,
	                    struct error *err);
	/* Replaces load() for importers with is_rank: reads a stream that can be read only once, also in an archive. */
	enum status (*load_input)(struct input_stream *input, const char *name, const struct model_filter *filter,
	                          struct model *model, struct error *err);
	/* (one importer) Loads two or more files as one run. Its load() also reads standard input and pipes. */
	enum status (*load_set)(const char *const *paths, uint32_t count, const struct model_filter *filter,
	                        struct model *model, struct error *err);
	const char *const *reasons; /* by enum reason, see model/reasons.h; NULL, or a NULL entry: as for recordings */
	bool is_rank;               /* several such files are the ranks of one job; load() adds to the model */
	bool has_steps;             /* false: choosing steps is a usage error */
	bool selects_steps;         /* load() reads only the chosen steps, and reports missing ones */
	bool has_windows;           /* windows of a profiler can be chosen */
	bool has_telemetry_beside;  /* nvidia-smi tables in its folder belong to it */
};

extern const struct importer *const importers[]; /* NULL-terminated */

/* Calls the importer's load(), or its load_input() with the opened file. */
enum status importer_load(const struct importer *importer, const char *path, const struct model_filter *filter,
                          struct model *model, struct error *err) MUST_CHECK;

/* Says that no step was chosen, and that the input has the steps lowest to highest. input: "trace" or "recording".
 * Returns STATUS_INPUT. */
enum status error_no_step(struct error *err, const char *input, const struct model_filter *filter, int64_t lowest,
                          int64_t highest);

/* Loads `path` with the importer that recognises it, then calls model_finish(). The caller resolves "latest". If no
 * importer recognises the path, returns STATUS_INPUT, and the error lists the formats that were tried. */
enum status import_path(const char *path, const struct model_filter *filter, struct model *model,
                        struct error *err) MUST_CHECK;
/* Like import_path(), for one or more paths as one run: the ranks of a job. */
enum status import_paths(const char *const *paths, uint32_t count, const struct model_filter *filter,
                         struct model *model, struct error *err) MUST_CHECK;

#endif
