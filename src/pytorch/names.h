/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h: the names of PyTorch's records that have a meaning. The agent uses them while the program runs, and readers
 * of recordings and traces use the same names, so they are defined once, in this file. It has only data, for PyTorch
 * 1.13 to 2.13; no other file spells these names.
 */
#ifndef PYTORCH_NAMES_H
#define PYTORCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Beginnings of names. */
#define PYTORCH_ENGINE "autograd::engine::evaluate_function: " /* the engine's work for one node, which is named next */
#define PYTORCH_ACCUMULATE "torch::autograd::AccumulateGrad"   /* adds up a gradient: a backward that trains */
#define PYTORCH_OPTIMIZER_STEP "Optimizer.step#"
#define PYTORCH_OPTIMIZER_ZERO_GRAD "Optimizer.zero_grad#"
#define PYTORCH_LOADER "enumerate(DataLoader)#"             /* the wait for a batch */
#define PYTORCH_LOADER_HERE "enumerate(DataLoader)#_Single" /* a loader without workers makes the batch meanwhile */
#define PYTORCH_LOADER_START "DataLoader: start of workers" /* our own: the start of a loop, before its first wait */
#define PYTORCH_LOADER_AGAIN "DataLoader: next loop"        /* our own: the same, with workers that already run */
#define PYTORCH_LOADER_STOP "DataLoader: end of workers"    /* our own: waits until the workers are gone */
#define PYTORCH_ONES "aten::ones_like" /* backward() makes the first gradient, if the program gives it none */
#define PYTORCH_SCALER "aten::_amp_update_scale_"
#define PYTORCH_COLLECTIVE "c10d::" /* where the program issues a collective; no autograd graph has it */
#define PYTORCH_GLOO "gloo:"        /* where gloo executes the collective */
#define PYTORCH_PROFILER_STEP                                                                                          \
	"ProfilerStep#" /* torch.profiler's, from step() to step(), and a number. Our own range if it has no schedule */
/* torch.profiler's arguments of a collective. */
#define PYTORCH_GROUP_NAME "Process Group Name"
#define PYTORCH_GROUP_DESCRIPTION "Process Group Description"
#define PYTORCH_GROUP_RANKS "Process Group Ranks"
#define PYTORCH_GROUP_SIZE "Group size"
/* FSDP makes room for the parameters that it gathers from all ranks. Both kinds of FSDP; the second has names for
 * forward and backward. */
#define PYTORCH_GATHER "FSDP::all_gather_copy_out"
#define PYTORCH_GATHER_FORWARD "FullyShardedDataParallel._pre_forward"
#define PYTORCH_GATHER_BACKWARD "FullyShardedDataParallel._pre_backward"
#define PYTORCH_MODE                                                                                                   \
	"PythonDispatchMode" /* the work of a TorchDispatchMode for a call; outermost if the call has no record */
#define PYTORCH_COMPILED "Torch-Compiled Region: " /* code made by torch.compile; its number follows */
#define PYTORCH_COMPILED_CALL "torch.compiled "    /* our own: a code's number, and the optimizer it calls */
#define PYTORCH_STATIC                                                                                                 \
	"static runtime: " /* our own: before the name of an operator or model in TorchScript's static runtime */

