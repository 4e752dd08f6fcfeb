/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_facts.c: events other than begins, ends and steps: symbols, marks, values, memory, complete spans and their
 * arguments and links, samples, facts.
 */
#include "importers/recording/recording_facts.h"

#include "base/memory.h"
#include "importers/recording/recording.h"
#include "importers/recording/recording_frames.h"
#include "importers/recording/recording_links.h"
#include "importers/recording/recording_losses.h"
#include "importers/recording/recording_stream.h"
#include "pytorch/names.h"

#include <string.h>

/* ---- blocks ---- */

bool recording_on_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct recording *recording = context;
	struct recorded_session *session = recording->session;
	if (id == 0 || id >= 1u << 24)
		return true;
	struct recorded_symbol **page = &session->pages[id / SYMBOL_PAGE];
	if (session->symbol_count >= RECORDING_MAX_SYMBOLS || session->text_bytes > RECORDING_MAX_TEXT) {
		recording->refused_symbols++;
		return true;
	}
	if (!*page) {
		*page = memory_resize(NULL, SYMBOL_PAGE, sizeof **page);
		memset(*page, 0, SYMBOL_PAGE * sizeof **page);
	}
	struct recorded_symbol *symbol = &(*page)[id % SYMBOL_PAGE];
	session->symbol_count += !symbol->is_known;
	session->text_bytes += length;
	symbol->kind = kind;
	symbol->is_known = true;
	if (kind == STEPSCOPE_SYMBOL_FRAME) {
		symbol->shape = recording_add_frame(recording, text, length, &symbol->string);
		return true;
	}
	symbol->string = intern_add_n(&recording->model->strings, text, length);
	symbol->is_rare = kind == STEPSCOPE_SYMBOL_RANGE && pytorch_is_rare(text, length);
	/* the model's strings 1..7 are the phases; a recorder that names them differently still numbers them so */
	if (kind == STEPSCOPE_SYMBOL_PHASE && id <= STEPSCOPE_BUILTIN_PHASE_EVALUATION && symbol->string >= 8)
		symbol->string = id;
	if (kind == STEPSCOPE_SYMBOL_INPUTS) { /* its first line has the sizes */
		const char *end = memchr(text, '\n', length);
		symbol->shape = intern_add_n(&recording->model->strings, text, end ? (size_t)(end - text) : length);
	}
	return true;
}

uint32_t recording_symbol_string(struct recording *recording, uint32_t id)
{
	struct recorded_symbol symbol = recording_symbol(recording->session, id);
	if (symbol.is_known)
		return symbol.string;
	if (id >= 1 && id <= STEPSCOPE_BUILTIN_PHASE_EVALUATION)
		return id;
	recording->session->unnamed += id != 0;
	return intern_add(&recording->model->strings, "(unknown)");
}

bool recording_on_track(void *context, const struct stepscope_track_info *info, const char *name)
{
	struct recording *recording = context;
	struct recorded_session *session = recording->session;
	if (number_map_find(&session->track_map, info->track) != NUMBER_MAP_NONE || !info->track)
		return true;
	if (recording->track_total >= RECORDING_MAX_TRACKS) {
		recording->refused_tracks++;
		return true;
	}
	recording->track_total++;
	MEMORY_GROW(session->tracks, session->track_count, session->track_capacity, 8);
	struct declared_track *declared = memory_resize(NULL, 1, sizeof *declared);
	enum track_kind kind = info->kind == 1 ? TRACK_THREAD : info->kind == 2 ? TRACK_DEVICE : TRACK_OTHER;
	*declared = (struct declared_track){
		.track = model_add_track(recording->model, recording->process->process, kind)};
	declared->queue.track = declared->track;
	struct track *track = recording->model->tracks[declared->track];
	track->tid = info->stream;
	track->device = info->device;
	track->name = *name ? intern_add(&recording->model->strings, name) : 0;
	track->sort = session->stream_count + session->track_count;
	number_map_set(&session->track_map, info->track, session->track_count);
	session->tracks[session->track_count++] = declared;
	return true;
}

bool recording_on_stack(void *context, const struct stepscope_stack_node *node)
{
	struct recording *recording = context;
	struct number_map *map = &recording->session->stack_map;
	if (!node->node || number_map_find(map, node->node) != NUMBER_MAP_NONE || map->count >= INT32_MAX / 4)
		return true;
	uint32_t parent = node->parent ? number_map_find(map, node->parent) : 0;
	if (parent == NUMBER_MAP_NONE)
		parent = 0; /* its callers are lost */
	number_map_set(
		map, node->node,
		model_add_stack(recording->model, parent, recording_symbol_string(recording, node->frame), node->line));
	return true;
}

