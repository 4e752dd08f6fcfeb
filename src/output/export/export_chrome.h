/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome.h: shared by the files of the Chrome exporter: export_chrome.c (spans) and export_chrome_parts.c
 * (everything around them). The rules that the output obeys are those of `stepscope validate`.
 */
#ifndef OUTPUT_EXPORT_EXPORT_CHROME_H
#define OUTPUT_EXPORT_EXPORT_CHROME_H

#include "base/buffer.h"
#include "output/export/compress.h"
#include "output/export/export_common.h"

struct chrome_name { /* a string, escaped; length 0 and !is_known: not looked at yet */
	uint32_t offset;
	uint16_t length;
	bool is_known;
	bool is_long; /* not kept: too long, or the cache is full */
};

struct chrome_parent {
	uint32_t row;
	uint64_t id; /* of the Python function or module around it, 0: none */
};

struct chrome_parents { /* of calls of modules on the track that is written, in order of rows */
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
	struct buffer escaped;     /* what names point into; padded by 16 bytes */
	struct buffer scratch;
	int64_t base_ns;            /* wall time that ts counts from */
	int64_t shift_ns;           /* model time + shift = ts */
	bool has_shapes;            /* of inputs, in any step */
	bool is_flow_by_index;      /* link numbers are not unique in this file */
	struct step_bytes *account; /* (optional) a first pass that counts */
	uint64_t done, total;
	uint64_t last_python_id;
	struct chrome_parents python_parents;
	struct intern modules; /* their paths, in order of appearance */
	struct writer w;
};

/* The External id of the last span of all; further numbers follow behind. */
uint64_t chrome_last_id(const struct chrome *chrome);
bool chrome_has_process(const struct chrome *chrome, uint32_t process);
/* Are there shapes of inputs in it? */
bool chrome_finds_shapes(const struct model *model);
/* Escaped text of a string; valid until the next call. */
const char *chrome_escaped(struct chrome *chrome, uint32_t string, size_t *length);
void chrome_string(struct chrome *chrome, uint32_t string); /* escaped, without quotes */
/* `, "pid": P, "tid": T, "ts": TS` */
void chrome_place(struct chrome *chrome, struct track_ids ids, int64_t time_ns);
void chrome_number(struct chrome *chrome, double value);

/* export_chrome_parts.c */
void chrome_head(struct chrome *chrome);
void chrome_lane_name(struct chrome *chrome, uint32_t track, struct track_ids ids, unsigned lane);
void chrome_values(struct chrome *chrome);
void chrome_marks(struct chrome *chrome);
void chrome_memory(struct chrome *chrome);
void chrome_tail(struct chrome *chrome);

/* export_chrome_python.c: calls of Python functions, where stacks were recorded. */
void chrome_python(struct chrome *chrome, uint32_t track);

/* export_chrome_args.c: the args of a span that has more than an External id, and its flows. */
struct chrome_span {
	uint32_t track, row;
	const struct span_chunk *chunk;
	uint32_t index; /* in the chunk */
	struct track_ids ids;
	bool is_device;
};
/* `, "Python id": ...` of a call of a module, or of a function where another profiler told of it; behind chrome_python(). */
void chrome_python_args(struct chrome *chrome, const struct chrome_span *span);
void chrome_args(struct chrome *chrome, const struct chrome_span *span, bool has_id, uint32_t *arg, uint32_t *link);
void chrome_flows(struct chrome *chrome, const struct chrome_span *span, uint32_t *link);

/* The step whose span it is; NULL: it is none's. */
const struct model_step *chrome_step(const struct chrome *chrome, uint32_t track, const struct span_chunk *chunk,
                                     uint32_t index);

/* A step or phase that the program did not mark? */
static inline bool chrome_is_inferred(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->flags[index] & SPAN_IS_INFERRED &&
	       (chunk->kind[index] == SPAN_PHASE || chunk->kind[index] == SPAN_STEP);
}

#endif