static inline bool pytorch_begins(const char *name, const char *beginning)
{
	return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* As pytorch_begins(), for a name that need not end with a NUL. */
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

/* Our own ranges that are rare, and recorded in steps without operators, too. */
#define PYTORCH_GARBAGE "garbage collection " /* the generation follows */
#define PYTORCH_COMPILE "torch.compile"
#define PYTORCH_SAVE "torch.save"
#define PYTORCH_LOAD "torch.load"
#define PYTORCH_LOADER_FETCH "DataLoader.fetch"     /* makes a batch, in a worker or in the process of the loop */
#define PYTORCH_LOADER_COLLATE "DataLoader.collate" /* in the fetch, from the samples */
#define PYTORCH_LOADER_DISPATCH                                                                                        \
	"DataLoader.dispatch"                     /* the process of the loop tells a worker the samples of a batch */
#define PYTORCH_LOADER_PICKLE "DataLoader.pickle" /* in a worker, of a finished batch */
#define PYTORCH_LOADER_UNPICKLE "DataLoader.unpickle" /* in the loop's thread, or the one that pins */

/* Our arguments of these three. */
enum pytorch_loader_key {
	PYTORCH_LOADER_KEY_LOOP,
	PYTORCH_LOADER_KEY_BATCH,
	PYTORCH_LOADER_KEY_WORKER,
	PYTORCH_LOADER_KEY_BYTES,
};

static inline const char *pytorch_loader_key(enum pytorch_loader_key key)
{
	static const char *const keys[] = {"torch.loader_loop", "torch.loader_batch", "torch.loader_worker",
	                                   "torch.loader_bytes"};
	return keys[key];
}

/* Our own ranges of Lightning's actions, by the names that Lightning gives its profiler. They are recorded in all steps,
 * also if no operators are. */
static inline bool pytorch_is_action(const char *name, size_t length)
{
	static const char *const beginnings[] = {
		"[Callback]",           "[LightningModule]", "[LightningDataModule]", "[Strategy]",
		"[_TrainingEpochLoop]", "[_EvaluationLoop]", "[_PredictionLoop]",     "[TrainingEpochLoop]",
		"[EvaluationLoop]",     "[PredictionLoop]",
	};
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (pytorch_begins_n(name, length, beginnings[i]))
			return true;
	return false;
}

static inline bool pytorch_is_rare(const char *name, size_t length)
{
	static const char *const names[] = {PYTORCH_COMPILE,
	                                    PYTORCH_SAVE,
	                                    PYTORCH_LOAD,
	                                    PYTORCH_LOADER_START,
	                                    PYTORCH_LOADER_AGAIN,
	                                    PYTORCH_LOADER_STOP,
	                                    PYTORCH_LOADER_FETCH,
	                                    PYTORCH_LOADER_COLLATE,
	                                    PYTORCH_LOADER_DISPATCH,
	                                    PYTORCH_LOADER_PICKLE,
	                                    PYTORCH_LOADER_UNPICKLE,
	                                    NULL};
	return pytorch_begins_n(name, length, PYTORCH_GARBAGE) || pytorch_is_one_of(name, length, names) ||
	       pytorch_is_action(name, length);
}

/* Returns true for operators that wait for a collective: those of torch.distributed._functional_collectives, which
 * DTensor uses. The first name is used since 2.2, the second in 2.1. */
static inline bool pytorch_waits(const char *name)
{
	static const char *const names[] = {"_c10d_functional::wait_tensor", "c10d_functional::wait_tensor", NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

/* Returns true for ranges in which c10d's backends do the work of a collective ("gloo:all_reduce"; "nccl::" is a
 * namespace of operators). PyTorch marks each as asynchronous, even if it ends in the thread where it started. */
static inline bool pytorch_is_work(const char *name)
{
	static const char *const backends[] = {"gloo", "nccl", "mpi", "ucc", "xccl", NULL};
	size_t length = strcspn(name, ":");
	return name[length] && name[length + 1] != ':' && pytorch_is_one_of(name, length, backends);
}

/* Returns true for ranges in which a backend of c10d enqueues a collective for a device: "nccl:all_reduce". The device
 * executes it later. */
static inline bool pytorch_enqueues(const char *name)
{
	static const char *const backends[] = {"nccl", "rccl", "xccl", "hccl", "mccl", "cncl", NULL};
	size_t length = strcspn(name, ":");
	return name[length] && name[length + 1] != ':' && pytorch_is_one_of(name, length, backends);
}

/* Compiled code has two numbers, "3/1": the number of the function, and how often the function was compiled before.
 * Returns both in one number; 0: the text has none. */
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

/* Returns 1 + the number of torch.profiler's step, or 0 if the name is not such a step. */
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

/* Returns true for operators that make the seed and the order of the batches when a loop over a loader starts. They do
 * not work on a batch. */
static inline bool pytorch_is_of_sampler(const char *name, size_t length)
{
	static const char *const names[] = {"aten::empty",    "aten::random_", "aten::item",
	                                    "aten::randperm", "aten::zeros",   NULL};
	return pytorch_is_one_of(name, length, names);
}

/* Returns true for operators that write to a tensor in place, by the form of their names: `aten::add_`. */
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

/* Returns true for operators that move data, make room for data or look at them in another way: what happens to a batch
 * that is put on a device, but no computation. */
static inline bool pytorch_moves(const char *name, size_t length)
{
	static const char *const names[] = {"aten::to",
	                                    "aten::_to_copy",
	                                    "aten::pin_memory",
	                                    "aten::_pin_memory",
	                                    "aten::is_pinned",
	                                    "aten::contiguous",
	                                    "aten::clone",
	                                    "aten::detach",
	                                    "aten::detach_",
	                                    "aten::alias",
	                                    "aten::lift_fresh",
	                                    "aten::empty_strided",
	                                    "aten::empty_like",
	                                    "aten::view",
	                                    "aten::reshape",
	                                    "aten::unsqueeze",
	                                    "aten::squeeze",
	                                    "aten::select",
	                                    "aten::slice",
	                                    "aten::narrow",
	                                    "aten::split",
	                                    "aten::chunk",
	                                    "aten::unbind",
	                                    "aten::transpose",
	                                    "aten::t",
	                                    "aten::permute",
	                                    "aten::expand",
	                                    "aten::as_strided",
	                                    "aten::record_stream",
	                                    "aten::cat",
	                                    "aten::stack",
	                                    "aten::result_type",
	                                    "aten::resolve_conj",
	                                    "aten::resolve_neg",
	                                    "detach",
	                                    "detach_",
	                                    NULL};
	return pytorch_is_one_of(name, length, names);
}

/* Returns true for operators of layers. In-place writes after them change outputs of layers, not weights. */
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

/* Returns true for operators that give the program a value of a tensor: with a device the thread waits for it. */
static inline bool pytorch_reads_value(const char *name)
{
	static const char *const names[] = {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

/* Return true for operators that make another type or device of a tensor, and for those that copy it as it is. */
static inline bool pytorch_converts(const char *name)
{
	static const char *const names[] = {"aten::to", "aten::_to_copy", "aten::type_as", NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

static inline bool pytorch_copies(const char *name)
{
	static const char *const names[] = {"aten::clone", "aten::contiguous", "aten::copy_", NULL};
	return pytorch_is_one_of(name, strlen(name), names);
}

/* Returns true for operators that take a list of tensors. */
static inline bool pytorch_takes_many(const char *name, size_t length)
{
	return pytorch_begins_n(name, length, "aten::_foreach_") || pytorch_begins_n(name, length, "aten::_fused_");
}

/* Returns true for operators that allocate memory for their caller. */
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
