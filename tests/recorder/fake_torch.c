/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_torch.c: see fake_torch.h. One thread.
 */
#include "fake_torch.h"

#include "agents/torch/entry.h"

#include <stdlib.h>

#define SCOPES 10
#define OPERATORS 1000

int64_t fake_sequence;

static struct torch_callback callbacks[SCOPES]; /* one each; no start: none */

FAKE_API uint64_t _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(struct torch_callback callback);
FAKE_API void _ZN2at14removeCallbackEm(uint64_t handle);
FAKE_API const char *_ZNK2at14RecordFunction4nameEv(const void *record);
FAKE_API int64_t _ZN2at15sequence_number4peekEv(void);
FAKE_API uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void);
FAKE_API uint64_t _ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE(struct torch_callback callback);
FAKE_API bool _ZN2at23hasThreadLocalCallbacksEv(void);
FAKE_API void *_ZN3c1010Dispatcher13realSingletonEv(void);
FAKE_API struct torch_registration
_ZN3c1010Dispatcher23addRegistrationListenerESt10unique_ptrINS_22OpRegistrationListenerESt14default_deleteIS2_EE(
	void *dispatcher, void **listener);

uint64_t _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(struct torch_callback callback)
{
	for (uint64_t i = 0; i < SCOPES; i++) {
		if (!callback.scopes[i])
			continue;
		callbacks[i] = callback;
		return i + 1;
	}
	return 0;
}

void _ZN2at14removeCallbackEm(uint64_t handle)
{
	if (handle)
		callbacks[handle - 1].start = NULL;
}

const char *_ZNK2at14RecordFunction4nameEv(const void *record)
{
	return ((const struct fake_record *)record)->name;
}

int64_t _ZN2at15sequence_number4peekEv(void)
{
	return fake_sequence;
}

uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void)
{
	return 3;
}

void *_ZN3c1010Dispatcher13realSingletonEv(void)
{
	return callbacks;
}

/* A C++ object with four virtual functions, of which the third is called for every operator that there is. */
struct torch_registration
_ZN3c1010Dispatcher23addRegistrationListenerESt10unique_ptrINS_22OpRegistrationListenerESt14default_deleteIS2_EE(
	void *dispatcher, void **listener)
{
	void (**const *functions)(void *, const void *) = *listener;
	for (int i = 0; i < OPERATORS; i++)
		(*functions)[2](*listener, &callbacks[0]);
	*listener = NULL;
	return (struct torch_registration){{dispatcher}};
}

/* No scope has both a global one and one of the thread here. */
uint64_t _ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE(struct torch_callback callback)
{
	return _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(callback);
}

bool _ZN2at23hasThreadLocalCallbacksEv(void)
{
	return callbacks[TORCH_SCOPE_CUSTOM_CLASS].start != NULL;
}

/* As C++ calls it, see entry.h. */
static void *call_start(torch_start *start, const struct fake_record *record)
{
	void *context = &context;
#ifdef __aarch64__
	register void **result __asm__("x8") = &context;
	register const void *first __asm__("x0") = record;
	__asm__ volatile("blr %2"
	                 : "+r"(result), "+r"(first)
	                 : "r"(start)
	                 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
	                   "x16", "x17", "x18", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17",
	                   "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
	                   "v31", "cc", "memory");
#else
	start(&context, record);
#endif
	return context;
}

void fake_begin(int scope, const struct fake_record *record)
{
	if (callbacks[scope].start && call_start(callbacks[scope].start, record))
		abort(); /* a pointer that PyTorch would free */
}

int fake_has_callback(int scope)
{
	return callbacks[scope].start != NULL;
}

int fake_asks(int scope)
{
	return callbacks[scope].start && callbacks[scope].needs_inputs;
}

void fake_end(int scope, const struct fake_record *record)
{
	if (callbacks[scope].start)
		callbacks[scope].end(record, NULL);
}
