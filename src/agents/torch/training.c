/* SPDX-License-Identifier: Apache-2.0
 *
 * training.c: see training.h. The tokens are those of src/importers/recording/recording_torch.c, which reads the same records from the file.
 */
#include "agents/torch/training.h"

#include "agents/torch/compiled.h"
#include "agents/torch/count.h"
#include "agents/torch/thread.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <pthread.h>
#include <string.h>

#define CALLS 8u /* optimizers that call optimizers */
/* What a level is, beyond enum stepscope_training: a range of the user's; what is of no interest, but hides what is in it; the wait for a
 * loader without workers. */
#define TRANSPARENT 255u
#define NOTHING 254u
#define DATA_HERE 253u
#define COMPILED 252u /* code of torch.compile, and no call of an optimizer */
#define PROFILER_STEP 251u

static struct {
	const char *(*name)(const void *record);
	int sequence; /* offset of it in a record, -1: not known */
	int64_t (*next_sequence)(void);
	struct step_count count;
	uint32_t lock;
	bool sees_calls; /* see training_sees_calls() */
} training;

/* One stretch of what a thread does. */
struct stretch {
	uint64_t start, end; /* ticks */
	uint64_t object;     /* the module of a call, 0: none */
	uint32_t flags;
	uint32_t symbol; /* its name */
	uint8_t token;
	bool is_any;
	bool is_detail; /* its records are in the file themselves */
};

struct thread {
	uint32_t hidden;          /* open records, from the outermost on that hides what it contains */
	uint32_t open;            /* around them: ranges and optimizer's calls */
	uint8_t levels[OPEN_MAX]; /* what those `open` are, and then those `hidden`, for when one beneath them ends */
	uint32_t calls;
	struct {
		uint32_t level;
		uint64_t start, identity;
		bool is_detail, is_closure;
	} call[CALLS];
	struct stretch stretch;
	struct { /* the open record, when it is an operator: only its end tells whether it made a node of a graph */
		uint64_t start;
		int64_t sequence;
		bool is_open;
	} work;
	struct {                /* the innermost range of torch.profiler's that may be a step */
		uint32_t level; /* in `open`; 0: none */
		uint32_t step;  /* 1 + its number */
		uint64_t start;
		unsigned ended;  /* steps in it that would have been counted without it */
		unsigned most;   /* in one so far */
		bool has_work;   /* something trained in it */
		bool is_counted; /* all that trained so far is in such steps */
		bool is_detail;
		bool is_none;  /* its profiler's step() is not called, or no more, as it seems */
		bool is_first; /* nothing tells yet that its profiler's step() will be called: no schedule does */
	} mark;
	uint64_t hook_start; /* of the optimizer's call in the open node; an optimizer steps in a hook of a gradient */
	uint32_t hook_level; /* `hidden` in it, 0: none */
	bool is_training;    /* the open node has come to a gradient */
	bool has_work;       /* the open wait for a batch called operators */
	bool is_waiting;     /* for a loader without workers, which calls operators for each batch */
	bool calls_in_waits; /* waits with a batch do */
	bool trains;         /* this thread called an optimizer, or computed gradients */
	uint32_t module_symbol;
	uint64_t module; /* that is called now, see struct training_call; 0: none */
	bool is_module;  /* what hides is a module's call that was noted */
};

_Static_assert(sizeof(struct thread) <= sizeof(((struct torch_thread *)0)->training), "room for it");
#define here (*(struct thread *)(void *)torch_thread->training)

static bool is_detail(void)
{
	return STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL;
}

/* ---- what is noted ------------------------------------------------------------------------------------------------------ */

static void put(uint8_t token, uint32_t flags, uint64_t start, uint64_t end, uint64_t identity)
{
	const uint64_t payload[4] = {token | flags, start, end, identity};
	emit_event(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, payload, identity ? 4 : 3);
}

static void put_module(const struct stretch *stretch)
{
	const uint64_t payload[5] = {stretch->token | stretch->flags, stretch->start, stretch->end, stretch->object,
	                             stretch->symbol};
	emit_event(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, payload, 5);
}

