/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_facts.c: names of processes and threads, ranks, devices, and other keys outside the events.
 */
#include "importers/kineto/kineto_import.h"

#include <stdio.h>
#include <string.h>

#define FACT_BYTES ((size_t)4096) /* longer ones are left out */
#define FACTS_MAX 512u

/* ---- metadata events ---- */

/* Returns the track that holds facts of the process itself. */
static uint32_t process_track(struct kineto_import *import, const struct kineto_value *pid)
{
	return kineto_stage_track(&import->stage, kineto_place(import, pid), (struct staged_place){INT64_MIN, 0});
}

/* "GPU 0" */
static bool is_device_label(const struct kineto_value *labels)
{
	return labels->type == VALUE_STRING && labels->length > 4 && memcmp(labels->at, "GPU ", 4) == 0;
}

/* Strips the number from names such as "thread 4242 (pt_main_thread)" and "stream 7 ": it is shown beside the name
 * anyway. */
static struct kineto_value bare_name(const struct kineto_value *name)
{
	struct kineto_value bare = *name;
	const char *bracket = memchr(name->at, '(', name->length);
	bool is_numbered = name->length > 7 &&
	                   (memcmp(name->at, "thread ", 7) == 0 || memcmp(name->at, "stream ", 7) == 0);
	if (is_numbered && bracket && name->at[name->length - 1] == ')') {
		bare.at = bracket + 1;
		bare.length = (uint32_t)(name->at + name->length - 1 - bare.at);
	}
	while (bare.length && bare.at[bare.length - 1] == ' ')
		bare.length--;
	return bare;
}

/* Returns true for rows that our own exporter named after their numbers: they have no name. */
static bool is_number_only(const char *name)
{
	static const char *const words[] = {"thread ", "stream "};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t at = strlen(words[i]);
		if (strncmp(name, words[i], at) != 0 || !name[at])
			continue;
		return !name[at + strspn(name + at, "0123456789-")];
	}
	return false;
}

static void take_track_facts(struct staged_track *track, const struct kineto_event *event)
{
	for (uint32_t i = 0; i < event->arg_count; i++) {
		const struct kineto_arg *arg = &event->args[i];
		track->is_other |= kineto_is_text(&arg->key, "stepscope kind") && kineto_is_text(&arg->value, "other");
		track->has_own_tid |= kineto_is_text(&arg->key, "stepscope tid") &&
		                      kineto_integer(&arg->value, &track->own_tid);
	}
}

/* Takes the facts about missing memory events of the process. */
static void take_memory_losses(struct kineto_import *import, struct staged_track *track,
                               const struct kineto_event *event, int64_t time_ns)
{
	int64_t since_ns = -1;
	bool has_any = false;
	for (uint32_t i = 0; i < event->arg_count; i++) {
		const struct kineto_arg *arg = &event->args[i];
		if (kineto_is_text(&arg->key, "stepscope lost_memory_ns"))
			kineto_integer(&arg->value, &since_ns);
		if (kineto_is_text(&arg->key, "stepscope lost_memory")) {
			track->has_lost_memory = has_any = true;
			track->lost_memory = kineto_intern(import, &arg->value);
		}
		if (kineto_is_text(&arg->key, "stepscope removed_memory"))
			track->removed_memory = kineto_intern(import, &arg->value);
	}
	bool is_known = since_ns >= 0 && since_ns <= IMPORTED_DURATION_MAX && time_ns <= IMPORTED_TIME_MAX &&
	                time_ns >= IMPORTED_TIME_MIN;
	if (has_any)
		track->lost_memory_ns = is_known ? time_ns + since_ns : INT64_MIN;
}

/* Takes facts of the process, also the number of its events and its extent, relative to the event's own time. */
static void take_process_facts(struct kineto_import *import, struct staged_track *track,
                               const struct kineto_event *event, int64_t time_ns)
{
	int64_t begin_ns = -1, length_ns = -1;
	take_memory_losses(import, track, event, time_ns);
	for (uint32_t i = 0; i < event->arg_count; i++) {
		const struct kineto_arg *arg = &event->args[i];
		if (kineto_is_text(&arg->key, "stepscope begin_ns"))
			kineto_integer(&arg->value, &begin_ns);
		if (kineto_is_text(&arg->key, "stepscope length_ns"))
			kineto_integer(&arg->value, &length_ns);
		if (kineto_is_text(&arg->key, "stepscope events"))
			track->has_events = import->has_counts = kineto_unsigned(&arg->value, &track->events);
		if (kineto_is_text(&arg->key, "stepscope owner"))
			track->has_owner = kineto_integer(&arg->value, &track->owner_pid);
		if (kineto_is_text(&arg->key, "stepscope pid"))
			track->has_own_pid = kineto_integer(&arg->value, &track->own_pid);
	}
	if (begin_ns < 0 || length_ns < 0 || length_ns > IMPORTED_DURATION_MAX ||
	    begin_ns > IMPORTED_DURATION_MAX - length_ns || time_ns > IMPORTED_TIME_MAX || time_ns < IMPORTED_TIME_MIN)
		return;
	track->has_extent = import->has_extents = true;
	track->begin_ns = time_ns + begin_ns;
	track->end_ns = track->begin_ns + length_ns;
}

