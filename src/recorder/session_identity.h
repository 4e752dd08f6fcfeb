/* SPDX-License-Identifier: Apache-2.0
 *
 * session_identity.h: identifies the process on its machine (pid, start time, boot) and in its job (role, rank). The
 * environment sets role and rank at the start. The program may set them later, and then wins.
 */
#ifndef RECORDER_SESSION_IDENTITY_H
#define RECORDER_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>

/* Notes the pid and start time of this process. */
void session_read_process(void);
/* Chooses role and rank, and the bits of detail for them. `role` is the role that the start asks for; a forked child
 * may become a worker instead. */
void session_choose_identity(enum stepscope_role role, bool is_forked);
/* Fills the header of a new segment. */
void session_fill_identity(struct stepscope_segment_header *identity);

/* Later facts from the agent or the program, see emit_trains() and emit_rank(). */
void session_trains(void);
void session_tell_rank(int32_t rank, int32_t world_size);

#endif
