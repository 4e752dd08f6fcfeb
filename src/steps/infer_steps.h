/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps.h: the steps and phases of a training loop that marks none, from what PyTorch says by itself: which records are a wait
 * for data, an optimizer's step, a node of a backward, a forward.
 *
 *     struct inference inference;
 *     infer_steps(&inference, &(struct train_loop){.records = records, .count = count, .ranges = ranges});
 *     for (size_t i = 0; i < inference.count; i++) ...   // intervals by start, an outer one before what is inside of it
 *     inference_release(&inference);
 *
 * The rules:
 * 1. Where the optimizer object of each call is known, a step is a run of calls in which none repeats; one that steps twice in a
 *    row on other data than those before it (or on theirs, where they made several steps of it), or was made since they stepped,
 *    begins a step, too. Of several that take turns, of which one is called first and none more often over all, that one's calls
 *    begin the steps, and others may repeat in them.
 * 2. Where it is not: calls with no training backward between them belong together (where the records hold no backward at all, each
 *    ends a step, and it is said); a call that contains a backward (a closure) stands alone; groups with no data between them are
 *    joined, which is right for several networks and wrong for several updates per batch, so it is said.
 * 3. No call at all, or all of them inside of backwards (hooks, whose calls are phases in its phase): a step is a training backward, and
 *    those behind it that add to its gradients, while these are not zeroed. Where they are never seen to begin anew it ends
 *    with the tensors that are written to in place behind a backward, as many as it has gradients (where only some begin anew, an
 *    image's that is learnt through a model, as many as these): an update by hand. Such an update is the phase optimizer. Where
 *    nothing is written to either each backward is a step, and `doubt` says so. Backwards that leave no gradients anywhere are such,
 *    too, where something is written to in place behind them.
 * 4. An update that was left out is a step too: a backward after which the scaler was updated, or the gradients were thrown away
 *    and another batch came, without a call. In a loop without batches, and where only the next backward tells that gradients were
 *    thrown away: where that is so behind less than half of the updates, and it is said (`thrown_away`), since several losses may be
 *    looked at one by one.
 *
 * A step ends where its last optimizer call ends and begins where the one before ended, but behind an evaluation between them. It
 * takes in whole ranges, and one around it alone. The first one begins with as many calls of modules as the next ones have: what is called before only looks at
 * the model. A backward trains when it accumulates gradients. A forward that leads to no backward is no phase; nor is a
 * pause (train_pauses()) between the parts of a forward, or between calls of backward(). A call that makes its first gradient itself begins with that:
 * the engine walks the whole graph before its first node. It ends with its last node. A step that a kill cut off has the end INFERRED_IS_OPEN.
 *
 * A batch after which nothing trains before the next one is an evaluation; one on which no module was called, where modules are
 * trained, or that was only moved, was fetched ahead: it is what the next one is. So are batches without a layer's operator, of which the
 * next one has as many backwards as there are batches. Evaluations are, too, calls in evaluation mode, which make no graph, of a
 * module that is trained at other times, or of a part of one, behind a step, before the next batch and the next backward. An evaluation
 * goes on with the operators without a graph behind it (metrics, a loss, samples) up to the next batch that is trained on, or to where
 * gradients are zeroed, or else to where the first forward of a step, or what runs in training mode again, is so far away as it usually is
 * from the step before, where no evaluation is between them. Calls of modules beyond as many as are there then belong to the evaluation, too.
 * A pause behind it that is longer than it was ends it, too.
 *
 * Many calls in a row of a model that is trained, without a graph, make samples to train on: a generation, part of the step like a
 * range of the program's, in no phase. A pause ends it, unless most steps have fewer pauses between such calls: then the shortest are
 * waits for a processor, in the generation. Where such calls are in evaluation mode, and no batch is before them, they are that if they come before
 * most of the steps, and an evaluation otherwise.
 *
 * Where nobody trains there are no steps, and waits for data are the only phases.
 *
 * Several optimizers that are not called in the same steps leave open what a step is: `rare_calls` says so.
 *
 * Time is linear in the records, but for the depth of the ranges: the caller bounds it. The loop is borrowed, the inference owns its
 * list.
 */
#ifndef STEPS_INFER_STEPS_H
#define STEPS_INFER_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum train_token {     /* of records of the thread that trains, that lie in no other of these but an optimizer's call */
	TOKEN_OP,      /* any other operator */
	TOKEN_FORWARD, /* an operator that an autograd graph remembers */
	TOKEN_DATA,    /* the wait for a batch */
	TOKEN_LOADER,  /* the start of a loader's workers, before its loop waits for a batch */
	TOKEN_LOADER_END, /* waiting until they are gone, behind a loop over it */
	TOKEN_BACKWARD,   /* the engine's work on one node */
	TOKEN_OPTIMIZER,  /* Optimizer.step() */
	TOKEN_ZERO_GRAD,
	TOKEN_SCALER, /* the gradient scaler's update */
	TOKEN_SAVE,   /* torch.save */
	TOKEN_UPDATE, /* operators that write to tensors in place: an update by hand, maybe */
	TOKEN_CUT,    /* last in the list: the recording was not closed; `is_inside`: while the optimizer was called */
};

#define NO_RANGE UINT32_MAX

struct train_range { /* a range of the user's, around records: intervals nest with it */
	int64_t start_ns, end_ns;
	uint32_t parent; /* NO_RANGE: none */
	uint32_t step;   /* 1 + the number that a profiler in the program gives it; 0: it is none of a profiler's */
	bool is_open;    /* where the recording ends */
};