static void flush(void)
{
	struct stretch *stretch = &here.stretch;
	bool is_told = stretch->is_any && !stretch->is_detail && stretch->start;
	if (is_told && stretch->object)
		put_module(stretch);
	else if (is_told)
		put(stretch->token, stretch->flags, stretch->start, stretch->end, 0);
	stretch->is_any = false;
}

static bool is_work(uint8_t token)
{
	return token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD ||
	       token == STEPSCOPE_TRAINING_BACKWARD;
}

/* Neighbours that say the same are one stretch; operators between those of a forward or backward go. */
static bool goes_on(uint8_t token)
{
	const struct stretch *stretch = &here.stretch;
	return stretch->is_any && is_work(token) && stretch->token == token && stretch->is_detail == is_detail() &&
	       !stretch->object && !here.module;
}

static void begin_stretch(uint8_t token, uint64_t start)
{
	if (goes_on(token))
		return;
	flush();
	here.stretch = (struct stretch){.token = token,
	                                .is_any = true,
	                                .is_detail = is_detail(),
	                                .flags = here.calls ? STEPSCOPE_TRAINING_IS_INSIDE : 0,
	                                .object = here.module,
	                                .symbol = here.module_symbol,
	                                .start = is_detail() ? 0 : start};
}

static void end_stretch(void)
{
	struct stretch *stretch = &here.stretch;
	if (!stretch->is_detail)
		stretch->end = emit_now();
	if (here.is_waiting && !here.has_work && here.calls_in_waits)
		stretch->flags |= STEPSCOPE_TRAINING_IS_EMPTY;
	here.calls_in_waits |= here.is_waiting && here.has_work;
}

/* There was some, which need not have records. */
static void note_work(void)
{
	here.is_waiting = false;
	begin_stretch(STEPSCOPE_TRAINING_OP, is_detail() ? 0 : emit_now());
	end_stretch();
}

/* ---- counting ----------------------------------------------------------------------------------------------------------- */

