/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_scan.h: what recording_torch.c notes of a session while all events are read, for recording_training.c, which infers from it.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_TORCH_SCAN_H
#define IMPORTERS_RECORDING_RECORDING_TORCH_SCAN_H

#include "importers/recording/recording_torch.h"
#include "steps/node_numbers.h"
#include "steps/record_class.h"
#include "steps/record_fold.h"
#include "steps/training_threads.h"

/* Records of a session beyond the maximum would be those of a million steps. */
#define TORCH_SCAN_MAX_RECORDS (1u << 24)
#define MAX_MOVES (1u << 26) /* torch_scan.moves */

struct open_record {
	uint32_t record; /* index, NO_RANGE: it is inside of another one and not kept */
	struct fold_level level;
	uint32_t phase; /* 1 + index of the innermost phase, itself included; 0: none */
	bool is_aside; /* begun while no operators were recorded: it is no record and no range, as notes tell all there is */
	/* for when one beneath it ends that hides it */
	bool is_phase, is_hidden;
	uint8_t class; /* enum record_class */
	int64_t start_ns;
	uint64_t sequence;
	uint32_t compiled;      /* 1 + how many records were before code that torch.compile made; 0: it is none */
	int64_t compiled_ns;    /* when that began */
	uint32_t profiler_step; /* 1 + its number; 0: it is none */
};

struct stream_scan {
	uint32_t stream;
	struct train_record *records;
	uint32_t record_count, record_capacity;
	struct train_range *ranges;
	uint32_t range_count, range_capacity;
	struct train_call *hooked; /* in nodes of a backward */
	uint32_t hooked_count, hooked_capacity;
	int64_t hooked_ns;
	uint32_t hooked_depth; /* 1 + index in `open` of the one that is called now; 0: none */
	struct open_record *open;
	uint32_t depth, capacity;
	uint32_t deeper;   /* open ones beyond the maximum */
	uint32_t outlived; /* number of ranges that a phase ended, whose own ends have not come */
	struct record_fold fold;
	uint32_t node;      /* record of the open node of a backward, NO_RANGE */
	uint32_t data;      /* record of the open wait of a loader without workers, NO_RANGE */
	bool has_data_work; /* such a loader calls operators, so one without them is its end */
	uint32_t calls, nodes, profiler_steps;
	uint64_t torch_thread; /* PyTorch's number of it, 0: not known */
	/* The outermost module that is called now: what runs in it is one record, as long as the call. */
	uint32_t module_depth; /* 1 + its index in `open`; 0: none */
	uint32_t module_record, module_range;
	int64_t module_ns;
	uint64_t module_object;    /* which one, and its mode, as the argument says; 0 */
	uint32_t module_symbol;    /* its name */
	bool module_has_function;  /* CLASS_FUNCTION */
	bool module_is_plain;      /* it called an operator without a number, and none with one in that */
	uint32_t plain;            /* 1 + index in `open` of one of which that is not known yet; 0: none */
	uint32_t module_optimizer; /* open optimizer's calls when it began: a closure calls modules, too */
	uint8_t pending_class; /* of the fold's pending operator: CLASS_WRITE and the like, then it writes in place */
	bool is_gradient_next; /* the next operator tells whether the gradient was there */
	uint32_t capture;      /* cursor into the process's captures */
	bool is_detail_off;    /* what they say */
	uint32_t aside;        /* open ones that are aside */
	int64_t compile_ns,
		compiled_ns; /* begin and end of the last compilation that was aside: what is noted in it does not count */
	uint32_t compiling; /* 1 + index in `open` of the one that goes on; 0: none */
	uint64_t gap_tick, gap_count;
	uint64_t sequence; /* of the node before */
	uint32_t numbers;  /* those that the next node may belong to, NO_NODE_RANGE */
	int64_t last_ns;
	int64_t before_ns; /* end of what the last event says */
	int64_t noted_ns;  /* end of the last record that was noted and lies in no other */
	struct stream_end {
		uint32_t range; /* that is open */
		bool is_inside; /* an optimizer's call is */
	} end;                  /* where the recording ends */
};

