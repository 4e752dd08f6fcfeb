/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.c: see recording.h.
 */
#include "recording.h"

#include "format/fold.h"
#include "format/segment.h"
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SYMBOLS (1u << 18)
#define IS_SEQ 2

struct reading {
	struct recording *recording;
	struct recorded_process *process;
	uint32_t pid, session;
	uint8_t *has_name; /* by symbol; IS_SEQ: its name is "seq" (two threads at once may give it two numbers) */
	bool is_coarse;
};

static void *grow(void *list, unsigned *capacity, unsigned count, size_t element)
{
	if (count < *capacity)
		return list;
	*capacity = *capacity ? *capacity * 2 : 64;
	list = realloc(list, *capacity * element);
	CHECK(list);
	memset((char *)list + count * element, 0, (*capacity - count) * element);
	return list;
}

static struct recorded_stream *stream_at(struct reading *reading, uint32_t stream)
{
	struct recording *recording = reading->recording;

	for (unsigned i = recording->stream_count; i-- > 0;) {
		struct recorded_stream *here = &recording->streams[i];
		if (here->stream == stream && here->pid == reading->pid && here->session == reading->session)
			return here;
	}
	recording->streams = grow(recording->streams, &recording->stream_capacity, recording->stream_count,
	                          sizeof(*recording->streams));
	struct recorded_stream *fresh = &recording->streams[recording->stream_count++];
	fresh->pid = reading->pid;
	fresh->session = reading->session;
	fresh->stream = stream;
	return fresh;
}

static bool on_header(void *context, const struct stepscope_segment_header *header)
{
	struct reading *reading = context;
	struct recording *recording = reading->recording;

	reading->pid = header->pid;
	reading->session = header->session;
	reading->is_coarse = header->flags & STEPSCOPE_SEGMENT_COARSE;
	for (unsigned i = 0; i < recording->process_count; i++)
		if (recording->processes[i].pid == header->pid && recording->processes[i].session == header->session) {
			reading->process = &recording->processes[i];
			reading->process->segments += !reading->is_coarse;
			return true;
		}
	recording->processes = grow(recording->processes, &recording->process_capacity, recording->process_count,
	                            sizeof(*recording->processes));
	reading->process = &recording->processes[recording->process_count++];
	reading->process->pid = header->pid;
	reading->process->session = header->session;
	reading->process->parent = header->parent_pid;
	reading->process->role = header->role;
	reading->process->clock = header->clock;
	reading->process->segments = !reading->is_coarse;
	return true;
}

static bool on_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct reading *reading = context;

	CHECK(id < MAX_SYMBOLS && id > 0);
	bool is_seq = kind == STEPSCOPE_SYMBOL_COUNTER && length == 3 && memcmp(text, "seq", 3) == 0;
	reading->has_name[id] = is_seq ? IS_SEQ : 1;
	if (kind == STEPSCOPE_SYMBOL_INPUTS)
		*(reading->is_coarse ? &reading->recording->coarse_inputs : &reading->recording->inputs) += 1;
	return true;
}

static bool on_stream(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name)
{
	struct reading *reading = context;
	struct recorded_stream *here;

	if (reading->is_coarse)
		return true;
	here = stream_at(reading, stream);
	here->kind = info->kind;
	here->tid = info->tid;
	here->flags |= info->flags;
	snprintf(here->name, sizeof(here->name), "%s", name);
	return true;
}

static bool on_clock(void *context, const struct stepscope_anchor *anchor)
{
	struct reading *reading = context;

	reading->process->anchors++;
	return true;
}

static bool on_drops(void *context, uint32_t stream, const struct stepscope_drops *drops)
{
	struct reading *reading = context;

	if (reading->is_coarse)
		return true;
	memcpy(stream ? stream_at(reading, stream)->dropped : reading->process->dropped, drops->by_type,
	       sizeof(drops->by_type));
	return true;
}

static bool on_end(void *context, const char *reason)
{
	struct reading *reading = context;

	reading->process->is_closed = true;
	return true;
}