/* Bounded: two threads that train at once are rare, a thread that is stopped in here is rarer. */
static bool lock(void)
{
	for (int i = 0; i < 10000; i++)
		if (__atomic_exchange_n(&training.lock, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
	return false;
}

/* In a forked child the thread that held the lock does not exist: what it was changing is not to be trusted either. */
static void begin_child(void)
{
	if (training.lock)
		memset(&training.count, 0, sizeof(training.count));
	else
		count_forked(&training.count);
	training.lock = 0;
}

static void unlock(void)
{
	__atomic_store_n(&training.lock, 0, __ATOMIC_RELEASE);
}

/* In a range that marks a step nothing else is one. With more updates than in those before, it may be as long as the training. */
static unsigned not_marked(unsigned ended)
{
	if (here.mark.is_counted)
		return 0;
	if (!here.mark.level || !here.mark.has_work || here.mark.is_none)
		return ended;
	here.mark.ended += ended;
	if (here.mark.is_first)
		return ended;
	here.mark.is_none = here.mark.ended > 1 && here.mark.ended > here.mark.most;
	return here.mark.is_none ? here.mark.ended : 0;
}

static void note_training(void)
{
	here.mark.has_work = true;
	here.mark.is_counted = false;
}

/* What came before the end of a step is noted before it. */
static void told_by(unsigned ended, const char *by)
{
	if (!ended)
		return;
	if (here.hidden && here.stretch.is_any && !here.stretch.is_detail)
		here.stretch.end = emit_now();
	flush();
	emit_count_steps(ended, by);
}

static void told(unsigned ended)
{
	told_by(not_marked(ended),
	        count_has_optimizers(&training.count) ? "the calls of optimizers" : "backward passes");
}

/* What lies at the same address does the same there, as a rule. */
static unsigned count_optimizer(uint64_t identity, bool is_inside, bool is_closure)
{
	return count_call(&training.count,
	                  &(struct counted_call){.identity = identity & STEPSCOPE_OPTIMIZER_ADDRESS,
	                                         .is_new = (identity & STEPSCOPE_OPTIMIZER_IS_NEW) != 0,
	                                         .is_inside = is_inside,
	                                         .is_closure = is_closure});
}

static void count_end_of_call(uint64_t identity, bool is_inside, bool is_closure)
{
	if (!lock())
		return;
	unsigned ended = count_optimizer(identity, is_inside, is_closure);
	unlock();
	here.trains = true;
	emit_trains();
	note_training();
	told(ended);
}

static void count_gradients(void)
{
	if (!lock())
		return;
	unsigned ended = count_backward(&training.count);
	unlock();
	emit_trains();
	told(ended); /* of what was before */
	note_training();
}

/* At its begin; a thread that only evaluates says nothing. */
static void count_begin(uint8_t token)
{
	unsigned ended = 0;
	const struct step_count *count = &training.count;
	bool is_first = !count->has_group && !count->has_backward;
	bool is_operator = token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD;
	here.trains |= is_first && token == STEPSCOPE_TRAINING_FORWARD;
	/* most operators say nothing new */
	if (is_operator && (!count->has_backward || count_has_optimizers(count)))
		return;
	if ((!here.trains && !is_first) || here.calls || !lock())
		return;
	if (token == STEPSCOPE_TRAINING_DATA)
		ended = count_batch(&training.count);
	else if (token == STEPSCOPE_TRAINING_ZERO_GRAD)
		count_zero_grad(&training.count);
	else if (is_operator)
		ended = count_operator(&training.count);
	unlock();
	told(ended);
}

static void count_end(uint8_t token)
{
	if (token != STEPSCOPE_TRAINING_SCALER || here.calls || !lock())
		return;
	unsigned ended = count_scaler(&training.count);
	unlock();
	told(ended);
}

/* ---- records ------------------------------------------------------------------------------------------------------------ */

static uint8_t level_of_range(const char *name)
{
	if (pytorch_begins(name, PYTORCH_OPTIMIZER_STEP))
		return STEPSCOPE_TRAINING_OPTIMIZER;
	if (pytorch_begins(name, PYTORCH_OPTIMIZER_ZERO_GRAD))
		return STEPSCOPE_TRAINING_ZERO_GRAD;
	if (pytorch_begins(name, PYTORCH_LOADER_HERE))
		return DATA_HERE;
	if (pytorch_begins(name, PYTORCH_LOADER))
		return STEPSCOPE_TRAINING_DATA;
	return pytorch_begins(name, PYTORCH_PROFILER_STEP) ? PROFILER_STEP : TRANSPARENT;
}

static const char *name_of(const void *record)
{
	const char *name = training.name(record);
	return name ? name : "";
}

/* Number of the node that the operator may make; -1: none. */
static int64_t sequence_of(const void *record)
{
	int64_t sequence = -1;
	if (training.sequence >= 0)
		memcpy(&sequence, (const char *)record + training.sequence, sizeof(sequence));
	return sequence;
}

static uint8_t level_of(enum torch_scope scope, const char *name, const void *record)
{
	if (scope == TORCH_SCOPE_USER)
		return level_of_range(name);
	if (scope == TORCH_SCOPE_FUNCTION &&
	    (pytorch_is_of_sampler(name, strnlen(name, 32)) || pytorch_begins(name, PYTORCH_MODE)))
		return NOTHING;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_ENGINE))
		return STEPSCOPE_TRAINING_BACKWARD;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_COMPILED))
		return compiled_optimizer(name) ? STEPSCOPE_TRAINING_OPTIMIZER : COMPILED;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_SCALER))
		return STEPSCOPE_TRAINING_SCALER;
	return sequence_of(record) >= 0 ? STEPSCOPE_TRAINING_FORWARD : STEPSCOPE_TRAINING_OP;
}

static void note_level(uint8_t level)
{
	uint32_t depth = here.open + here.hidden;
	if (depth <= OPEN_MAX)
		here.levels[depth - 1] = level;
}

static void begin_hooked(void)
{
	if (here.hook_level || is_detail())
		return;
	here.hook_level = here.hidden;
	here.hook_start = emit_now();
}

static void end_hooked(void)
{
	here.hook_level = 0;
	if (!is_detail())
		put(STEPSCOPE_TRAINING_HOOKED, 0, here.hook_start, emit_now(), 0);
}

/* The open backward has come to its first gradient. */
static void note_gradients(void)
{
	bool is_known = here.stretch.flags & STEPSCOPE_TRAINING_IS_TRAINING;
	here.is_training = true;
	here.stretch.flags |= STEPSCOPE_TRAINING_IS_TRAINING;
	here.call[0].is_closure = here.calls > 0;
	if (!is_known)
		count_gradients();
}

