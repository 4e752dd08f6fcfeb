/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: a trace in memory, the same for our recordings and for imported traces. Importers fill it through the model_*
 * functions, analyses and exporters read the structs directly (const) and fold over chunks.
 *
 * Shape: processes own tracks (threads, device streams); a track owns its spans in chunks of columns, in order of their
 * start, parents before children. Times are integer nanoseconds on one time line per model (CLOCK_MONOTONIC of the first
 * process's boot, or the trace's own origin); realtime_offset_ns turns them into wall time. Nothing here is a sentinel:
 * what may be missing has a `has_` beside it.
 *
 * Memory: chunks and the arrays below live in anonymous memory up to the limit of model_init(), then in unlinked temporary
 * files (base/storage.h). Pointers into chunks stay valid until model_release(). Strings are numbers of model.strings (0: none;
 * 1..7: the names of enum stepscope_phase). One writer, then any number of readers; not thread-safe while it is filled.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/intern.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>

#define MODEL_NONE UINT32_MAX /* no row, no track, no process */

enum span_kind { /* same numbers as enum stepscope_symbol_kind where both exist */
	SPAN_RANGE = 1,
	SPAN_PHASE = 2,
	SPAN_OP = 3,
	SPAN_MICRO_BATCH = 7,
	SPAN_ANNOTATION = 8,
	SPAN_PYTHON = 9,
	SPAN_RUNTIME = 10,
	SPAN_KERNEL = 11,
	SPAN_MEMCPY = 12,
	SPAN_MEMSET = 13,
	SPAN_SYNC = 14,
	SPAN_COLLECTIVE = 15,
	SPAN_OVERHEAD = 16,
	SPAN_OTHER = 19,
	SPAN_MODULE = 23, /* a call of an nn.Module's forward, by its path */
	SPAN_STEP = 32,
	SPAN_KIND_COUNT = 33,
};
const char *span_kind_name(enum span_kind kind); /* "range", "phase", "op", ... */

enum span_flag {
	SPAN_IS_OPEN = 1,       /* never ended: the recording stops inside it; its end is the process's last instant */
	SPAN_END_IS_LOST = 2,   /* its end was dropped or belongs to a dropped stretch; closed where that is known */
	SPAN_START_IS_LOST = 4, /* a placeholder for spans whose begin was dropped */
	SPAN_IS_CLIPPED = 8,    /* outlived its parent in the input, or ended before what began in it; cut to fit */
	SPAN_IS_BACKWARD = 32,  /* an op that is a node of a backward */
	SPAN_IS_SCRIPT = 64,    /* an op that is a function of TorchScript */
	SPAN_IS_CUT =
		16, /* went on when operations were not recorded any more; its end here is the end of the recorded stretch */
	SPAN_IS_INFERRED = 32, /* a phase or step that the program did not mark */
	SPAN_ENDS_ELSEWHERE =
		128, /* not in the thread that began it, or behind the window of a profiler that was loaded */
};

#define CHUNK_ROWS 65536u
#define FIRST_CHUNK_ROWS 16u /* few: a trace may have 50,000 threads with an operator each */
#define SMALL_CHUNKS 12u     /* those before the first of CHUNK_ROWS */
static_assert(FIRST_CHUNK_ROWS << SMALL_CHUNKS == CHUNK_ROWS, "each is twice as large as the one before");

/* Its duration is what it took; of others it is as much as is known. */
static inline bool span_is_timed(uint8_t flags)
{
	return !(flags & (SPAN_IS_OPEN | SPAN_END_IS_LOST | SPAN_START_IS_LOST));
}

