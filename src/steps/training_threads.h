/* SPDX-License-Identifier: Apache-2.0
 *
 * training_threads.h: merges the threads of a process that train into one list of records for infer_steps(). Most
 * programs train in one thread. Training may move from thread to thread:
 *
 * - Threads that step the same optimizer are one training if they do so one at a time.
 * - Threads that step different optimizers are one training if each has ended before the next starts.
 * - If several trainings run at the same time, the one that calls optimizers most often counts. The others are left out
 *   and counted.
 *
 * A thread's turn starts at its first record after the previous step, which another thread made. It ends where the next
 * turn starts. Records of a thread outside its turns are left out. The records of each turn are in a separate range, so
 * that no step spans two turns.
 *
 *     struct training training;
 *     if (training_join(&training, threads, count)) {
 *             infer_steps(&inference, &(struct train_loop){.records = training.records, ...});
 *             training_release(&training);
 *     }
 *
 * If no thread calls optimizers, the threads that compute gradients train. If no thread computes gradients either, the
 * thread with the most ranges that may be steps trains.
 *
 * Gradients computed by another thread that calls no optimizer (a GPU's thread) are put among the records of the thread
 * whose turn it is. So are the forwards of such a thread, and of threads on whose graphs it works. Forwards at the same
 * time count once.
 *
 * The run time is that of sorting the records of training threads.
 */
#ifndef STEPS_TRAINING_THREADS_H
#define STEPS_TRAINING_THREADS_H

#include "steps/infer_steps.h"

struct training_thread {              /* records of one thread; training_join() may take its arrays */
	struct train_record *records; /* by start */
	struct train_range *ranges;   /* by start */
	struct train_call *hooked;
	uint32_t record_count, range_count, hooked_count;
	uint32_t calls, nodes; /* number of optimizer calls; number of backwards */
	uint32_t marks;        /* number of ranges that may be steps */
	bool is_followed;      /* other threads work on gradients of this thread's graphs */
};

struct training_turn {
	uint32_t thread;
	int64_t start_ns; /* INT64_MIN: the first turn */
};

struct training {
	struct train_record *records;
	struct train_range *ranges;
	struct train_call *hooked;
	size_t record_count, record_capacity, range_count, range_capacity, hooked_count;
	struct training_turn *turns;
	size_t turn_count;
	uint64_t other_threads, other_calls; /* threads and optimizer calls that are left out */
};

/* is_single: use one thread only. Returns false if no thread trains. */
bool training_join(struct training *training, struct training_thread *threads, uint32_t count, bool is_single);
/* Appends a record after all others. */
void training_append(struct training *training, const struct train_record *record);
void training_release(struct training *training);

#endif
