/* SPDX-License-Identifier: Apache-2.0
 *
 * training_threads.h: the threads of a process that train, as one loop of records for infer_steps(). Most often it is one thread. Training
 * may move from thread to thread:
 *
 * - Threads that step the same optimizer are one training, when they do so one at a time.
 * - Those that step others are, when one has ended before the next begins.
 * - Of trainings that go on at once it is the one that calls optimizers most often. What is left out is counted.
 *
 * A thread's turn lasts from its first record behind the step before, which another thread made, to where the next turn begins. What the
 * threads do besides their turns is left out. Records of a turn lie in a range of its own, so that no step reaches over two of them.
 *
 *     struct training training;
 *     if (training_join(&training, threads, count)) {
 *             infer_steps(&inference, &(struct train_loop){.records = training.records, ...});
 *             training_release(&training);
 *     }
 *
 * Where no thread calls optimizers, those train that compute gradients; where none does, the one with the most ranges that may be steps. Else gradients that a thread computes which calls none (a GPU's)
 * are put among the records of the thread whose turn it is. So are forwards of such a thread, and of others whose graphs it works on: of
 * several at a time what they take together.
 *
 * Time is that of sorting what trains.
 */
#ifndef MODEL_TRAINING_THREADS_H
#define MODEL_TRAINING_THREADS_H

#include "model/infer_steps.h"

struct training_thread {              /* what one thread did; its arrays may be taken */
	struct train_record *records; /* by start */
	struct train_range *ranges;   /* by start */
	struct train_call *hooked;
	uint32_t record_count, range_count, hooked_count;
	uint32_t calls, nodes; /* of optimizers; of backwards */
	uint32_t marks;        /* ranges that may be steps */
	bool is_followed;      /* other threads work on gradients of its graphs */
};

struct training_turn {
	uint32_t thread;
	int64_t start_ns; /* INT64_MIN: the first one */
};

struct training {
	struct train_record *records;
	struct train_range *ranges;
	struct train_call *hooked;
	size_t record_count, record_capacity, range_count, range_capacity, hooked_count;
	struct training_turn *turns;
	size_t turn_count;
	uint64_t other_threads, other_calls; /* of optimizers, that are left out */
};

/* is_single: of one thread only. False: no thread trains. */
bool training_join(struct training *training, struct training_thread *threads, uint32_t count, bool is_single);
/* Behind all others. */
void training_append(struct training *training, const struct train_record *record);
void training_release(struct training *training);

#endif
