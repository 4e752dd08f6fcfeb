/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: a trace in memory, the same for our recordings and for imported traces. Importers fill it through the
 * model_* functions, analyses and exporters read the structs directly (const) and fold over chunks.
 *
 * Shape: processes own tracks (threads, device streams); a track owns its spans in chunks of columns, in order of their
 * start, parents before children. Times are integer nanoseconds on one time line per model (CLOCK_MONOTONIC of the
 * first process's boot, or the trace's own origin). realtime_offset_ns converts them to wall time. No value is a
 * sentinel: a field that may be missing has a `has_` field beside it.
 *
 * Memory: chunks and the arrays below live in anonymous memory up to the limit of model_init(), then in unlinked
 * temporary files (base/storage.h). Pointers into chunks stay valid until model_release(). Strings are numbers of
 * model.strings (0: none; 1..7: the names of enum stepscope_phase). One writer, then any number of readers. The model
 * is not thread-safe while it is filled.
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
	SPAN_IS_OPEN = 1,       /* never ended: the recording stops inside it; it ends at the process's last instant */
	SPAN_END_IS_LOST = 2,   /* its end was dropped, alone or in a dropped stretch; closed where the loss is known */
	SPAN_START_IS_LOST = 4, /* a placeholder for spans whose start was dropped */
	SPAN_IS_CLIPPED = 8,    /* cut to fit: it outlived its parent, or ended before a child ended */
	SPAN_IS_BACKWARD = 32,  /* an op that is a node of a backward */
	SPAN_IS_SCRIPT = 64,    /* an op that is a function of TorchScript */
	SPAN_IS_CUT = 16,       /* it went on after recording of operators stopped; it ends here at that time */
	SPAN_IS_INFERRED = 32,  /* a phase or step that the program did not mark */
	SPAN_ENDS_ELSEWHERE = 128, /* ended in another thread, or after the loaded window of a profiler */
};
/* The numbers add up to their union only if no two share a bit. One bit has two meanings, since a node of a
 * backward is no phase or step. */
static_assert(SPAN_IS_OPEN + SPAN_END_IS_LOST + SPAN_START_IS_LOST + SPAN_IS_CLIPPED + SPAN_IS_CUT + SPAN_IS_BACKWARD +
                              SPAN_IS_SCRIPT + SPAN_ENDS_ELSEWHERE ==
                      (SPAN_IS_OPEN | SPAN_END_IS_LOST | SPAN_START_IS_LOST | SPAN_IS_CLIPPED | SPAN_IS_CUT |
                       SPAN_IS_BACKWARD | SPAN_IS_SCRIPT | SPAN_ENDS_ELSEWHERE),
              "flags are distinct bits");
static_assert((int)SPAN_IS_INFERRED == (int)SPAN_IS_BACKWARD, "the bit that ops share with phases and steps");

#define CHUNK_ROWS 65536u
#define FIRST_CHUNK_ROWS 16u /* small, because a trace may have 50,000 threads with an operator each */
#define SMALL_CHUNKS 12u     /* number of chunks before the first of CHUNK_ROWS */
static_assert(FIRST_CHUNK_ROWS << SMALL_CHUNKS == CHUNK_ROWS, "each is twice as large as the one before");

/* Returns true if the duration is measured. Otherwise it is only the known part. */
static inline bool span_is_timed(uint8_t flags)
{
	return !(flags & (SPAN_IS_OPEN | SPAN_END_IS_LOST | SPAN_START_IS_LOST));
}

/* Columns of up to CHUNK_ROWS spans of one track. Row r of the track is rows[r - first_row] of its chunk. */
struct span_chunk {
	uint32_t first_row;
	uint32_t count;
	uint32_t capacity;
	int64_t min_start_ns, max_end_ns; /* maximum over completed spans; model_finish() makes it exact */
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
	/* NULL if no span of the chunk has a value: read them through span_sequence(), ... */
	uint64_t *sequence; /* as the first word of a BEGIN event; STEPSCOPE_NO_SEQUENCE: none */
	uint32_t *inputs; /* string: text of a symbol of kind INPUTS; for device work: model/launch_config.h; 0: none */
	uint32_t *stack;  /* index into model.stacks of the Python frame that began it, 0: none or not known */
	uint64_t *correlation; /* number shared by a launch and the device work it started; 0: none */
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
	uint32_t torch_thread; /* PyTorch's number of the thread; 0: unknown */
	bool is_profiled;      /* the profiler whose windows were loaded follows this thread */
	uint32_t name;         /* string, 0: unknown */
	uint32_t last_call; /* string: call it was in when its process died, if no operators were recorded; 0: none */
	uint32_t sort;      /* order among the tracks of its process */
	uint32_t span_count;
	uint32_t chunk_count;
	struct span_chunk **chunks;
};