static void note_range_in_backward(const char *name)
{
	if (!pytorch_begins(name, PYTORCH_OPTIMIZER_STEP))
		return;
	count_hooked(&training.count);
	begin_hooked();
}

static void end_work(void)
{
	bool is_node = here.work.sequence >= 0 && training.next_sequence &&
	               training.next_sequence() > here.work.sequence;
	here.work.is_open = false;
	begin_stretch(is_node ? STEPSCOPE_TRAINING_FORWARD : STEPSCOPE_TRAINING_OP, here.work.start);
}

/* The call of a module that trains by itself, or has trained: from here on it is as a range is, and what is in it is looked at. */
static void open_module(void)
{
	if (here.work.is_open)
		end_work();
	if (here.stretch.is_any)
		end_stretch();
	flush();
	here.module = 0;
	here.is_module = false;
	here.hidden = 0;
	here.open++;
	note_level(TRANSPARENT);
}

static bool is_in_module(void)
{
	return here.is_module && here.hidden == 1;
}

/* Inside of a record that hides it. */
static void begin_hidden(enum torch_scope scope, const void *record)
{
	here.hidden++;
	note_level(scope == TORCH_SCOPE_USER ? level_of_range(name_of(record)) : NOTHING);
	if (here.is_waiting && !here.has_work && scope != TORCH_SCOPE_USER)
		here.has_work = !pytorch_begins(name_of(record), PYTORCH_MODE);
	if (here.work.is_open || here.stretch.token != STEPSCOPE_TRAINING_BACKWARD || !here.stretch.is_any)
		return;
	if (scope == TORCH_SCOPE_BACKWARD && !here.is_training && pytorch_begins(name_of(record), PYTORCH_ACCUMULATE))
		note_gradients();
	else if (scope == TORCH_SCOPE_USER)
		note_range_in_backward(name_of(record));
}

static void begin_call(void)
{
	flush();
	if (here.calls == CALLS)
		return;
	here.call[here.calls].level = here.open;
	here.call[here.calls].start = emit_now();
	here.call[here.calls].identity = 0;
	here.call[here.calls].is_detail = is_detail();
	here.call[here.calls].is_closure = false;
	here.calls++;
}

static void end_call(uint32_t call)
{
	uint64_t identity = here.call[call].identity;
	flush();
	/* those inside were noted before it: the reader puts them in order */
	if (!here.call[call].is_detail && !is_detail())
		put(STEPSCOPE_TRAINING_OPTIMIZER, call ? STEPSCOPE_TRAINING_IS_INSIDE : 0, here.call[call].start,
		    emit_now(), identity);
	here.calls--;
	memmove(&here.call[call], &here.call[call + 1], (here.calls - call) * sizeof(here.call[0]));
}

static void begin_mark(uint32_t step, bool has_schedule)
{
	if (!step)
		return;
	flush();
	here.mark.level = here.open;
	here.mark.step = step;
	here.mark.start = emit_now();
	here.mark.is_detail = is_detail();
	here.mark.has_work = here.mark.is_none = false;
	here.mark.is_first = step == 1 && !has_schedule;
	here.mark.ended = 0;
}

/* A step, if something trained in it; the reader decides anew. */
static void end_mark(void)
{
	bool is_step = here.mark.has_work && !(here.mark.is_first ? here.mark.ended > 0 : here.mark.is_none);
	here.mark.level = 0;
	if (here.mark.ended > here.mark.most)
		here.mark.most = here.mark.ended;
	flush();
	if (!here.mark.is_detail && !here.mark.is_none)
		put(STEPSCOPE_TRAINING_PROFILER_STEP, 0, here.mark.start, emit_now(), here.mark.step);
	here.mark.is_counted |= is_step;
	told_by(is_step, "the steps of torch.profiler");
}

