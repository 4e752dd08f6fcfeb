/* SPDX-License-Identifier: Apache-2.0
 *
 * training_threads.c: see training_threads.h. First, find when each thread is busy with a step: from its first backward
 * that trains to the optimizer's call. Then find the turns. Then append the records of the turns, one after the other.
 */
#include "steps/training_threads.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <string.h>

struct thread_busy {
	int64_t start_ns, end_ns;
	uint32_t thread;
};

struct thread_turn { /* records [first, end) of the thread */
	uint32_t thread, first, end;
	int64_t busy_ns;  /* end of its last busy time */
	int64_t start_ns; /* start of its first record */
};

struct joiner {
	struct training *out;
	struct training_thread *threads;
	uint32_t thread_count;
	bool has_calls; /* if false, gradients alone decide which threads train */
	uint32_t best;  /* best of the threads that train */
	bool *is_kept;
	uint32_t *same; /* another thread that steps the same optimizer; the first of them refers to itself */
	struct thread_busy *busy;
	size_t busy_count, busy_capacity;
	struct thread_turn *turns;
	size_t turn_count;
	struct train_record *nodes; /* gradients and forwards of other threads */
	size_t node_count;
};

/* ---- which threads train, and when ------------------------------------------------------------------------------- */

static bool may_train(const struct joiner *j, uint32_t thread)
{
	return j->has_calls ? j->threads[thread].calls > 0 : j->threads[thread].nodes > 0;
}

static bool find_best(struct joiner *j)
{
	bool has_best = false;

	for (uint32_t i = 0; i < j->thread_count; i++) {
		const struct training_thread *thread = &j->threads[i], *best = &j->threads[j->best];
		bool is_better = !has_best || (thread->calls != best->calls   ? thread->calls > best->calls
		                               : thread->nodes != best->nodes ? thread->nodes > best->nodes
		                                                              : thread->marks > best->marks);

		if (!is_better || !(thread->calls + thread->nodes + thread->marks))
			continue;
		has_best = true;
		j->best = i;
	}
	j->has_calls = has_best && j->threads[j->best].calls;
	return has_best;
}

static uint32_t first_of_same(struct joiner *j, uint32_t thread)
{
	while (j->same[thread] != thread)
		thread = j->same[thread] = j->same[j->same[thread]];
	return thread;
}

static void add_busy(struct joiner *j, int64_t start_ns, int64_t end_ns, uint32_t thread)
{
	MEMORY_GROW(j->busy, j->busy_count, j->busy_capacity, 256);
	j->busy[j->busy_count++] = (struct thread_busy){start_ns, end_ns, thread};
}

/* optimizers: maps each optimizer to a thread that calls it. */
static void find_busy(struct joiner *j, uint32_t thread, struct number_map *optimizers)
{
	const struct training_thread *its = &j->threads[thread];
	int64_t start_ns = INT64_MAX;

	for (uint32_t i = 0; i < its->record_count; i++) {
		const struct train_record *record = &its->records[i];
		bool trains = record->token == TOKEN_BACKWARD && record->is_training && !record->is_inside;
		bool is_call = record->token == TOKEN_OPTIMIZER && !record->is_inside;

		if ((trains || is_call) && start_ns == INT64_MAX)
			start_ns = record->start_ns;
		if ((j->has_calls ? is_call : trains) && record->end_ns > start_ns) { /* otherwise its end was lost */
			add_busy(j, start_ns, record->end_ns, thread);
			start_ns = INT64_MAX;
		}
		if (!is_call || !record->object)
			continue;
		uint32_t other = number_map_add(optimizers, record->object, thread);
		j->same[first_of_same(j, thread)] = first_of_same(j, other);
	}
}

