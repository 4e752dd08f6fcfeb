/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_facts.h: events of a recording other than begins, ends and steps.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_FACTS_H
#define IMPORTERS_RECORDING_RECORDING_FACTS_H

#include "importers/recording/recording.h"

/* Handles events other than begins, ends and steps. */
void recording_fact(struct recording *recording, struct stream *stream, const struct segment_event *event,
                    int64_t time_ns);
/* Adds the arguments in the words of an END to the innermost span. Before the span ends. */
void recording_end_arguments(struct recording *recording, const struct stream *stream,
                             const struct segment_event *event);
/* Adds a reading of the thread's CPU time (STEPSCOPE_STEP_USE). */
void recording_add_reading(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                           int64_t time_ns);
bool recording_on_symbol(void *recording, uint32_t id, uint8_t kind, const char *text, uint32_t length);
bool recording_on_track(void *recording, const struct stepscope_track_info *info, const char *name);
bool recording_on_stack(void *recording, const struct stepscope_stack_node *node);
bool recording_on_meta(void *recording, const char *key, const char *value);
/* Returns the string of a symbol's text, "(unknown)" if the recording does not have it. */
uint32_t recording_symbol_string(struct recording *recording, uint32_t id);
/* Stores the words of one BEGIN event in its span. */
void recording_begin_words(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                           uint32_t row);
void recording_flush_spans(struct recording *recording, struct recorded_session *session);

#endif
