/* SPDX-License-Identifier: Apache-2.0
 *
 * agent.h: the functions that the Python package calls (through agents/python), in this order:
 *
 *     stepscope_torch_find()          PyTorch is imported: looks up its functions
 *     stepscope_torch_probe_begin()   then the caller runs a few known operators, see python/stepscope/_torch.py
 *     stepscope_torch_probe_end()
 *     stepscope_torch_start()         then the caller runs any operator
 *     stepscope_torch_settled()       records operators from now on, in any thread; once
 *
 * Functions that can fail return 0, or -1 with the reason in stepscope_torch_problem(). Nothing here throws or prints.
 * Callers hold Python's global lock, so only one thread calls at a time. Texts are borrowed for the call.
 */
#ifndef AGENTS_TORCH_AGENT_H
#define AGENTS_TORCH_AGENT_H

#include <stdint.h>

#define STEPSCOPE_AGENT_EXPORT __attribute__((visibility("default")))

STEPSCOPE_AGENT_EXPORT int stepscope_torch_find(void);
/* Before the probe: names the parts of PyTorch's own work to shorten, if that can be proven ("tls"), see
 * lean_want(). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_lean(const char *parts);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_begin(void);
/* Within a probe, in this order.
 *
 * probe_tensor: a tensor (its TensorImpl), its kind, PyTorch's number of its element type, its sizes, and then the
 * same number of strides. Kinds, several tensors of each: 0 plain, 1 on the device meta, 2 of another kind, 3 around
 * another tensor, 4 to 6 of a Python class that computes nothing, strides or sizes itself.
 *
 * probe_inputs: the first two inputs of the next operators. probe_solve: the answer, from all observations.
 * probe_value: the third input of the next sub or sum, a scalar (type 0 int, 1 double, 2 bool); then probe_solve
 * again. probe_check: the text that the newest operator's inputs must have. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_tensor(uint64_t tensor, int kind, int type, const int64_t *sizes,
                                                         int count);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_value(int type, uint64_t bits);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_probe_inputs(uint64_t first, uint64_t second);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_solve(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_check(const char *inputs);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_probe_end(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_start(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_settled(void);
/* 0: from the next start on, operators are recorded without inputs, whatever the options say (bench/torch compares). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_inputs(int is_wanted);
/* Lines of Python, before the start. find returns 0 if they are wanted and this interpreter is known. Then call check
 * in functions with known stacks, see lines.h. Call stop before the interpreter ends. want: as for inputs. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_lines_find(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_lines_check(const char *story);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_lines_stop(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_want_lines(int is_wanted);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_stop(void);
/* A profiler in the program follows the calling thread, and threads that work for it, from the next window on. Returns
 * a number for unfollow, which the same thread calls; 0: this PyTorch cannot do that. */
STEPSCOPE_AGENT_EXPORT uint64_t stepscope_torch_follow(void);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_unfollow(uint64_t number);
/* From the optimizers' global hook, inside the record of the call: the optimizer's identity
 * (STEPSCOPE_OPTIMIZER_ADDRESS). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer(uint64_t identity);
/* After the optimizer's call. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer_done(uint64_t identity);
/* torch.compile has made code, with this number ("3/1"), that starts a call of this optimizer. Compiled calls do not
 * call the hooks. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_compiled(const char *code, uint64_t identity);
/* The owners of memory now: `count` times three 64-bit words, id (STEPSCOPE_MEMORY_ID), address, bytes. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_owners(const void *words, int count);
/* Returns 0 if owners are not wanted now; otherwise a number that differs for each start and window of the recorder. */
STEPSCOPE_AGENT_EXPORT unsigned stepscope_torch_wants_owners(void);
/* Returns emit_rotations. After it changes, owners that were recorded before may have been removed. */
STEPSCOPE_AGENT_EXPORT unsigned stepscope_torch_rotations(void);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_may_want_owners(void); /* at any time in this session */
/* Calls call() in a backward that computes gradients, see backward_watch(). */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_watch_backward(void (*call)(void), int is_later);
/* The program made its process group: its rank in the group, and the number of ranks. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_rank(int rank, int world_size);
/* Turns the records of operators in the calling thread on or off, for every profiler. Returns the previous state; -1:
 * this PyTorch cannot tell, and nothing has changed. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_make_records(int is_on);
/* The program has made another optimizer. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_optimizer_made(void);
/* After the start of a module's call, the outermost of its thread: the module (any number but 0), and its mode. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_module(uint64_t identity, int is_training);
/* While detail is recorded: starts a range or a module's call, with its line of Python if lines are recorded (symbol
 * 0: neither). While steps are counted: starts torch.save (STEPSCOPE_TRAINING_SAVE), or the call that starts the
 * workers of a loader (STEPSCOPE_TRAINING_LOADER) or stops them (STEPSCOPE_TRAINING_LOADER_END); stretch 0: none of
 * these.
 *
 * `key`: an address (of 8 bytes or more) that no other span uses until the end. Returns 1 if the end must be called, in
 * the same thread; 0: nothing was started. The end returns 1 if such a range was open in this thread. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_range(uint32_t symbol, int stretch, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_range_end(const void *key);
/* Starts a step of torch.profiler that has no record, because it has no schedule or PyTorch's records are not
 * observed. It marks a step like those that have a record. Otherwise like stepscope_torch_range(). */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_profiler_step(uint32_t symbol, uint32_t number, int has_schedule,
                                                         const void *key);
