/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer 'recording': a run directory or one segment file. The first pass reads headers, clocks and positions of all
 * files; then every process's segments are read in order and their events go to the model.
 */
#include "importers/recording/recording.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/text.h"
#include "format/fold.h"
#include "format/own_facts.h"
#include "importers/find_importer.h"
#include "importers/importer.h"
#include "importers/recording/converted.h"
#include "importers/recording/recording_links.h"

#define MAX_FILES 1000000u

/* ---- files ---- */

/* "<host>.<pid>.<start time>.<n>.ssr"; a host's name may have dots, so from the end. Other names have no host. */
static char *host_of_name(const char *name)
{
	const char *end = name + strlen(name) - strlen(".ssr");
	if (end < name || strcmp(end, ".ssr") != 0)
		return strdup("");
	for (int numbers = 0; numbers < 3; numbers++) {
		const char *dot = end;
		while (dot > name && dot[-1] >= '0' && dot[-1] <= '9')
			dot--;
		if (dot == end || dot == name || dot[-1] != '.')
			return strdup("");
		end = dot - 1;
	}
	return strndup(name, (size_t)(end - name));
}

static struct recorded_file *add_file(struct recording *recording, const char *name)
{
	MEMORY_GROW(recording->files, recording->file_count, recording->file_capacity, 16);
	struct recorded_file *file = &recording->files[recording->file_count++];
	const char *base = strrchr(name, '/');
	*file = (struct recorded_file){.name = arena_dup(&recording->model->arena, base ? base + 1 : name)};
	file->host = host_of_name(file->name);
	return file;
}

struct directory_count {
	uint64_t segments, folders, others;
};

static char *path_in(const char *directory, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		memory_exhausted(strlen(directory));
	return path;
}

static bool is_folder_at(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Counts what is in the directory, and adds the segments of the run. */
static enum status scan_directory(const char *path, struct recording *recording, struct directory_count *count,
                                  struct error *err)
{
	*count = (struct directory_count){0};
	DIR *directory = opendir(path);
	if (!directory)
		return error_errno(err, STATUS_INPUT, errno, "cannot read the directory '%s'", path);
	const struct dirent *entry;
	while ((entry = readdir(directory)) && count->segments < MAX_FILES) {
		if (entry->d_name[0] == '.')
			continue;
		char *name = path_in(path, entry->d_name);
		bool is_recording = text_ends_with(entry->d_name, ".ssr"), is_folder = is_folder_at(name);
		bool is_converted = is_recording && converted_is_file(name), is_segment = is_recording && !is_converted;
		count->segments += is_segment;
		count->folders += !is_segment && is_folder;
		count->others += !is_segment && !is_folder;
		if (is_converted)
			model_add_ledger(
				recording->model, LEDGER_OTHER, MODEL_NONE, entry->d_name, 1,
				"a recording that 'stepscope convert' made is no part of the run: give it by itself");
		if (is_segment)
			add_file(recording, entry->d_name)->path = name;
		else
			free(name);
	}
	closedir(directory);
	return STATUS_OK;
}

/* The first file in it that is read by itself. */
static bool find_other(const char *path, char *name, size_t size, const char **kind)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, alphasort);
	bool is_found = false;
	for (int i = 0; i < count; i++) {
		char file[PATH_MAX];
		struct stat info;
		if (!is_found && snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) < (int)sizeof file &&
		    stat(file, &info) == 0 && S_ISREG(info.st_mode) && (*kind = other_kind_of_file(file))) {
			snprintf(name, size, "%s", entries[i]->d_name);
			is_found = true;
		}
		free(entries[i]);
	}
	free(entries);
	return is_found;
}