struct torch_scan {
	uint8_t *classes; /* by symbol */
	uint32_t class_capacity;
	struct stream_scan *streams;
	uint32_t stream_count, stream_capacity;
	struct number_map stream_map;
	struct number_map profiler_steps; /* symbols of CLASS_PROFILER_STEP -> 1 + their number */
	struct number_map trained;        /* modules that are called to train */
	struct number_map evaluated;      /* modules that are called in evaluation mode -> symbol of their name */
	struct number_map parts;          /* symbols of modules that are called in one that is called to train */
	struct number_map codes;          /* symbols of code that torch.compile made -> its number */
	struct number_map compiled;       /* that number -> index into optimizers, when it begins a call of one */
	uint64_t *optimizers;
	uint32_t optimizer_count;
	uint32_t record_count, range_count; /* of all streams */
	uint32_t moves;                     /* records and ranges that were moved into another range */
	bool has_steps;                     /* marked by the program */
	bool has_phases;
	bool notes_profiler_steps; /* those of torch.profiler are known without detail, too */
	int64_t *bounds;           /* where those steps begin and end, in order */
	uint32_t bound_count, bound_capacity;
	struct number_map followed;  /* PyTorch's number of a thread -> last node of its graphs that others worked on */
	struct node_numbers numbers; /* of all threads; a call is a record of the thread that works on the nodes */
	uint32_t step_stream;        /* that marks them */
	bool has_step_streams;       /* several do */
	struct counted_step {
		int64_t time_ns, count;
	} * counted; /* how many steps had ended, as the program counted */
	uint32_t counted_count, counted_capacity;
};

/* recording_torch.c: a record of the stream, which the second one joins with one before it that says the same; its index, NO_RANGE: there is
 * no room. */
uint32_t torch_make_record(struct torch_scan *scan, struct stream_scan *stream, uint8_t token, uint32_t range,
                           int64_t time_ns);
uint32_t torch_add_record(struct torch_scan *scan, struct stream_scan *stream, uint8_t token, uint32_t range,
                          int64_t time_ns);
/* An optimizer's call in a hook of a gradient: the node's record hides it. */
void torch_add_hooked(struct torch_scan *scan, struct stream_scan *stream, int64_t start_ns, int64_t end_ns);
/* Which optimizer a call is of, as the argument "torch.optimizer" says. */
void torch_set_optimizer(struct train_record *call, uint64_t value);

/* recording_torch_noted.c: a STEP_TRAINING. */
void torch_note_training(struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event,
                         struct clock_cursor clock);

/* recording_torch_classes.c: which optimizer the code with this symbol begins a call of; 0: of none. */
uint64_t torch_compiled_optimizer(const struct torch_scan *scan, uint32_t symbol);

/* recording_torch_nodes.c: `word`: the payload of an event that has one, in the stream. */
void torch_nodes_note(struct torch_scan *scan, struct stream_scan *stream, uint64_t word);
/* After all of them: which forwards did no backward work on? */
void torch_nodes_find_unused(struct torch_scan *scan);

/* recording_step_numbers.c: a COUNTED. Then, of a session whose older events were removed: gives steps the numbers by which the program counted
 * them, and leaves out those that are not whole: the first one, and what begins before since_ns. False: it did not, or otherwise than here; they have numbers from 0 on. */
void torch_scan_counted(struct torch_scan *scan, int64_t time_ns, uint64_t count);
bool torch_scan_number(const struct torch_scan *scan, struct inference *inference, int64_t since_ns);

/* After all events: what each stream did, with an end for each thing; the caller frees the array and what its entries point to. */
struct training_thread *torch_scan_threads(struct torch_scan *scan, bool was_closed);

#endif
