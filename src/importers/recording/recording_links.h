/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_links.h: links an operator to the backward node that it made. Both carry a sequence number, and the node
 * also the number of the thread that ran the operator. Of several nested operators with one number, the newest made the
 * node. If a backward runs through the same graph again, it links to the same operators again.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_LINKS_H
#define IMPORTERS_RECORDING_RECORDING_LINKS_H

#include "importers/recording/recording.h"

/* One per session; NULL: nothing to link so far. */
struct torch_links;

/* Notes PyTorch's number of the stream's thread. */
void links_thread(struct recording *recording, struct stream *stream, uint64_t number);
/* Notes that an operator with a sequence number, or a backward node, began. */
void links_forward(struct recording *recording, const struct stream *stream, uint64_t sequence, uint32_t row);
void links_backward(struct recording *recording, uint64_t sequence, uint32_t track, uint32_t row);
/* Adds the remaining links after all events of the session, and releases everything. */
void links_finish(struct recording *recording, struct recorded_session *session);

#endif