static enum status nothing_found(const char *path, const struct directory_count *count, struct error *err)
{
	char name[256], folders[64] = "";
	const char *kind;
	if (count->folders)
		snprintf(folders, sizeof folders, " and %" PRIu64 " folders, which are not looked into",
		         count->folders);
	error_set(err, STATUS_INPUT,
	          "no recording in '%s': looked for *.ssr and traces of torch.profiler, found %" PRIu64
	          " other files%s",
	          path, count->others, folders);
	if (count->others && find_other(path, name, sizeof name, &kind))
		error_hint(err, "'%s' is %s: give that file itself", name, kind);
	else if (count->folders)
		error_hint(err, "give the folder of one run, or the traces of several ranks one by one: "
		                "'stepscope report DIR/*/*.json'");
	else
		error_hint(err, "'stepscope run -- PROGRAM' makes a recording; its run directory is what to give here");
	return STATUS_INPUT;
}

enum status recording_read(struct recorded_file *file, const struct segment_visitor *visitor, struct error *err)
{
	if (file->path)
		return segment_read(file->path, visitor, &file->stats, err);
	return segment_read_memory(file->data, file->bytes, file->name, visitor, &file->stats, err);
}

/* ---- first pass ---- */

static uint32_t find_process(struct recording *recording, const struct recorded_file *file)
{
	const struct stepscope_segment_header *header = &file->header;
	for (uint32_t i = recording->process_count; i-- > 0;) {
		const struct recorded_process *known = recording->processes[i];
		if (known->header.pid == header->pid && known->header.start_time == header->start_time &&
		    known->header.pid_namespace == header->pid_namespace &&
		    memcmp(known->header.boot_id, header->boot_id, 16) == 0 && strcmp(known->host, file->host) == 0)
			return i;
	}
	recording->processes = memory_resize(recording->processes, recording->process_count + 1,
	                                     sizeof(struct recorded_process *));
	struct recorded_process *process = memory_resize(NULL, 1, sizeof *process);
	*process = (struct recorded_process){.header = *header};
	process->host = arena_dup(&recording->model->arena, file->host);
	recording->processes[recording->process_count] = process;
	return recording->process_count++;
}

static uint32_t find_session(struct recording *recording, uint32_t process,
                             const struct stepscope_segment_header *header)
{
	for (uint32_t i = recording->session_count; i-- > 0;)
		if (recording->sessions[i]->process == process && recording->sessions[i]->number == header->session)
			return i;
	recording->sessions = memory_resize(recording->sessions, recording->session_count + 1,
	                                    sizeof(struct session *));
	struct session *session = memory_resize(NULL, 1, sizeof *session);
	*session = (struct session){.number = header->session, .process = process, .first_segment = header->segment};
	session->oldest_segment = UINT32_MAX;
	recording->sessions[recording->session_count] = session;
	return recording->session_count++;
}

static struct clock_line *line_of(struct recording *recording, uint32_t clock)
{
	struct recorded_process *process = recording->process;
	const struct stepscope_segment_header *header = &recording->file->header;
	struct clock_line *line = clock_set_line(&recording->clocks, header->boot_id, clock,
	                                         recording->session->process,
	                                         clock == header->clock ? header->tick_hz : 0);
	for (uint32_t i = 0; i < process->line_count; i++)
		if (process->lines[i] == line)
			return line;
	if (process->line_count == sizeof process->lines / sizeof(struct clock_line *))
		return process->lines[0];
	process->lines[process->line_count++] = line;
	return line;
}

static bool first_header(void *context, const struct stepscope_segment_header *header)
{
	struct recording *recording = context;
	struct recorded_file *file = recording->file;
	file->header = *header;
	uint32_t process = find_process(recording, file);
	file->session = find_session(recording, process, header);
	recording->process = recording->processes[process];
	struct session *session = recording->session = recording->sessions[file->session];
	if (header->segment < session->first_segment)
		session->first_segment = header->segment;
	if (header->flags & STEPSCOPE_SEGMENT_COARSE) {
		session->has_coarse = true;
	} else if (header->segment <= session->oldest_segment) {
		session->oldest_segment = header->segment;
		session->oldest_tick = header->first_tick;
	}
	line_of(recording, header->clock);
	return true;
}

