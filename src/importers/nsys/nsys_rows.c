/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_rows.c: stages rows of an nsys export as spans, with the names that Kineto uses. So everything that depends on
 * the names of copies, calls and kernels works here, too.
 */
#include "base/memory.h"
#include "importers/nsys/nsys.h"
#include "model/launch_config.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define DEVICES 1024

/* ---- strings ---------------------------------------------------------------------------------------------------- */

void nsys_read_strings(struct nsys *nsys)
{
	static const struct nsys_table table = {"StringIds", {"id", "value"}};
	struct nsys_rows rows;
	int64_t id;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		const char *text = nsys_text(nsys, &rows, 1);
		if (!nsys_integer(&rows, 0, &id) || !text)
			continue;
		if (nsys->string_count == nsys->string_capacity) {
			nsys->string_capacity = nsys->string_capacity ? 2 * nsys->string_capacity : 1024;
			nsys->text_of = memory_resize(nsys->text_of, nsys->string_capacity, sizeof *nsys->text_of);
			nsys->string_of = memory_resize(nsys->string_of, nsys->string_capacity,
			                                sizeof *nsys->string_of);
		}
		nsys->text_of[nsys->string_count] = intern_add(&nsys->texts, text);
		nsys->string_of[nsys->string_count] = 0;
		number_map_set(&nsys->string_ids, (uint64_t)id, nsys->string_count++);
	}
}

/* ---- tracks and times ------------------------------------------------------------------------------------------- */

static int64_t pid_of(int64_t global)
{
	return global >> 24 & 0xffffff;
}

static uint32_t thread_track(struct nsys *nsys, const struct nsys_rows *rows, int column)
{
	int64_t global;
	if (!nsys_integer(rows, column, &global))
		return kineto_stage_track(&nsys->import.stage, (struct staged_place){0}, (struct staged_place){0});
	return kineto_stage_track(&nsys->import.stage, (struct staged_place){pid_of(global), 0},
	                          (struct staged_place){global & 0xffffff, 0});
}

/* Returns a track that is not a thread's; its spans may cross each other. */
static uint32_t other_track(struct nsys *nsys, const struct nsys_rows *rows, int column, const char *name)
{
	int64_t global;
	int64_t pid = nsys_integer(rows, column, &global) ? pid_of(global) : 0;
	uint32_t found = kineto_stage_track(&nsys->import.stage, (struct staged_place){pid, 0},
	                                    (struct staged_place){0, intern_add(&nsys->import.model->strings, name)});
	nsys->import.stage.tracks[found].is_loose = true;
	return found;
}

/* Returns the track of a stream of one process's device. Its place is a number that no process has. */
static uint32_t stream_track(struct nsys *nsys, const struct nsys_rows *rows, int global_pid, int device, int stream)
{
	int64_t owner, number, stream_number;
	bool has_owner = nsys_integer(rows, global_pid, &owner);
	if (!nsys_integer(rows, device, &number) || number < 0 || number >= DEVICES)
		number = 0;
	if (!nsys_integer(rows, stream, &stream_number) || stream_number == UINT32_MAX)
		stream_number = -1;
	int64_t pid = has_owner ? pid_of(owner) : 0;
	uint32_t found = kineto_stage_track(&nsys->import.stage,
	                                    (struct staged_place){((int64_t)1 << 40) + pid * DEVICES + number, 0},
	                                    (struct staged_place){stream_number, 0});
	struct staged_track *track = &nsys->import.stage.tracks[found];
	track->is_device = true;
	track->device = (int32_t)number;
	track->has_owner = has_owner;
	track->owner_pid = pid;
	return found;
}

static bool nsys_rows_is_time(int64_t time_ns)
{
	return time_ns <= IMPORTED_TIME_MAX && time_ns >= IMPORTED_TIME_MIN;
}