enum step_reading { /* values of a step that come from the readings next to its start and end */
	STEP_READ_CPU = 1,
	STEP_READ_WAIT = 2,
	STEP_READ_PROCESS = 4,
};

struct model_step {
	uint32_t process;
	uint32_t track; /* track of its span */
	uint32_t row;   /* row of its span */
	int64_t number;
	int64_t start_ns, end_ns;
	bool is_open;     /* its end is unknown: the recording stops inside it, or the end was dropped */
	bool is_inferred; /* the program did not mark it */
	bool has_tokens, has_samples, has_cpu, has_page_faults;
	uint64_t tokens, samples;
	int64_t cpu_ns;            /* has_cpu: of the thread that marks the step */
	uint64_t waits;            /* has_cpu: number of times it waited for something other than a processor */
	uint64_t page_faults;      /* has_page_faults: of that thread, without those that read from a disk */
	uint8_t readings;          /* bits of enum step_reading: which of the next three are known */
	int64_t read_cpu_ns;       /* CPU time of the step's thread, from its readings */
	int64_t processor_wait_ns; /* time that this thread waited for a processor */
	int64_t process_cpu_ns;
	uint8_t capture;     /* enum stepscope_capture in force when it began */
	bool has_detail;     /* ranges and ops were recorded during the whole step */
	bool has_any_detail; /* or during a part of it, or they were removed later: recording them slowed the step */
	bool has_rare;       /* rare events (pytorch_is_rare(): garbage collections, ...) were recorded in all of it */
	bool has_shapes, has_memory;
	bool has_calls_only;  /* phases are inferred from calls only: forward and other are unknown */
	bool has_lost_phases; /* phases would be inferred from operators that were removed: they are unknown */
};

struct value_series { /* a counter or a metric of a process */
	uint32_t process;
	uint32_t name;
	bool is_metric;
	uint32_t subject; /* string: the device or other thing it describes; 0: the process */
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
	uint32_t row; /* innermost span open on the track at that time, MODEL_NONE: none */
	/* Filled by model_finish(); indexes, MODEL_NONE: none. For a free: its allocation. For an allocation: the event
	 * that ended it. That event is its free, or the next allocation at the address, whose `ends` is this
	 * allocation. */
	uint32_t partner;
	uint32_t ends;    /* allocation whose free was not seen */
	uint32_t stack;   /* index into model.stacks of the frame that asked for it; 0: that of the span, or unknown */
	int16_t device;   /* -1: host memory */
	uint8_t category; /* enum stepscope_memory, UNKNOWN until model_finish(); of a free: of its allocation */
	bool is_free;
	bool has_bytes;
	/* Added by model_finish(), not recorded. Either an allocation that an owner reported later, or a free in a
	 * stretch without memory recording. Such a free is added if the allocation may not have outlived the
	 * stretch. */
	bool is_found;
	bool is_data; /* input of a model, says an owner: used if no other rule decides; by model_finish() */
};

struct memory_owner { /* an owner that held memory at this time */
	int64_t time_ns;
	uint64_t address;
	uint64_t bytes; /* 0: unknown */
	uint32_t process;
	uint32_t track;
	int16_t device;
	uint8_t category;
};

/* Memory that an allocator took from a device in one piece, and its use at the end. Blocks tile it: blocks given out,
 * blocks given back but still in use by the device (pending), and free blocks. */
struct memory_segment {
	uint64_t address;
	uint64_t bytes;
	uint64_t active_bytes;       /* of blocks given out, rounded up as the allocator does */
	uint64_t requested_bytes;    /* bytes that the program asked for in these blocks */
	uint64_t pending_bytes;      /* given back, not yet free */
	uint64_t largest_free_bytes; /* largest free block */
	uint64_t stream;
	uint64_t pool; /* pool that may use it, 0: the common one */
	uint32_t process;
	uint32_t active_blocks, free_blocks;
	uint32_t type;  /* string: "large", "small"; 0: unknown */
	uint32_t stack; /* stack that made the allocator take it, 0: unknown */
	int16_t device;
	bool is_expandable;
};

