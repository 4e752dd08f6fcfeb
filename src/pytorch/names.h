/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h: what PyTorch calls the records that mean something. The agent tells by them what a program does while it runs, and readers of
 * recordings and traces tell the same: so they stand here, once. Data only, 1.13 to 2.13; no other file spells them.
 */
#ifndef PYTORCH_NAMES_H
#define PYTORCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Beginnings of names. */
#define PYTORCH_ENGINE                                                                                                 \
	"autograd::engine::evaluate_function: "              /* what the engine does for one node, whose name follows */
#define PYTORCH_ACCUMULATE "torch::autograd::AccumulateGrad" /* a gradient is added up: a backward that trains */
#define PYTORCH_OPTIMIZER_STEP "Optimizer.step#"
#define PYTORCH_OPTIMIZER_ZERO_GRAD "Optimizer.zero_grad#"
#define PYTORCH_LOADER "enumerate(DataLoader)#"             /* the wait for a batch */
#define PYTORCH_LOADER_HERE "enumerate(DataLoader)#_Single" /* of a loader without workers, which makes it meanwhile */
#define PYTORCH_LOADER_START "DataLoader: start of workers" /* ours: the loop's beginning, before the first wait */
#define PYTORCH_LOADER_AGAIN "DataLoader: next loop"        /* ours: the same, with workers that are there already */
#define PYTORCH_LOADER_STOP "DataLoader: end of workers"    /* ours: waiting until they are gone */
#define PYTORCH_ONES "aten::ones_like" /* backward() makes the first gradient, where the program gives it none */
#define PYTORCH_SCALER "aten::_amp_update_scale_"
#define PYTORCH_COLLECTIVE "c10d::" /* where the program issues one; no autograd graph remembers it */
#define PYTORCH_GLOO "gloo:"        /* where gloo executes it */
#define PYTORCH_PROFILER_STEP                                                                                          \
	"ProfilerStep#" /* torch.profiler's, from step() to step(); its number follows. Without a schedule a range of ours */
/* What torch.profiler says of a collective, as arguments. */
#define PYTORCH_GROUP_NAME "Process Group Name"
#define PYTORCH_GROUP_DESCRIPTION "Process Group Description"
#define PYTORCH_GROUP_RANKS "Process Group Ranks"
#define PYTORCH_GROUP_SIZE "Group size"
/* FSDP makes room for the parameters that it gathers from all ranks: both of its kinds, the second for a forward and for a backward. */
#define PYTORCH_GATHER "FSDP::all_gather_copy_out"
#define PYTORCH_GATHER_FORWARD "FullyShardedDataParallel._pre_forward"
#define PYTORCH_GATHER_BACKWARD "FullyShardedDataParallel._pre_backward"
#define PYTORCH_MODE                                                                                                   \
	"PythonDispatchMode" /* what a TorchDispatchMode does about a call, outermost where PyTorch has no record of that one */
#define PYTORCH_COMPILED "Torch-Compiled Region: " /* code that torch.compile made; its number follows */
#define PYTORCH_COMPILED_CALL "torch.compiled "    /* ours: a code's number, and which optimizer it begins a call of */
#define PYTORCH_STATIC                                                                                                 \
	"static runtime: " /* ours: before what TorchScript's static runtime calls an operator, or a model */

static inline bool pytorch_begins(const char *name, const char *beginning)
{
	return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* The name need not end with a NUL. */
static inline bool pytorch_begins_n(const char *name, size_t length, const char *beginning)
{
	size_t bytes = strlen(beginning);
	return length >= bytes && memcmp(name, beginning, bytes) == 0;
}

static inline bool pytorch_is_one_of(const char *name, size_t length, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == length && memcmp(*names, name, length) == 0)
			return true;
	return false;
}

/* Ranges of ours that begin rarely, and are recorded in steps without operators, too. */
#define PYTORCH_GARBAGE "garbage collection " /* the generation follows */
#define PYTORCH_COMPILE "torch.compile"
#define PYTORCH_SAVE "torch.save"
#define PYTORCH_LOAD "torch.load"

static inline bool pytorch_is_rare(const char *name, size_t length)
{
	static const char *const names[] = {
		PYTORCH_COMPILE,      PYTORCH_SAVE,        PYTORCH_LOAD, PYTORCH_LOADER_START,
		PYTORCH_LOADER_AGAIN, PYTORCH_LOADER_STOP, NULL};
	return pytorch_begins_n(name, length, PYTORCH_GARBAGE) || pytorch_is_one_of(name, length, names);
}