static int compare_busy(const void *left, const void *right)
{
	const struct thread_busy *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Finds the stretch of each training, from the first step of its threads to the last, in order of start. `thread` of a
 * stretch is the first thread of its training. Returns the number of stretches. */
static uint32_t find_stretches(struct joiner *j, struct thread_busy *stretches)
{
	uint32_t count = 0, *places = memory_resize(NULL, j->thread_count, sizeof *places);

	memset(places, 0xff, j->thread_count * sizeof *places);
	for (size_t i = 0; i < j->busy_count; i++) {
		uint32_t first = first_of_same(j, j->busy[i].thread);

		if (places[first] == UINT32_MAX) {
			places[first] = count;
			stretches[count] = j->busy[i];
			stretches[count++].thread = first;
		}
		struct thread_busy *stretch = &stretches[places[first]];
		if (j->busy[i].start_ns < stretch->start_ns)
			stretch->start_ns = j->busy[i].start_ns;
		if (j->busy[i].end_ns > stretch->end_ns)
			stretch->end_ns = j->busy[i].end_ns;
	}
	free(places);
	merge_sort(stretches, count, sizeof *stretches, compare_busy);
	return count;
}

/* Keeps the best training, and those before and after it that do not overlap each other. */
static void keep_trainings(struct joiner *j)
{
	struct thread_busy *stretches = memory_resize(NULL, j->thread_count, sizeof *stretches);
	uint32_t count = find_stretches(j, stretches), best = first_of_same(j, j->best), at = 0;
	int64_t end_ns = INT64_MIN;
	bool *is_kept = memory_resize(NULL, j->thread_count, sizeof *is_kept); /* by first thread */

	memset(is_kept, 0, j->thread_count * sizeof *is_kept);
	while (at < count && stretches[at].thread != best)
		at++;
	for (uint32_t i = 0; i < count && at < count; i++) {
		bool is_beside = i < at ? stretches[i].end_ns > stretches[at].start_ns
		                        : stretches[i].start_ns < stretches[at].end_ns;

		if (i != at && (is_beside || stretches[i].start_ns < end_ns))
			continue;
		is_kept[stretches[i].thread] = true;
		end_ns = stretches[i].end_ns;
	}
	for (uint32_t i = 0; i < j->thread_count; i++)
		j->is_kept[i] = may_train(j, i) && is_kept[first_of_same(j, i)];
	free(stretches);
	free(is_kept);
}

/* Keeps the busy times of kept threads, in order. Returns false if two threads are busy at the same time. */
static bool sort_busy(struct joiner *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->busy_count; i++)
		if (j->is_kept[j->busy[i].thread])
			j->busy[kept++] = j->busy[i];
	j->busy_count = kept;
	if (kept)
		merge_sort(j->busy, kept, sizeof *j->busy, compare_busy);
	for (size_t i = 1; i < kept; i++)
		if (j->busy[i].thread != j->busy[i - 1].thread && j->busy[i].start_ns < j->busy[i - 1].end_ns)
			return false;
	return true;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static void add_turns(struct joiner *j)
{
	j->turns = memory_resize(NULL, j->busy_count + 1, sizeof *j->turns);
	for (size_t i = 0; i < j->busy_count; i++) {
		if (!i || j->busy[i].thread != j->busy[i - 1].thread)
			j->turns[j->turn_count++] = (struct thread_turn){.thread = j->busy[i].thread};
		j->turns[j->turn_count - 1].busy_ns = j->busy[i].end_ns;
	}
}

static void keep_one(struct joiner *j)
{
	memset(j->is_kept, 0, j->thread_count * sizeof *j->is_kept);
	j->is_kept[j->best] = true;
	j->turns = memory_resize(j->turns, 1, sizeof *j->turns);
	j->turns[0] = (struct thread_turn){
		.thread = j->best, .end = j->threads[j->best].record_count, .start_ns = INT64_MIN};
	j->turn_count = 1;
}

static void find_turns(struct joiner *j)
{
	struct number_map optimizers = {0};

	for (uint32_t i = 0; i < j->thread_count; i++) {
		j->same[i] = i;
		if (may_train(j, i))
			find_busy(j, i, &optimizers);
	}
	number_map_release(&optimizers);
	keep_trainings(j);
	if (sort_busy(j))
		add_turns(j);
	if (j->turn_count < 2)
		keep_one(j);
}

/* Finds the records of each turn: from the first record after the previous step, without records that last into the
 * next turn. */
static void find_records(struct joiner *j)
{
	uint32_t *next = memory_resize(NULL, j->thread_count, sizeof *next); /* next record of each thread */

	memset(next, 0, j->thread_count * sizeof *next);
	for (size_t i = 0; i < j->turn_count; i++) {
		struct thread_turn *turn = &j->turns[i], *before = i ? turn - 1 : NULL;
		const struct training_thread *thread = &j->threads[turn->thread];
		uint32_t *first = &next[turn->thread];

		while (before && *first < thread->record_count &&
		       (thread->records[*first].start_ns < before->busy_ns || thread->records[*first].is_inside))
			++*first;
		turn->first = *first;
		turn->start_ns = !before                         ? INT64_MIN
		                 : *first < thread->record_count ? thread->records[*first].start_ns
		                                                 : before->busy_ns;
		if (before) {
			const struct training_thread *its = &j->threads[before->thread];
			uint32_t *end = &next[before->thread];

			while (*end < its->record_count && its->records[*end].start_ns < turn->start_ns &&
			       (its->records[*end].is_inside || its->records[*end].start_ns < before->busy_ns ||
			        its->records[*end].end_ns <= turn->start_ns))
				++*end;
			before->end = *end;
		}
		turn->end = thread->record_count;
	}
	free(next);
}

/* ---- one list ---------------------------------------------------------------------------------------------------- */

static int compare_records(const void *left, const void *right)
{
	const struct train_record *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void collect_node(struct joiner *j, const struct train_record *record)
{
	if (!(j->node_count & (j->node_count + 1)))
		j->nodes = memory_resize(j->nodes, 2 * j->node_count + 2, sizeof *j->nodes);
	j->nodes[j->node_count++] = *record;
}

/* Merges forwards at the same time. */
static void join_forwards(struct joiner *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->node_count; i++) {
		struct train_record *last = kept ? &j->nodes[kept - 1] : NULL;
		const struct train_record *node = &j->nodes[i];
		bool is_same = last && last->token == TOKEN_FORWARD && node->token == TOKEN_FORWARD &&
		               node->start_ns <= last->end_ns;

		if (!is_same)
			j->nodes[kept++] = *node;
		else if (node->end_ns > last->end_ns)
			last->end_ns = node->end_ns;
	}
	j->node_count = kept;
}

/* Collects records of threads that do not train: work on gradients, and forwards whose graphs other threads work on. */
static void collect_nodes(struct joiner *j)
{
	for (uint32_t i = 0; i < j->thread_count; i++) {
		const struct training_thread *thread = &j->threads[i];

		for (uint32_t r = 0; !j->is_kept[i] && !thread->calls && r < thread->record_count; r++) {
			uint8_t token = thread->records[r].token;

			if (token == TOKEN_BACKWARD || (token == TOKEN_FORWARD && !thread->records[r].is_unused &&
			                                (thread->is_followed || thread->nodes)))
				collect_node(j, &thread->records[r]);
		}
	}
	if (j->node_count)
		merge_sort(j->nodes, j->node_count, sizeof *j->nodes, compare_records);
	join_forwards(j);
}

/* Puts a node among the records of the thread that waits for it; its range is the innermost one open at that time. */
static void place_node(const struct training_thread *thread, struct train_record *node, uint32_t *range, uint32_t *next)
{
	while (*next < thread->range_count && thread->ranges[*next].start_ns <= node->start_ns)
		*range = (*next)++;
	while (*range != NO_RANGE && thread->ranges[*range].end_ns < node->start_ns)
		*range = thread->ranges[*range].parent;
	node->range = *range;
	if (*range != NO_RANGE && node->end_ns > thread->ranges[*range].end_ns)
		node->end_ns = thread->ranges[*range].end_ns;
}

void training_append(struct training *training, const struct train_record *record)
{
	MEMORY_GROW(training->records, training->record_count, training->record_capacity, 256);
	training->records[training->record_count++] = *record;
}

/* Appends the turn's records, with the nodes from *node up to end_ns between them. Both keep the thread's ranges. */
static void add_records(struct joiner *j, const struct thread_turn *turn, size_t *node, int64_t end_ns)
{
	const struct training_thread *thread = &j->threads[turn->thread];
	uint32_t range = NO_RANGE, next_range = 0;
	int64_t busy_ns = INT64_MIN, call_ns = INT64_MIN; /* end of the last record, and of the last optimizer call */

	for (uint32_t i = turn->first;;) {
		const struct train_record *own = i < turn->end ? &thread->records[i] : NULL;
		struct train_record *other = *node < j->node_count && j->nodes[*node].start_ns < end_ns
		                                     ? &j->nodes[*node]
		                                     : NULL;

		if (!own && !other)
			return;
		if (own && (!other || own->start_ns <= other->start_ns)) {
			int64_t *until_ns = own->token == TOKEN_OPTIMIZER ? &call_ns : &busy_ns;

			*until_ns = own->end_ns > *until_ns ? own->end_ns : *until_ns;
			training_append(j->out, own);
			i++;
			continue;
		}
		++*node;
		if (other->start_ns < busy_ns) /* inside an operator, or at the same time as another thread's work */
			continue;
		place_node(thread, other, &range, &next_range);
		other->is_inside = other->start_ns < call_ns;
		if (own && other->end_ns > own->start_ns)
			other->end_ns = own->start_ns;
		training_append(j->out, other);
		busy_ns = other->end_ns;
	}
}

static uint32_t training_threads_add_range(struct training *out, const struct train_range *range, uint32_t parent)
{
	MEMORY_GROW(out->ranges, out->range_count, out->range_capacity, 64);
	out->ranges[out->range_count] = *range;
	out->ranges[out->range_count].parent = parent;
	return (uint32_t)out->range_count++;
}

/* Returns a copy of the thread's range in the turn's range, and copies the ranges around it. copies: by range. */
static uint32_t copy_range(struct training *out, const struct training_thread *thread, struct number_map *copies,
                           uint32_t range, uint32_t turn_range)
{
	uint32_t missing = range, copy;

	if (range == NO_RANGE)
		return turn_range;
	/* from the outside in: a parent has a smaller index */
	while ((copy = number_map_find(copies, range)) == NUMBER_MAP_NONE) {
		uint32_t parent = thread->ranges[missing].parent;

		copy = parent == NO_RANGE ? turn_range : number_map_find(copies, parent);
		if (copy == NUMBER_MAP_NONE) {
			missing = parent;
			continue;
		}
		number_map_set(copies, missing, training_threads_add_range(out, &thread->ranges[missing], copy));
		missing = range;
	}
	return copy;
}

/* Makes the turn's range as long as its records and the ranges around them. A range that lasts into another turn does not
 * count. before_ns, behind_ns: the end of the step before the turn, and the start of the next turn. */
static void fit_turn_range(struct training *out, uint32_t turn, size_t first, int64_t before_ns, int64_t behind_ns)
{
	struct train_range *whole = &out->ranges[turn];

	for (size_t i = first; i < out->record_count; i++) {
		whole->start_ns = i == first ? out->records[i].start_ns : whole->start_ns;
		whole->end_ns = out->records[i].end_ns > whole->end_ns ? out->records[i].end_ns : whole->end_ns;
	}
	for (size_t i = turn + (size_t)1; i < out->range_count; i++) {
		const struct train_range *range = &out->ranges[i];

		if (range->parent != turn || range->start_ns < before_ns || range->end_ns > behind_ns)
			continue;
		whole->start_ns = range->start_ns < whole->start_ns ? range->start_ns : whole->start_ns;
		whole->end_ns = range->end_ns > whole->end_ns ? range->end_ns : whole->end_ns;
	}
}

/* Adds ranges for the turn's records, from `first` on. */
static void add_ranges(struct joiner *j, size_t number, size_t first)
{
	const struct thread_turn *turn = &j->turns[number];
	struct training *out = j->out;
	struct number_map copies = {0};
	struct train_range whole = {.start_ns = turn->start_ns, .end_ns = turn->start_ns};
	uint32_t range = training_threads_add_range(out, &whole, NO_RANGE);

	for (size_t i = first; i < out->record_count; i++)
		out->records[i].range = copy_range(out, &j->threads[turn->thread], &copies, out->records[i].range,
		                                   range);
	fit_turn_range(out, range, first, number ? turn[-1].busy_ns : INT64_MIN,
	               number + 1 < j->turn_count ? turn[1].start_ns : INT64_MAX);
	number_map_release(&copies);
}

static void add_turn(struct joiner *j, size_t number, size_t *node)
{
	const struct thread_turn *turn = &j->turns[number];
	size_t first = j->out->record_count;

	add_records(j, turn, node, number + 1 < j->turn_count ? j->turns[number + 1].start_ns : INT64_MAX);
	add_ranges(j, number, first);
	j->out->turns[number] = (struct training_turn){turn->thread, turn->start_ns};
}

/* Takes the arrays of the only thread without copying. This is the most common case. */
static void take_one(struct joiner *j)
{
	struct training_thread *thread = &j->threads[j->best];
	size_t node = 0;

	j->out->turns[0] = (struct training_turn){j->best, INT64_MIN};
	if (j->node_count) {
		add_records(j, &j->turns[0], &node, INT64_MAX);
	} else {
		j->out->records = thread->records;
		j->out->record_count = j->out->record_capacity = thread->record_count;
		thread->records = NULL;
		thread->record_count = 0;
	}
	j->out->ranges = thread->ranges;
	j->out->range_count = j->out->range_capacity = thread->range_count;
	thread->ranges = NULL;
	thread->range_count = 0;
}

static int training_threads_compare_calls(const void *left, const void *right)
{
	const struct train_call *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Adds calls in hooks of gradients, from the threads that train and from those that compute gradients for them. Calls
 * that overlap count as one. */
static void training_threads_add_hooked(struct joiner *j)
{
	struct training *out = j->out;
	size_t count = 0, kept = 0;

	for (uint32_t i = 0; i < j->thread_count; i++)
		count += j->is_kept[i] || !j->threads[i].calls ? j->threads[i].hooked_count : 0;
	out->hooked = memory_resize(NULL, count + 1, sizeof *out->hooked);
	count = 0;
	for (uint32_t i = 0; i < j->thread_count; i++) {
		const struct training_thread *thread = &j->threads[i];

		if (!thread->hooked_count || (!j->is_kept[i] && thread->calls))
			continue;
		memcpy(out->hooked + count, thread->hooked, thread->hooked_count * sizeof *out->hooked);
		count += thread->hooked_count;
	}
	if (count)
		merge_sort(out->hooked, count, sizeof *out->hooked, training_threads_compare_calls);
	for (size_t i = 0; i < count; i++)
		if (!kept || out->hooked[i].start_ns >= out->hooked[kept - 1].end_ns)
			out->hooked[kept++] = out->hooked[i];
	out->hooked_count = kept;
}

static void count_others(struct joiner *j)
{
	for (uint32_t i = 0; i < j->thread_count; i++) {
		if (j->is_kept[i] || !j->threads[i].calls)
			continue;
		j->out->other_threads++;
		j->out->other_calls += j->threads[i].calls;
	}
}

bool training_join(struct training *training, struct training_thread *threads, uint32_t count, bool is_single)
{
	struct joiner j = {.out = training, .threads = threads, .thread_count = count};
	size_t node = 0;

	memset(training, 0, sizeof *training);
	if (!find_best(&j))
		return false;
	j.is_kept = memory_resize(NULL, count, sizeof *j.is_kept);
	j.same = memory_resize(NULL, count, sizeof *j.same);
	if (is_single)
		keep_one(&j);
	else
		find_turns(&j);
	collect_nodes(&j);
	training->turn_count = j.turn_count;
	training->turns = memory_resize(NULL, j.turn_count, sizeof *training->turns);
	training_threads_add_hooked(&j);
	count_others(&j);
	if (j.turn_count > 1)
		find_records(&j);
	for (size_t i = 0; i < j.turn_count && j.turn_count > 1; i++)
		add_turn(&j, i, &node);
	if (j.turn_count == 1)
		take_one(&j);
	free(j.is_kept);
	free(j.same);
	free(j.busy);
	free(j.turns);
	free(j.nodes);
	return true;
}

void training_release(struct training *training)
{
	free(training->records);
	free(training->ranges);
	free(training->hooked);
	free(training->turns);
	memset(training, 0, sizeof *training);
}