/* Maps `torch.profiler:3.KEY`, a fact of a profiler's third window, to `torch.profiler.KEY` if that window is read.
 * Returns NULL if it is not. */
static const char *key_of_window(const char *key, const struct model_filter *filter, char *room, size_t bytes)
{
	static const char prefix[] = "torch.profiler:";
	if (strncmp(key, prefix, sizeof prefix - 1) != 0)
		return key;
	char *end;
	unsigned long number = strtoul(key + sizeof prefix - 1, &end, 10);
	if (*end != '.')
		return key;
	if (filter && filter->window && (number < filter->window || number > filter->last_window))
		return NULL;
	return snprintf(room, bytes, "torch.profiler%s", end) < (int)bytes ? room : NULL;
}

bool recording_on_meta(void *context, const char *key, const char *value)
{
	struct recording *recording = context;
	char room[4096];
	key = key_of_window(key, recording->filter, room, sizeof room);
	if (key)
		model_add_meta(recording->model, recording->process->process, key, value);
	return true;
}

/* ---- further words of BEGIN events ---- */

/* PyTorch gives the sequence number only to the node; this copies it to the engine's span around the node. */
static void number_engine(struct model *model, uint32_t track, uint32_t row, uint64_t sequence)
{
	uint32_t i, p;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);
	uint32_t parent = chunk->parent[i];
	const struct span_chunk *around = parent == MODEL_NONE ? NULL : track_chunk(model->tracks[track], parent, &p);
	if (around && pytorch_begins(model_text(model, around->name[p]), PYTORCH_ENGINE))
		model_span_set_sequence(model, track, parent, sequence);
}

static void set_sequence(struct recording *recording, const struct stream *stream, uint32_t id, uint64_t sequence,
                         uint32_t row)
{
	model_span_set_sequence(recording->model, stream->track, row, sequence);
	if (recording_symbol(recording->session, id).kind != STEPSCOPE_SYMBOL_BACKWARD) {
		links_forward(recording, stream, sequence, row);
		return;
	}
	number_engine(recording->model, stream->track, row, sequence);
	if (sequence >> 48)
		links_backward(recording, sequence, stream->track, row);
}

void recording_begin_words(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                           uint32_t row)
{
	uint32_t track = stream->track;
	uint64_t sequence = event->payload[STEPSCOPE_BEGIN_SEQUENCE];
	if (sequence != STEPSCOPE_NO_SEQUENCE)
		set_sequence(recording, stream, event->id, sequence, row);
	if (event->payload_count <= STEPSCOPE_BEGIN_WHERE)
		return;
	uint64_t frame = event->payload[STEPSCOPE_BEGIN_WHERE] >> 32;
	if (frame)
		recording_set_stack(recording, track, row, (uint32_t)frame);
	uint32_t id = (uint32_t)event->payload[STEPSCOPE_BEGIN_WHERE];
	struct recorded_symbol inputs = recording_symbol(recording->session, id);
	if (!id || id >= 1u << 24 || inputs.kind != STEPSCOPE_SYMBOL_INPUTS)
		return;
	model_span_set_inputs(recording->model, track, row, inputs.string);
	model_span_set_shape(recording->model, track, row, inputs.shape);
}

/* ---- complete spans ---- */

static void recording_facts_add_link(struct recording *recording, struct recorded_session *session, uint32_t kind,
                                     uint64_t number, bool is_incoming, uint32_t track, uint32_t row)
{
	struct model *model = recording->model;
	struct number_map *map = &session->link_map[kind < 3 ? kind : STEPSCOPE_LINK_OTHER];
	uint32_t found = number_map_find(map, number);
	struct model_link link = {(uint8_t)kind, number, MODEL_NONE, MODEL_NONE, MODEL_NONE, MODEL_NONE};
	if (found != NUMBER_MAP_NONE) {
		struct model_link *half = &model->links[found];
		uint32_t *half_track = is_incoming ? &half->to_track : &half->from_track;
		if (*half_track == MODEL_NONE) {
			*half_track = track;
			*(is_incoming ? &half->to_row : &half->from_row) = row;
			return;
		}
		if (is_incoming) { /* one launch, several kernels */
			link.from_track = half->from_track;
			link.from_row = half->from_row;
		}
	}
	*(is_incoming ? &link.to_track : &link.from_track) = track;
	*(is_incoming ? &link.to_row : &link.from_row) = row;
	number_map_set(map, number, model->links_count);
	model_add_link(model, &link);
}