/* A range, or a call, which is counted; what is in it goes on. */
static void end_open(uint32_t level)
{
	uint64_t identity = 0;
	uint32_t call = 0;
	bool is_closure = false;
	while (call < here.calls && here.call[call].level < level)
		call++;
	bool is_call = call < here.calls && here.call[call].level == level;
	if (is_call) {
		identity = here.call[call].identity;
		is_closure = here.call[call].is_closure;
		end_call(call);
	}
	for (uint32_t i = call; i < here.calls; i++)
		here.call[i].level--;
	here.open--;
	if (here.mark.level == level)
		end_mark();
	here.mark.level -= here.mark.level > level;
	if (is_call)
		count_end_of_call(identity, call > 0, is_closure);
}

/* What the thread that ends the recording did last. */
static void end_recording(void)
{
	if (torch_thread && !here.hidden && !here.calls)
		flush();
}

void training_start(const struct torch_entry *entry, const struct torch_layout *layout)
{
	static bool is_watched;
	if (!is_watched)
		is_watched = pthread_atfork(NULL, NULL, begin_child) == 0;
	emit_at_end(end_recording);
	training.name = entry->name;
	training.sequence = layout->sequence;
	training.next_sequence = entry->sequence_peek;
}

/* In nothing that hides it. sequence: of an operator. */
static void begin_level(uint8_t level, int64_t sequence)
{
	bool is_open = level == TRANSPARENT || level == COMPILED || level == PROFILER_STEP ||
	               level == STEPSCOPE_TRAINING_OPTIMIZER;
	here.open += is_open;
	here.hidden = !is_open;
	note_level(level);
	if (level == STEPSCOPE_TRAINING_OPTIMIZER)
		begin_call();
	if (level == COMPILED && !here.calls)
		note_work();
	if (is_open)
		return;
	here.is_training = here.has_work = here.work.is_open = false;
	here.is_waiting = level == DATA_HERE;
	if (level == NOTHING || (here.calls && level != STEPSCOPE_TRAINING_BACKWARD)) {
		flush();
		return;
	}
	uint8_t token = level == DATA_HERE ? STEPSCOPE_TRAINING_DATA : level;
	count_begin(token);
	uint64_t start = is_detail() ? 0 : emit_now();
	if (token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD) {
		here.work.is_open = true;
		here.work.start = start;
		here.work.sequence = sequence;
	} else {
		begin_stretch(token, start);
	}
}

void training_begin(enum torch_scope scope, const void *record)
{
	if (is_in_module()) /* records are looked at since then: a step ended in it */
		open_module();
	if (here.hidden) {
		begin_hidden(scope, record);
		return;
	}
	const char *name = name_of(record);
	uint8_t level = level_of(scope, name, record);
	begin_level(level, sequence_of(record));
	if (level == STEPSCOPE_TRAINING_OPTIMIZER && scope == TORCH_SCOPE_FUNCTION) /* no hook tells which one it is */
		training_optimizer(compiled_optimizer(name));
	if (level == PROFILER_STEP)
		begin_mark(pytorch_profiler_step(name, strnlen(name, 32)), true);
}

/* ---- calls, while there are no records ------------------------------------------------------------------------------------ */

static bool is_in_backward(void)
{
	return !here.work.is_open && here.stretch.is_any && here.stretch.token == STEPSCOPE_TRAINING_BACKWARD;
}

static void begin_hidden_call(const struct training_call *call)
{
	here.hidden++;
	note_level(call->kind == TRAINING_RANGE ? level_of_range(call->name) : NOTHING);
	if (call->kind == TRAINING_RANGE && is_in_backward())
		note_range_in_backward(call->name);
}

/* Each of its own, where records of one follow each other node by node. */
static void begin_backward_call(bool is_training)
{
	flush();
	begin_level(STEPSCOPE_TRAINING_BACKWARD, -1);
	if (is_training)
		note_gradients();
}

static void begin_module_call(const struct training_call *call)
{
	flush();
	here.module = call->module;
	here.module_symbol = call->symbol;
	begin_level(STEPSCOPE_TRAINING_FORWARD, training.next_sequence ? training.next_sequence() : -1);
	here.is_module = true;
}

bool training_wants_module(void)
{
	return !here.hidden && !here.calls;
}

/* Ranges of the program's that say nothing are left out: nothing would end one that is not left. */
static bool is_told_of(const struct training_call *call)
{
	return call->kind == TRAINING_MODULE
	               ? training_wants_module()
	               : call->kind != TRAINING_RANGE || level_of_range(call->name) != TRANSPARENT;
}

