/* SPDX-License-Identifier: Apache-2.0
 *
 * agent.h: what the Python package calls (through agents/python), in this order:
 *
 *     stepscope_torch_find()          PyTorch is imported: its functions are looked up
 *     stepscope_torch_probe_begin()   then a few known operators are run, see python/stepscope/_torch.py
 *     stepscope_torch_probe_end()
 *     stepscope_torch_start()         then any operator is run
 *     stepscope_torch_settled()       operators are recorded from here on, wherever they run; once
 *
 * Where these can fail they return 0, or -1 and stepscope_torch_problem() says why. Nothing here throws or prints. Called with Python's
 * global lock held, so by one thread at a time; texts are borrowed for the call.
 */
#ifndef AGENTS_TORCH_AGENT_H
#define AGENTS_TORCH_AGENT_H

#include <stdint.h>

#define STEPSCOPE_AGENT_EXPORT __attribute__((visibility("default")))

STEPSCOPE_AGENT_EXPORT int stepscope_torch_find(void);
/* Before the probe: which parts of PyTorch's own work are done in a shorter way if that can be proven ("tls"), see lean_want(). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_lean(const char *parts);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_begin(void);
/* Within a probe: a tensor (its TensorImpl), kind 0 plain, 1 on the device meta, 2 of another kind, 3 around another tensor, 4 to 6
 * of a class in Python that computes nothing, strides or sizes itself, several each; PyTorch's number of its element type, its sizes and then
 * as many strides; the first two inputs of the operators that follow; then, with all that was seen, the answer. After that scalars (type 0 int, 1 double, 2 bool) that are the third input of the next sub or sum, and the answer again; then the
 * text that the newest operator's inputs must have. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_tensor(uint64_t tensor, int kind, int type, const int64_t *sizes,
                                                         int count);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_value(int type, uint64_t bits);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_inputs(uint64_t first, uint64_t second);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_solve(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_check(const char *inputs);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_end(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_start(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_settled(void);
/* 0: operators are recorded without their inputs from the next start on, whatever the options say (bench/torch compares). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_inputs(int is_wanted);
/* Lines of Python, before the start. find: 0 when they are wanted and this interpreter is known; then check in functions whose stack is
 * known, as lines.h says; stop before the interpreter ends. want: as for inputs. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_lines_find(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_lines_check(const char *story);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_lines_stop(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_lines(int is_wanted);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_stop(void);
/* A profiler in the program follows the calling thread, and those that work for it, from the next window on. The number is for
 * unfollow, which the same thread calls; 0: this PyTorch does not tell. */
STEPSCOPE_AGENT_EXPORT uint64_t stepscope_torch_follow(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_unfollow(uint64_t number);
/* From the optimizers' global hook, inside of the record of the call: which optimizer it is (STEPSCOPE_OPTIMIZER_ADDRESS). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer(uint64_t identity);
/* Behind its call. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer_done(uint64_t identity);
/* torch.compile has made code, with this number ("3/1"), that begins a call of this optimizer: there the hooks are not called. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_compiled(const char *code, uint64_t identity);
/* Who holds which memory now: `count` times three 64-bit words, id (STEPSCOPE_MEMORY_ID), address, bytes. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_owners(const void *words, int count);
/* Now? Then another number than 0 for each start and window of the recorder. */
STEPSCOPE_AGENT_EXPORT unsigned stepscope_torch_wants_owners(void);
/* emit_rotations(): another number, and what was told may be removed. */
STEPSCOPE_AGENT_EXPORT unsigned stepscope_torch_rotations(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_may_want_owners(void); /* in this session */
/* call() comes in a backward that computes gradients, see backward_watch(). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_watch_backward(void (*call)(void), int is_later);
/* The program made its process group: its own number in it, and how many there are. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_rank(int rank, int world_size);
/* Operators of the calling thread make records from here on, for whatever profiler, or not: what was so before; -1: this PyTorch does not
 * tell, and nothing has changed. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_make_records(int is_on);
/* There is one more optimizer in the program. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer_made(void);
/* Behind the begin of a module's call, the outermost of its thread: which module it is (any number but 0), and its mode. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_module(uint64_t identity, int is_training);
/* While detail is recorded: a range or the call of a module begins, with the line that makes it where lines are recorded (symbol 0: none). While
 * steps are counted: torch.save (STEPSCOPE_TRAINING_SAVE), or what starts the workers of a loader (STEPSCOPE_TRAINING_LOADER) or stops them
 * (STEPSCOPE_TRAINING_LOADER_END; 0: none of them). `key`: an address (of 8 bytes or more) that nothing else uses until the end. 1: the end
 * is wanted, in the same thread; 0: nothing was begun. The end says whether such a range was open in this thread. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_range(uint32_t symbol, int stretch, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_range_end(const void *key);
/* The same for a step of torch.profiler's that has no record: for want of a schedule, or as PyTorch's records are not looked at. It marks a step
 * as those do that have one. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_profiler_step(uint32_t symbol, uint32_t number, int has_schedule,
                                                         const void *key);
/* While STEPSCOPE_ACTIVE_CALLS is set: a range of record_function() begins; the engine runs over a graph (is_training: and accumulates
 * gradients); a gradient scaler is updated; a module is called, in no other one's call (module: as stepscope_torch_module() tells it, symbol:
 * of its name). Key, result and end: as for stepscope_torch_range(). */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_range(const char *name, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_backward(int is_training, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_scaler(const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_module(uint64_t identity, int is_training, uint32_t symbol,
                                                       const void *key);
/* While STEPSCOPE_ACTIVE_CALLS is set, for what is said of a process that dies: the calling thread is in a call of that name (0: in none). The
 * name before, which the end of the call gives back. */
STEPSCOPE_AGENT_EXPORT uint32_t stepscope_torch_in_call(uint32_t symbol);
/* 0: that of a module, which is called now, would say nothing new. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_wants_module(void);
/* All of these are told when they happen. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_sees_calls(void);
/* It is open in another thread, if at all. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_range_end_elsewhere(const void *key);
/* Inside of the record of a wait for a batch: which loader it is of (its number << 32 | number of the loop over it); no batch came. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader(uint64_t loader);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader_end(void);
/* Inside of the range in which the workers of a loop are started: the same number. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader_start(uint64_t loader);
/* How many operators and ranges were left out so far, because they began too deep in others. */
STEPSCOPE_AGENT_EXPORT uint64_t stepscope_torch_too_deep(void);
STEPSCOPE_AGENT_EXPORT const char *stepscope_torch_problem(void);

#endif
