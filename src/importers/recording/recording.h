/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.h: shared by the files of the importer 'recording'. A recording is a set of segment files. They are grouped
 * into processes (host, pid, start time), and those into sessions (one set of symbols and streams: an exec or a restart
 * of the recorder starts a new one). Private to importers/.
 *
 *     recording.c            the importer: a survey of all files, then a pass that fills the model
 *     recording_files.c      finds the files
 *     recording_survey.c     first pass: processes, sessions, clocks, drops
 *     recording_order.c      the order in which files are read
 *     recording_sessions.c   start and end of a session in the second pass
 *     recording_clock.c      ticks -> nanoseconds
 *     recording_stream.c     events of a stream -> spans
 *     recording_facts.c      values, memory, samples, links, arguments
 *     recording_frames.c     stacks of Python
 *     recording_links.c      from operators to their backward
 *     recording_torch.c      steps and phases that the program did not mark
 *     recording_processes.c  times, costs and end of a process
 *     recording_ledger.c     missing parts, and the reasons
 *     recording_losses.c     the time since which live memory is unknown
 */
#ifndef IMPORTERS_RECORDING_RECORDING_H
#define IMPORTERS_RECORDING_RECORDING_H

#include "format/segment.h"
#include "importers/recording/recording_clock.h"
#include "importers/recording/recording_spans.h"
#include "model/model.h"
#include "model/number_map.h"
#include "steps/infer_steps.h"

#define RECORDING_MAX_SYMBOLS 1000000u         /* per session */
#define RECORDING_MAX_TEXT ((uint64_t)1 << 28) /* bytes of their texts */
#define RECORDING_MAX_TRACKS 1000000u          /* streams and tracks of a recording */
#define RECORDING_MAX_PLACEHOLDERS 4000000u    /* spans that stand for dropped begins */

struct recorded_symbol {
	uint32_t string; /* string of the model */
	/* kind INPUTS: string of the sizes, 0: none; kind FRAME: index into the session's frames */
	uint32_t shape;
	uint8_t kind; /* enum stepscope_symbol_kind */
	bool is_known;
	bool is_rare; /* a range that is recorded in steps without operators, too */
};
struct recorded_frame {  /* a Python frame */
	uint32_t caller; /* symbol */
	uint32_t stack;  /* stack of the model; 0: not built yet */
	uint32_t depth;  /* number of frames in it */
	struct stack_node place;
};
#define SYMBOL_PAGE 4096u
#define SYMBOL_PAGES ((1u << 24) / SYMBOL_PAGE)

struct level {                /* an open span of a stream */
	uint32_t coarse;      /* 1 + index of the nearest step, phase or micro-batch at or below; 0: none */
	uint32_t placeholder; /* like coarse, for the nearest span with a dropped BEGIN */
	uint32_t rare;        /* number of levels at or below with a symbol that is_rare */
	uint8_t kind;         /* enum span_kind */
	bool is_over;         /* its span ended at end_ns with an inferred step or phase; its END is still to come */
	int64_t end_ns;
	uint32_t cut_row; /* the first span that was cut where this one started, MODEL_NONE */
	int64_t cut_ns;
};

struct stream {
	uint32_t number;
	struct stepscope_stream_info info;
	uint32_t name;  /* string */
	uint32_t track; /* in the model; MODEL_NONE: no event yet */
	struct level *levels;
	uint32_t level_count, level_capacity;
	uint32_t deeper;     /* open spans that the model does not store */
	uint64_t outlived;   /* ranges that a step or phase ended, whose own ends have not come */
	uint32_t step;       /* index into model.steps of the open step, MODEL_NONE */
	uint32_t step_level; /* its index in levels */
	int64_t step_number; /* number of the latest step */
	bool has_step_number;
	bool has_step_gap; /* events were dropped since the step started, from step_gap_ns on */
	int64_t step_gap_ns;
	struct clock_cursor clock;
	int64_t last_ns, before_ns; /* the last event and the one before */
	bool has_events;
	bool has_hole; /* events are missing before here, so ends without begins are expected */
	/* from the first pass: segments that rotation left */
	bool is_in_segments;
	uint64_t first_word, first_tick;
	uint64_t next_word;
	/* evidence */
	uint64_t unmatched, unmatched_steps, gap_events;
	uint64_t overlaps, overlap_ns; /* spans that were cut because spans that started inside them continued */
	uint64_t gap_tick, gap_count;  /* the last GAP */
	bool has_gap;
	int64_t gap_ns; /* events after this time may have been dropped: time of the first GAP */
	bool has_drops;
	struct stepscope_drops drops;
	/* the span that a following LINK or ARG belongs to */
	struct span_ref last;
	struct span_queue queue; /* complete spans of this stream */
	uint32_t window;         /* cursor into the process's windows */
	bool is_window_open;
	uint32_t capture;      /* cursor into the process's captures */
	bool is_detail_off;    /* the captures say: no ranges and operations now */
	uint32_t forwards;     /* 1 + index of its operators that may have a backward, see recording_links.h; 0: none */
	uint64_t torch_thread; /* PyTorch's number of the thread, if it appears before the loaded part; 0: unknown */
	/* steps and phases to insert, see recording_torch.h */
	struct inferred *inferred;
	uint32_t inferred_count, inferred_next;
	uint32_t inferred_open[4], inferred_depth; /* indices, outermost first */
	bool has_own_phases, has_own_steps;
	const struct inferred *marked; /* step just inserted where the range that marks it starts; NULL: none */
};

struct declared_track {
	uint32_t track; /* in the model */
	struct span_queue queue;
};

