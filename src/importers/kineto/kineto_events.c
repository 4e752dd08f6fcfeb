/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_events.c: stages events by their phase ("ph"): spans, begins and ends, instants, allocations, counters, flows.
 */
#include "importers/kineto/kineto_import.h"
#include "model/launches.h"

#include <stepscope/stepscope.h>
#include <string.h>

struct taken { /* an event being staged */
	struct kineto_import *import;
	const struct kineto_event *event;
	int64_t time_ns;
	uint32_t track; /* staged */
};

static void kineto_events_note(const struct taken *taken, enum kineto_repair repair)
{
	kineto_repair_note(&taken->import->repairs, repair, 1, taken->import->offset);
}

static bool read_time(const struct kineto_value *value, int64_t *ns)
{
	return kineto_nanoseconds(value, ns) && *ns <= IMPORTED_TIME_MAX && *ns >= IMPORTED_TIME_MIN;
}

uint32_t kineto_intern(struct kineto_import *import, const struct kineto_value *value)
{
	if (value->type == VALUE_NONE || !value->length)
		return 0;
	if (!value->flags)
		return intern_add_n(&import->model->strings, value->at, value->length);
	buffer_clear(&import->text);
	if (kineto_append_text(&import->text, value))
		kineto_repair_note(&import->repairs, REPAIR_ESCAPE, 1, import->offset);
	return intern_add_n(&import->model->strings, import->text.data, import->text.length);
}

struct staged_place kineto_place(struct kineto_import *import, const struct kineto_value *value)
{
	struct staged_place place = {0};
	if (kineto_integer(value, &place.number) || value->type == VALUE_NONE || value->type == VALUE_NULL)
		return place;
	place.number = 0;
	place.text = value->length ? kineto_intern(import, value) : intern_add(&import->model->strings, KINETO_NO_NAME);
	return place;
}

/* ---- spans ---- */

/* If events of one row name several devices, takes the smallest: it does not depend on the order of the file. */
static void note_device(const struct taken *taken, struct staged_track *track)
{
	int64_t device;
	track->is_device = true;
	if (kineto_integer(&taken->event->known[KINETO_ARG_DEVICE], &device) && device >= 0 && device < INT16_MAX &&
	    (track->device < 0 || device < track->device))
		track->device = (int32_t)device;
}

static uint32_t kineto_events_name_of(const struct taken *taken, enum span_kind kind)
{
	struct kineto_value name = taken->event->fields[KINETO_EVENT_NAME];
	uint32_t prefix = kind == SPAN_PHASE || kind == SPAN_MODULE ? 11 : 0; /* "stepscope::", "nn.Module: " */
	if (prefix) {
		name.at += prefix;
		name.length -= prefix;
	}
	uint32_t string = kineto_intern(taken->import, &name);
	return string ? string : intern_add(&taken->import->model->strings, KINETO_NO_NAME);
}

/* Returns the letter of "ph"; 0: none, or more than one. */
static char kineto_events_phase_of(const struct kineto_event *event)
{
	const struct kineto_value *phase = &event->fields[KINETO_EVENT_PH];
	return phase->type == VALUE_STRING && phase->length == 1 ? phase->at[0] : '\0';
}

/* Orders spans of equal times: PyTorch numbers its events as they begin. */
static uint32_t order_of(const struct taken *taken, struct staged_span *span)
{
	const struct kineto_value *known = taken->event->known;
	uint64_t number;
	if (kineto_unsigned(&known[KINETO_ARG_EVENT_INDEX], &number) ||
	    kineto_unsigned(&known[KINETO_ARG_EXTERNAL_ID], &number)) {
		span->flags |= STAGED_HAS_NUMBER;
		return (uint32_t)number;
	}
	bool is_async = kineto_is_async(kineto_events_phase_of(taken->event));
	/* only the place in the file is known */
	if (taken->event->fields[KINETO_EVENT_CAT].type == VALUE_NONE && !is_async)
		return (uint32_t)taken->import->event_count;
	return taken->import->model->strings.entries[span->name].hash;
}

