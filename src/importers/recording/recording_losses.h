/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_losses.h: since when it is unknown what is allocated.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_LOSSES_H
#define IMPORTERS_RECORDING_RECORDING_LOSSES_H

#include "importers/recording/recording.h"

#define LOST_BY_DAMAGE                                                                                                 \
	"a part of the recording is damaged or missing: from then on it is not known what was allocated and freed"

/* Events after that time are missing. `process` is the one that is being read. */
void recording_lose(struct recorded_process *process, int64_t since_ns, const char *why);
void recording_lose_stream(struct recording *recording, const struct stream *stream);
/* When all events, the captures and the ledger are there. */
void recording_finish_losses(struct recording *recording);
/* Rotation removed segments, and did so before this time. */
bool recording_has_removed(const struct recorded_session *session);

#endif