static void link_queued(void *context, const struct queued_note *note, uint32_t track, uint32_t row)
{
	struct recording *recording = context;
	recording_facts_add_link(recording, recording->session, note->link_kind, note->number, note->is_incoming, track,
	                         row);
}

/* A thread's own spans and complete spans about it may cross. If it has both, they go to two tracks. */
static void choose_queue_track(struct recording *recording, struct stream *stream)
{
	struct model *model = recording->model;
	uint32_t own = recording_stream_track(recording, stream);
	if (stream->queue.track != MODEL_NONE)
		return;
	stream->queue.track = own;
	if (model->tracks[own]->span_count == 0)
		return;
	stream->queue.track = model_add_track(model, recording->process->process, TRACK_OTHER);
	struct track *aside = model->tracks[stream->queue.track];
	aside->tid = stream->info.tid;
	aside->name = stream->name;
	aside->sort = stream->number;
}

void recording_flush_spans(struct recording *recording, struct recorded_session *session)
{
	for (uint32_t i = 0; i < session->stream_count; i++) {
		if (session->streams[i]->queue.count)
			choose_queue_track(recording, session->streams[i]);
		span_queue_flush(&session->streams[i]->queue, UINT32_MAX, recording->model, link_queued, recording);
	}
	for (uint32_t i = 0; i < session->track_count; i++)
		span_queue_flush(&session->tracks[i]->queue, UINT32_MAX, recording->model, link_queued, recording);
}

static struct span_queue *queue_of(struct recording *recording, struct stream *stream, uint64_t number)
{
	if (number == 0)
		return &stream->queue;
	uint32_t found = number < UINT32_MAX ? number_map_find(&recording->session->track_map, number)
	                                     : NUMBER_MAP_NONE;
	return found == NUMBER_MAP_NONE ? NULL : &recording->session->tracks[found]->queue;
}

static uint8_t complete_kind(uint8_t symbol_kind)
{
	bool is_span = symbol_kind >= SPAN_RANGE && symbol_kind <= SPAN_OVERHEAD &&
	               symbol_kind != STEPSCOPE_SYMBOL_COUNTER && symbol_kind != STEPSCOPE_SYMBOL_MARK &&
	               symbol_kind != STEPSCOPE_SYMBOL_METRIC;
	return is_span ? symbol_kind : SPAN_OTHER;
}

static void on_span(struct recording *recording, struct stream *stream, const struct segment_event *event)
{
	stream->last = (struct span_ref){.track = MODEL_NONE};
	struct span_queue *queue = event->payload_count >= 3 ? queue_of(recording, stream, event->payload[0]) : NULL;
	if (!queue)
		return;
	if (queue->count >= SPAN_QUEUE_MAX) {
		if (queue == &stream->queue)
			choose_queue_track(recording, stream);
		span_queue_flush(queue, SPAN_QUEUE_MAX / 2, recording->model, link_queued, recording);
	}
	uint64_t end_tick;
	if (__builtin_add_overflow(event->payload[1], event->payload[2], &end_tick))
		end_tick = UINT64_MAX;
	struct queued_span span = {.start_ns = clock_ns(&stream->clock, event->payload[1])};
	span.dur_ns = clock_ns(&stream->clock, end_tick) - span.start_ns;
	span.name = recording_symbol_string(recording, event->id);
	span.kind = complete_kind(recording_symbol(recording->session, event->id).kind);
	stream->last.queue = queue;
	stream->last.entry = span_queue_add(queue, &span);
}

/* ---- additions to the event before ---- */

static void on_link(struct recording *recording, struct stream *stream, const struct segment_event *event)
{
	const struct span_ref *last = &stream->last;
	uint32_t kind = event->id >> 1;
	bool is_incoming = event->id & 1;
	if (event->payload_count < 1 || kind > STEPSCOPE_LINK_OTHER)
		return;
	if (last->queue) {
		struct queued_note note = {.entry = last->entry,
		                           .is_link = true,
		                           .is_incoming = is_incoming,
		                           .link_kind = (uint8_t)kind,
		                           .number = event->payload[0]};
		span_queue_note(last->queue, &note);
	} else if (last->track != MODEL_NONE) {
		recording_facts_add_link(recording, recording->session, kind, event->payload[0], is_incoming,
		                         last->track, last->row);
	}
}