/* Columns of up to CHUNK_ROWS spans of one track. Row r of the track is rows[r - first_row] of its chunk. */
struct span_chunk {
	uint32_t first_row;
	uint32_t count;
	uint32_t capacity;
	int64_t min_start_ns, max_end_ns; /* max over completed spans; model_finish() makes it exact */
	int64_t *start_ns;
	int64_t *dur_ns;
	uint32_t *name;   /* string */
	uint32_t *parent; /* row of the same track, MODEL_NONE at top level */
	uint32_t *shape;  /* string, 0: not measured */
	uint16_t *depth;  /* 0 at top level */
	uint8_t *kind;    /* enum span_kind */
	uint8_t *flags;   /* enum span_flag */
	uint8_t *phase; /* enum stepscope_phase of the nearest enclosing phase span (a phase span: its own), 0: none */
	int32_t *step;  /* index into model.steps of the step it starts in, -1: none; filled by model_finish() */
	/* NULL where no span of the chunk has one: read them through span_sequence(), ... */
	uint64_t *sequence; /* as in the first word of a BEGIN; STEPSCOPE_NO_SEQUENCE: none */
	uint32_t *inputs; /* string: text of a symbol of kind INPUTS; of a device's work: model/launch_config.h; 0: none */
	uint32_t *stack;       /* index into model.stacks of the Python frame that began it, 0: none or not known */
	uint64_t *correlation; /* number that a launch and what it started on a device share, 0: none */
};

enum track_kind {
	TRACK_THREAD,
	TRACK_SIGNAL,
	TRACK_SELF,
	TRACK_DEVICE,
	TRACK_OTHER
};

struct track {
	uint32_t process;
	enum track_kind kind;
	int64_t tid;    /* thread id or device stream */
	int32_t device; /* -1: none */
	bool is_main;
	uint32_t torch_thread; /* PyTorch's own number of the thread; 0: unknown */
	bool is_profiled;      /* the profiler in the program whose windows were loaded follows it */
	uint32_t name;         /* string, 0: unknown */
	uint32_t last_call; /* string: the call that it was in when its process died, while no operators were recorded; 0: none */
	uint32_t sort; /* order among the tracks of its process */
	uint32_t span_count;
	uint32_t chunk_count;
	struct span_chunk **chunks;
};

struct model_step {
	uint32_t process;
	uint32_t track; /* where its span is */
	uint32_t row;   /* of that span */
	int64_t number;
	int64_t start_ns, end_ns;
	bool is_open;     /* its end is not known: the recording stops inside it, or the end was dropped */
	bool is_inferred; /* the program did not mark it */
	bool has_tokens, has_samples, has_cpu, has_page_faults;
	uint64_t tokens, samples;
	int64_t cpu_ns;       /* has_cpu: of the thread that marks the step */
	uint64_t waits;       /* has_cpu: how often it stopped to wait for something, but for a processor */
	uint64_t page_faults; /* has_page_faults: of that thread, without reading from a disk */
	uint8_t capture;      /* enum stepscope_capture in force when it began */
	bool has_detail;      /* ranges and ops were recorded in all of it */
	bool has_any_detail;  /* or in some of it, or they were removed again: it took the longer for that */
	bool has_rare; /* what happens rarely was recorded in all of it: collections of garbage, compilations, ... (pytorch_is_rare()) */
	bool has_shapes, has_memory;
	bool has_calls_only; /* its phases are inferred, and PyTorch's records were not looked at in it: forward and other are not known */
	bool has_lost_phases; /* its phases would be inferred from what was removed again: they are not known */
};

struct value_series { /* a counter or a metric of a process */
	uint32_t process;
	uint32_t name;
	bool is_metric;
	uint32_t subject; /* string: the device or other thing it is of; 0: the process */
	uint32_t unit;    /* string: "MiB"; 0: none, or part of the name */
	uint32_t count, capacity;
	int64_t *time_ns;
	double *value;
	int32_t *step; /* index into model.steps, -1: none; filled by model_finish() */
};

struct memory_event {
	int64_t time_ns;
	uint64_t address;
	uint64_t bytes; /* of a free: of the matching allocation; 0 and !has_bytes when unknown */
	uint32_t process;
	uint32_t track;
	uint32_t row; /* innermost span open on the track then, MODEL_NONE: none */
	/* Filled by model_finish(), indexes, MODEL_NONE: none. Of a free: its allocation. Of an allocation: the event that
	 * ended it, its free or the next allocation at the address, whose `ends` is it. */
	uint32_t partner;
	uint32_t ends;  /* allocation whose free was not seen */
	uint32_t stack; /* index into model.stacks of the frame that asked for it, 0: that of the span, or not known */
	int16_t device; /* -1: host memory */
	uint8_t category; /* enum stepscope_memory, UNKNOWN until model_finish(); of a free: of the matching allocation */
	bool is_free;
	bool has_bytes;
	/* Nobody saw it: an allocation that an owner told of later; a free in a stretch in which memory was not recorded, of what may
	 * not have lived through that. By model_finish(). */
	bool is_found;
	bool is_data; /* it was seen to be some, which says what it is if nothing else does; by model_finish() */
};