/* Sums of 64-bit sizes. A broken or hostile program may give sizes whose sum does not fit a table or a trace. */
__extension__ typedef __int128 wide_bytes;

static inline int64_t bytes_that_fit(wide_bytes bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : bytes < INT64_MIN ? INT64_MIN : (int64_t)bytes;
}

struct thread_reading { /* totals of a thread since its start */
	int64_t time_ns;
	uint32_t track;
	uint64_t cpu_ns;
	uint64_t wait_ns;    /* time that it waited for a processor; STEPSCOPE_USE_UNKNOWN: not measured */
	uint64_t process_ns; /* CPU time of its process; STEPSCOPE_USE_UNKNOWN: not read here */
};

struct mark {
	int64_t time_ns;
	uint32_t track;
	uint32_t name;
};

struct span_arg { /* extra facts of a span, for which there is no column */
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
	uint32_t from_track, from_row, to_track, to_row; /* MODEL_NONE if one half is missing */
};

struct stack_node {
	uint32_t parent; /* index into model.stacks, 0: root (entry 0 is unused) */
	uint32_t frame;  /* string: the function; "" stands for unknown frames */
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
	uint32_t machine; /* string: the boot of the machine; 0: not recorded, use the host's name */
	int64_t pid;
	int64_t parent_pid;       /* 0: unknown */
	uint64_t start_time;      /* clock ticks since boot, as in /proc/PID/stat */
	uint64_t pid_namespace;   /* namespace of both pids; 0: unknown */
	uint8_t role;             /* enum stepscope_role */
	int32_t rank, world_size; /* -1: unknown */
	uint32_t twin;            /* from 1, among processes with equal rank and pid, as in containers; 0: none */
	bool is_twin_of_host;     /* it has a twin on its host; model_finish() sets both */
	uint32_t name;            /* string: program */
	uint32_t file;  /* string: its file, if several are read as one; otherwise 0. Used only while reading */
	bool has_times; /* of first_ns and last_ns; filled by model_finish() */
	int64_t first_ns, last_ns; /* first and last instant with data of the process */
	int64_t origin_ns;         /* zero of displayed times: first_ns, even if only a part was read */
	bool has_origin;           /* set by an importer that read a part; otherwise model_finish() sets it */
	bool is_closed;            /* it ended its recording properly (no kill, no crash) */
	bool is_alive;             /* not closed because it is still recording */
	bool has_lost_numbers;     /* its steps are numbered from the first step left; earlier steps were removed */
	bool has_removed;          /* operators that started before removed_until_ns were removed */
	int64_t removed_until_ns;
	bool records_memory;    /* it recorded allocations at times, even if there were none */
	bool has_lost_memory;   /* allocations, frees or owners after lost_memory_ns are missing */
	int64_t lost_memory_ns; /* INT64_MIN: unknown when */
	uint32_t lost_memory;   /* string: the reason, a sentence */
	bool has_lost_end;      /* only because the recording ends too early; the recorded part is complete */
	/* string: a sentence, why older allocations are missing; then more is alive than the rest shows. 0: none are */
	uint32_t removed_memory;
	uint32_t end_reason;                                     /* string; 0: none */
	int64_t realtime_offset_ns;                              /* wall time = time + this */
	bool has_cost;                                           /* the recorder measured its own cost */
	double cost_per_event_ns;                                /* calibrated at start */
	double cost_per_frame_ns;                                /* per Python frame read; 0: no stacks were read */
	double cost_per_step_ns;                                 /* of reading the CPU time of a step */
	double cost_per_reading_ns, cost_per_process_reading_ns; /* of a reading; extra, with the process's CPU time */
	uint64_t stack_frames;
	int64_t drainer_cpu_ns;
	uint64_t event_count;
};

/* Returns a string that is equal for processes that read the same clock: the machine's boot, or the host if that was
 * not recorded. Containers on a machine have different names but share its clock. Cloned machines share a name but not
 * a clock. "": unknown. */
static inline uint32_t process_clock(const struct process *process)
{
	return process->machine ? process->machine : process->host;
}

/* Returns true if the ids of both processes come from one table. A container has its own table and its own name. */
static inline bool share_process_ids(const struct process *one, const struct process *other)
{
	return one->host == other->host && process_clock(one) == process_clock(other);
}

struct model_meta { /* facts: key = value, per process (MODEL_NONE: for the whole input) */
	uint32_t process;
	uint32_t key, value; /* strings */
};

