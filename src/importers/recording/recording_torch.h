/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch.h: steps and phases of a PyTorch program that marked none. The reading of all events that comes before the one that
 * fills the model also notes the records that say what the program is doing; what is inferred from them is put into the
 * stream of the thread that trains, as if it had been marked.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_TORCH_H
#define IMPORTERS_RECORDING_RECORDING_TORCH_H

#include "importers/recording/recording.h"

/* One per session. NULL: its program did not use PyTorch, as far as is known. */
struct torch_scan;

void torch_scan_symbol(struct recording *recording, uint32_t id, uint8_t kind, const char *text, uint32_t length);
/* `clock`: of the event's block, for the ticks it holds. */
void torch_scan_event(struct recording *recording, uint32_t stream, const struct segment_event *event, int64_t time_ns,
                      const struct clock_cursor *clock);
/* When what came before an event of the stream at that time was over. */
int64_t torch_scan_before(const struct recording *recording, uint32_t stream, int64_t time_ns);
/* After all files: infers, and leaves the result in the streams of the sessions. */
void torch_scan_finish(struct recording *recording);

#endif