/* What it said of itself later than in its header. */
static bool first_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct recorded_process *process = ((struct recording *)context)->process;
	struct own_facts facts = {0};
	(void)id;
	if (kind != STEPSCOPE_SYMBOL_META)
		return true;
	own_facts_add(&facts, process->header.pid, text, length);
	own_facts_apply(&facts, &process->header);
	return true;
}

static bool first_stream(void *context, uint32_t number, const struct stepscope_stream_info *info, const char *name)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, number);
	if (!stream)
		return true;
	uint32_t flags = stream->info.flags | info->flags;
	stream->info = *info;
	stream->info.flags = flags;
	if (*name && recording->session->text_bytes < RECORDING_MAX_TEXT) {
		recording->session->text_bytes += strlen(name);
		stream->name = intern_add(&recording->model->strings, name);
	}
	return true;
}

static bool first_clock(void *context, const struct stepscope_anchor *anchor)
{
	struct recording *recording = context;
	struct recorded_process *process = recording->process;
	bool is_known = anchor->clock >= STEPSCOPE_CLOCK_TSC && anchor->clock <= STEPSCOPE_CLOCK_NANOSECONDS;
	clock_line_add(line_of(recording, is_known ? anchor->clock : recording->file->header.clock), anchor);
	if (anchor->raw_ns < 0 || anchor->raw_ns > INT64_MAX / 4)
		return true;
	if (!process->has_anchors || anchor->raw_ns < process->first_raw_ns)
		process->first_raw_ns = anchor->raw_ns;
	if (!process->has_anchors || anchor->raw_ns > process->last_raw_ns)
		process->last_raw_ns = anchor->raw_ns;
	process->has_anchors = true;
	return true;
}

static bool first_drops(void *context, uint32_t number, const struct stepscope_drops *drops)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, number);
	if (!stream)
		return true;
	/* totals only grow; files are not in order yet */
	for (int type = 0; type < STEPSCOPE_EVENT_TYPES; type++)
		if (drops->by_type[type] > stream->drops.by_type[type])
			stream->drops.by_type[type] = drops->by_type[type];
	stream->has_drops = true;
	return true;
}

static bool first_end(void *context, const char *reason)
{
	struct recording *recording = context;
	recording->file->end_reason = arena_dup(&recording->model->arena, reason);
	return true;
}

static bool first_events(void *context, const struct stepscope_block *block)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, block->stream);
	if (!stream || recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE)
		return false;
	if (!stream->is_in_segments || block->first_word < stream->first_word) {
		stream->first_word = block->first_word;
		stream->first_tick = block->first_tick;
	}
	stream->is_in_segments = true;
	recording->session->has_removed |= stream->first_word > 0;
	return false;
}

/* Files that are no recordings at all are left out; only when none is usable the first one's error is passed on. */
static enum status first_pass(struct recording *recording, struct error *err)
{
	const struct segment_visitor visitor = {
		.context = recording,
		.header = first_header,
		.symbol = first_symbol,
		.stream = first_stream,
		.clock = first_clock,
		.drops = first_drops,
		.end = first_end,
		.wants_events = first_events,
	};
	struct error first_error = {.status = STATUS_OK};
	uint32_t usable = 0;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		struct error problem = {.status = STATUS_OK};
		recording->file = file;
		file->is_usable = recording_read(file, &visitor, &problem) == STATUS_OK;
		usable += file->is_usable;
		if (file->is_usable)
			continue;
		if (first_error.status == STATUS_OK)
			first_error = problem;
		model_add_ledger(recording->model, LEDGER_DAMAGED, MODEL_NONE, file->name, file->stats.file_bytes,
		                 "bytes are in a file that is not a readable recording; it was left out");
	}
	if (usable)
		return STATUS_OK;
	if (err)
		*err = first_error;
	return first_error.status == STATUS_OK ? error_set(err, STATUS_INPUT, "there is no recording to read")
	                                       : first_error.status;
}

