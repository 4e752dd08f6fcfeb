/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.h: the functions of the loaded PyTorch that the agent calls, found by name at run time. No signature contains
 * a std::string, so neither the C++ ABI flag nor the compiler matters.
 */
#ifndef AGENTS_TORCH_ENTRY_H
#define AGENTS_TORCH_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORCH_SCOPES 10
#define TORCH_LIBRARY "libtorch_cpu.so"

enum torch_scope { /* at::RecordScope, the same in 1.13 to 2.14 */
	TORCH_SCOPE_FUNCTION = 0,
	TORCH_SCOPE_BACKWARD = 1,
	TORCH_SCOPE_TORCHSCRIPT = 2,
	TORCH_SCOPE_CUSTOM_CLASS = 4,
	TORCH_SCOPE_USER = 7,
	TORCH_SCOPE_STATIC_OP = 8, /* of TorchScript's static runtime, which usually bypasses PyTorch's dispatcher */
	TORCH_SCOPE_STATIC_MODEL = 9,
};

/* In C++ a start callback returns a std::unique_ptr; ours returns an empty one. A hidden pointer passes the place of
 * the result. On x86-64 it is the first argument, which is returned; on aarch64 it is in the register x8, which C
 * cannot name. TORCH_START(name, body) makes such a function `name` from a TORCH_START_BODY static void body(const
 * void *record). */
#ifdef __aarch64__
typedef void torch_start(const void *record);
#define TORCH_START_BODY __attribute__((used))
#define TORCH_START(name, body)                                                                                        \
	__attribute__((visibility("hidden"))) torch_start name;                                                        \
	__asm__(".text\n\t.p2align 2\n\t.type " #name ", %function\n" #name                                            \
	        ":\n\thint #34\n\tstr xzr, [x8]\n\tb " #body "\n\t.size " #name ", . - " #name "\n");
#else
typedef void *torch_start(void **context, const void *record);
#define TORCH_START_BODY
#define TORCH_START(name, body)                                                                                        \
	__attribute__((hot)) static void *name(void **context, const void *record)                                     \
	{                                                                                                              \
		*context = NULL;                                                                                       \
		body(record);                                                                                          \
		return context;                                                                                        \
	}
#endif

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

/* c10::RegistrationHandleRAII: a std::function that its destructor calls. The agent never destroys it. */
struct torch_registration {
	void *words[4];
};

struct torch_entry {
	uint64_t (*add_global_callback)(struct torch_callback callback);
	void (*remove_callback)(uint64_t handle);
	const char *(*name)(const void *record);
	/* for calibration; NULL if missing */
	int64_t (*sequence_peek)(void);
	uint64_t (*thread_id)(void);
	/* the threads that torch.profiler would follow; either both are set or both are NULL (unknown) */
	uint64_t (*add_thread_callback)(struct torch_callback callback);
	bool (*has_thread_callbacks)(void);
	/* whether the calling thread makes records; either both are set or both are NULL (unknown) */
	bool (*makes_records)(void);
	void (*make_records)(bool is_on);
	/* the listener for operators that go away, see operators.h; either both are set or both are NULL (unknown) */
	void *(*dispatcher)(void);
	struct torch_registration (*add_listener)(void *dispatcher, void **listener);
	/* Writes the callbacks of a record of this scope to `result`. If callbacks have changed, first updates the
	 * calling thread under PyTorch's lock. NULL: unknown */
	void (*callbacks_of)(void *result, int scope);
	char path[1024]; /* of libtorch_cpu */
};

/* Fills `entry` from the PyTorch that this process has loaded; loads nothing itself. Returns false on failure, with
 * the reason in `problem`. */
bool torch_entry_find(struct torch_entry *entry, char *problem, size_t problem_bytes);

#endif