struct capture_change {
	int64_t time_ns;
	int64_t event_ns; /* time of the event: slightly after time_ns if steps were counted */
	uint8_t capture, mask;
	bool is_counted; /* the program marked no steps: `count` steps had ended by then */
	uint64_t count;
};

struct late_count { /* tokens or samples from a thread that has no step */
	int64_t time_ns;
	uint64_t count;
	bool is_tokens;
};

struct time_window {
	int64_t start_ns, end_ns;
};

struct recorded_session {
	uint32_t number;                /* from the segment header */
	uint32_t first_segment;         /* smallest number */
	uint32_t process;               /* index into recording.processes */
	struct recorded_symbol **pages; /* SYMBOL_PAGE symbols each; NULL outside the second pass */
	uint32_t symbol_count;
	uint64_t text_bytes;
	struct recorded_frame *frames; /* recording_frames.c */
	uint32_t frame_count, frame_capacity;
	struct number_map stream_map, track_map, stack_map;
	struct number_map link_map[3]; /* by enum stepscope_link: number -> index into model.links */
	struct stream **streams;
	uint32_t stream_count, stream_capacity;
	struct declared_track **tracks;
	uint32_t track_count, track_capacity;
	uint64_t removed_words;
	uint64_t unnamed; /* uses of names that are missing */
	bool has_coarse;
	bool has_removed;
	uint32_t oldest_segment;   /* among the segments that are not coarse */
	uint64_t oldest_tick;      /* the tick at which it starts */
	struct torch_scan *torch;  /* between the passes */
	struct torch_links *links; /* in the second pass, see recording_links.h */
	/* streams that started windows: 1: a loaded window is among them; 2: other windows only */
	struct number_map own_windows;
	int64_t detail_since_ns; /* time of oldest_tick, if older events were removed */
	bool infers_phases;      /* the program marks no phases: they are inferred from operators */
};

/* After since_ns, allocations, frees or owners may be missing; INT64_MIN: the time is unknown */
struct memory_loss {
	bool has_any;
	int64_t since_ns;
	const char *why;
};

/* The first and the last of some times. */
struct time_range {
	bool is_known; /* there is one */
	int64_t first_ns, last_ns;
};

enum recorded_end {
	RECORDED_UNCLOSED, /* the process ended without closing its recording, or it is not known yet whether it lives */
	RECORDED_CLOSED,
	RECORDED_ALIVE, /* it still records. Set by recording_fill_process() */
};

struct recorded_process {
	uint32_t process; /* in the model */
	const char *host;
	struct stepscope_segment_header header; /* header of its first segment */
	struct clock_line *lines[4];            /* clocks in the order they were used */
	uint32_t line_count;
	struct time_range times;   /* of its loaded events */
	struct time_range anchors; /* of its anchors, as written in them */
	bool has_begin;
	int64_t begin_ns; /* its first event, even if that is not loaded */
	uint64_t events;
	uint64_t stack_frames; /* number of frames in the stacks that were read */
	enum recorded_end end;
	bool infers_phases;     /* in any of its sessions */
	const char *end_reason; /* in the model's arena, NULL: none */
	struct capture_change *captures;
	uint32_t capture_count, capture_capacity;
	struct late_count *late_counts;
	uint32_t late_count_count, late_count_capacity;
	struct time_window *windows; /* time ranges that the filter loads */
	uint32_t window_count, window_capacity;
	struct memory_loss memory_loss;
	bool has_memory;              /* allocations or frees */
	bool has_rescue;              /* its buffers were folded into the recording after it died */
	struct number_map tid_tracks; /* thread id -> track of the model, across sessions */
};

struct recorded_file {
	char *path; /* NULL: `data` */
	const void *data;
	uint64_t bytes;
	const char *name; /* for messages */
	char *host;       /* from the name, "" unknown */
	bool is_usable;
	struct stepscope_segment_header header;
	struct segment_stats stats;
	uint32_t session;       /* index into recording.sessions */
	const char *end_reason; /* in the model's arena, NULL: none */
};

/* A process whose buffers still exist but could not be folded into its recording. */
struct unfolded {
	int64_t pid;
	char problem[300];
};

struct recording {
	struct model *model;
	const struct model_filter *filter;
	struct recorded_file *files;
	uint32_t file_count, file_capacity;
	struct recorded_process **processes;
	uint32_t process_count;
	struct recorded_session **sessions;
	uint32_t session_count;
	struct clock_set clocks;
	uint32_t track_total;
	uint64_t refused_tracks, refused_symbols;
	uint32_t placeholders;
	uint64_t read_bytes, total_bytes; /* bytes of blocks, in the pass that fills the model */
	struct unfolded *unfolded;
	uint32_t unfolded_count;
	bool has_windows;
	/* while a file is read */
	struct recorded_file *file;
	struct recorded_session *session;
	struct recorded_process *process;
};

/* ---- recording.c ---- */

/* Loads segments from memory, for tests. Fills the model like the importer, without model_finish(). */
struct recording_bytes {
	const void *data;
	uint64_t bytes;
	const char *name; /* like a file name */
};
enum status recording_load_memory(const struct recording_bytes *segments, uint32_t count,
                                  const struct model_filter *filter, struct model *model, struct error *err) MUST_CHECK;

static inline struct recorded_symbol recording_symbol(const struct recorded_session *session, uint32_t id)
{
	const struct recorded_symbol *page = session->pages[id % (1u << 24) / SYMBOL_PAGE];
	return page ? page[id % SYMBOL_PAGE] : (struct recorded_symbol){0};
}

#endif