struct memory_owner { /* somebody held memory at this moment */
	int64_t time_ns;
	uint64_t address;
	uint64_t bytes; /* 0: unknown */
	uint32_t process;
	uint32_t track;
	int16_t device;
	uint8_t category;
};

/* What an allocator has taken from a device in one piece, and how it is used at the end. Blocks tile it: those that are given out, those
 * that are given back but still in use by the device (pending), and free ones. */
struct memory_segment {
	uint64_t address;
	uint64_t bytes;
	uint64_t active_bytes;       /* of blocks that are given out, rounded up as the allocator does */
	uint64_t requested_bytes;    /* what was asked for of these */
	uint64_t pending_bytes;      /* given back, not yet free */
	uint64_t largest_free_bytes; /* of one free block */
	uint64_t stream;
	uint64_t pool; /* that may use it, 0: the common one */
	uint32_t process;
	uint32_t active_blocks, free_blocks;
	uint32_t type;  /* string: "large", "small"; 0: not known */
	uint32_t stack; /* who made the allocator take it, 0: not known */
	int16_t device;
	bool is_expandable;
};

/* Sums of 64-bit sizes, which a hostile or broken program may give, and what fits into a table or a trace. */
__extension__ typedef __int128 wide_bytes;

static inline int64_t bytes_that_fit(wide_bytes bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : bytes < INT64_MIN ? INT64_MIN : (int64_t)bytes;
}

struct mark {
	int64_t time_ns;
	uint32_t track;
	uint32_t name;
};

struct span_arg { /* extra facts of a span: everything that has no column */
	uint32_t track, row;
	uint32_t key; /* string */
	uint8_t type; /* enum stepscope_arg */
	union {
		int64_t i64;
		uint64_t u64;
		double f64;
		uint32_t text; /* string */
	};
};

struct model_link {   /* launch -> kernel, forward -> backward */
	uint8_t kind; /* enum stepscope_link */
	uint64_t number;
	uint32_t from_track, from_row, to_track, to_row; /* MODEL_NONE where one half is missing */
};

struct stack_node {
	uint32_t parent; /* index into model.stacks, 0: root (entry 0 is unused) */
	uint32_t frame;  /* string: the function; "" stands for frames that are not known */
	uint32_t line;   /* 0: unknown */
	uint32_t file;   /* string, 0: unknown */
};

struct sample {
	int64_t time_ns;
	uint32_t track;
	uint32_t stack;
	uint32_t name;
	uint64_t weight;
};

struct process {
	uint32_t host;    /* string */
	uint32_t machine; /* string: which boot of which machine; 0: not recorded, the host's name stands for it */
	int64_t pid;
	int64_t parent_pid;       /* 0: unknown */
	uint64_t start_time;      /* clock ticks since boot, as in /proc/PID/stat */
	uint64_t pid_namespace;   /* that the two pids belong to; 0: unknown */
	uint8_t role;             /* enum stepscope_role */
	int32_t rank, world_size; /* -1: unknown */
	uint32_t twin; /* 1 and up of those with its rank and pid, as in containers; 0: it is alone. Filled by model_finish() */
	bool is_twin_of_host; /* it has one on its host */
	uint32_t name;        /* string: program */
	uint32_t file; /* string: of several that are read as one, the one it is of; 0: there is one. Only while they are read */
	bool has_times;            /* of the two below; filled by model_finish() */
	int64_t first_ns, last_ns; /* first and last instant anything is known of it */
	int64_t origin_ns;         /* times are told since then: first_ns, also where only a part of it was read */
	bool has_origin;           /* an importer that read a part knows it; else it is filled by model_finish() */
	bool is_closed;            /* it ended its recording itself (no kill, no crash) */
	bool is_alive;             /* not closed because it still records */
	bool has_lost_numbers;     /* its steps are numbered from the first that is left, others were removed again */
	bool has_removed;          /* operators that began before removed_until_ns were removed again */
	int64_t removed_until_ns;
	bool records_memory;    /* at times it recorded allocations, whether there were any or not */
	bool has_lost_memory;   /* allocations, frees or owners are missing that were behind lost_memory_ns */
	int64_t lost_memory_ns; /* INT64_MIN: nobody knows when they were */
	uint32_t lost_memory;   /* string: why, a sentence */
	bool has_lost_end;      /* that is because the recording ends too early: nothing is missing in what there is */
	uint32_t removed_memory; /* string: why older ones are not there, a sentence; 0: none were removed. What is alive is more than the rest tells */
	uint32_t end_reason;        /* string; 0: none */
	int64_t realtime_offset_ns; /* wall time = time + this */
	bool has_cost;              /* the recorder measured itself */
	double cost_per_event_ns;   /* calibrated at start */
	double cost_per_frame_ns;   /* of a stack of Python that is read; 0: none were */
	double cost_per_step_ns;    /* of asking for its CPU time */
	uint64_t stack_frames;
	int64_t drainer_cpu_ns;
	uint64_t event_count;
};