enum train_work { /* of operators */
	WORK_ANY,
	WORK_PLAIN, /* in an optimizer's call, without numbers: its own work, if a closure's backward is before */
	WORK_MOVE,  /* moves data, and computes nothing: a batch that is put on a device */
	WORK_LAYER, /* at least one is that of a layer */
};

/* Of two records that become one. */
static inline uint8_t train_join_work(uint8_t one, uint8_t other)
{
	return one == other ? one : one == WORK_LAYER || other == WORK_LAYER ? WORK_LAYER : WORK_ANY;
}

struct train_record {
	int64_t start_ns, end_ns;
	union {
		uint64_t object; /* which optimizer; which module, and its mode, as it is recorded; 0: not known */
		struct {
			uint32_t count; /* backward: gradients that it came to, 0: not known; update: tensors that it wrote to */
			uint32_t part; /* those that were there before; update: further ones, that it zeroed */
		};
	};
	uint64_t sequence; /* forward: 1 + the lowest number that autograd can have given its operators; 0: not known */
	uint32_t range;    /* innermost around it */
	uint32_t layers;   /* operators, forward: how many are those of a layer, in a trace */
	uint8_t token;     /* enum train_token */
	uint8_t work;      /* enum train_work */
	bool is_training;  /* backward: it accumulates a gradient */
	bool is_inside;    /* it lies in an optimizer's call before it in the list; a call in another one, too */
	bool is_empty;     /* data: the loop's end, no batch came */
	bool is_module;    /* forward, operators: a call of a module */
	bool is_new;       /* optimizer: it was made since its thread called one before */
	bool is_noted;     /* a stretch without detail: calls of modules in it are not known */
	bool is_evaluating; /* operators: a call, in evaluation mode, of a module that is trained at other times, or of a part of one */
	bool is_learning; /* operators: a call, in training mode, of a module that is called to evaluate at other times */
	bool is_maker;    /* operators: of a recording, made a node of its `sequence` if there was one */
	bool is_unused;   /* forward: no node of its graph was worked on, as far as was recorded */
	bool is_first; /* backward: a call of the engine may begin with it; else it goes on with the one before, also behind a pause */
	bool is_seed; /* operator: ones, as of a loss; where a backward is next they are its first gradient, and its call has begun */
};

#define INFERRED_STEP 0        /* else enum stepscope_phase, or: */
#define INFERRED_GENERATION 64 /* a range: calls of a trained model, many in a row, that lead to no backward */
#define INFERRED_GENERATION_NAME "generation"
#define INFERRED_IS_OPEN INT64_MAX

struct train_call { /* of an optimizer, in a node of a backward (a hook of a gradient): part of a step that the backward makes */
	int64_t start_ns, end_ns;
};

struct train_loop {
	const struct train_record *records; /* by start */
	size_t count;
	const struct train_range *ranges; /* by start; a range's parent has a smaller index */
	size_t range_count;               /* for inference_mark_steps() only */
	const struct train_call *hooked;  /* by start, none in another one */
	size_t hooked_count;
};

struct inferred {
	int64_t start_ns, end_ns;
	uint8_t what;
	int64_t number; /* of a step, from 0 */
	int64_t last_ns; /* of a step: end of what is counted, before end_ns when that lies in a range which it takes in, or an update
	                  * by hand is behind it */
	bool is_marked; /* a step that was not inferred: see inference_mark_steps() */
};

enum step_doubt { /* without optimizers */
	DOUBT_NONE,
	DOUBT_ADDING,       /* gradients add up over all backwards, without an update in between */
	DOUBT_NO_DETAIL,    /* of some backwards it is not known whether they add to gradients */
	DOUBT_RARE,         /* all gradients are new, but updates are rarer than backwards */
	DOUBT_OF_BATCH,     /* likewise, and several on each batch */
	DOUBT_NO_GRADIENTS, /* no backward leaves any */
};

struct inference {
	struct inferred *list;
	size_t count, capacity;
	size_t step_count;
	size_t marked_count; /* of these */
	size_t update_count; /* optimizer calls */
	size_t rare_calls; /* steps in which the optimizer is called that is called in the fewest; 0: all are called in all */
	size_t rare_steps;   /* steps from its first to its last */
	size_t thrown_away;  /* rule 4 without batches: backwards that were taken for steps */
	size_t backwards;    /* rule 3: how many were looked at; where they make no steps they leave no gradients */
	size_t hand_updates; /* by hand, behind them */
	enum step_doubt doubt;
	bool is_joined;      /* rule 2 joined groups: the count may be too small */
	bool is_each_update; /* rule 2 had nothing to join by: the count may be too large */
};

void infer_steps(struct inference *inference, const struct train_loop *loop);
/* Between two records with that token: is the program at something else for so long that they are not one? */
bool train_pauses(uint8_t token, int64_t from_ns, int64_t to_ns);
#define TRAIN_MANY_TENSORS 0x40000000u /* as many as there may be */
/* An update that writes to so many more tensors in place, or zeroes them. */
void train_count_writes(struct train_record *update, uint32_t tensors, bool is_zeroing);
/* Behind infer_steps(): ranges of a profiler in the program (train_range.step) that hold a training backward or an optimizer's call are the
 * steps where they are; where nothing trains at all, those in which something runs. Of ranges in one another it is the innermost. None are
 * those of a profiler whose step() is never called, and none is the first or last one of a profiler, which start() begins and stop() ends, if more
 * updates are in it than in those between. A step that was inferred stays if it ends outside of all of these, without what lies in them. Numbers
 * are given anew, in order of time. */
void inference_mark_steps(struct inference *inference, const struct train_loop *loop);

#endif