static void take_columns(const struct taken *taken, struct kineto_kind kind, struct staged_span *span)
{
	struct kineto_import *import = taken->import;
	const struct kineto_event *event = taken->event;
	span->kind = (uint8_t)kind.kind;
	span->name = kineto_events_name_of(taken, kind.kind);
	span->order = order_of(taken, span);
	span->tie = (uint16_t)import->model->strings.entries[span->name].hash;
	if (kind.is_device && kind.kind == SPAN_ANNOTATION)
		span->flags |= STAGED_OF_DEVICE;
	if (event->known[KINETO_ARG_OPEN].type == VALUE_TRUE)
		span->flags |= SPAN_IS_OPEN;
	if (event->known[KINETO_ARG_INFERRED].type == VALUE_TRUE && (kind.kind == SPAN_PHASE || kind.kind == SPAN_STEP))
		span->flags |= SPAN_IS_INFERRED;
	if (kind.is_device || kind.kind == SPAN_RUNTIME) {
		if (!kineto_unsigned(&event->known[KINETO_ARG_CORRELATION], &span->correlation) ||
		    span->correlation == UINT64_MAX)
			span->correlation = 0;
		import->has_correlation |= span->correlation != 0 && kind.is_device;
		span->flags |= span->correlation ? STAGED_HAS_NUMBER : 0;
		kineto_clock_note(import, taken->track, span);
	}
	bool is_launch = kind.is_device && kind.kind != SPAN_ANNOTATION && kind.kind != SPAN_SYNC;
	if (is_launch)
		kineto_take_launch(import, event, span);
	else
		kineto_take_inputs(import, event, span);
	kineto_take_args(import, event, is_launch, span);
	import->event_count++;
}

/* Returns true if no number, or one that does not fit, follows "ProfilerStep#". */
static bool is_odd_step(const struct kineto_value *name, struct kineto_kind kind)
{
	static const char start[] = "ProfilerStep#";
	return kind.kind == SPAN_ANNOTATION && !kind.is_device && name->length >= sizeof start - 1 &&
	       memcmp(name->at, start, sizeof start - 1) == 0;
}

static void kineto_events_add_span(const struct taken *taken, struct kineto_kind kind, int64_t dur_ns)
{
	struct staged_track *track = &taken->import->stage.tracks[taken->track];
	if (kind.is_device)
		note_device(taken, track);
	track->has_steps |= kind.kind == SPAN_STEP;
	if (is_odd_step(&taken->event->fields[KINETO_EVENT_NAME], kind))
		kineto_events_note(taken, REPAIR_STEP);
	if (!track->count && !track->is_loose)
		track->offset = taken->import->offset;
	struct staged_span *span = kineto_stage_span(&taken->import->stage, taken->track);
	span->start_ns = taken->time_ns;
	span->dur_ns = dur_ns;
	take_columns(taken, kind, span);
	if ((kind.kind == SPAN_OP || kind.kind == SPAN_RUNTIME) &&
	    taken->event->fields[KINETO_EVENT_PID].type != VALUE_NONE)
		kineto_writers_note(taken->import, taken->track);
}

/* Kineto writes zeros if it does not know when a device worked. */
static bool is_lost_time(const struct taken *taken, struct kineto_kind kind, int64_t dur_ns)
{
	return kind.is_device && taken->time_ns == 0 && dur_ns == 0;
}

/* Returns true for spans that our own exporter adds for other readers. Older files have no extents: there, such a span
 * tells when the recording started and ended. */
static bool is_added(const struct taken *taken)
{
	return taken->import->has_extents && kineto_is_text(&taken->event->fields[KINETO_EVENT_PID], "Spans");
}

static void kineto_events_take_span(const struct taken *taken)
{
	const struct kineto_event *event = taken->event;
	if (is_added(taken))
		return;
	struct kineto_kind kind = kineto_kind_of(event);
	int64_t dur_ns;
	if (!kineto_nanoseconds(&event->fields[KINETO_EVENT_DUR], &dur_ns) || dur_ns < 0 ||
	    dur_ns > IMPORTED_DURATION_MAX) {
		kineto_events_note(taken,
		                   kind.is_device && span_is_device_work(kind.kind) ? REPAIR_WORK : REPAIR_DURATION);
		dur_ns = STAGED_IS_OPEN;
	}
	if (is_lost_time(taken, kind, dur_ns)) {
		kineto_events_note(taken, REPAIR_LOST_TIME);
		return;
	}
	taken->import->has_python |= kind.kind == SPAN_PYTHON;
	kineto_events_add_span(taken, kind, dur_ns);
}

static void take_begin(const struct taken *taken)
{
	kineto_events_add_span(taken, kineto_kind_of(taken->event), STAGED_IS_OPEN);
	kineto_stage_begin(&taken->import->stage, taken->track, taken->import->offset);
}