/* The same of processes that read one clock, a string; that of containers, which have names of their own, and not that of machines that were
 * cloned, which share one. "": not known. */
static inline uint32_t process_clock(const struct process *process)
{
	return process->machine ? process->machine : process->host;
}

/* Do the ids of these processes come from one table? That of a container is its own, and so is its name. */
static inline bool share_process_ids(const struct process *one, const struct process *other)
{
	return one->host == other->host && process_clock(one) == process_clock(other);
}

struct model_meta { /* facts: key = value, per process (MODEL_NONE: of the whole input) */
	uint32_t process;
	uint32_t key, value; /* strings */
};

/* What is wrong with the evidence: one entry per kind and place; reports print all of them. */
enum ledger_kind {
	LEDGER_DROPPED,       /* events dropped by a full buffer */
	LEDGER_DAMAGED,       /* bytes that could not be read */
	LEDGER_TORN_TAIL,     /* the last block was cut off */
	LEDGER_RESCUED,       /* events a rescue brought back after a kill (information) */
	LEDGER_OPEN_SPANS,    /* spans open at the end of the recording */
	LEDGER_UNMATCHED_END, /* ends without a begin */
	LEDGER_MISSING_TAIL,  /* a killed process whose pool could not be read */
	LEDGER_REMOVED,       /* events removed by rotation */
	LEDGER_CLOCK,         /* the clock stepped or was replaced */
	LEDGER_REPAIRED,      /* importers: what was repaired */
	LEDGER_OTHER,
};

/* Events that were recorded, or should have been, are not here. */
static inline bool ledger_is_loss(enum ledger_kind kind)
{
	return kind == LEDGER_DROPPED || kind == LEDGER_DAMAGED || kind == LEDGER_TORN_TAIL ||
	       kind == LEDGER_MISSING_TAIL;
}

/* What rules look for, where the kind is not enough. */
enum ledger_code {
	LEDGER_CODE_NONE,
	LEDGER_CODE_WRITERS,  /* several processes wrote into one file */
	LEDGER_CODE_NO_EVENTS /* a snapshot of memory without its history */
};

struct ledger_entry {
	enum ledger_kind kind;
	enum ledger_code code;
	uint32_t process; /* MODEL_NONE: whole input */
	uint32_t where;   /* string: file, thread or event type */
	uint64_t count;   /* events or bytes, as `text` says */
	uint32_t text;    /* string: a sentence in plain words */
	bool has_first_offset;
	uint64_t first_offset; /* of the first occurrence in the file */
};

#define MODEL_ARRAY(type, name)                                                                                        \
	type *name;                                                                                                    \
	uint32_t name##_count;                                                                                         \
	uint32_t name##_capacity

struct model {
	struct intern strings;
	struct arena arena;        /* small, long-lived things */
	bool tells_profiled;       /* tracks say whether they are profiled */
	struct storage *storage;   /* base/storage.h: where all that grows lives */
	struct model_index *index; /* finds series, metadata; private */
	/* By enum reason: words of the input's format; NULL, or an entry NULL: those of a recording of ours. See model/reasons.h. */
	const char *const *reasons;
	MODEL_ARRAY(struct process, processes);
	MODEL_ARRAY(struct track *, tracks);
	MODEL_ARRAY(struct model_step, steps); /* by process, then start */
	MODEL_ARRAY(struct value_series *, series);
	MODEL_ARRAY(struct memory_event, memory); /* by time within a process */
	MODEL_ARRAY(struct memory_owner, owners); /* the same */
	MODEL_ARRAY(struct memory_segment, segments);
	MODEL_ARRAY(struct mark, marks);
	MODEL_ARRAY(struct span_arg, args); /* by track, row */
	MODEL_ARRAY(struct model_link, links);
	MODEL_ARRAY(struct stack_node, stacks);
	MODEL_ARRAY(struct sample, samples);
	MODEL_ARRAY(struct model_meta, meta);
	MODEL_ARRAY(struct ledger_entry, ledger);