/* Kinds of defects in the evidence: one entry per kind and place. Reports print all of them. */
enum ledger_kind {
	LEDGER_DROPPED,       /* events dropped by a full buffer */
	LEDGER_DAMAGED,       /* bytes that could not be read */
	LEDGER_TORN_TAIL,     /* the last block was cut off */
	LEDGER_RESCUED,       /* events that a rescue recovered after a kill (information) */
	LEDGER_OPEN_SPANS,    /* spans open at the end of the recording */
	LEDGER_UNMATCHED_END, /* ends without a start */
	LEDGER_MISSING_TAIL,  /* a killed process whose pool could not be read */
	LEDGER_REMOVED,       /* events removed by rotation */
	LEDGER_CLOCK,         /* the clock stepped or was replaced */
	LEDGER_REPAIRED,      /* importers: a repair of the input */
	LEDGER_OTHER,
};

/* Returns true if events that were, or should have been, recorded are missing. */
static inline bool ledger_is_loss(enum ledger_kind kind)
{
	return kind == LEDGER_DROPPED || kind == LEDGER_DAMAGED || kind == LEDGER_TORN_TAIL ||
	       kind == LEDGER_MISSING_TAIL;
}

/* What rules look for, where the kind is not enough. */
enum ledger_code {
	LEDGER_CODE_NONE,
	LEDGER_CODE_WRITERS,         /* several processes wrote into one file */
	LEDGER_CODE_NO_EVENTS,       /* a snapshot of memory without its history */
	LEDGER_CODE_AMBIGUOUS_STEPS, /* the program can be read as several numbers of steps */
	LEDGER_CODE_UNCERTAIN_STEPS, /* the number of steps rests on a guess */
	LEDGER_CODE_END
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
	struct arena arena;        /* small, long-lived objects */
	bool tells_profiled;       /* tracks know whether they are profiled */
	struct storage *storage;   /* base/storage.h: holds everything that grows */
	struct model_index *index; /* finds series and metadata; private */
	/* By enum reason: words for the input's format. NULL, or a NULL entry: the words for our recordings. See
	 * model/reasons.h. */
	const char *const *reasons;
	MODEL_ARRAY(struct process, processes);
	MODEL_ARRAY(struct track *, tracks);
	MODEL_ARRAY(struct model_step, steps); /* by process, then start */
	MODEL_ARRAY(struct value_series *, series);
	MODEL_ARRAY(struct memory_event, memory); /* by time within a process */
	MODEL_ARRAY(struct memory_owner, owners); /* the same */
	MODEL_ARRAY(struct memory_segment, segments);
	MODEL_ARRAY(struct thread_reading, readings); /* by track, then time */
	MODEL_ARRAY(struct mark, marks);
	MODEL_ARRAY(struct span_arg, args); /* by track, row */
	MODEL_ARRAY(struct model_link, links);
	MODEL_ARRAY(struct stack_node, stacks);
	MODEL_ARRAY(struct sample, samples);
	MODEL_ARRAY(struct model_meta, meta);
	MODEL_ARRAY(struct ledger_entry, ledger);