/* Reads start and end, the first two columns of every table of spans. Returns false if the row has no time. */
static bool read_times(struct nsys *nsys, const struct nsys_rows *rows, int64_t *start_ns, int64_t *dur_ns)
{
	int64_t end_ns;
	*dur_ns = STAGED_IS_OPEN;
	if (!nsys_integer(rows, 0, start_ns) || !nsys_rows_is_time(*start_ns)) {
		nsys->without_time++;
		return false;
	}
	if (nsys_integer(rows, 1, &end_ns) && end_ns >= *start_ns && end_ns <= *start_ns + IMPORTED_DURATION_MAX)
		*dur_ns = end_ns - *start_ns;
	else
		nsys->without_duration++;
	return true;
}

static struct staged_span *nsys_rows_add_span(struct nsys *nsys, uint32_t track, int64_t start_ns, int64_t dur_ns,
                                              enum span_kind kind, uint32_t name)
{
	struct intern *strings = &nsys->import.model->strings;
	struct staged_span *span = kineto_stage_span(&nsys->import.stage, track);
	span->start_ns = start_ns;
	span->dur_ns = dur_ns;
	span->kind = (uint8_t)kind;
	span->name = name ? name : intern_add(strings, KINETO_NO_NAME);
	span->order = strings->entries[span->name].hash;
	span->tie = (uint16_t)span->order;
	nsys->import.event_count++;
	return span;
}

static void set_correlation(struct nsys *nsys, const struct nsys_rows *rows, int column, uint32_t track,
                            struct staged_span *span)
{
	int64_t number;
	if (!nsys_integer(rows, column, &number) || number <= 0)
		return;
	span->correlation = (uint64_t)number;
	nsys->import.has_correlation = true;
	kineto_clock_note(&nsys->import, track, span);
}

static void set_config(struct nsys *nsys, struct staged_span *span, const struct launch_config *config)
{
	char text[LAUNCH_CONFIG_BYTES];
	size_t length = launch_config_write(config, text);
	span->inputs = length ? intern_add_n(&nsys->import.model->strings, text, length) : 0;
}

/* ---- work of devices -------------------------------------------------------------------------------------------- */

static bool nsys_rows_set_number(const struct nsys_rows *rows, int column, struct launch_config *config,
                                 enum launch_fact fact)
{
	int64_t number;
	bool is_there = nsys_integer(rows, column, &number);
	if (is_there)
		launch_config_set(config, fact, (double)number);
	return is_there;
}

static void set_launch(struct nsys *nsys, const struct nsys_rows *rows, struct staged_span *span, int32_t device)
{
	static_assert(LAUNCH_GRID_X + 5 == LAUNCH_BLOCK_Z, "columns and facts have one order");
	struct launch_config config = {0};
	int64_t of_code, of_launch;
	bool has_shape = true;
	for (int i = 0; i < 6; i++)
		has_shape &= nsys_rows_set_number(rows, 9 + i, &config, (enum launch_fact)(LAUNCH_GRID_X + i));
	nsys_rows_set_number(rows, 15, &config, LAUNCH_REGISTERS);
	if (nsys_integer(rows, 16, &of_code) && nsys_integer(rows, 17, &of_launch) && of_code >= 0 && of_launch >= 0)
		launch_config_set(&config, LAUNCH_SHARED_BYTES, (double)of_code + (double)of_launch);
	nsys_rows_set_number(rows, 18, &config, LAUNCH_GRAPH_NODE);
	uint32_t sms = device < 64 ? nsys->sm_counts[device] : 0;
	const double *n = config.numbers;
	if (sms && has_shape) {
		double blocks = n[LAUNCH_GRID_X] * n[LAUNCH_GRID_Y] * n[LAUNCH_GRID_Z] / sms;
		double warps = n[LAUNCH_BLOCK_X] * n[LAUNCH_BLOCK_Y] * n[LAUNCH_BLOCK_Z] / 32;
		launch_config_set(&config, LAUNCH_BLOCKS_PER_SM, blocks);
		launch_config_set(&config, LAUNCH_WARPS_PER_SM, blocks * warps);
	}
	set_config(nsys, span, &config);
}