	/* Importers tell how far they are, in bytes of the input; NULL: nobody wants to know. Set it after model_init(). */
	void (*on_progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

/* Restricts what an importer loads. */
struct model_filter {
	bool has_steps;
	int64_t first_step, last_step; /* step numbers, inclusive */
	uint32_t window, last_window;  /* what a profiler in the program recorded as its nth to its mth; 0: no matter */
	int64_t pid;                   /* of that program; 0: whichever has such a window */
	bool with_past;                /* steps, and all that was before them */
};

/* memory_limit_bytes: of anonymous memory for what grows with the trace; 0: 512 MiB. */
void model_init(struct model *model, uint64_t memory_limit_bytes);
void model_release(struct model *model);

/* ---- filling (importers) ------------------------------------------------------------------------------------------- */

uint32_t model_add_process(struct model *model); /* index; fields are zero, rank and world_size -1 */
uint32_t model_add_track(struct model *model, uint32_t process, enum track_kind kind);

/* Begins a span on the track; its parent is the track's innermost open span. Returns its row. Starts must not go
 * backwards on a track (a smaller start is raised to the previous one). STATUS_NO_MEMORY is an abort. */
uint32_t model_span_begin(struct model *model, uint32_t track, int64_t start_ns, enum span_kind kind, uint32_t name);
/* Ends the innermost open span. False when none is open. */
bool model_span_end(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags);
/* Ends an open span, no phase, that is not the innermost: `levels` > 0 open ones were begun in it and go on. So that spans still lie in each
 * other it ends no later than the next one in it began (*end_ns is that then, and it has SPAN_IS_CLIPPED); that one and all behind it move up by
 * one level. Returns its row. MODEL_NONE, and nothing is done: there is no such span, or rows of this track were moved so often that it cannot
 * be a recording of a program. */
uint32_t model_span_end_beneath(struct model *model, uint32_t track, uint32_t levels, int64_t *end_ns, uint8_t flags);
/* Row and kind of the innermost open span; MODEL_NONE when none. */
uint32_t model_span_innermost(const struct model *model, uint32_t track, enum span_kind *kind);
/* A complete span. The importer gives spans of a track in order of start; nesting is found here, and a span that outlives
 * its parent is cut and flagged. */
uint32_t model_span_complete(struct model *model, uint32_t track, int64_t start_ns, int64_t dur_ns, enum span_kind kind,
                             uint32_t name);
void model_span_set_shape(struct model *model, uint32_t track, uint32_t row, uint32_t shape);
void model_span_set_sequence(struct model *model, uint32_t track, uint32_t row, uint64_t sequence);
void model_span_set_inputs(struct model *model, uint32_t track, uint32_t row, uint32_t inputs);
void model_span_set_stack(struct model *model, uint32_t track, uint32_t row, uint32_t stack);
void model_span_set_correlation(struct model *model, uint32_t track, uint32_t row, uint64_t correlation);
void model_span_arg(struct model *model, const struct span_arg *arg);

void model_add_value(struct model *model, uint32_t process, uint32_t name, bool is_metric, int64_t time_ns,
                     double value);
/* A series of a subject, and its values; it stays where it is. */
struct value_series *model_add_series(struct model *model, const struct value_series *like);
void model_series_add(struct model *model, struct value_series *series, int64_t time_ns, double value);
struct model_step *model_add_step(struct model *model); /* valid until the next call */
void model_add_memory(struct model *model, const struct memory_event *event);
/* Allocations, frees or owners behind that time are missing, and what is alive then is not known: the earliest time counts. process MODEL_NONE: of all. */
void model_lose_memory(struct model *model, uint32_t process, int64_t since_ns, const char *why);
void model_add_owner(struct model *model, const struct memory_owner *owner);
void model_add_segment(struct model *model, const struct memory_segment *segment);
void model_add_mark(struct model *model, uint32_t track, int64_t time_ns, uint32_t name);
void model_add_link(struct model *model, const struct model_link *link);
uint32_t model_add_stack(struct model *model, uint32_t parent, uint32_t frame, uint32_t line);
uint32_t model_add_frame(struct model *model, const struct stack_node *frame); /* the same, with its file */
void model_add_sample(struct model *model, const struct sample *sample);
void model_add_meta(struct model *model, uint32_t process, const char *key, const char *value); /* replaces */
/* Adds count to the entry of the same kind, process, where and text, or makes it. The entry is valid until the next call. */
struct ledger_entry *model_add_ledger(struct model *model, enum ledger_kind kind, uint32_t process, const char *where,
                                      uint64_t count, const char *text);

/* After the last row: closes open spans at their process's last_ns (flag SPAN_IS_OPEN, counted in the ledger), fills the
 * columns step and phase, sorts steps, memory, args; matches frees with allocations and finds out what those are for. */
void model_finish(struct model *model);
/* For series that were added since then. */
void model_finish_series(struct model *model);

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

const char *model_text(const struct model *model, uint32_t string);
/* NULL when the key is absent. process MODEL_NONE: any. */
const char *model_meta(const struct model *model, uint32_t process, const char *key);
/* The first argument at or behind (track, row) in model->args. */
uint32_t model_first_arg(const struct model *model, uint32_t track, uint32_t row);
/* The first row, from `row` on, that begins at that time or later; the track's span_count when there is none. */
uint32_t track_row_at(const struct track *track, uint32_t row, int64_t time_ns);
static inline struct span_chunk *track_chunk(const struct track *track, uint32_t row, uint32_t *index)
{
	/* chunks of a track have capacities FIRST_CHUNK_ROWS, twice that, ..., CHUNK_ROWS, CHUNK_ROWS, ...: see model_span_begin() */
	const uint32_t small_rows = CHUNK_ROWS - FIRST_CHUNK_ROWS; /* together */
	uint32_t chunk, first;
	if (row < small_rows) {
		chunk = 31 - (uint32_t)__builtin_clz(row / FIRST_CHUNK_ROWS + 1);
		first = FIRST_CHUNK_ROWS * ((1u << chunk) - 1);
	} else {
		chunk = SMALL_CHUNKS + (row - small_rows) / CHUNK_ROWS;
		first = small_rows + (chunk - SMALL_CHUNKS) * CHUNK_ROWS;
	}
	*index = row - first;
	return track->chunks[chunk];
}

static inline uint64_t span_sequence(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->sequence ? chunk->sequence[index] : STEPSCOPE_NO_SEQUENCE;
}

static inline uint32_t span_inputs(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->inputs ? chunk->inputs[index] : 0;
}

static inline uint32_t span_stack(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->stack ? chunk->stack[index] : 0;
}

static inline uint64_t span_correlation(const struct span_chunk *chunk, uint32_t index)
{
	return chunk->correlation ? chunk->correlation[index] : 0;
}

/* Self time of spans: calls `visit` for every span of the track in order of start, with its self time (duration minus the
 * part covered by its children). Of spans that cross, in lanes of one thread (model/lanes.h), an instant belongs to the one that
 * began last: the self times of a thread sum to the time in which it was in any span. */
struct span_view {
	const struct model *model;
	const struct track *track;
	uint32_t track_index, row;
	int64_t start_ns, dur_ns, self_ns;
	uint64_t sequence;
	uint32_t name, shape, inputs, stack, parent;
	int32_t step;
	uint16_t depth;
	uint8_t kind, flags, phase;
};
typedef bool (*span_visit)(void *context, const struct span_view *span); /* false stops */
void model_visit_spans(const struct model *model, uint32_t track, span_visit visit, void *context);

/* For code that folds over chunks itself: says that it is through with this one for now. The pages of a chunk that lives
 * in the temporary file leave memory; its contents stay valid. */
void model_chunk_done(const struct model *model, const struct span_chunk *chunk);

/* What they hold; their places in the arrays stay. */
void model_release_track(struct model *model, uint32_t track);
void model_release_series(struct model *model, uint32_t series);

#endif
