/* SPDX-License-Identifier: Apache-2.0
 *
 * call_kinds.c: see call_kinds.h.
 */
#include "replay/call_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct call_name {
	const char *name; /* without the prefix of the API */
	enum replay_call call;
};

static const struct call_name call_names[] = {
	{"DeviceSynchronize", CALL_WAITS_ALL},
	{"ThreadSynchronize", CALL_WAITS_ALL},
	{"CtxSynchronize", CALL_WAITS_ALL},
	{"StreamSynchronize", CALL_WAITS_STREAM},
	{"EventSynchronize", CALL_WAITS_EVENT},
	{"StreamWaitEvent", CALL_STREAM_WAITS},
	{"Free", CALL_FREES},
	{"Malloc", CALL_ALLOCATES},
	{"MallocHost", CALL_ALLOCATES},
	{"FreeHost", CALL_ALLOCATES},
	{"HostAlloc", CALL_ALLOCATES},
	{"HostMalloc", CALL_ALLOCATES},
	{"HostFree", CALL_ALLOCATES},
};

uint8_t replay_call_kind(const char *name)
{
	static const char *const prefixes[] = {"cuda", "hip", "musa", "cu"};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t length = strlen(prefixes[i]);
		if (strncmp(name, prefixes[i], length) != 0)
			continue;
		for (size_t k = 0; k < sizeof call_names / sizeof *call_names; k++)
			if (!strcmp(name + length, call_names[k].name))
				return (uint8_t)call_names[k].call;
	}
	return CALL_OTHER;
}