bool training_call_begin(const struct training_call *call)
{
	if (!is_told_of(call))
		return false;
	if (is_in_module())
		open_module();
	if (here.hidden) {
		begin_hidden_call(call);
		return true;
	}
	switch (call->kind) {
	case TRAINING_RANGE:
		begin_level(level_of_range(call->name), -1);
		break;
	case TRAINING_BACKWARD:
		begin_backward_call(call->is_training);
		break;
	case TRAINING_SCALER:
		begin_level(STEPSCOPE_TRAINING_SCALER, -1);
		break;
	case TRAINING_MODULE:
		begin_module_call(call);
		break;
	}
	return true;
}

void training_sees_calls(void)
{
	training.sees_calls = true;
}

/* Code of torch.compile may be an optimizer's call, and only its record says so. */
bool training_needs_records(void)
{
	return !training.sees_calls || (!emit_has_marked() && (!training.count.has_group || compiled_is_any()));
}

void training_profiler_step(uint32_t step)
{
	if (is_in_module())
		open_module();
	if (here.hidden) {
		here.hidden++;
		note_level(PROFILER_STEP);
		return;
	}
	begin_level(PROFILER_STEP, -1);
	begin_mark(step & ~TRAINING_HAS_SCHEDULE, (step & TRAINING_HAS_SCHEDULE) != 0);
}

void training_batch(bool has_come)
{
	if (torch_thread && here.is_waiting)
		here.has_work = has_come;
}

/* What it does with tensors is of no interest. */
void training_stretch(uint8_t token)
{
	if (is_in_module())
		open_module();
	here.hidden++;
	note_level(NOTHING);
	if (here.hidden > 1)
		return;
	here.is_training = here.has_work = here.work.is_open = here.is_waiting = false;
	if (here.calls)
		flush();
	else
		begin_stretch(token, is_detail() ? 0 : emit_now());
}

void training_end(void)
{
	if (here.hidden) {
		if (here.hidden == here.hook_level)
			end_hooked();
		if (--here.hidden)
			return;
		if (here.work.is_open)
			end_work();
		here.module = 0;
		here.is_module = false;
		if (!here.stretch.is_any)
			return;
		end_stretch();
		count_end(here.stretch.token);
		if (!is_work(here.stretch.token) || here.stretch.object)
			flush();
	} else if (here.open) { /* else it was open before we came */
		end_open(here.open);
	}
}

/* The outermost that hides is over: what it hid is looked at from here on. */
static void end_hiding(uint32_t above)
{
	uint8_t levels[OPEN_MAX];
	memcpy(levels, here.levels + here.open + 1, above);
	if (here.hook_level)
		end_hooked();
	here.hidden = 1;
	training_end();
	for (uint32_t i = 0; i < above; i++) {
		if (!here.hidden) {
			begin_level(levels[i], -1);
			continue;
		}
		here.hidden++;
		note_level(levels[i]);
	}
}

static void end_hidden(uint32_t hidden)
{
	if (here.hook_level == hidden)
		end_hooked();
	here.hook_level -= here.hook_level > hidden;
	here.hidden--;
}

void training_end_beneath(uint32_t above)
{
	uint32_t depth = here.open + here.hidden;
	if (above >= depth || !above || depth > OPEN_MAX) {
		if (above < depth)
			training_end();
		return;
	}
	uint32_t level = depth - above;
	if (level == here.open + 1) {
		end_hiding(above);
		return;
	}
	memmove(&here.levels[level - 1], &here.levels[level], above);
	if (level > here.open)
		end_hidden(level - here.open);
	else
		end_open(level);
}

/* ---- from Python -------------------------------------------------------------------------------------------------------- */

bool training_optimizer_made(void)
{
	if (!lock())
		return false;
	count_made(&training.count);
	unlock();
	return true;
}

unsigned training_optimizer_done(uint64_t identity)
{
	if (!lock())
		return 0;
	unsigned ended = count_optimizer(identity, false, false);
	unlock();
	return ended;
}

void training_optimizer(uint64_t identity)
{
	if (torch_thread && here.calls && !here.hidden)
		here.call[here.calls - 1].identity = identity;
}