/* Operators that are waits for a collective: those of torch.distributed._functional_collectives, which DTensor uses; from 2.2, and of 2.1. */
static inline bool pytorch_waits(const char *name)
{
	static const char *const names[] = {"_c10d_functional::wait_tensor", "c10d_functional::wait_tensor", NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

/* The ranges in which c10d's backends do what they were asked for ("gloo:all_reduce"; "nccl::" is a namespace of operators). PyTorch takes each as
 * asynchronous, also where the thread that began it ends it. */
static inline bool pytorch_is_work(const char *name)
{
	static const char *const backends[] = {"gloo", "nccl", "mpi", "ucc", "xccl", NULL};
	size_t length = strcspn(name, ":");
	return name[length] && name[length + 1] != ':' && pytorch_is_one_of(name, length, backends);
}

/* Code has two numbers, "3/1": of the function, and how often that was compiled before. Both in one; 0: it has none. */
static inline uint32_t pytorch_code_number(const char *text, size_t length)
{
	uint32_t parts[2] = {0}, part = 0, digits = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '/' && !part++ && digits) {
			digits = 0;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || ++digits > 6)
			return 0;
		parts[part] = 10 * parts[part] + (uint32_t)(text[i] - '0');
	}
	bool is_known = part == 1 && digits && parts[0] < (1u << 20) - 1 && parts[1] < 1u << 12;
	return is_known ? (parts[0] + 1) << 12 | parts[1] : 0;
}

/* 1 + the number of torch.profiler's step; 0: it is none. */
static inline uint32_t pytorch_profiler_step(const char *name, size_t length)
{
	const size_t before = sizeof PYTORCH_PROFILER_STEP - 1;
	uint32_t number = 0;
	if (!pytorch_begins_n(name, length, PYTORCH_PROFILER_STEP) || length == before || length > before + 9)
		return 0;
	for (size_t i = before; i < length; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = 10 * number + (uint32_t)(name[i] - '0');
	}
	return number + 1;
}

/* The seed and the order of the batches, when a loop over a loader begins: no work on a batch. */
static inline bool pytorch_is_of_sampler(const char *name, size_t length)
{
	static const char *const names[] = {"aten::empty",    "aten::random_", "aten::item",
	                                    "aten::randperm", "aten::zeros",   NULL};
	return pytorch_is_one_of(name, length, names);
}

/* Operators that write to a tensor in place, by the form of their names: `aten::add_`. */
static inline bool pytorch_writes(const char *name, size_t length)
{
	static const char *const others[] = {"aten::detach_", "aten::requires_grad_", NULL};
	return length > 2 && name[length - 1] == '_' && name[length - 2] != '_' &&
	       !pytorch_is_one_of(name, length, others);
}

static inline bool pytorch_zeroes(const char *name, size_t length)
{
	static const char *const names[] = {"aten::zero_", "aten::_foreach_zero_", NULL};
	return pytorch_is_one_of(name, length, names);
}

/* Operators of layers: what is written to in place behind them is what layers make, no weights. */
static inline bool pytorch_is_layer(const char *name, size_t length)
{
	static const char *const names[] = {"aten::linear",
	                                    "aten::conv1d",
	                                    "aten::conv2d",
	                                    "aten::conv3d",
	                                    "aten::conv_transpose1d",
	                                    "aten::conv_transpose2d",
	                                    "aten::conv_transpose3d",
	                                    "aten::batch_norm",
	                                    "aten::layer_norm",
	                                    "aten::group_norm",
	                                    "aten::instance_norm",
	                                    "aten::rms_norm",
	                                    "aten::embedding",
	                                    "aten::scaled_dot_product_attention",
	                                    "aten::lstm",
	                                    "aten::gru",
	                                    NULL};
	return pytorch_is_one_of(name, length, names);
}

/* One operator for a list of tensors. */
static inline bool pytorch_takes_many(const char *name, size_t length)
{
	return pytorch_begins_n(name, length, "aten::_foreach_") || pytorch_begins_n(name, length, "aten::_fused_");
}

/* Operators that get memory for the one that calls them. */
static inline bool pytorch_is_allocator(const char *name)
{
	static const char *const names[] = {"aten::empty",
	                                    "aten::empty_strided",
	                                    "aten::empty_like",
	                                    "aten::new_empty",
	                                    "aten::new_empty_strided",
	                                    "aten::resize_",
	                                    "aten::resize_as_",
	                                    NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

#endif
