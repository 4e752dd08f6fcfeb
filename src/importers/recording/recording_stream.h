/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_stream.h: the events of a stream as spans and steps of its track.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_STREAM_H
#define IMPORTERS_RECORDING_RECORDING_STREAM_H

#include "importers/recording/recording.h"

/* The stream of a session by its number; NULL when there are too many. */
struct stream *recording_stream(struct recording *recording, uint32_t number);
/* Its track in the model, made at the first use. */
uint32_t recording_stream_track(struct recording *recording, struct stream *stream);
bool recording_events(void *recording, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count);
bool recording_wants_events(void *recording, const struct stepscope_block *block);
/* Ends what is open at the end of a session. */
void recording_close_session(struct recording *recording, struct recorded_session *session);

#endif
