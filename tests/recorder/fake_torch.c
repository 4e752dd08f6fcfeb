/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_torch.c: see fake_torch.h. One thread.
 */
#include "fake_torch.h"

#include "agents/torch/entry.h"

#define SCOPES 10

int64_t fake_sequence;

static struct torch_callback callbacks[SCOPES]; /* one each; no start: none */

FAKE_API uint64_t _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(struct torch_callback callback);
FAKE_API void _ZN2at14removeCallbackEm(uint64_t handle);
FAKE_API const char *_ZNK2at14RecordFunction4nameEv(const void *record);
FAKE_API int64_t _ZN2at15sequence_number4peekEv(void);
FAKE_API uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void);

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

void fake_begin(int scope, const struct fake_record *record)
{
	void *context;
	if (callbacks[scope].start)
		callbacks[scope].start(&context, record);
}

void fake_end(int scope, const struct fake_record *record)
{
	if (callbacks[scope].start)
		callbacks[scope].end(record, NULL);
}
