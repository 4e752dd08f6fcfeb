/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_sessions.c: see the header.
 */
#include "importers/recording/recording_sessions.h"

#include "base/memory.h"
#include "importers/recording/recording_facts.h"
#include "importers/recording/recording_ledger.h"
#include "importers/recording/recording_links.h"
#include "importers/recording/recording_losses.h"
#include "importers/recording/recording_stream.h"

#include <stdlib.h>
#include <string.h>

void recording_open_session(struct recorded_session *session)
{
	session->pages = memory_resize(NULL, SYMBOL_PAGES, sizeof(struct recorded_symbol *));
	memset(session->pages, 0, SYMBOL_PAGES * sizeof(struct recorded_symbol *));
	session->symbol_count = 0;
}

void recording_empty_session(struct recorded_session *session)
{
	for (uint32_t i = 0; i < SYMBOL_PAGES && session->pages; i++)
		free(session->pages[i]);
	free(session->pages);
	session->pages = NULL;
	free(session->frames);
	session->frames = NULL;
	session->frame_count = session->frame_capacity = 0;
	for (uint32_t i = 0; i < session->stream_count; i++) {
		span_queue_release(&session->streams[i]->queue);
		free(session->streams[i]->levels);
		free(session->streams[i]->inferred);
		free(session->streams[i]);
	}
	for (uint32_t i = 0; i < session->track_count; i++) {
		span_queue_release(&session->tracks[i]->queue);
		free(session->tracks[i]);
	}
	free(session->streams);
	free(session->tracks);
	session->streams = NULL;
	session->tracks = NULL;
	session->stream_count = session->track_count = 0;
	number_map_release(&session->stream_map);
	number_map_release(&session->track_map);
	number_map_release(&session->stack_map);
	number_map_release(&session->own_windows);
	for (int kind = 0; kind < 3; kind++)
		number_map_release(&session->link_map[kind]);
}

void recording_end_session(struct recording *recording, struct recorded_session *session)
{
	recording_flush_spans(recording, session);
	recording_close_session(recording, session);
	links_finish(recording, session);
	for (uint32_t i = 0; i < session->stream_count; i++) {
		recording_ledger_stream(recording, session, session->streams[i]);
		recording_lose_stream(recording, session->streams[i]);
	}
	if (session->unnamed)
		model_add_ledger(
			recording->model, LEDGER_DAMAGED, recording->process->process, "names", session->unnamed,
			"names are missing from the recording and shown as '(unknown)': most likely the process was "
			"killed before it wrote them");
	if (session->removed_words)
		model_add_ledger(
			recording->model, LEDGER_REMOVED, recording->process->process, recording->process->host,
			session->removed_words,
			session->has_coarse
				? "words of older events were removed to limit the recording's size; marked steps, "
				  "phases and values are kept"
				: "words of older events were removed to limit the recording's size");
	recording_empty_session(session);
}