/* Keeps the latest name by time. Of several at one time, keeps one that does not depend on the place in the file. */
static void take_name(struct kineto_import *import, struct staged_track *track, const struct kineto_value *name,
                      int64_t time_ns)
{
	struct kineto_value bare = bare_name(name);
	uint32_t text = kineto_intern(import, &bare);
	bool is_last = !track->name || time_ns > track->name_ns ||
	               (time_ns == track->name_ns &&
	                strcmp(model_text(import->model, text), model_text(import->model, track->name)) > 0);
	if (!is_last)
		return;
	track->name = text;
	track->name_ns = time_ns;
}

static void take_sort(struct staged_track *track, const struct kineto_value *index, int64_t time_ns)
{
	int64_t sort;
	bool is_last = !track->has_sort || time_ns >= track->sort_ns;
	if (!is_last || !kineto_integer(index, &sort) ||
	    (track->has_sort && time_ns == track->sort_ns && sort < track->sort))
		return;
	track->has_sort = true;
	track->sort = sort;
	track->sort_ns = time_ns;
}

void kineto_take_metadata(struct kineto_import *import, const struct kineto_event *event)
{
	const struct kineto_value *name = &event->fields[KINETO_EVENT_NAME], *known = event->known;
	const struct kineto_value *pid = &event->fields[KINETO_EVENT_PID];
	int64_t time_ns;
	bool has_time = kineto_nanoseconds(&event->fields[KINETO_EVENT_TS], &time_ns);
	bool is_thread = name->type == VALUE_STRING && name->length > 7 && memcmp(name->at, "thread_", 7) == 0;
	uint32_t number = is_thread ? kineto_stage_track(&import->stage, kineto_place(import, pid),
	                                                 kineto_place(import, &event->fields[KINETO_EVENT_TID]))
	                            : process_track(import, pid);
	struct staged_track *track = &import->stage.tracks[number];
	time_ns = has_time ? time_ns : 0;
	if (is_thread)
		take_track_facts(track, event);
	else if (has_time)
		take_process_facts(import, track, event, time_ns);
	if (kineto_is_text(name, "process_name") || kineto_is_text(name, "thread_name")) {
		if (known[KINETO_ARG_NAME].type == VALUE_STRING)
			take_name(import, track, &known[KINETO_ARG_NAME], time_ns);
	} else if (kineto_is_text(name, "process_labels")) {
		track->is_device |= is_device_label(&known[KINETO_ARG_LABELS]);
	} else if (kineto_is_text(name, "process_sort_index") || kineto_is_text(name, "thread_sort_index")) {
		take_sort(track, &known[KINETO_ARG_SORT_INDEX], time_ns);
	}
}

/* ---- keys of the document ---- */

static const char *kineto_facts_text_of(struct kineto_import *import, const struct kineto_value *value)
{
	struct kineto_value copy = *value;
	buffer_clear(&import->text);
	if (value->type != VALUE_STRING)
		copy.flags = TEXT_IS_NOT_ASCII;
	kineto_append_text(&import->text, &copy);
	return import->text.data ? import->text.data : "";
}

#define METADATA "trace.metadata."

/* Adds "PREFIX.KEY", with the value as it is written in the file. */
static void kineto_facts_add_fact(struct kineto_import *import, enum staged_fact_source source, const char *prefix,
                                  const struct kineto_value *key, const struct kineto_value *value)
{
	char name[192];
	struct kineto_stage *stage = &import->stage;
	if (value->length > FACT_BYTES || stage->facts_count >= FACTS_MAX ||
	    (import->is_ours && source == FACT_FOR_READERS))
		return;
	snprintf(name, sizeof name, "%s%.*s", prefix, (int)(key->length < 128 ? key->length : 128), key->at);
	struct staged_fact fact = {intern_add(&import->model->strings, name),
	                           intern_add(&import->model->strings, kineto_facts_text_of(import, value)),
	                           (uint8_t)source};
	STAGE_ARRAY_GROW(stage, facts);
	stage->facts[stage->facts_count++] = fact;
}