static void check_sequence(struct recorded_stream *here, const struct segment_event *event)
{
	double value;

	here->seq_values++;
	memcpy(&value, event->payload, sizeof(value));
	if (here->is_after_gap ? (uint64_t)value <= here->seq : (uint64_t)value != here->seq + 1)
		here->broken++;
	here->seq = (uint64_t)value;
	here->is_after_gap = false;
}

static void check_nesting(struct recorded_stream *here, const struct segment_event *event)
{
	if (event->type == STEPSCOPE_EVENT_BEGIN)
		here->depth++;
	else if (event->type == STEPSCOPE_EVENT_END && here->depth == 0 && here->gaps == 0)
		here->endings++;
	else if (event->type == STEPSCOPE_EVENT_END)
		here->depth--;
	if (here->depth > here->deepest)
		here->deepest = here->depth;
}

static void check_use(struct recorded_stream *here, const struct segment_event *event)
{
	bool has_wait = event->payload[1] != STEPSCOPE_USE_UNKNOWN;

	here->use.count++;
	here->use.of_process += event->payload_count > 2;
	here->use.without_wait += !has_wait;
	here->use.disorder += event->payload[0] < here->use.cpu_ns ||
	                      (has_wait && event->payload[1] < here->use.wait_ns);
	here->use.cpu_ns = event->payload[0];
	if (has_wait)
		here->use.wait_ns = event->payload[1];
}

static void tell(struct recorded_stream *here, const struct segment_event *event)
{
	size_t length = strlen(here->story), room = sizeof(here->story) - length;
	if (event->type == STEPSCOPE_EVENT_BEGIN)
		snprintf(here->story + length, room, "(");
	else if (event->type == STEPSCOPE_EVENT_END && event->id != STEPSCOPE_END_BENEATH)
		snprintf(here->story + length, room, ")");
	else if (event->type == STEPSCOPE_EVENT_END)
		snprintf(here->story + length, room, "%llu%s", (unsigned long long)event->payload[0],
		         event->payload_count > 1 ? "t" : "");
}

static void take_event(struct reading *reading, struct recorded_stream *here, const struct segment_event *event)
{
	bool is_named = event->type == STEPSCOPE_EVENT_BEGIN || event->type == STEPSCOPE_EVENT_SWITCH ||
	                event->type == STEPSCOPE_EVENT_MARK || event->type == STEPSCOPE_EVENT_VALUE;

	here->by_type[event->type]++;
	if (is_named && (event->id >= MAX_SYMBOLS || !reading->has_name[event->id]))
		reading->recording->unnamed++;
	here->disorder += event->tick < here->last_tick;
	here->last_tick = event->tick;
	check_nesting(here, event);
	tell(here, event);
	if (event->type == STEPSCOPE_EVENT_VALUE && event->id < MAX_SYMBOLS && reading->has_name[event->id] == IS_SEQ)
		check_sequence(here, event);
	if (event->type == STEPSCOPE_EVENT_STEP && event->id == STEPSCOPE_STEP_BEGIN)
		reading->process->last_step = event->payload[0];
	if (event->type == STEPSCOPE_EVENT_STEP && event->id == STEPSCOPE_STEP_USE)
		check_use(here, event);
	if (event->type == STEPSCOPE_EVENT_GAP) {
		here->gaps++;
		here->in_gaps += event->payload[0];
		here->is_after_gap = true;
		here->depth += (int32_t)(event->payload[1] >> 32);
	}
}

static bool on_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count)
{
	struct reading *reading = context;
	struct recorded_stream *here;

	if (reading->is_coarse) {
		for (uint32_t i = 0; i < count; i++)
			reading->recording->coarse[events[i].type]++;
		return true;
	}
	here = stream_at(reading, block->stream);
	if (here->next_word == 0 && block->first_word != 0) {
		here->is_late = true;
		here->is_after_gap = true;
		here->gaps++;
	} else if (block->first_word != here->next_word) {
		here->holes++;
	}
	here->next_word = block->first_word + block->words;
	for (uint32_t i = 0; i < count; i++)
		take_event(reading, here, &events[i]);
	return true;
}

