/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_head.h: the blocks that a pass of the drainer writes before its events: names, streams, drops and clocks. They
 * are collected in drain->head, and for the file that rotation keeps in drain->coarse_head.
 */
#ifndef RECORDER_DRAIN_HEAD_H
#define RECORDER_DRAIN_HEAD_H

#include "recorder/drain.h"

#define DRAIN_HEAD_BYTES (1u << 20)

/* Returns true if there is a file that rotation keeps. Inputs and frames, which may be many, are in that one only. */
bool drain_has_coarse(const struct drain *drain);

/* Adds a block for both files. False: there is no room, because the file takes nothing. */
bool drain_put_head(struct drain *drain, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                    size_t bytes);
/* Writes what was collected, and empties the head if the file took it. */
bool drain_write_head(struct drain_head *head, struct segment_file *file);

/* The names that are new to a file. More than fit go to the file at once. */
void drain_put_symbols(struct drain *drain);
/* At the start: writes all names that there are to the files. Copies in the pool are for later ones only. */
void drain_write_first_names(struct drain *drain, bool is_new);
/* The highest number up to which the files have all names. */
uint32_t drain_names_written(const struct drain *drain);

/* The stream of a slot with its thread's name. */
void drain_put_stream(struct drain *drain, uint32_t index, bool is_exited);
/* The dropped events of a stream (0: of none), if there are more than *said, which becomes the new sum. */
void drain_put_drops(struct drain *drain, uint32_t stream, const uint64_t *by_type, uint64_t *said);
/* A pair of ticks and time, and the time of the next one. */
void drain_put_anchor(struct drain *drain, int64_t now_ns);
/* Everything a segment needs to be readable alone, but for the names. */
void drain_begin_segment(struct drain *drain, bool is_new);

#endif
