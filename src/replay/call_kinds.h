/* SPDX-License-Identifier: Apache-2.0
 *
 * call_kinds.h: what a call of a runtime or driver (CUDA, HIP) waits for, by its name.
 */
#ifndef REPLAY_CALL_KINDS_H
#define REPLAY_CALL_KINDS_H

#include <stdint.h>

enum replay_call {
	CALL_OTHER,
	CALL_WAITS_ALL,    /* for all works */
	CALL_WAITS_STREAM, /* for the works of a stream */
	CALL_WAITS_EVENT,  /* for an event */
	CALL_STREAM_WAITS, /* a stream waits for an event */
	CALL_ALLOCATES,    /* memory of the device, or pinned memory */
	CALL_FREES,        /* memory of the device: it waits for all works */
};

/* Returns enum replay_call. */
uint8_t replay_call_kind(const char *name);

#endif
