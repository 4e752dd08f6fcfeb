/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.h: the RecordFunction callbacks: PyTorch calls them around every operator, in whatever thread runs it.
 */
#ifndef AGENTS_TORCH_OBSERVER_H
#define AGENTS_TORCH_OBSERVER_H

#include "agents/torch/layout.h"
#include "agents/torch/training_calls.h"

/* From here on the callbacks are registered while operators are recorded, and while steps can be counted by nothing else: one per scope, so
 * that the scope is known without reading the record. At other times PyTorch calls nothing of ours, and calls of its functions are noted
 * (observer_call_begin()). has_inputs: sizes of inputs are known to be readable, and wanted; has_lines: the same for stacks of Python. */
void observer_start(const struct torch_entry *entry, const struct torch_layout *layout, bool has_inputs,
                    bool has_lines);
/* Nothing is recorded before this, once. A thread's first operator behind the start takes a lock of PyTorch's; one that is held when the
 * thread forks stays so in the child. So the thread that starts us runs an operator in between. */
void observer_settled(const struct torch_entry *entry, const struct torch_layout *layout);
void observer_stop(void);
/* PyTorch hands a thread's own callbacks on to threads that work for it (a device's backward, jit.fork, gloo), and to no other: those are
 * what torch.profiler sees. So one that is never called, of a scope that is used on phones only, marks them. Returns its handle, for
 * remove_callback() in the same thread; 0: not in this PyTorch. */
uint64_t observer_follow(const struct torch_entry *entry);
/* A range or the call of a module begins, with its line of Python where lines are recorded (symbol 0: none does), or, where steps are counted,
 * what has no record (stretch: see training_stretch(), step: see training_profiler_step(), 0: nothing of that kind). `key`: an address of the caller's that nothing else
 * uses until the end, which belongs to a begin that is true. The end is false where no such range is open in this thread: if it is in another one,
 * observer_end_elsewhere() ends it there. */
bool observer_range(uint32_t symbol, uint8_t stretch, uint32_t step, const void *key);
bool observer_range_end(const void *key);
void observer_end_elsewhere(const void *key);
/* While no callback is registered: one of PyTorch's functions is called that training.h wants to know of. Key and result: as of
 * observer_range(). */
bool observer_call_begin(const struct training_call *call, const void *key);
/* Would it be true for a module's? */
bool observer_wants_module(void);
/* From here on steps are counted by what the records say, if the recording needs that. */
void observer_count(void);
/* What training_needs_records() says may have changed. */
void observer_follow_wishes(void);
/* Are they? */
bool observer_is_counting(void);
/* How many records were left out so far, because they began too deep in others. Any thread. */
uint64_t observer_too_deep(void);

#endif
