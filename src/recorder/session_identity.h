/* SPDX-License-Identifier: Apache-2.0
 *
 * session_identity.h: which process this is, on its machine (pid, start time, boot) and in its job (role, rank). The
 * environment says it at the start; the program may say it later, and wins.
 */
#ifndef RECORDER_SESSION_IDENTITY_H
#define RECORDER_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>

/* Notes pid and start time of this process. */
void session_read_process(void);
/* Chooses role, rank and what detail means with them. `role` is what the start asks for; a forked child may become a
 * worker. */
void session_choose_identity(enum stepscope_role role, bool is_forked);
/* Fills the header of a new segment. */
void session_fill_identity(struct stepscope_segment_header *identity);

/* What the agent or the program says later, see emit_trains() and emit_rank(). */
void session_trains(void);
void session_tell_rank(int32_t rank, int32_t world_size);

#endif