/* While STEPSCOPE_ACTIVE_CALLS is set. call_range: a range of record_function() starts. call_backward: the engine runs
 * over a graph (is_training: and accumulates gradients). call_scaler: a gradient scaler is updated. call_module: a
 * module is called, not inside another module's call (module: as in stepscope_torch_module(), symbol: of its name).
 * Key, result and end: as for stepscope_torch_range(). */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_range(const char *name, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_backward(int is_training, const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_scaler(const void *key);
STEPSCOPE_AGENT_EXPORT int stepscope_torch_call_module(uint64_t identity, int is_training, uint32_t symbol,
                                                       const void *key);
/* While STEPSCOPE_ACTIVE_CALLS is set: notes the name of the call that the thread is in (0: no call), for the report
 * about a process that dies. Returns the previous name, which the caller restores when the call ends. */
STEPSCOPE_AGENT_EXPORT uint32_t stepscope_torch_in_call(uint32_t symbol);
/* Returns 0 if the call of a module would add no information now. */
STEPSCOPE_AGENT_EXPORT int stepscope_torch_wants_module(void);
/* Declares that the Python package reports all of these calls. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_sees_calls(void);
/* Ends a range that is open in another thread, if at all. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_range_end_elsewhere(const void *key);
/* Inside the record of a wait for a batch: its loader (the loader's number << 32 | number of the loop over it).
 * loader_end: no batch came. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader(uint64_t loader);
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader_end(void);
/* Facts about the way of a batch: the loop as in stepscope_torch_loader(), the batch's number in the loop, the worker's
 * number, the bytes of the pickled batch. loader_fact: of the range of this thread that has just started. range_end_with:
 * as stepscope_torch_range_end(), with facts that are known at the end. */
enum stepscope_loader_fact {
	STEPSCOPE_LOADER_LOOP,
	STEPSCOPE_LOADER_BATCH,
	STEPSCOPE_LOADER_WORKER,
	STEPSCOPE_LOADER_BYTES,
	STEPSCOPE_LOADER_FACTS,
};
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader_fact(int fact, uint64_t value);
struct stepscope_loader_facts {
	int count;
	struct {
		int fact;
		uint64_t value;
	} list[2];
};
STEPSCOPE_AGENT_EXPORT int stepscope_torch_range_end_with(const void *key, const struct stepscope_loader_facts *facts);
/* Inside the range that starts the workers of a loop: the same number. */
STEPSCOPE_AGENT_EXPORT void stepscope_torch_loader_start(uint64_t loader);
/* Returns the number of operators and ranges left out so far because they were nested too deeply. */
STEPSCOPE_AGENT_EXPORT uint64_t stepscope_torch_too_deep(void);
STEPSCOPE_AGENT_EXPORT const char *stepscope_torch_problem(void);

#endif
