/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.h: the RecordFunction callbacks: PyTorch calls them around every operator, in whatever thread runs it.
 */
#ifndef AGENTS_TORCH_OBSERVER_H
#define AGENTS_TORCH_OBSERVER_H

#include "agents/torch/layout.h"
#include "agents/torch/training_calls.h"

/* From this call on, the callbacks are registered while operators are recorded, and while steps can only be counted by
 * records. There is one callback per scope, so that the scope is known without reading the record. At other times
 * PyTorch calls none of our functions, and calls of its functions are noted instead (observer_call_begin()).
 *
 * has_inputs: sizes of inputs are wanted, and proven to be readable; has_lines: the same for stacks of Python. */
void observer_start(const struct torch_entry *entry, const struct torch_layout *layout, bool has_inputs,
                    bool has_lines);
/* Nothing is recorded before this call, which comes once. A thread's first operator after the start takes a lock of
 * PyTorch's. If the thread forks while it holds the lock, the lock stays held in the child. So the thread that starts
 * us runs an operator in between. */
void observer_settled(const struct torch_entry *entry, const struct torch_layout *layout);
void observer_stop(void);
/* PyTorch hands a thread's own callbacks on to threads that work for it (a device's backward, jit.fork, gloo), and to
 * no others. torch.profiler sees the same threads. So a callback that is never called, of a scope that is used on
 * phones only, marks them. Returns its handle, for remove_callback() in the same thread; 0: not in this PyTorch. */
uint64_t observer_follow(const struct torch_entry *entry);
/* Starts a range or the call of a module, with its line of Python if lines are recorded (symbol 0: neither). If steps
 * are counted, also starts a stretch without a record (stretch: see training_stretch(), step: see
 * training_profiler_step(), 0: neither). `key`: an address of the caller's that no other span uses until the end.
 *
 * If the start returns true, the caller must end it. The end returns false if no such range is open in this thread. If
 * it is open in another thread, observer_end_elsewhere() ends it. */
bool observer_range(uint32_t symbol, uint8_t stretch, uint32_t step, const void *key);
bool observer_range_end_with(const void *key, const uint64_t *words, unsigned count); /* with words of its END */
bool observer_range_end(const void *key);
void observer_end_elsewhere(const void *key);
/* While no callback is registered: notes a call of a PyTorch function that training.h follows. Key and result: as for
 * observer_range(). */
bool observer_call_begin(const struct training_call *call, const void *key);
/* Returns true if observer_call_begin() would note the call of a module now. */
bool observer_wants_module(void);
/* From this call on, counts steps by the records, if the recording needs that. */
void observer_count(void);
/* Call when the result of training_needs_records() may have changed. */
void observer_follow_wishes(void);
/* Returns true if steps are counted. */
bool observer_is_counting(void);
/* Returns the number of records left out so far because they were nested too deeply. Any thread. */
uint64_t observer_too_deep(void);

#endif