static void read_kernels(struct nsys *nsys)
{
	static const struct nsys_table table = {
		"CUPTI_ACTIVITY_KIND_KERNEL",
		{"start", "end", "?deviceId", "?streamId", "?correlationId", "?globalPid", "?demangledName",
	         "?shortName", "?mangledName", "?gridX", "?gridY", "?gridZ", "?blockX", "?blockY", "?blockZ",
	         "?registersPerThread", "?staticSharedMemory", "?dynamicSharedMemory", "?graphNodeId"}};
	struct nsys_rows rows;
	int64_t start_ns, dur_ns;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!read_times(nsys, &rows, &start_ns, &dur_ns))
			continue;
		uint32_t name = nsys_string(nsys, &rows, 6), track = stream_track(nsys, &rows, 5, 2, 3);
		name = name ? name : nsys_string(nsys, &rows, 7);
		name = name ? name : nsys_string(nsys, &rows, 8);
		struct staged_span *span = nsys_rows_add_span(nsys, track, start_ns, dur_ns, SPAN_KERNEL, name);
		set_correlation(nsys, &rows, 4, track, span);
		set_launch(nsys, &rows, span, nsys->import.stage.tracks[track].device);
	}
}

static const char *const memory_kinds[] = {"Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed"};

static const char *memory_kind(const struct nsys_rows *rows, int column)
{
	int64_t kind;
	if (!nsys_integer(rows, column, &kind) || kind < 0 ||
	    kind >= (int64_t)(sizeof memory_kinds / sizeof memory_kinds[0]))
		return "Unknown";
	return memory_kinds[kind];
}

/* Returns a name such as "Memcpy HtoD (Pageable -> Device)". */
static uint32_t name_of_copy(struct nsys *nsys, const struct nsys_rows *rows)
{
	static const char *const directions[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
	                                         "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
	char text[96];
	int64_t kind;
	if (!nsys_integer(rows, 7, &kind) || kind < 1 || kind >= (int64_t)(sizeof directions / sizeof directions[0])) {
		nsys->unknown_copies++;
		kind = 0;
	}
	snprintf(text, sizeof text, "Memcpy%s%s (%s -> %s)", kind ? " " : "", directions[kind], memory_kind(rows, 8),
	         memory_kind(rows, 9));
	return intern_add(&nsys->import.model->strings, text);
}

static void nsys_rows_set_bytes(struct nsys *nsys, const struct nsys_rows *rows, struct staged_span *span)
{
	struct launch_config config = {0};
	if (nsys_rows_set_number(rows, 6, &config, LAUNCH_BYTES) && span->dur_ns > 0)
		launch_config_set(&config, LAUNCH_BYTES_PER_SECOND,
		                  config.numbers[LAUNCH_BYTES] * 1e9 / (double)span->dur_ns);
	set_config(nsys, span, &config);
}

/* Reads copies, fills and waits of a stream. */
static void read_stream_work(struct nsys *nsys, const struct nsys_table *table, enum span_kind kind)
{
	static const char *const waits[] = {NULL, "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	struct nsys_rows rows;
	int64_t start_ns, dur_ns, number;
	char text[64];
	if (!nsys_begin(nsys, table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!read_times(nsys, &rows, &start_ns, &dur_ns))
			continue;
		if (kind == SPAN_MEMSET)
			snprintf(text, sizeof text, "Memset (%s)", memory_kind(&rows, 7));
		else
			snprintf(text, sizeof text, "%s",
			         nsys_integer(&rows, 6, &number) && number >= 1 && number <= 4 ? waits[number]
			                                                                       : "Sync");
		uint32_t name = kind == SPAN_MEMCPY ? name_of_copy(nsys, &rows)
		                                    : intern_add(&nsys->import.model->strings, text);
		uint32_t track = stream_track(nsys, &rows, 5, 2, 3);
		struct staged_span *span = nsys_rows_add_span(nsys, track, start_ns, dur_ns, kind, name);
		set_correlation(nsys, &rows, 4, track, span);
		if (kind != SPAN_SYNC)
			nsys_rows_set_bytes(nsys, &rows, span);
	}
}

/* Without --cuda-graph-trace=node, the export has the graph, but not its kernels. */
static void read_graphs(struct nsys *nsys)
{
	static const struct nsys_table table = {
		"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
		{"start", "end", "?deviceId", "?streamId", "?correlationId", "?globalPid", "?graphId"}};
	struct nsys_rows rows;
	int64_t start_ns, dur_ns, graph = 0;
	char text[64];
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!read_times(nsys, &rows, &start_ns, &dur_ns))
			continue;
		bool has_graph = nsys_integer(&rows, 6, &graph);
		snprintf(text, sizeof text, has_graph ? "CUDA graph %" PRId64 : "CUDA graph", graph);
		uint32_t track = stream_track(nsys, &rows, 5, 2, 3);
		struct staged_span *span = nsys_rows_add_span(nsys, track, start_ns, dur_ns, SPAN_KERNEL,
		                                              intern_add(&nsys->import.model->strings, text));
		set_correlation(nsys, &rows, 4, track, span);
		nsys->graphs++;
	}
}