/* ---- order ---- */

static int role_order(uint32_t role)
{
	static const uint8_t places[] = {[STEPSCOPE_ROLE_TRAINER] = 0,
	                                 [STEPSCOPE_ROLE_IMPORTED] = 1,
	                                 [STEPSCOPE_ROLE_WORKER] = 2,
	                                 [STEPSCOPE_ROLE_LAUNCHER] = 3,
	                                 [STEPSCOPE_ROLE_HOST] = 4};
	return role < sizeof places ? places[role] : 5;
}

static int order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Trainers by rank come first, so that numbers of processes mean something to people. */
static int compare_processes(const void *left, const void *right)
{
	const struct recorded_process *a = *(struct recorded_process *const *)left,
				      *b = *(struct recorded_process *const *)right;
	int result = order(role_order(a->header.role), role_order(b->header.role));
	if (!result)
		result = order((uint32_t)a->header.rank, (uint32_t)b->header.rank); /* -1 is last */
	if (!result)
		result = strcmp(a->host, b->host);
	if (!result)
		result = order(a->header.pid, b->header.pid);
	return result ? result
	              : (a->header.start_time > b->header.start_time) - (a->header.start_time < b->header.start_time);
}

static int compare_files(const void *left, const void *right, void *context)
{
	const struct recorded_file *a = left, *b = right;
	const struct recording *recording = context;
	if (a->is_usable != b->is_usable)
		return a->is_usable ? -1 : 1;
	const struct session *s = recording->sessions[a->session], *t = recording->sessions[b->session];
	int result = a->is_usable ? order(recording->processes[s->process]->process,
	                                  recording->processes[t->process]->process)
	                          : 0;
	if (!result && a->is_usable)
		result = order(s->first_segment, t->first_segment);
	if (!result && a->is_usable)
		result = order(a->session, b->session);
	if (!result)
		result = order(!(a->header.flags & STEPSCOPE_SEGMENT_COARSE),
		               !(b->header.flags & STEPSCOPE_SEGMENT_COARSE));
	if (!result)
		result = order(a->header.segment, b->header.segment);
	return result ? result : strcmp(a->name, b->name);
}

/* As the kernel writes it: 36 characters. */
static uint32_t machine_of(struct model *model, const uint8_t boot_id[16])
{
	static const uint8_t none[16];
	char text[40];
	size_t length = 0;
	if (!memcmp(boot_id, none, sizeof(none)))
		return 0;
	for (int i = 0; i < 16; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%02x",
		                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", boot_id[i]);
	return intern_add(&model->strings, text);
}

static void add_processes(struct recording *recording)
{
	struct recorded_process **sorted = memory_resize(NULL, recording->process_count + 1,
	                                                 sizeof(struct recorded_process *));
	memcpy(sorted, recording->processes, recording->process_count * sizeof(struct recorded_process *));
	merge_sort(sorted, recording->process_count, sizeof(struct recorded_process *), compare_processes);
	for (uint32_t i = 0; i < recording->process_count; i++) {
		const struct stepscope_segment_header *header = &sorted[i]->header;
		sorted[i]->process = model_add_process(recording->model);
		struct process *process = &recording->model->processes[sorted[i]->process];
		process->host = intern_add(&recording->model->strings, sorted[i]->host);
		process->machine = machine_of(recording->model, header->boot_id);
		process->pid = header->pid;
		process->parent_pid = header->parent_pid;
		process->start_time = header->start_time;
		process->pid_namespace = header->pid_namespace;
		process->role = (uint8_t)header->role;
		process->rank = header->rank;
		process->world_size = header->world_size;
	}
	struct clock_line *first = NULL;
	for (uint32_t i = 0; i < recording->process_count && !first; i++)
		for (uint32_t l = 0; l < sorted[i]->line_count && !first; l++)
			first = sorted[i]->lines[l]->anchor_count ? sorted[i]->lines[l] : NULL;
	clock_set_finish(&recording->clocks, first);
	free(sorted);
}

static void find_detail_since(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->session_count; i++) {
		struct session *session = recording->sessions[i];
		const struct recorded_process *process = recording->processes[session->process];
		struct clock_cursor clock = {process->lines[0], 0};
		if (session->has_removed)
			session->detail_since_ns = clock_ns(&clock, session->oldest_tick);
	}
}