static void take_end(const struct taken *taken)
{
	bool is_named = taken->event->fields[KINETO_EVENT_NAME].type != VALUE_NONE;
	uint32_t name = is_named ? kineto_events_name_of(taken, kineto_kind_of(taken->event).kind) : 0;
	kineto_stage_end(&taken->import->stage, taken->track, taken->time_ns, name, taken->import->offset);
}

/* ---- instants ---- */

static uint8_t memory_category(const struct kineto_value *value)
{
	static const struct {
		const char *name;
		uint8_t category;
	} names[] = {
		{"parameter", STEPSCOPE_MEMORY_PARAMETER},   {"gradient", STEPSCOPE_MEMORY_GRADIENT},
		{"activation", STEPSCOPE_MEMORY_ACTIVATION}, {"optimizer_state", STEPSCOPE_MEMORY_OPTIMIZER},
		{"input", STEPSCOPE_MEMORY_INPUT},           {"temporary", STEPSCOPE_MEMORY_TEMPORARY},
		{"buffer", STEPSCOPE_MEMORY_BUFFER},         {"autograd_detail", STEPSCOPE_MEMORY_AUTOGRAD},
		{"other", STEPSCOPE_MEMORY_OTHER},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (kineto_is_text(value, names[i].name))
			return names[i].category;
	return STEPSCOPE_MEMORY_UNKNOWN;
}

static void take_memory(const struct taken *taken)
{
	const struct kineto_value *known = taken->event->known;
	struct kineto_stage *stage = &taken->import->stage;
	int64_t bytes = 0, device = -1, type = 0;
	uint64_t address = 0, number = 0;
	struct memory_event memory = {.time_ns = taken->time_ns, .track = taken->track};
	memory.has_bytes = kineto_integer(&known[KINETO_ARG_BYTES], &bytes) && bytes != INT64_MIN;
	kineto_integer(&known[KINETO_ARG_DEVICE_ID], &device);
	kineto_integer(&known[KINETO_ARG_DEVICE_TYPE], &type);
	memory.device = (int16_t)(type != 0 && device >= 0 && device < INT16_MAX ? device : -1);
	memory.is_free = memory.has_bytes ? bytes < 0 : known[KINETO_ARG_BYTES].type == VALUE_NONE;
	memory.bytes = memory.has_bytes ? (uint64_t)(bytes < 0 ? -bytes : bytes) : 0;
	if (!kineto_unsigned(&known[KINETO_ARG_ADDRESS], &address))
		taken->import->without_address++;
	memory.address = address;
	kineto_unsigned(&known[KINETO_ARG_EVENT_INDEX], &number);
	memory.partner = (uint32_t)number;
	memory.category = memory_category(&known[KINETO_ARG_CATEGORY]);
	kineto_take_totals(taken->import, memory.device, known);
	STAGE_ARRAY_GROW(stage, memory);
	stage->memory[stage->memory_count++] = memory;
	taken->import->has_memory = true;
	taken->import->event_count++;
}

/* Returns true for Kineto's own markers of the start and end of recording, which are not actions of the program. */
static bool is_marker(const struct kineto_value *name)
{
	static const char begin[] = "Iteration Start: ";
	return kineto_is_text(name, "Record Window End") ||
	       (name->length >= sizeof begin - 1 && memcmp(name->at, begin, sizeof begin - 1) == 0);
}

static void take_instant(const struct taken *taken)
{
	const struct kineto_value *name = &taken->event->fields[KINETO_EVENT_NAME];
	struct kineto_stage *stage = &taken->import->stage;
	if (kineto_is_text(name, "[memory]")) {
		take_memory(taken);
		return;
	}
	if (name->type == VALUE_STRING && is_marker(name))
		return;
	STAGE_ARRAY_GROW(stage, marks);
	stage->marks[stage->marks_count++] = (struct staged_mark){taken->time_ns, taken->track,
	                                                          kineto_events_name_of(taken, SPAN_OTHER)};
	taken->import->event_count++;
}

/* Takes half of an asynchronous span; `n` is an instant in one. */
static void take_async(struct taken *taken, char phase)
{
	struct staged_span span = {.start_ns = taken->time_ns, .dur_ns = STAGED_IS_OPEN};
	bool is_end = phase == 'e' || phase == 'F';
	if (phase == 'n') {
		taken->track = kineto_async_track(taken->import, taken->event);
		take_instant(taken);
		return;
	}
	if (is_end)
		span.name = kineto_events_name_of(taken, SPAN_OTHER);
	else
		take_columns(taken, (struct kineto_kind){SPAN_OTHER, false}, &span);
	kineto_take_async(taken->import, taken->event, &span, is_end);
}

/* ---- counters ---- */

static void kineto_events_add_value(const struct taken *taken, const struct kineto_value *key,
                                    const struct kineto_value *value)
{
	struct kineto_import *import = taken->import;
	struct kineto_stage *stage = &import->stage;
	struct staged_value staged = {.time_ns = taken->time_ns,
	                              .track = taken->track,
	                              .is_metric = kineto_is_text(&taken->event->fields[KINETO_EVENT_CAT], "metric")};
	if (!kineto_double(value, &staged.value))
		return;
	buffer_clear(&import->inputs);
	kineto_append_text(&import->inputs, &taken->event->fields[KINETO_EVENT_NAME]);
	if (key->length && !kineto_is_text(key, "value")) {
		if (import->inputs.length)
			buffer_add_byte(&import->inputs, ' ');
		kineto_append_text(&import->inputs, key);
	}
	if (!import->inputs.length)
		return;
	staged.name = intern_add_n(&import->model->strings, import->inputs.data, import->inputs.length);
	STAGE_ARRAY_GROW(stage, values);
	stage->values[stage->values_count++] = staged;
	import->event_count++;
}

static void take_counter(const struct taken *taken)
{
	struct kineto_value args = taken->event->fields[KINETO_EVENT_ARGS];
	struct kineto_walk walk = kineto_walk_begin(&args);
	while (kineto_walk_next(&walk))
		kineto_events_add_value(taken, &walk.key, &walk.value);
}

/* ---- flows ---- */

static bool flow_kind(const struct taken *taken, uint8_t *kind)
{
	static const char *const launches[] = {"ac2g", "async_cpu_to_gpu", "async", "async_gpu"};
	const struct kineto_value *cat = &taken->event->fields[KINETO_EVENT_CAT];
	*kind = kineto_is_text(cat, "fwdbwd") || kineto_is_text(cat, "forward_backward") ? STEPSCOPE_LINK_BACKWARD
	                                                                                 : STEPSCOPE_LINK_OTHER;
	for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
		if (kineto_is_text(cat, launches[i]))
			*kind = STEPSCOPE_LINK_LAUNCH;
	/* launches are taken from correlations, if there are any */
	return *kind != STEPSCOPE_LINK_LAUNCH || !taken->import->has_correlation;
}

static void take_flow(const struct taken *taken, bool is_to)
{
	struct kineto_stage *stage = &taken->import->stage;
	struct staged_flow flow = {.time_ns = taken->time_ns, .track = taken->track, .is_to = is_to};
	if (!flow_kind(taken, &flow.kind) || !kineto_unsigned(&taken->event->fields[KINETO_EVENT_ID], &flow.id))
		return;
	STAGE_ARRAY_GROW(stage, flows);
	stage->flows[stage->flows_count++] = flow;
}

/* ---- any event ---- */

static void take_timed(const struct taken *taken, char phase)
{
	switch (phase) {
	case 'X':
		kineto_events_take_span(taken);
		break;
	case 'B':
		take_begin(taken);
		break;
	case 'E':
		take_end(taken);
		break;
	case 'C':
		take_counter(taken);
		break;
	case 's':
	case 'f':
	case 't':
		take_flow(taken, phase != 's');
		break;
	default:
		take_instant(taken);
		break;
	}
}

void kineto_take_event(void *context, const struct kineto_event *event, uint64_t offset)
{
	struct kineto_import *import = context;
	struct taken taken = {.import = import, .event = event};
	char phase = kineto_events_phase_of(event);
	import->offset = offset;
	if (phase == 'M') {
		kineto_take_metadata(import, event);
		return;
	}
	bool is_known = phase == 'X' || (phase && strchr("BECsftiIRbneSF", phase)); /* nearly all are X */
	if (!is_known) {
		*(phase && strchr("TpNODPVvc(),", phase) ? &import->rare_count : &import->unknown_count) += 1;
		return;
	}
	if (!read_time(&event->fields[KINETO_EVENT_TS], &taken.time_ns)) {
		kineto_events_note(&taken, REPAIR_TIME);
		return;
	}
	if (kineto_is_async(phase)) {
		take_async(&taken, phase);
		return;
	}
	taken.track = kineto_stage_track(&import->stage, kineto_place(import, &event->fields[KINETO_EVENT_PID]),
	                                 kineto_place(import, &event->fields[KINETO_EVENT_TID]));
	take_timed(&taken, phase);
}
