/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_links.h: from an operator to the node of the backward that it made. Both carry a sequence number, and the node the number
 * of the thread that ran the operator; of several nested operators with one number the newest made the node. A backward through
 * the same graph once more links to the same operators again.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_LINKS_H
#define IMPORTERS_RECORDING_RECORDING_LINKS_H

#include "importers/recording/recording.h"

/* One per session; NULL: nothing to link so far. */
struct torch_links;

/* The stream's thread has this number of PyTorch. */
void links_thread(struct recording *recording, struct stream *stream, uint64_t number);
/* An operator that has a sequence number began, or a node of a backward. */
void links_forward(struct recording *recording, const struct stream *stream, uint64_t sequence, uint32_t row);
void links_backward(struct recording *recording, uint64_t sequence, uint32_t track, uint32_t row);
/* After all events of the session: the links that are still missing. Releases everything. */
void links_finish(struct recording *recording, struct recorded_session *session);

#endif