	/* Importers report their progress in bytes of the input. May be NULL. Set it after model_init(). */
	void (*on_progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

/* Limits the data that an importer loads. */
struct model_filter {
	bool has_steps;
	int64_t first_step, last_step; /* step numbers, inclusive */
	uint32_t window, last_window;  /* range of windows recorded by a profiler in the program; 0: any */
	int64_t pid;                   /* of the program with that window; 0: any program that has it */
	bool with_past;                /* load these steps and everything before them */
};

/* memory_limit_bytes: limit of anonymous memory for data that grows with the trace; 0: 512 MiB. */
void model_init(struct model *model, uint64_t memory_limit_bytes);
void model_release(struct model *model);

/* ---- filling (importers) ----------------------------------------------------------------------------------------- */

uint32_t model_add_process(struct model *model); /* index; fields are zero, rank and world_size -1 */
uint32_t model_add_track(struct model *model, uint32_t process, enum track_kind kind);

/* Begins a span on the track; its parent is the track's innermost open span. Returns its row. Starts must not decrease
 * on a track (a smaller start is raised to the previous one). STATUS_NO_MEMORY is an abort. */
uint32_t model_span_begin(struct model *model, uint32_t track, int64_t start_ns, enum span_kind kind, uint32_t name);
/* Ends the innermost open span. Returns false if no span is open. */
bool model_span_end(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags);
/* Ends an open span (not a phase) that is not the innermost: `levels` > 0 open spans were begun in it and go on. To
 * keep spans nested, it ends no later than the start of the next span in it. In that case *end_ns becomes that start
 * and the span gets SPAN_IS_CLIPPED. The next span and all after it move up by one level. Returns the span's row.
 *
 * Returns MODEL_NONE and does nothing if there is no such span, or if rows of this track were moved too often for a
 * real recording. */
uint32_t model_span_end_beneath(struct model *model, uint32_t track, uint32_t levels, int64_t *end_ns, uint8_t flags);
/* Returns row and kind of the innermost open span; MODEL_NONE if no span is open. */
uint32_t model_span_innermost(const struct model *model, uint32_t track, enum span_kind *kind);
/* Adds a complete span. The importer gives spans of a track in order of start; nesting is found here. A span that
 * outlives its parent is cut and flagged. */
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
/* Adds a series of a subject. The series keeps its address; add its values with model_series_add(). */
struct value_series *model_add_series(struct model *model, const struct value_series *like);
void model_series_add(struct model *model, struct value_series *series, int64_t time_ns, double value);
struct model_step *model_add_step(struct model *model); /* valid until the next call */
void model_add_memory(struct model *model, const struct memory_event *event);
/* Notes that allocations, frees or owners after that time are missing, so that live memory is unknown from then on. The
 * earliest time counts. process MODEL_NONE: all processes. */
void model_lose_memory(struct model *model, uint32_t process, int64_t since_ns, const char *why);
void model_add_owner(struct model *model, const struct memory_owner *owner);
void model_add_reading(struct model *model, const struct thread_reading *reading);
void model_add_segment(struct model *model, const struct memory_segment *segment);
void model_add_mark(struct model *model, uint32_t track, int64_t time_ns, uint32_t name);
void model_add_link(struct model *model, const struct model_link *link);
uint32_t model_add_stack(struct model *model, uint32_t parent, uint32_t frame, uint32_t line);
uint32_t model_add_frame(struct model *model, const struct stack_node *frame); /* the same, with the frame's file */
void model_add_sample(struct model *model, const struct sample *sample);
void model_add_meta(struct model *model, uint32_t process, const char *key, const char *value); /* replaces */
/* Adds count to the entry of the same kind, process, where and text, or creates the entry. The entry is valid until the
 * next call. */
struct ledger_entry *model_add_ledger(struct model *model, enum ledger_kind kind, uint32_t process, const char *where,
                                      uint64_t count, const char *text);

/* After the last row: closes open spans at their process's last_ns (flag SPAN_IS_OPEN, counted in the ledger). Fills
 * the columns step and phase, and sorts steps, memory and args. Matches frees with allocations and finds their
 * categories. */
void model_finish(struct model *model);
/* For series added after model_finish(). */
void model_finish_series(struct model *model);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

const char *model_text(const struct model *model, uint32_t string);
/* Returns NULL if the key is absent. process MODEL_NONE: any. */
const char *model_meta(const struct model *model, uint32_t process, const char *key);
/* Returns the index of the first argument at or after (track, row) in model->args. */
uint32_t model_first_arg(const struct model *model, uint32_t track, uint32_t row);
/* Returns the first row, from `row` on, that starts at that time or later; the track's span_count if there is none. */
uint32_t track_row_at(const struct track *track, uint32_t row, int64_t time_ns);
static inline struct span_chunk *track_chunk(const struct track *track, uint32_t row, uint32_t *index)
{
	/* Chunks of a track have capacities FIRST_CHUNK_ROWS, twice that, ..., CHUNK_ROWS, CHUNK_ROWS, ...: see
	 * model_span_begin(). */
	const uint32_t small_rows = CHUNK_ROWS - FIRST_CHUNK_ROWS; /* of all small chunks together */
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

/* Calls `visit` for every span of the track in order of start, with its self time: its duration minus the part covered
 * by its children. If spans cross, in lanes of one thread (model/lanes.h), an instant belongs to the span that started
 * last. So the self times of a thread sum to the time in which it was in any span. */
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

/* For code that folds over chunks itself: the caller is done with this chunk for now. The pages of a chunk that is in
 * the temporary file leave memory; its contents stay valid. */
void model_chunk_done(const struct model *model, const struct span_chunk *chunk);

/* Release the contents of a track or series; its place in the array stays. */
void model_release_track(struct model *model, uint32_t track);
void model_release_series(struct model *model, uint32_t series);

#endif