/* ---- calls of the runtime --------------------------------------------------------------------------------------- */

/* "cudaLaunchKernel_v7000" becomes cudaLaunchKernel, "cudaMemcpyAsync_ptsz_v7000" cudaMemcpyAsync_ptsz. */
static uint32_t without_version(struct nsys *nsys, uint32_t string)
{
	const char *name = model_text(nsys->import.model, string), *version = strrchr(name, '_');
	if (!version || version[1] != 'v' || !isdigit((unsigned char)version[2]) ||
	    version[2 + strspn(version + 2, "0123456789")])
		return string;
	return intern_add_n(&nsys->import.model->strings, name, (size_t)(version - name));
}

static void read_calls(struct nsys *nsys, const struct nsys_table *table)
{
	struct nsys_rows rows;
	int64_t start_ns, dur_ns;
	if (!nsys_begin(nsys, table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!read_times(nsys, &rows, &start_ns, &dur_ns))
			continue;
		uint32_t name = without_version(nsys, nsys_string(nsys, &rows, 4));
		uint32_t track = thread_track(nsys, &rows, 2);
		struct staged_span *span = nsys_rows_add_span(nsys, track, start_ns, dur_ns, SPAN_RUNTIME, name);
		set_correlation(nsys, &rows, 3, track, span);
	}
}

static void read_overhead(struct nsys *nsys)
{
	static const struct nsys_table table = {"CUPTI_ACTIVITY_KIND_OVERHEAD",
	                                        {"start", "end", "?globalTid", "?nameId"}};
	struct nsys_rows rows;
	int64_t start_ns, dur_ns;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows))
		if (read_times(nsys, &rows, &start_ns, &dur_ns))
			nsys_rows_add_span(nsys, other_track(nsys, &rows, 2, "overhead of CUPTI"), start_ns, dur_ns,
			                   SPAN_OVERHEAD, nsys_string(nsys, &rows, 3));
}

/* ---- ranges of NVTX --------------------------------------------------------------------------------------------- */

enum nvtx_event {
	NVTX_MARK = 34,
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
};

/* Returns true for "ProfilerStep#3", "step 3", "Iteration: 3", "train_step_3". */
static bool is_step(const char *name)
{
	static const char *const words[] = {"profilerstep", "train_step", "training_step", "step", "iteration",
	                                    "iter",         NULL};
	for (int i = 0; words[i]; i++) {
		size_t length = strlen(words[i]);
		if (strncasecmp(name, words[i], length) != 0)
			continue;
		const char *number = name + length + strspn(name + length, " _#:=");
		size_t digits = strspn(number, "0123456789");
		if (digits && digits < 19 && !number[digits])
			return true;
	}
	return false;
}

/* Returns the length of the operator's name in a range of PyTorch's emit_nvtx(), such as "aten::mm, op_id = 5" or
 * "MmBackward0, seq = 3, op_id = 5, sizes = [[2, 3]]"; 0: it is another range. */
static size_t length_of_operator(const char *text)
{
	const char *number = strstr(text, ", op_id = "), *sequence = strstr(text, ", seq = ");
	const char *end = sequence && (!number || sequence < number) ? sequence : number;
	return end ? (size_t)(end - text) : strncmp(text, "aten::", 6) == 0 ? strlen(text) : 0;
}

