/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_head.h: the blocks that a pass of the drainer writes before its events: names, streams, drops and clocks. They
 * are collected in drain->head, and in drain->coarse_head for the coarse file, which rotation keeps.
 */
#ifndef RECORDER_DRAIN_HEAD_H
#define RECORDER_DRAIN_HEAD_H

#include "recorder/drain.h"

#define DRAIN_HEAD_BYTES (1u << 20)

/* Returns true if there is a coarse file, which rotation keeps. If so, names of inputs and frames, which may be many,
 * are in that file only. */
bool drain_has_coarse(const struct drain *drain);

/* Adds a block for both files. Returns false if there is no room because the file cannot be written. */
bool drain_put_head(struct drain *drain, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                    size_t bytes);
/* Writes the collected blocks, and empties the head if the write succeeds. */
bool drain_write_head(struct drain_head *head, struct segment_file *file);

/* Adds the names that a file does not have yet. If they do not fit, they are written to the file at once. */
void drain_put_symbols(struct drain *drain);
/* At the start: writes all existing names to the files. The pool gets copies of later names only. */
void drain_write_first_names(struct drain *drain, bool is_new);
/* Returns the highest number up to which the files have all names, or 0 if blocks are still waiting. */
uint32_t drain_names_written(const struct drain *drain);

/* Adds a STREAM block for a slot, with its thread's name. */
void drain_put_stream(struct drain *drain, uint32_t index, bool is_exited);
/* Adds a DROPS block for a stream (0: events without a stream) if its total differs from *said, and stores the total in
 * *said. */
void drain_put_drops(struct drain *drain, uint32_t stream, const uint64_t *by_type, uint64_t *said);
/* Adds an anchor of ticks and clocks, and sets the time of the next one. */
void drain_put_anchor(struct drain *drain, int64_t now_ns);
/* Adds everything, except the names, that makes a segment readable alone. */
void drain_begin_segment(struct drain *drain, bool is_new);

#endif
