/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_losses.h: the time since which live allocations are unknown.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_LOSSES_H
#define IMPORTERS_RECORDING_RECORDING_LOSSES_H

#include "importers/recording/recording.h"

#define LOST_BY_DAMAGE                                                                                                 \
	"a part of the recording is damaged or missing: allocations and frees are incomplete from then on"

/* Notes that events after since_ns are missing. `process` is the one being read. */
void recording_lose(struct recorded_process *process, int64_t since_ns, const char *why);
void recording_lose_stream(struct recording *recording, const struct stream *stream);
/* Call after all events, the captures and the ledger are complete. */
void recording_finish_losses(struct recording *recording);
/* Returns true if rotation removed segments of the session. */
bool recording_has_removed(const struct recorded_session *session);

#endif