static void nsys_rows_add_range(struct nsys *nsys, uint32_t track, int64_t start_ns, int64_t dur_ns, const char *text)
{
	struct intern *strings = &nsys->import.model->strings;
	size_t length = length_of_operator(text);
	enum span_kind kind = length ? SPAN_OP : is_step(text) ? SPAN_STEP : SPAN_ANNOTATION;
	nsys->import.stage.tracks[track].has_steps |= kind == SPAN_STEP;
	nsys_rows_add_span(nsys, track, start_ns, dur_ns, kind,
	                   intern_add_n(strings, text, length ? length : strlen(text)));
}

static void nsys_rows_add_mark(struct nsys *nsys, uint32_t track, int64_t time_ns, const char *text)
{
	struct kineto_stage *stage = &nsys->import.stage;
	STAGE_ARRAY_GROW(stage, marks);
	stage->marks[stage->marks_count++] = (struct staged_mark){time_ns, track,
	                                                          intern_add(&nsys->import.model->strings, text)};
	nsys->import.event_count++;
}

static void read_ranges(struct nsys *nsys)
{
	static const struct nsys_table table = {"NVTX_EVENTS",
	                                        {"start", "?end", "eventType", "?text", "?textId", "?globalTid"}};
	struct nsys_rows rows;
	int64_t start_ns, dur_ns, type;
	if (!nsys_begin(nsys, &table, &rows))
		return;
	while (nsys_next(nsys, &rows)) {
		if (!nsys_integer(&rows, 2, &type) ||
		    (type != NVTX_MARK && type != NVTX_PUSH_POP && type != NVTX_START_END))
			continue; /* names of domains, categories, ... */
		const char *text = nsys_text(nsys, &rows, 3);
		uint32_t name = text ? 0 : nsys_string(nsys, &rows, 4);
		text = text ? text : model_text(nsys->import.model, name);
		text = *text ? text : KINETO_NO_NAME;
		if (type == NVTX_MARK) {
			if (nsys_integer(&rows, 0, &start_ns) && nsys_rows_is_time(start_ns))
				nsys_rows_add_mark(nsys, thread_track(nsys, &rows, 5), start_ns, text);
			else
				nsys->without_time++;
		} else if (read_times(nsys, &rows, &start_ns, &dur_ns)) {
			uint32_t track = type == NVTX_PUSH_POP || is_step(text)
			                         ? thread_track(nsys, &rows, 5)
			                         : other_track(nsys, &rows, 5, "NVTX ranges with start and end");
			nsys_rows_add_range(nsys, track, start_ns, dur_ns, text);
		}
	}
}

/* ---- all events ------------------------------------------------------------------------------------------------- */

void nsys_read_events(struct nsys *nsys)
{
	static const struct nsys_table copies = {"CUPTI_ACTIVITY_KIND_MEMCPY",
	                                         {"start", "end", "?deviceId", "?streamId", "?correlationId",
	                                          "?globalPid", "?bytes", "?copyKind", "?srcKind", "?dstKind"}};
	static const struct nsys_table fills = {
		"CUPTI_ACTIVITY_KIND_MEMSET",
		{"start", "end", "?deviceId", "?streamId", "?correlationId", "?globalPid", "?bytes", "?memKind"}};
	static const struct nsys_table waits = {
		"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
		{"start", "end", "?deviceId", "?streamId", "?correlationId", "?globalPid", "?syncType"}};
	static const struct nsys_table runtime = {"CUPTI_ACTIVITY_KIND_RUNTIME",
	                                          {"start", "end", "?globalTid", "?correlationId", "?nameId"}};
	static const struct nsys_table driver = {"CUPTI_ACTIVITY_KIND_DRIVER", /* before 2020 */
	                                         {"start", "end", "?globalTid", "?correlationId", "?nameId"}};
	read_ranges(nsys);
	read_calls(nsys, &runtime);
	read_calls(nsys, &driver);
	read_kernels(nsys);
	read_graphs(nsys);
	read_stream_work(nsys, &copies, SPAN_MEMCPY);
	read_stream_work(nsys, &fills, SPAN_MEMSET);
	read_stream_work(nsys, &waits, SPAN_SYNC);
	read_overhead(nsys);
}
