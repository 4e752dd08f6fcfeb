/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_import.h: shared by the files that turn a trace of Kineto, or any Chrome trace, into the model. One
 * kineto_import is one file on its way: kineto_events.c stages its events, kineto_facts.c the values around them, and
 * kineto_finish.c hands all of it to the model.
 */
#ifndef IMPORTERS_KINETO_KINETO_IMPORT_H
#define IMPORTERS_KINETO_KINETO_IMPORT_H

#include "importers/importer.h"
#include "importers/kineto/kineto_file.h"
#include "importers/kineto/kineto_stage.h"

struct kineto_memo { /* texts of args that were seen before, and the strings made of them */
	struct intern raws;
	struct kineto_known {
		uint32_t shape, inputs; /* strings */
	} * known;                      /* by number in raws */
	uint32_t capacity;
	size_t bytes; /* total length of raws */
};

struct kineto_clock { /* a sample of launches and the work that they started: kineto_clock.c */
	struct clock_sample *samples;
	uint32_t count, capacity;
	uint32_t halvings;
};

/* Detects several writers: the order of operators and runtime calls in the file, see kineto_writers.c. */
struct kineto_writers {
	bool has_any;
	uint32_t track;                /* track of the last call */
	uint64_t offset;               /* offset of the last call in the file */
	uint64_t at_breaks, elsewhere; /* changes of the process */
	uint64_t first_offset;         /* offset of the first of at_breaks */
	uint64_t other_ranks;          /* ranks in the file that differ from the one before */
};

struct kineto_set;

#define KINETO_MEMORY_DEVICES 64   /* devices whose totals are kept, besides the host */
#define KINETO_NO_NAME "(no name)" /* Kineto's markers have "" */

struct kineto_import {
	struct model *model;
	struct kineto_stage stage;
	struct kineto_repairs repairs; /* in addition to those of the file */
	const struct kineto_repairs *of_file;
	struct kineto_writers writers;
	const char *path;
	uint64_t offset;                 /* offset of the current event */
	struct buffer text, inputs, raw; /* scratch */
	struct kineto_memo memo;
	struct kineto_clock clock;
	/* state of the whole file */
	bool has_base, has_rank;
	int64_t base_ns, rank, world_size;
	uint32_t host;    /* string */
	bool is_ours;     /* our own exporter wrote it: certain only after the whole file was read (kineto_know_own) */
	bool has_extents; /* and states when the recording of each process started and ended */
	bool has_counts;  /* and states the number of its events */
	bool is_repaired; /* some of them may be missing */
	bool has_shapes, has_memory, has_correlation, has_python;
	bool has_no_sequence;               /* no operator has a sequence number; for kineto_infer() */
	uint64_t event_count;               /* spans, marks, values, allocations: events that reports can use */
	uint64_t rare_count, unknown_count; /* events of kinds that are not read */
	uint64_t args_left_out, args_cut;
	uint64_t without_address; /* allocations */
	uint64_t allocated_peaks[KINETO_MEMORY_DEVICES + 1],
		reserved_peaks[KINETO_MEMORY_DEVICES + 1]; /* by 1 + device */
	/* from the files before, if several make one model */
	uint32_t first_process;
	uint32_t main_process; /* the trainer's; set by kineto_finish() */
	bool has_origin;
	int64_t origin_base_ns; /* wall time of the model's 0 */
	struct kineto_set *set; /* the set of files; NULL: there is one file */
	bool is_copy;           /* the file is a copy of one in the set and was not added to the model */
	bool is_other_json;     /* it has no list of events, and is valid otherwise */
};

/* Returns the text of a value as a string of the model. */
uint32_t kineto_intern(struct kineto_import *import, const struct kineto_value *value);
struct staged_place kineto_place(struct kineto_import *import, const struct kineto_value *value);

/* kineto_events.c */
void kineto_take_event(void *import, const struct kineto_event *event, uint64_t offset);

/* kineto_async.c: halves of asynchronous spans, which are joined after the file is read. */
bool kineto_is_async(char phase);
uint32_t kineto_async_track(struct kineto_import *import, const struct kineto_event *event);
void kineto_take_async(struct kineto_import *import, const struct kineto_event *event, const struct staged_span *span,
                       bool is_end);
void kineto_pair_asyncs(struct kineto_import *import);

/* kineto_kinds.c: the kind of a category. */
struct kineto_kind {
	enum span_kind kind;
	bool is_device;
};
struct kineto_kind kineto_kind_of(const struct kineto_event *event);

