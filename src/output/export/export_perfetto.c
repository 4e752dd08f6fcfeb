/* SPDX-License-Identifier: Apache-2.0
 *
 * export_perfetto.c: writes the model as Perfetto's protobuf. Every lane of spans is a separate packet sequence with
 * an incremental clock and interned names, so that start and end of a span take about 25 bytes together. A sequence
 * clears its state and repeats its descriptors every few megabytes, so that a truncated file still opens.
 */
#include "output/export/export_perfetto.h"

#include "base/memory.h"
#include "stepscope/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_BYTES ((uint64_t)4 << 20)
#define MOST_ARGS 64
#define PLAIN_BYTES 128 /* room for the packet of a span without args */

bool perfetto_has_process(const struct perfetto *perfetto, uint32_t process)
{
	return !perfetto->options->processes || perfetto->options->processes[process];
}

bool perfetto_has_many(const struct perfetto *perfetto)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < perfetto->model->processes_count; i++)
		count += perfetto_has_process(perfetto, i);
	return count > 1;
}

void perfetto_packet(struct perfetto *perfetto, const struct proto *packet)
{
	char head[16];
	char *at = head;

	*at++ = TRACE_PACKET << 3 | PROTO_BYTES;
	at = proto_put_varint(at, packet->length);
	writer_bytes(&perfetto->w, head, (size_t)(at - head));
	writer_bytes(&perfetto->w, packet->data, packet->length);
}

/* ---- interning ---- */

static size_t varint_length(uint64_t value)
{
	char unused[16];

	return (size_t)(proto_put_varint(unused, value) - unused);
}