static void take_distributed(struct kineto_import *import, const struct kineto_value *object)
{
	struct kineto_walk walk = kineto_walk_begin(object);
	int64_t number;
	bool is_alone = false; /* our own exporter gives every process a rank, because readers expect one */
	while (kineto_walk_next(&walk)) {
		is_alone |= kineto_is_text(&walk.key, "backend") && kineto_is_text(&walk.value, "none");
		bool is_number = kineto_integer(&walk.value, &number) && number >= 0 && number <= INT32_MAX;
		if (is_number && kineto_is_text(&walk.key, "rank")) {
			import->writers.other_ranks += import->has_rank && import->rank != number;
			import->rank = number;
			import->has_rank = true;
		} else if (is_number && kineto_is_text(&walk.key, "world_size")) {
			import->world_size = number;
		}
		kineto_facts_add_fact(import, FACT_FOR_READERS, "distributed.", &walk.key, &walk.value);
	}
	if (is_alone && import->world_size <= 1)
		import->has_rank = false;
}

/* Takes the properties of each device, as "device.0.numSms". */
static void take_devices(struct kineto_import *import, const struct kineto_value *list)
{
	struct kineto_walk devices = kineto_walk_begin(list);
	for (int i = 0; i < 64 && kineto_walk_next(&devices); i++) {
		struct kineto_walk walk = kineto_walk_begin(&devices.value);
		int64_t id = i;
		char prefix[32];
		while (kineto_walk_next(&walk))
			if (kineto_is_text(&walk.key, "id"))
				kineto_integer(&walk.value, &id);
		snprintf(prefix, sizeof prefix, "device.%lld.", (long long)id);
		for (walk = kineto_walk_begin(&devices.value); kineto_walk_next(&walk);)
			if (!kineto_is_text(&walk.key, "id"))
				kineto_facts_add_fact(import, FACT_FOR_READERS, prefix, &walk.key, &walk.value);
	}
}

static void take_metadata(struct kineto_import *import, const struct kineto_value *object)
{
	struct kineto_walk walk = kineto_walk_begin(object);
	while (kineto_walk_next(&walk))
		if (walk.value.type == VALUE_STRING || walk.value.type == VALUE_NUMBER)
			kineto_facts_add_fact(import, FACT_OF_METADATA, METADATA, &walk.key, &walk.value);
}

void kineto_take_fact(void *context, const struct kineto_value *key, const struct kineto_value *value)
{
	struct kineto_import *import = context;
	if (kineto_is_text(key, "baseTimeNanoseconds")) {
		import->has_base = kineto_integer(value, &import->base_ns) && import->base_ns <= IMPORTED_BASE_MAX &&
		                   import->base_ns >= 0;
	} else if (kineto_is_text(key, "distributedInfo")) {
		take_distributed(import, value);
	} else if (kineto_is_text(key, "deviceProperties") || kineto_is_text(key, "computeProperties")) {
		take_devices(import, value);
	} else if (kineto_is_text(key, "metadata")) {
		take_metadata(import, value);
	} else if (kineto_is_text(key, "host_name") && value->type == VALUE_STRING) {
		import->host = intern_add(&import->model->strings, kineto_facts_text_of(import, value));
	} else if (!kineto_is_text(key, "traceEvents")) {
		import->is_ours |= kineto_is_text(key, "stepscope_version");
		import->has_shapes |= kineto_is_text(key, "record_shapes") && value->at[0] == '1';
		import->has_memory |= kineto_is_text(key, "profile_memory") && value->at[0] == '1';
		if (!kineto_is_text(key, "INFO") && !kineto_is_text(key, "ERROR"))
			kineto_facts_add_fact(import, FACT_OF_FILE, "trace.", key, value);
	}
}

/* Other programs sort the keys of a document, or put its events first. So the key that names the writer may come after
 * values that depend on it. */
void kineto_know_own(struct kineto_import *import)
{
	struct kineto_stage *stage = &import->stage;
	struct intern *strings = &import->model->strings;
	uint32_t kept = 0;
	if (!import->is_ours)
		return;
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		if (is_number_only(model_text(import->model, stage->tracks[i].name)))
			stage->tracks[i].name = 0;
	for (uint32_t i = 0; i < stage->facts_count; i++) {
		struct staged_fact fact = stage->facts[i];
		if (fact.source == FACT_FOR_READERS)
			continue;
		if (fact.source == FACT_OF_METADATA) {
			buffer_clear(&import->text);
			buffer_add_text(&import->text, model_text(import->model, fact.key) + strlen(METADATA));
			fact.key = intern_add(strings, import->text.data);
		}
		stage->facts[kept++] = fact;
	}
	stage->facts_count = kept;
}