static void read_file(struct recording *recording, const char *path)
{
	struct reading reading = {.recording = recording};
	const struct segment_visitor visitor = {
		.context = &reading,
		.header = on_header,
		.symbol = on_symbol,
		.stream = on_stream,
		.clock = on_clock,
		.drops = on_drops,
		.end = on_end,
		.events = on_events,
	};
	struct segment_stats stats;
	struct error error = {0};
	struct stat info;

	if (stat(path, &info) == 0 && info.st_size == 0)
		return; /* killed between creating the file and writing its header: its events are in the pool */
	reading.has_name = calloc(1, MAX_SYMBOLS);
	CHECK(reading.has_name);
	if (segment_read(path, &visitor, &stats, &error) != STATUS_OK)
		harness_fail(__FILE__, __LINE__, "%s", error.text);
	free(reading.has_name);
	recording->files++;
	recording->coarse_files += reading.is_coarse;
	recording->rescued += stats.rescued_events;
	recording->damaged += stats.damaged_places;
	recording->torn += stats.torn_bytes;
	if (reading.is_coarse)
		recording->coarse_bytes += stats.file_bytes;
	else
		recording->bytes += stats.file_bytes;
}

static int is_segment(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');
	return dot && strcmp(dot, ".ssr") == 0;
}

/* <host>.<pid>.<start>.<n>.ssr: by n as a number. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

struct recording *recording_read(const char *directory)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	struct dirent **entries;
	char path[4096];
	int count;

	CHECK(recording);
	fold_stale_pools(directory, NULL, NULL);
	count = scandir(directory, &entries, is_segment, by_number);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		read_file(recording, path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return recording;
}

void recording_free(struct recording *recording)
{
	free(recording->streams);
	free(recording->processes);
	free(recording);
}

uint64_t recording_sum(const struct recording *recording, enum stepscope_event type)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < recording->stream_count; i++)
		sum += recording->streams[i].by_type[type];
	return sum;
}

uint64_t recording_drops(const struct recording *recording, enum stepscope_event type)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < recording->stream_count; i++)
		sum += recording->streams[i].dropped[type];
	for (unsigned i = 0; i < recording->process_count; i++)
		sum += recording->processes[i].dropped[type];
	return sum;
}

const struct recorded_stream *recording_stream(const struct recording *recording, uint32_t pid, const char *name)
{
	for (unsigned i = 0; i < recording->stream_count; i++)
		if (strcmp(recording->streams[i].name, name) == 0 && (!pid || recording->streams[i].pid == pid))
			return &recording->streams[i];
	return NULL;
}

const struct recorded_process *recording_process(const struct recording *recording, uint32_t pid)
{
	for (unsigned i = 0; i < recording->process_count; i++)
		if (recording->processes[i].pid == pid)
			return &recording->processes[i];
	return NULL;
}

/* What came while another thread took long to start the recorder is counted for the process, and in no stream. */
static void check_endings(const struct recording *recording)
{
	for (unsigned i = 0; i < recording->process_count; i++) {
		const struct recorded_process *process = &recording->processes[i];
		uint64_t endings = 0, dropped = process->dropped[STEPSCOPE_EVENT_BEGIN];

		for (unsigned s = 0; s < recording->stream_count; s++)
			endings += recording->streams[s].pid == process->pid ? recording->streams[s].endings : 0;
		if (endings > dropped)
			harness_fail(__FILE__, __LINE__, "%u: %llu ends without a beginning, %llu beginnings dropped",
			             process->pid, (unsigned long long)endings, (unsigned long long)dropped);
	}
}

void recording_check_whole(const struct recording *recording, bool is_rotated)
{
	check_endings(recording);
	for (unsigned i = 0; i < recording->stream_count; i++) {
		const struct recorded_stream *here = &recording->streams[i];
		if (here->disorder || here->holes || here->broken || (here->is_late && !is_rotated))
			harness_fail(
				__FILE__, __LINE__,
				"stream %u '%s' of %u: %llu times backwards, %llu holes, %llu broken sequences, %llu gaps",
				here->stream, here->name, here->pid, (unsigned long long)here->disorder,
				(unsigned long long)here->holes, (unsigned long long)here->broken,
				(unsigned long long)here->gaps);
	}
	CHECK_EQUAL(recording->damaged, 0);
	CHECK_EQUAL(recording->torn, 0);
	CHECK_EQUAL(recording->unnamed, 0);
}