/* ---- second pass ---- */

static void open_session(struct session *session)
{
	session->pages = memory_resize(NULL, SYMBOL_PAGES, sizeof(struct recorded_symbol *));
	memset(session->pages, 0, SYMBOL_PAGES * sizeof(struct recorded_symbol *));
	session->symbol_count = 0;
}

static void release_session_contents(struct session *session)
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

static void close_session(struct recording *recording, struct session *session)
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
			"times a name is not in the recording, and '(unknown)' stands in its place: most likely the process was killed before it was written");
	if (session->removed_words)
		model_add_ledger(
			recording->model, LEDGER_REMOVED, recording->process->process, recording->process->host,
			session->removed_words,
			session->has_coarse
				? "words of older events were removed to keep the recording small; marked steps and phases, and values, are kept"
				: "words of older events were removed to keep the recording small");
	release_session_contents(session);
}

static void second_pass(struct recording *recording)
{
	const struct segment_visitor visitor = {
		.context = recording,
		.symbol = recording_on_symbol,
		.meta = recording_on_meta,
		.track = recording_on_track,
		.stack = recording_on_stack,
		.wants_events = recording_wants_events,
		.events = recording_events,
	};
	struct session *open = NULL;
	for (uint32_t i = 0; i < recording->file_count; i++)
		recording->total_bytes += recording->files[i].is_usable ? recording->files[i].stats.file_bytes : 0;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		struct recorded_file *file = &recording->files[i];
		if (!file->is_usable)
			continue;
		struct session *session = recording->sessions[file->session];
		assert(session);
		if (open && open != session)
			close_session(recording, open);
		if (open != session)
			open_session(session);
		open = recording->session = session;
		recording->file = file;
		recording->process = recording->processes[session->process];
		struct error problem;
		if (recording_read(file, &visitor, &problem) != STATUS_OK)
			model_add_ledger(recording->model, LEDGER_DAMAGED, recording->process->process, file->name, 1,
			                 "file changed while it was read");
		if (!(file->header.flags & STEPSCOPE_SEGMENT_COARSE)) { /* files are in order: the last one decides */
			recording->process->is_closed = file->stats.is_closed;
			recording->process->end_reason = file->end_reason;
			recording->process->has_rescue = file->stats.rescue_offset != 0;
		}
	}
	if (open)
		close_session(recording, open);
}

/* ---- after the passes ---- */

static bool is_boot_of_this_machine(const uint8_t boot_id[16])
{
	char text[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file)
		return false;
	bool has_line = fgets(text, sizeof text, file) != NULL;
	fclose(file);
	uint32_t nibbles = 0;
	for (const char *c = text; has_line && *c && nibbles < 32; c++) {
		if (*c == '-')
			continue;
		int digit = *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : *c >= '0' && *c <= '9' ? *c - '0' : -1;
		if (digit < 0 || (boot_id[nibbles / 2] >> (nibbles % 2 ? 0 : 4) & 15) != digit)
			return false;
		nibbles++;
	}
	return nibbles == 32;
}

static bool is_alive(const struct stepscope_segment_header *header)
{
	char path[64], line[1024];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", header->pid);
	FILE *file = is_boot_of_this_machine(header->boot_id) ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	const char *field = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	if (!field)
		return false;
	bool is_zombie = field[1] == ' ' && (field[2] == 'Z' || field[2] == 'X');
	for (int number = 2; field && number < 22; number++) /* behind ')' comes field 3 */
		field = strchr(field + 1, ' ');
	return !is_zombie && field && strtoull(field, NULL, 10) == header->start_time;
}

