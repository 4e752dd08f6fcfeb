/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.h: the functions of the loaded PyTorch that the agent calls, found by name at run time. None of them has a std::string in
 * its signature, so neither the C++ ABI flag nor the compiler matters.
 */
#ifndef AGENTS_TORCH_ENTRY_H
#define AGENTS_TORCH_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORCH_SCOPES 10

enum torch_scope { /* at::RecordScope, the same in 1.13 to 2.14 */
	TORCH_SCOPE_FUNCTION = 0,
	TORCH_SCOPE_BACKWARD = 1,
	TORCH_SCOPE_TORCHSCRIPT = 2,
	TORCH_SCOPE_CUSTOM_CLASS = 4,
	TORCH_SCOPE_USER = 7,
};

/* In C++ it returns a std::unique_ptr, which on x86-64 comes as a hidden pointer to where that lies, and goes back as the result. */
typedef void *torch_start(void **context, const void *record);

/* at::RecordFunctionCallback, which is passed by value; unchanged in 1.13 to 2.14. */
struct torch_callback {
	torch_start *start;
	void (*end)(const void *record, void *context);
	double probability;
	bool scopes[TORCH_SCOPES];
	bool needs_inputs, needs_outputs, needs_ids;
	uint8_t padding[3];
};
_Static_assert(sizeof(struct torch_callback) == 40, "at::RecordFunctionCallback");

struct torch_entry {
	uint64_t (*add_global_callback)(struct torch_callback callback);
	void (*remove_callback)(uint64_t handle);
	const char *(*name)(const void *record);
	/* for calibration; NULL when they are missing */
	int64_t (*sequence_peek)(void);
	uint64_t (*thread_id)(void);
	/* which threads torch.profiler would follow; both or neither, NULL: not known */
	uint64_t (*add_thread_callback)(struct torch_callback callback);
	bool (*has_thread_callbacks)(void);
	char path[1024]; /* of libtorch_cpu */
};

/* Fills `entry` from the PyTorch that this process has loaded; loads nothing itself. False: `problem` says why. */
bool torch_entry_find(struct torch_entry *entry, char *problem, size_t problem_bytes);

#endif
