/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome.h: shared by the files of the Chrome exporter: export_chrome.c (spans) and export_chrome_parts.c
 * (everything else). The output obeys the rules of `stepscope validate`.
 */
#ifndef OUTPUT_EXPORT_EXPORT_CHROME_H
#define OUTPUT_EXPORT_EXPORT_CHROME_H

#include "base/buffer.h"
#include "output/export/compress.h"
#include "output/export/export_common.h"

struct chrome_name { /* an escaped string; not yet escaped if length is 0 and !is_known */
	uint32_t offset;
	uint16_t length;
	bool is_known;
	bool is_long; /* not cached: too long, or the cache is full */
};

struct chrome_parent {
	uint32_t row;
	uint64_t id; /* of the innermost Python function or module around it, 0: there is none */
};

struct chrome_parents { /* of calls of modules on the current track, in order of rows */
	struct chrome_parent *rows;
	uint32_t count, capacity;
};

struct chrome {
	const struct model *model;
	const struct export_options *options;
	struct export_result *result;
	struct selection selection;
	struct export_window window;
	struct id_map ids;
	struct link_index links;
	struct chrome_name *names; /* per string */
	struct buffer escaped;     /* target of the names; padded by 16 bytes */
	struct buffer scratch;
	int64_t base_ns;            /* wall time at which ts is 0 */
	int64_t shift_ns;           /* model time + shift = ts */
	bool has_shapes;            /* any step has shapes of inputs */
	bool is_flow_by_index;      /* link numbers are not unique in this file */
	struct step_bytes *account; /* (optional) set in the first pass, which counts bytes */
	uint64_t done, total;
	uint64_t last_python_id;
	struct chrome_parents python_parents;
	struct intern modules; /* their paths, in order of appearance */
	struct writer w;
};

/* Returns the External id of the last span; further numbers follow it. */
uint64_t chrome_last_id(const struct chrome *chrome);
bool chrome_has_process(const struct chrome *chrome, uint32_t process);
/* Returns true if the model has shapes of inputs. */
bool chrome_finds_shapes(const struct model *model);
/* Returns the escaped text of a string; valid until the next call. */
const char *chrome_escaped(struct chrome *chrome, uint32_t string, size_t *length);
void chrome_string(struct chrome *chrome, uint32_t string); /* escaped, without quotes */
/* Writes `, "pid": P, "tid": T, "ts": TS`. */
void chrome_place(struct chrome *chrome, struct track_ids ids, int64_t time_ns);
void chrome_number(struct chrome *chrome, double value);

/* ---- export_chrome_parts.c ---- */
void chrome_head(struct chrome *chrome);
void chrome_lane_name(struct chrome *chrome, uint32_t track, struct track_ids ids, unsigned lane);
void chrome_values(struct chrome *chrome);
void chrome_marks(struct chrome *chrome);
void chrome_memory(struct chrome *chrome);
void chrome_tail(struct chrome *chrome);

/* ---- export_chrome_python.c: calls of Python functions, if stacks were recorded ---- */
void chrome_python(struct chrome *chrome, uint32_t track);

/* ---- export_chrome_args.c: flows, and the args of a span with more args than an External id ---- */
struct chrome_span {
	uint32_t track, row;
	const struct span_chunk *chunk;
	uint32_t index; /* in the chunk */
	struct track_ids ids;
	bool is_device;
};
/* Writes `, "Python id": ...` for a call of a module, or of a function that another profiler recorded. Call it after
 * chrome_python(). */
void chrome_python_args(struct chrome *chrome, const struct chrome_span *span);
void chrome_args(struct chrome *chrome, const struct chrome_span *span, bool has_id, uint32_t *arg, uint32_t *link);
void chrome_flows(struct chrome *chrome, const struct chrome_span *span, uint32_t *link);

/* Returns the step whose span this is; NULL for other spans. */
const struct model_step *chrome_step(const struct chrome *chrome, uint32_t track, const struct span_chunk *chunk,
                                     uint32_t index);

/* Returns true for a step or phase that the program did not mark. */
static inline bool chrome_is_inferred(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->flags[index] & SPAN_IS_INFERRED &&
	       (chunk->kind[index] == SPAN_PHASE || chunk->kind[index] == SPAN_STEP);
}

#endif