/* Times of a part are those of the whole. */
static void fill_origin(struct process *process, const struct recorded_process *from)
{
	int64_t anchor_ns = from->first_raw_ns + from->lines[0]->offset_ns;
	bool is_anchor_first = from->has_anchors && (!from->has_begin || anchor_ns < from->begin_ns);
	process->has_origin = from->has_begin || from->has_anchors;
	process->origin_ns = is_anchor_first ? anchor_ns : from->begin_ns;
}

static void fill_process(struct recording *recording, const struct recorded_process *from)
{
	struct model *model = recording->model;
	struct process *process = &model->processes[from->process];
	const struct clock_line *line = from->lines[0];
	process->realtime_offset_ns = line->realtime_offset_ns;
	process->first_ns = from->has_times ? from->first_ns : 0;
	process->last_ns = from->has_times ? from->last_ns : 0;
	if (from->has_anchors && !recording->has_windows) {
		int64_t first_ns = from->first_raw_ns + line->offset_ns, last_ns = from->last_raw_ns + line->offset_ns;
		process->first_ns = from->has_times && from->first_ns < first_ns ? from->first_ns : first_ns;
		process->last_ns = from->has_times && from->last_ns > last_ns ? from->last_ns : last_ns;
	}
	if (recording->has_windows)
		fill_origin(process, from);
	process->event_count = from->events;
	process->is_closed = from->is_closed;
	process->is_alive = from->is_alive;
	if (from->is_closed && from->end_reason)
		process->end_reason = intern_add(&model->strings, from->end_reason);
	const char *program = model_meta(model, from->process, "program");
	const char *host = model_meta(model, from->process, "host");
	const char *cost = model_meta(model, from->process, "cost.event_ns");
	const char *drainer = model_meta(model, from->process, "cost.drainer_cpu_ns");
	const char *origin = model_meta(model, from->process, "clock.origin_ns");
	if (program)
		process->name = intern_add(&model->strings, program);
	if (host && !*from->host)
		process->host = intern_add(&model->strings, host);
	process->has_cost = cost || drainer;
	process->cost_per_event_ns = cost ? strtod(cost, NULL) : 0;
	const char *frame_cost = model_meta(model, from->process, "cost.frame_ns");
	process->cost_per_frame_ns = frame_cost ? strtod(frame_cost, NULL) : 0;
	const char *step_cost = model_meta(model, from->process, "cost.step_cpu_ns");
	process->cost_per_step_ns = step_cost ? strtod(step_cost, NULL) : 0;
	process->stack_frames = from->stack_frames;
	process->drainer_cpu_ns = drainer ? strtoll(drainer, NULL, 10) : 0;
	if (origin && line->clock == STEPSCOPE_CLOCK_NANOSECONDS)
		process->realtime_offset_ns = strtoll(origin, NULL, 10);
}

static void finish_recording(struct recording *recording)
{
	struct model *model = recording->model;
	for (uint32_t i = 0; i < recording->process_count; i++) {
		struct recorded_process *process = recording->processes[i];
		process->is_alive = !process->is_closed && is_alive(&process->header);
		fill_process(recording, process);
		recording_ledger_process(recording, process);
	}
	for (uint32_t i = 0; i < recording->file_count && recording->files[i].is_usable; i++)
		recording_ledger_file(recording, &recording->files[i]);
	recording_finish_steps(recording);
	recording_finish_losses(recording);
	recording_add_groups(recording);
	if (recording->refused_tracks)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, "", recording->refused_tracks,
		                 "mentions of threads beyond the first million were left out");
	if (recording->refused_symbols)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, "", recording->refused_symbols,
		                 "names beyond the first million of a process were left out");
}