/* Writes a packet that only defines text as `iid`; the text may be longer than a struct proto. */
static void define(struct perfetto *perfetto, uint32_t field, uint32_t iid, const char *text, size_t length)
{
	size_t entry = 1 + varint_length(iid) + 1 + varint_length(length) + length;
	size_t interned = varint_length(field << 3) + varint_length(entry) + entry;
	struct proto packet;
	char head[96];
	char *at = head;

	proto_clear(&packet);
	proto_varint(&packet, PACKET_SEQUENCE_ID, perfetto->sequence);
	proto_varint(&packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	*at++ = TRACE_PACKET << 3 | PROTO_BYTES;
	at = proto_put_varint(at, packet.length + 1 + varint_length(interned) + interned);
	memcpy(at, packet.data, packet.length);
	at += packet.length;
	*at++ = PACKET_INTERNED_DATA << 3 | PROTO_BYTES;
	at = proto_put_varint(at, interned);
	at = proto_put_varint(at, field << 3 | PROTO_BYTES);
	at = proto_put_varint(at, entry);
	*at++ = 1 << 3 | PROTO_VARINT;
	at = proto_put_varint(at, iid);
	*at++ = 2 << 3 | PROTO_BYTES;
	at = proto_put_varint(at, length);
	writer_bytes(&perfetto->w, head, (size_t)(at - head));
	writer_bytes(&perfetto->w, text, length);
}

static void iid_map_init(struct iid_map *map, uint32_t field)
{
	*map = (struct iid_map){.field = field, .next = 1};
}

static void iid_map_release(struct iid_map *map)
{
	free(map->iid);
	free(map->generation);
}

static void iid_map_allocate(struct iid_map *map, uint32_t strings)
{
	map->iid = memory_resize(NULL, (size_t)strings + 1, sizeof(*map->iid));
	map->generation = calloc((size_t)strings + 1, sizeof(*map->generation));
	if (!map->generation)
		memory_exhausted(((size_t)strings + 1) * sizeof(*map->generation));
}

static uint32_t define_new(struct perfetto *perfetto, struct iid_map *map, uint32_t string)
{
	if (!map->iid)
		iid_map_allocate(map, perfetto->model->strings.count);
	if (map->generation[string] != perfetto->generation) {
		map->generation[string] = perfetto->generation;
		map->iid[string] = map->next++;
		define(perfetto, map->field, map->iid[string], model_text(perfetto->model, string),
		       intern_length(&perfetto->model->strings, string));
	}
	return map->iid[string];
}

static inline uint32_t intern(struct perfetto *perfetto, struct iid_map *map, uint32_t string)
{
	if (map->iid && string < perfetto->model->strings.count && map->generation[string] == perfetto->generation)
		return map->iid[string];
	return define_new(perfetto, map, string < perfetto->model->strings.count ? string : 0);
}

/* ---- sequences ---- */

struct perfetto_lane {
	struct perfetto *perfetto;
	uint32_t track;
	uint64_t uuid;
	unsigned number;
	bool has_steps;
	uint32_t next_arg, next_link;
	uint32_t arg_row, link_row;
	char fixed[16]; /* sequence id and flags, the same in every packet */
	size_t fixed_length;
	struct export_lane lane;
};

static const char *span_category(unsigned kind)
{
	switch (kind) {
	case SPAN_STEP:
		return "step";
	case SPAN_PHASE:
		return "phase";
	case SPAN_PYTHON:
		return "python";
	default:
		return span_kind_name((enum span_kind)kind);
	}
}

static void define_categories(struct perfetto_lane *lane)
{
	const struct track *track = lane->perfetto->model->tracks[lane->track];
	bool is_device = export_is_device(track);

	for (unsigned kind = 1; kind < SPAN_KIND_COUNT; kind++) {
		const char *category = kind == SPAN_OP || is_device ? export_category((enum span_kind)kind, is_device)
		                                                    : span_category(kind);

		if (category)
			define(lane->perfetto, INTERNED_CATEGORIES, kind, category, strlen(category));
	}
}

/* All clock snapshots have the same time: the trace's clock must not go backwards from one snapshot to the next. */
static void snapshot(struct perfetto *perfetto, struct proto *packet)
{
	uint64_t now = (uint64_t)(perfetto->window.first_ns + perfetto->shift_ns);
	struct proto trace_clock, own_clock, clocks;

	proto_clear(&trace_clock);
	proto_clear(&own_clock);
	proto_clear(&clocks);
	proto_varint(&trace_clock, 1, CLOCK_ID_BOOTTIME);
	proto_varint(&trace_clock, 2, now);
	proto_varint(&own_clock, 1, CLOCK_ID_INCREMENTAL);
	proto_varint(&own_clock, 2, now);
	proto_varint(&own_clock, 3, 1);
	proto_message(&clocks, 1, &trace_clock);
	proto_message(&clocks, 1, &own_clock);
	proto_message(packet, PACKET_CLOCK_SNAPSHOT, &clocks);
	perfetto->last_ns = now;
}

static void clear_state(struct perfetto_lane *lane, bool is_first)
{
	struct perfetto *perfetto = lane->perfetto;
	struct proto packet, defaults, event;

	proto_clear(&packet);
	proto_clear(&defaults);
	proto_clear(&event);
	perfetto->generation++;
	perfetto->names.next = perfetto->arg_names.next = perfetto->arg_texts.next = 1;
	proto_varint(&event, DEFAULTS_EVENT_TRACK, lane->uuid);
	proto_message(&defaults, DEFAULTS_TRACK_EVENT, &event);
	proto_varint(&defaults, DEFAULTS_TIMESTAMP_CLOCK, CLOCK_ID_INCREMENTAL);
	proto_varint(&packet, PACKET_SEQUENCE_ID, perfetto->sequence);
	proto_varint(&packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	if (is_first)
		proto_varint(&packet, PACKET_FIRST_ON_SEQUENCE, 1);
	proto_message(&packet, PACKET_DEFAULTS, &defaults);
	snapshot(perfetto, &packet);
	perfetto_packet(perfetto, &packet);
	perfetto_describe_track(perfetto, lane->track, lane->uuid, lane->number);
	define_categories(lane);
	perfetto->state_bytes = writer_count(&perfetto->w);
}

static void look_ahead(struct perfetto_lane *lane)
{
	const struct model *model = lane->perfetto->model;
	const struct link_index *links = &lane->perfetto->links;

	lane->arg_row = lane->link_row = MODEL_NONE;
	if (lane->next_arg < model->args_count && model->args[lane->next_arg].track == lane->track)
		lane->arg_row = model->args[lane->next_arg].row;
	if (lane->next_link < links->count && links->ends[lane->next_link].track == lane->track)
		lane->link_row = links->ends[lane->next_link].row;
}

static void lane_begin(struct perfetto_lane *lane, uint32_t first_row)
{
	char *at = lane->fixed;

	*at++ = PACKET_SEQUENCE_ID << 3 | PROTO_VARINT;
	at = proto_put_varint(at, lane->perfetto->sequence);
	*at++ = PACKET_SEQUENCE_FLAGS << 3 | PROTO_VARINT;
	*at++ = SEQUENCE_NEEDS_STATE;
	lane->fixed_length = (size_t)(at - lane->fixed);
	lane->next_arg = model_first_arg(lane->perfetto->model, lane->track, first_row);
	lane->next_link = link_index_find(&lane->perfetto->links, lane->track, first_row);
	look_ahead(lane);
	clear_state(lane, true);
}

/* ---- spans ---- */

/* Writes a packet around a complete TrackEvent; both are shorter than 128 bytes. */
static inline char *put_short_packet(struct perfetto_lane *lane, char *at, int64_t time_ns, const char *event,
                                     size_t length)
{
	struct perfetto *perfetto = lane->perfetto;
	uint64_t now = (uint64_t)(time_ns + perfetto->shift_ns);
	char *size = at + 1;

	*at = TRACE_PACKET << 3 | PROTO_BYTES;
	at += 2;
	*at++ = PACKET_TIMESTAMP << 3 | PROTO_VARINT;
	at = proto_put_varint(at, now - perfetto->last_ns);
	perfetto->last_ns = now;
	memcpy(at, lane->fixed, sizeof(lane->fixed));
	at += lane->fixed_length;
	*at++ = PACKET_TRACK_EVENT << 3 | PROTO_BYTES;
	*at++ = (char)length;
	memcpy(at, event, 24);
	at += length;
	*size = (char)(at - size - 1);
	return at;
}

static void put_end(struct perfetto_lane *lane, int64_t time_ns)
{
	static const char event[24] = {PERFETTO_EVENT_TYPE << 3, PERFETTO_EVENT_END};
	struct writer *w = &lane->perfetto->w;

	writer_reserve(w, PLAIN_BYTES);
	w->at = put_short_packet(lane, w->at, time_ns, event, 2);
}

static void put_long_packet(struct perfetto_lane *lane, int64_t time_ns, const struct proto *event)
{
	struct perfetto *perfetto = lane->perfetto;
	uint64_t now = (uint64_t)(time_ns + perfetto->shift_ns);
	size_t rest = lane->fixed_length + 1 + varint_length(event->length) + event->length;
	char head[64];
	char *at = head;

	*at++ = TRACE_PACKET << 3 | PROTO_BYTES;
	at = proto_put_varint(at, 1 + varint_length(now - perfetto->last_ns) + rest);
	*at++ = PACKET_TIMESTAMP << 3 | PROTO_VARINT;
	at = proto_put_varint(at, now - perfetto->last_ns);
	perfetto->last_ns = now;
	memcpy(at, lane->fixed, lane->fixed_length);
	at += lane->fixed_length;
	*at++ = PACKET_TRACK_EVENT << 3 | PROTO_BYTES;
	at = proto_put_varint(at, event->length);
	writer_bytes(&perfetto->w, head, (size_t)(at - head));
	writer_bytes(&perfetto->w, event->data, event->length);
}

static void perfetto_put_arg(struct perfetto *perfetto, struct proto *event, const struct span_arg *arg)
{
	struct proto annotation;

	proto_clear(&annotation);
	proto_varint(&annotation, PERFETTO_ARG_NAME_IID, intern(perfetto, &perfetto->arg_names, arg->key));
	switch (arg->type) {
	case STEPSCOPE_ARG_U64:
		proto_varint(&annotation, PERFETTO_ARG_UINT, arg->u64);
		break;
	case STEPSCOPE_ARG_F64:
		proto_double(&annotation, PERFETTO_ARG_DOUBLE, arg->f64);
		break;
	case STEPSCOPE_ARG_BOOL:
		proto_varint(&annotation, PERFETTO_ARG_BOOL, arg->u64 != 0);
		break;
	case STEPSCOPE_ARG_POINTER:
		proto_varint(&annotation, PERFETTO_ARG_POINTER, arg->u64);
		break;
	case STEPSCOPE_ARG_SYMBOL:
		proto_varint(&annotation, PERFETTO_ARG_TEXT_IID, intern(perfetto, &perfetto->arg_texts, arg->text));
		break;
	default:
		proto_varint(&annotation, PERFETTO_ARG_INT, (uint64_t)arg->i64);
		break;
	}
	proto_message(event, PERFETTO_EVENT_ARGS, &annotation);
}

static void put_args(struct perfetto_lane *lane, struct proto *event, const struct span_chunk *chunk, uint32_t index)
{
	struct perfetto *perfetto = lane->perfetto;
	const struct model *model = perfetto->model;
	struct proto annotation;

	proto_clear(&annotation);
	if (chunk->shape[index]) {
		proto_text(&annotation, PERFETTO_ARG_NAME, "shape");
		proto_varint(&annotation, PERFETTO_ARG_TEXT_IID,
		             intern(perfetto, &perfetto->arg_texts, chunk->shape[index]));
		proto_message(event, PERFETTO_EVENT_ARGS, &annotation);
	}
	if (chunk->flags[index] & SPAN_IS_OPEN) {
		proto_clear(&annotation);
		proto_text(&annotation, PERFETTO_ARG_NAME, "open");
		proto_varint(&annotation, PERFETTO_ARG_BOOL, 1);
		proto_message(event, PERFETTO_EVENT_ARGS, &annotation);
	}
	for (int count = 0; lane->next_arg < model->args_count; lane->next_arg++, count++) {
		const struct span_arg *arg = &model->args[lane->next_arg];

		if (arg->track != lane->track || arg->row != chunk->first_row + index)
			break;
		if (count < MOST_ARGS && strcmp(model_text(model, arg->key), "shape") != 0)
			perfetto_put_arg(perfetto, event, arg);
	}
}

static void put_flows(struct perfetto_lane *lane, struct proto *event, uint32_t row)
{
	const struct link_index *links = &lane->perfetto->links;

	for (int count = 0; lane->next_link < links->count; lane->next_link++, count++) {
		const struct link_end *end = &links->ends[lane->next_link];

		if (end->track != lane->track || end->row != row)
			break;
		if (count >= MOST_ARGS / 2)
			continue;
		proto_fixed64(event, end->is_to ? PERFETTO_EVENT_ENDING_FLOWS : PERFETTO_EVENT_FLOWS,
		              (uint64_t)end->link + 1);
		lane->perfetto->result->flows += end->is_to;
	}
}

static void put_step_name(struct perfetto *perfetto, struct proto *event, const struct span_chunk *chunk,
                          uint32_t index)
{
	int32_t step = chunk->step[index];
	char name[64];

	if (step < 0 || (uint32_t)step >= perfetto->model->steps_count) {
		proto_varint(event, PERFETTO_EVENT_NAME_IID, intern(perfetto, &perfetto->names, chunk->name[index]));
		return;
	}
	snprintf(name, sizeof(name), "ProfilerStep#%lld", (long long)perfetto->model->steps[step].number);
	proto_text(event, PERFETTO_EVENT_NAME, name);
}

static void put_rich_begin(struct perfetto_lane *lane, const struct span_chunk *chunk, uint32_t index, uint8_t kind)
{
	struct perfetto *perfetto = lane->perfetto;
	struct proto event;

	proto_clear(&event);
	proto_varint(&event, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_BEGIN);
	proto_varint(&event, PERFETTO_EVENT_CATEGORY_IIDS, kind);
	if (kind == SPAN_STEP)
		put_step_name(perfetto, &event, chunk, index);
	else
		proto_varint(&event, PERFETTO_EVENT_NAME_IID, intern(perfetto, &perfetto->names, chunk->name[index]));
	put_flows(lane, &event, chunk->first_row + index);
	put_args(lane, &event, chunk, index);
	put_long_packet(lane, chunk->start_ns[index], &event);
	look_ahead(lane);
}

static void put_begin(struct perfetto_lane *lane, const struct span_chunk *chunk, uint32_t index)
{
	struct perfetto *perfetto = lane->perfetto;
	uint32_t row = chunk->first_row + index;
	uint8_t kind = chunk->kind[index] && chunk->kind[index] < SPAN_KIND_COUNT ? chunk->kind[index] : SPAN_OTHER;
	char event[24] = {PERFETTO_EVENT_TYPE << 3, PERFETTO_EVENT_BEGIN, PERFETTO_EVENT_CATEGORY_IIDS << 3, (char)kind,
	                  PERFETTO_EVENT_NAME_IID << 3};
	uint32_t name;

	perfetto->result->slices++;
	if (kind == SPAN_STEP || chunk->shape[index] || (chunk->flags[index] & SPAN_IS_OPEN) || row == lane->arg_row ||
	    row == lane->link_row) {
		put_rich_begin(lane, chunk, index, kind);
		return;
	}
	name = intern(perfetto, &perfetto->names, chunk->name[index]);
	writer_reserve(&perfetto->w, PLAIN_BYTES);
	perfetto->w.at = put_short_packet(lane, perfetto->w.at, chunk->start_ns[index], event,
	                                  (size_t)(proto_put_varint(event + 5, name) - event));
}

static void skip_row(struct perfetto_lane *lane, uint32_t row)
{
	if (row != lane->arg_row && row != lane->link_row)
		return;
	lane->next_arg = model_first_arg(lane->perfetto->model, lane->track, row + 1);
	lane->next_link = link_index_find(&lane->perfetto->links, lane->track, row + 1);
	look_ahead(lane);
}

static void visit_row(struct perfetto_lane *lane, struct span_chunk *chunk, uint32_t index)
{
	struct perfetto *perfetto = lane->perfetto;
	int64_t start_ns = chunk->start_ns[index];
	uint64_t before = perfetto->account ? writer_count(&perfetto->w) : 0;
	int64_t ended_ns;

	while (lane_pop(&lane->lane, start_ns, chunk->depth[index], &ended_ns))
		put_end(lane, ended_ns);
	if (!lane_push(&lane->lane, chunk->first_row + index, start_ns + chunk->dur_ns[index], chunk->depth[index])) {
		skip_row(lane, chunk->first_row + index);
		return;
	}
	put_begin(lane, chunk, index);
	if (perfetto->account) /* its end, about 15 bytes, is written later and counts for the step of a later span */
		step_bytes_add(perfetto->account, perfetto->model->tracks[lane->track]->process, start_ns,
		               writer_count(&perfetto->w) - before);
}

static void perfetto_visit_chunk(struct perfetto_lane *lane, struct span_chunk *chunk)
{
	struct perfetto *perfetto = lane->perfetto;
	uint32_t process = perfetto->model->tracks[lane->track]->process;

	for (uint32_t i = 0; i < chunk->count; i++) {
		if ((perfetto->selection.intervals &&
		     !selection_has_span(&perfetto->selection, perfetto->model, process, chunk, i)) ||
		    (lane->has_steps && export_is_step_again(perfetto->model, chunk, i))) {
			skip_row(lane, chunk->first_row + i);
			continue;
		}
		visit_row(lane, chunk, i);
		if ((i & 1023) == 0 && writer_count(&perfetto->w) - perfetto->state_bytes > STATE_BYTES)
			clear_state(lane, false);
	}
	perfetto->done += chunk->count;
	export_progress(perfetto->options, perfetto->done, perfetto->total);
}

static void lane_end(struct perfetto_lane *lane)
{
	while (lane->lane.count)
		put_end(lane, lane->lane.spans[--lane->lane.count].end_ns);
}

static void visit_overflow(struct perfetto_lane *lane)
{
	struct perfetto *perfetto = lane->perfetto;

	while (lane->lane.overflow_count) {
		struct export_lane previous = lane->lane;

		lane->lane = (struct export_lane){0};
		lane->number++;
		lane->uuid = perfetto_uuid(perfetto, "lane", lane->track, lane->number);
		perfetto->sequence++;
		lane_begin(lane, previous.overflow[0]);
		for (uint32_t i = 0; i < previous.overflow_count; i++) {
			uint32_t index;
			struct span_chunk *chunk = track_chunk(perfetto->model->tracks[lane->track],
			                                       previous.overflow[i], &index);

			lane->next_arg = model_first_arg(perfetto->model, lane->track, previous.overflow[i]);
			lane->next_link = link_index_find(&perfetto->links, lane->track, previous.overflow[i]);
			look_ahead(lane);
			visit_row(lane, chunk, index);
		}
		lane_end(lane);
		lane_release(&previous);
	}
}

static void write_track(struct perfetto *perfetto, uint32_t number)
{
	const struct track *track = perfetto->model->tracks[number];
	struct perfetto_lane lane = {
		.perfetto = perfetto, .track = number, .number = 1, .has_steps = export_has_steps(track)};

	lane.uuid = perfetto_track_uuid(perfetto, number);
	perfetto->sequence++;
	lane_begin(&lane, 0);
	for (uint32_t i = 0; i < track->chunk_count && !output_is_failed(perfetto->w.output); i++)
		perfetto_visit_chunk(&lane, track->chunks[i]);
	lane_end(&lane);
	visit_overflow(&lane);
	lane_release(&lane.lane);
}

/* ---- file ---- */

static void perfetto_write_all(struct perfetto *perfetto, struct output *output)
{
	const struct model *model = perfetto->model;

	link_index_release(&perfetto->links);
	link_index_init(&perfetto->links, model, &perfetto->selection);
	export_window_init(&perfetto->window, model, &perfetto->selection);
	perfetto->shift_ns = perfetto->window.first_ns < 0 ? -perfetto->window.first_ns : 0;
	perfetto->done = 0;
	perfetto->total = export_span_total(model);
	perfetto->sequence = FIRST_SPAN_SEQUENCE - 1;
	perfetto->w = writer_begin(output);
	perfetto_clock(perfetto);
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (perfetto_has_process(perfetto, i))
			perfetto_describe_process(perfetto, i);
	perfetto_steps(perfetto);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		if (perfetto_has_process(perfetto, model->tracks[i]->process))
			write_track(perfetto, i);
	perfetto_marks(perfetto);
	perfetto_memory(perfetto);
	perfetto_values(perfetto);
	writer_end(&perfetto->w);
}

static void limit_bytes(struct perfetto *perfetto)
{
	struct export_result *result = perfetto->result;
	struct export_result unused = {0};
	struct step_bytes steps;
	struct output *nowhere = output_open_nowhere();

	step_bytes_init(&steps, perfetto->model);
	perfetto->account = &steps;
	perfetto->result = &unused;
	perfetto_write_all(perfetto, nowhere);
	perfetto->account = NULL;
	perfetto->result = result;
	export_limit(&steps, output_raw_bytes(nowhere), &perfetto->selection, perfetto->options, result);
	step_bytes_release(&steps);
	output_abort(nowhere);
}

static void perfetto_release(struct perfetto *perfetto)
{
	selection_release(&perfetto->selection);
	id_map_release(&perfetto->ids);
	link_index_release(&perfetto->links);
	iid_map_release(&perfetto->names);
	iid_map_release(&perfetto->arg_names);
	iid_map_release(&perfetto->arg_texts);
}

static enum status perfetto_write(const struct model *model, const char *path, const struct export_options *options,
                                  struct export_result *result, struct error *err)
{
	struct perfetto perfetto = {.model = model, .options = options, .result = result};
	struct output *output;
	enum status status;

	*result = (struct export_result){0};
	status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	iid_map_init(&perfetto.names, INTERNED_NAMES);
	iid_map_init(&perfetto.arg_names, INTERNED_ARG_NAMES);
	iid_map_init(&perfetto.arg_texts, INTERNED_ARG_TEXTS);
	id_map_init(&perfetto.ids, model);
	selection_init(&perfetto.selection, model, options);
	if (options->max_bytes > 0)
		limit_bytes(&perfetto);
	perfetto_write_all(&perfetto, output);
	result->bytes_raw = output_raw_bytes(output);
	export_note_left_out(result, model);
	export_note_memory(result, model, options->processes);
	perfetto_release(&perfetto);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace",
	.what = "TrackEvent protobuf",
	.viewers = "Perfetto UI and trace processor",
	.write = perfetto_write,
	.honours_max_bytes = true,
};