static void on_shape(struct recording *recording, const struct span_ref *last, uint32_t shape)
{
	if (last->queue)
		last->queue->spans[last->entry].shape = shape;
	else if (last->track != MODEL_NONE)
		model_span_set_shape(recording->model, last->track, last->row, shape);
}

static void on_arg(struct recording *recording, struct stream *stream, const struct segment_event *event)
{
	if (event->payload_count < 2 || event->payload[0] > STEPSCOPE_ARG_POINTER)
		return;
	const struct span_ref *last = &stream->last;
	struct queued_note note = {.entry = last->entry};
	struct span_arg *arg = &note.arg;
	*arg = (struct span_arg){.track = last->track, .row = last->row, .type = (uint8_t)event->payload[0]};
	arg->u64 = event->payload[1];
	if (arg->type == STEPSCOPE_ARG_SYMBOL) {
		uint32_t text = recording_symbol_string(recording, (uint32_t)event->payload[1]);
		if (event->id == STEPSCOPE_BUILTIN_KEY_SHAPE) {
			on_shape(recording, last, text);
			return;
		}
		arg->u64 = 0;
		arg->text = text;
	}
	arg->key = recording_symbol_string(recording, event->id);
	if (!strcmp(model_text(recording->model, arg->key), "torch.module")) /* only recording_torch.c uses it */
		return;
	if (last->queue)
		span_queue_note(last->queue, &note);
	else if (last->track != MODEL_NONE)
		model_span_arg(recording->model, arg);
}

/* ---- single events ---- */

static void on_value(struct recording *recording, struct stream *stream, const struct segment_event *event,
                     int64_t time_ns)
{
	if (event->payload_count < 1)
		return;
	struct recorded_symbol symbol = recording_symbol(recording->session, event->id);
	uint32_t name = recording_symbol_string(recording, event->id);
	if (event->payload_count > 1) { /* one counter of several devices */
		uint32_t found = event->payload[1] < UINT32_MAX
		                         ? number_map_find(&recording->session->track_map, event->payload[1])
		                         : NUMBER_MAP_NONE;
		const struct model *model = recording->model;
		if (found != NUMBER_MAP_NONE && recording->session->text_bytes < RECORDING_MAX_TEXT) {
			const struct track *track = model->tracks[recording->session->tracks[found]->track];
			char text[512];
			int length = snprintf(text, sizeof text, "%s (%s)", model_text(model, name),
			                      model_text(model, track->name));
			name = intern_add_n(&recording->model->strings, text,
			                    length < (int)sizeof text ? (size_t)length : sizeof text - 1);
		}
	}
	double value;
	memcpy(&value, &event->payload[0], sizeof value);
	(void)stream;
	model_add_value(recording->model, recording->process->process, name, symbol.kind == STEPSCOPE_SYMBOL_METRIC,
	                time_ns, value);
}

static void on_memory(struct recording *recording, struct stream *stream, const struct segment_event *event,
                      int64_t time_ns)
{
	bool is_free = event->type == STEPSCOPE_EVENT_FREE;
	const struct recorded_session *session = recording->session;
	if (event->payload_count < (is_free ? 1 : 2))
		return;
	/* here threads go back to different times, so a free may be missing although its allocation is not */
	if (session->has_removed && recording_has_removed(session) && time_ns < session->detail_since_ns)
		return;
	recording->process->has_memory = true;
	bool has_bytes = event->payload_count > 1;
	uint32_t device = event->id >> 8 & 0xffff; /* + 1 */
	struct memory_event memory = {
		.time_ns = time_ns,
		.address = event->payload[0],
		.bytes = has_bytes ? event->payload[1] : 0,
		.process = recording->process->process,
		.track = stream->track,
		.row = model_span_innermost(recording->model, stream->track, NULL),
		.device = (int16_t)(device > INT16_MAX ? INT16_MAX : (int32_t)device - 1),
		.category = (uint8_t)event->id,
		.is_free = is_free,
		.has_bytes = has_bytes,
	};
	model_add_memory(recording->model, &memory);
}

static void on_owner(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                     int64_t time_ns)
{
	if (event->payload_count < 2)
		return;
	uint32_t device = event->payload[1] >> 8 & 0xffff; /* + 1 */
	struct memory_owner owner = {
		.time_ns = time_ns,
		.address = event->payload[0],
		.bytes = event->payload_count > 2 ? event->payload[2] : 0,
		.process = recording->process->process,
		.track = stream->track,
		.device = (int16_t)(device > INT16_MAX ? INT16_MAX : (int32_t)device - 1),
		.category = (uint8_t)event->payload[1],
	};
	model_add_owner(recording->model, &owner);
}