static void release(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->file_count; i++) {
		free(recording->files[i].path);
		free(recording->files[i].host);
	}
	for (uint32_t i = 0; i < recording->session_count; i++) {
		release_session_contents(recording->sessions[i]);
		free(recording->sessions[i]);
	}
	for (uint32_t i = 0; i < recording->process_count; i++) {
		free(recording->processes[i]->captures);
		free(recording->processes[i]->late_counts);
		free(recording->processes[i]->windows);
		number_map_release(&recording->processes[i]->tid_tracks);
		free(recording->processes[i]);
	}
	clock_set_release(&recording->clocks);
	free(recording->files);
	free(recording->processes);
	free(recording->sessions);
	free(recording->unfolded);
}

static enum status load_files(struct recording *recording, struct error *err)
{
	enum status status = first_pass(recording, err);
	if (status != STATUS_OK)
		return status;
	add_processes(recording);
	find_detail_since(recording);
	qsort_r(recording->files, recording->file_count, sizeof *recording->files, compare_files, recording);
	if (recording->filter && recording->filter->window)
		status = recording_find_profiled(recording, err);
	else if (recording->filter && recording->filter->has_steps)
		status = recording_find_windows(recording, err);
	else
		recording_find_captures(recording);
	if (status != STATUS_OK)
		return status;
	second_pass(recording);
	finish_recording(recording);
	return STATUS_OK;
}

enum status recording_load_memory(const struct recording_bytes *segments, uint32_t count,
                                  const struct model_filter *filter, struct model *model, struct error *err)
{
	struct recording recording = {.model = model, .filter = filter};
	for (uint32_t i = 0; i < count; i++) {
		struct recorded_file *file = add_file(&recording, segments[i].name);
		file->data = segments[i].data;
		file->bytes = segments[i].bytes;
	}
	enum status status = load_files(&recording, err);
	release(&recording);
	return status;
}

/* fold_problem */
static void note_unfolded(void *context, const struct fold_result *result, const struct error *err)
{
	struct recording *recording = context;
	recording->unfolded = memory_resize(recording->unfolded, recording->unfolded_count + 1,
	                                    sizeof *recording->unfolded);
	struct unfolded *entry = &recording->unfolded[recording->unfolded_count++];
	entry->pid = result->pid;
	snprintf(entry->problem, sizeof entry->problem, "%.*s", (int)sizeof entry->problem - 1, err->text);
}

static enum status load_directory(const char *path, struct recording *recording, struct error *err)
{
	struct directory_count count;
	fold_stale_pools(path, note_unfolded, recording);
	enum status status = scan_directory(path, recording, &count, err);
	if (status == STATUS_OK && recording->file_count == 0)
		status = nothing_found(path, &count, err);
	return status;
}

static enum status load_file(const char *path, struct recording *recording, struct error *err)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct recorded_file *file = add_file(recording, path);
	file->path = strdup(path);
	if (!directory || !file->path)
		memory_exhausted(strlen(path));
	fold_stale_pools(directory, note_unfolded, recording);
	free(directory);
	(void)err;
	return STATUS_OK;
}

static enum status recording_load(const char *path, const struct model_filter *filter, struct model *model,
                                  struct error *err)
{
	struct recording recording = {.model = model, .filter = filter};
	struct stat info;
	if (stat(path, &info) != 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	enum status status = S_ISDIR(info.st_mode) ? load_directory(path, &recording, err)
	                                           : load_file(path, &recording, err);
	if (status == STATUS_OK)
		status = load_files(&recording, err);
	release(&recording);
	return status;
}

/* Every directory: an empty one gets the error message that says what was looked for. */
static bool recording_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	return is_directory || text_ends_with(path, ".ssr") ||
	       (length >= 8 && memcmp(head, STEPSCOPE_SEGMENT_MAGIC, 8) == 0);
}

const struct importer importer_recording = {
	.name = "recording",
	.looked_for = "a run directory with *.ssr files, one of those files",
	.has_steps = true,
	.selects_steps = true,
	.has_windows = true,
	.has_telemetry_beside = true,
	.recognises = recording_recognises,
	.load = recording_load,
};