/* kineto_args.c: args into columns. */
void kineto_memo_init(struct kineto_import *import);
void kineto_memo_release(struct kineto_import *import);
void kineto_take_inputs(struct kineto_import *import, const struct kineto_event *event, struct staged_span *span);
void kineto_take_launch(struct kineto_import *import, const struct kineto_event *event, struct staged_span *span);
/* With is_launch, skips the args that kineto_take_launch() took. */
void kineto_take_args(struct kineto_import *import, const struct kineto_event *event, bool is_launch,
                      struct staged_span *span);

/* kineto_facts.c */
void kineto_take_metadata(struct kineto_import *import, const struct kineto_event *event);
void kineto_take_fact(void *import, const struct kineto_value *key, const struct kineto_value *value);
/* Applies facts that depend on the file's writer, after the whole file was read. */
void kineto_know_own(struct kineto_import *import);

/* kineto_finish.c */
void kineto_finish(struct kineto_import *import);

/* kineto_owners.c: returns, by staged track, the process that launched the work on it; the caller frees it. MODEL_NONE:
 * the process is unknown, or `process` is already set, or the track is not a device's, or the file has only one
 * process. kinds: enum track_kind by staged track. */
uint32_t *kineto_find_owners(const struct kineto_import *import, const uint8_t *kinds);

/* kineto_infer.c: steps and phases that the file does not mark. Call before tracks are delivered. kinds: enum
 * track_kind by staged track. */
void kineto_infer(struct kineto_import *import, const uint8_t *kinds);

/* kineto_flows.c: call after the spans that flows connect are delivered. */
void kineto_deliver_flows(struct kineto_import *import, int64_t shift_ns);

/* kineto_memory.c: sorts allocations by time and drops duplicates. Call before addresses are found. */
void kineto_sort_memory(struct kineto_stage *stage);
/* Gives addresses to allocations that have none. */
void kineto_find_addresses(struct kineto_import *import);
/* Notes the total that the allocator of a device (-1: of the host) reports, which includes memory from before the
 * trace. The largest total becomes a fact. */
void kineto_take_totals(struct kineto_import *import, int device, const struct kineto_value *known);
void kineto_deliver_totals(struct kineto_import *import);

/* kineto_steps.c: the steps that spans of kind STEP mark. */
void kineto_cut_steps(struct kineto_import *import, struct staged_track *track); /* before the track is delivered */
void kineto_add_steps(struct kineto_import *import, uint32_t first_track);

/* kineto_clock.c: samples spans of the runtime and of devices as they are staged, then corrects the times of devices
 * whose clocks are wrong. */
void kineto_clock_note(struct kineto_import *import, uint32_t track, const struct staged_span *span);
void kineto_correct_clocks(struct kineto_import *import); /* before tracks are delivered */
void kineto_clock_release(struct kineto_import *import);

/* kineto_writers.c: call for each operator and runtime call, in the order of the file. */
void kineto_writers_note(struct kineto_import *import, uint32_t track);
void kineto_report_writers(struct kineto_import *import);

/* kineto_repairs.c: adds the repairs to the ledger. */
void kineto_report_repairs(struct kineto_import *import, const struct kineto_repairs *repairs);

/* kineto.c */
/* Returns true if the text begins with a bracket, after blanks and a byte order mark. */
bool kineto_begins_like_json(const char *head, size_t length);
bool kineto_is_trace(const char *path);
bool kineto_is_sure(const char *path); /* also by keys that only traces have in their first INPUT_LONG_HEAD_BYTES */
bool kineto_is_trace_here(struct input_stream *input); /* call before reading from it */
/* The caller fills in path, model and the state from earlier files. done_bytes of total_bytes are already read. */
enum status kineto_load_input(struct kineto_import *import, struct input_stream *input, uint64_t done_bytes,
                              uint64_t total_bytes, struct error *err) MUST_CHECK;

/* kineto_directory.c: several traces as one model. */
bool kineto_has_traces(const char *path);
bool kineto_is_archive(const char *path);
enum status kineto_load_directory(const char *path, struct model *model, struct error *err) MUST_CHECK;
/* input: NULL, or a stream that can be read only once. */
enum status kineto_load_archive(const char *path, struct input_stream *input, struct model *model,
                                struct error *err) MUST_CHECK;
enum status kineto_load_files(const char *const *paths, uint32_t count, struct model *model,
                              struct error *err) MUST_CHECK;

#endif