/* Notes whether the profiler of the loaded windows follows the thread. A thread with its own profilers is followed only
 * by those. */
static void note_profiled(struct recording *recording, const struct stream *stream, const struct segment_event *event)
{
	if (event->payload_count < 2 || !recording->filter || !recording->filter->window)
		return;
	recording->model->tells_profiled = true;
	if (number_map_find(&recording->session->own_windows, stream->number) != 2)
		recording->model->tracks[stream->track]->is_profiled |= event->payload[1] == 1;
}

static void on_sample(struct recording *recording, struct stream *stream, const struct segment_event *event,
                      int64_t time_ns)
{
	if (event->payload_count < 2)
		return;
	uint32_t found = event->payload[0] <= UINT32_MAX
	                         ? number_map_find(&recording->session->stack_map, event->payload[0])
	                         : NUMBER_MAP_NONE;
	struct sample sample = {.time_ns = time_ns, .track = stream->track, .weight = event->payload[1]};
	sample.stack = found == NUMBER_MAP_NONE ? 0 : found;
	sample.name = recording_symbol_string(recording, event->id);
	if (event->payload_count > 2 && event->payload[2]) {
		const struct span_queue *queue = queue_of(recording, stream, event->payload[2]);
		if (queue)
			sample.track = queue->track;
	}
	model_add_sample(recording->model, &sample);
}

void recording_end_arguments(struct recording *recording, const struct stream *stream,
                             const struct segment_event *event)
{
	const struct level *top = stream->level_count ? &stream->levels[stream->level_count - 1] : NULL;
	bool is_ended = top && !stream->deeper && !top->is_over && top->coarse != stream->level_count;
	uint32_t row = is_ended ? model_span_innermost(recording->model, stream->track, NULL) : MODEL_NONE;
	for (uint32_t i = 0; i + 1 < event->payload_count && row != MODEL_NONE; i += 2) {
		struct span_arg arg = {.track = stream->track,
		                       .row = row,
		                       .key = recording_symbol_string(recording, (uint32_t)event->payload[i]),
		                       .type = (uint8_t)(event->payload[i] >> 32),
		                       .u64 = event->payload[i + 1]};
		if (event->payload[i] >> 32 > STEPSCOPE_ARG_POINTER || arg.type == STEPSCOPE_ARG_SYMBOL)
			continue;
		model_span_arg(recording->model, &arg);
	}
}

void recording_add_reading(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                           int64_t time_ns)
{
	if (event->payload_count < 2)
		return;
	struct thread_reading reading = {.time_ns = time_ns,
	                                 .track = stream->track,
	                                 .cpu_ns = event->payload[0],
	                                 .wait_ns = event->payload[1],
	                                 .process_ns = event->payload_count > 2 ? event->payload[2]
	                                                                        : STEPSCOPE_USE_UNKNOWN};
	model_add_reading(recording->model, &reading);
}

void recording_fact(struct recording *recording, struct stream *stream, const struct segment_event *event,
                    int64_t time_ns)
{
	switch (event->type) {
	case STEPSCOPE_EVENT_MARK:
		stream->last = (struct span_ref){.track = MODEL_NONE};
		model_add_mark(recording->model, stream->track, time_ns, recording_symbol_string(recording, event->id));
		break;
	case STEPSCOPE_EVENT_VALUE:
		on_value(recording, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_ALLOC:
	case STEPSCOPE_EVENT_FREE:
		on_memory(recording, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_SPAN:
		on_span(recording, stream, event);
		break;
	case STEPSCOPE_EVENT_LINK:
		on_link(recording, stream, event);
		break;
	case STEPSCOPE_EVENT_SAMPLE:
		on_sample(recording, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_ARG:
		on_arg(recording, stream, event);
		break;
	case STEPSCOPE_EVENT_EXTENDED:
		if (event->id == STEPSCOPE_EXTENDED_MEMORY_OWNER)
			on_owner(recording, stream, event, time_ns);
		else if (event->id == STEPSCOPE_EXTENDED_TORCH_THREAD && event->payload_count) {
			links_thread(recording, stream, event->payload[0]);
			note_profiled(recording, stream, event);
		} else if (event->id == STEPSCOPE_EXTENDED_CALL && event->payload_count)
			recording->model->tracks[stream->track]->last_call = recording_symbol_string(
				recording, (uint32_t)event->payload[0]);
		break;
	default:
		break; /* TIME is handled earlier */
	}
}
