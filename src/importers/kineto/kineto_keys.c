/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_keys.c: the keys of events and of their args, as PyTorch's versions write them.
 */
#include "importers/kineto/kineto_event.h"

#include "base/lower_bound.h"

#include <string.h>

struct named_key {
	const char *text;
	uint8_t length, key;
};

#define KEY(text, key)                                                                                                 \
	{                                                                                                              \
		text, sizeof(text) - 1, key                                                                            \
	}

static const struct named_key field_keys[] = {
	KEY("ph", EVENT_PH),   KEY("ts", EVENT_TS),     KEY("dur", EVENT_DUR), KEY("pid", EVENT_PID),
	KEY("tid", EVENT_TID), KEY("name", EVENT_NAME), KEY("cat", EVENT_CAT), KEY("args", EVENT_ARGS),
	KEY("id", EVENT_ID),   KEY("id2", EVENT_ID),    KEY("s", EVENT_SCOPE), KEY("bp", EVENT_BP),
};

/* By length, so that few are compared. */
static const struct named_key arg_keys[] = {
	KEY("cid", ARG_IGNORED),
	KEY("Addr", ARG_ADDRESS),
	KEY("cbid", ARG_IGNORED),
	KEY("grid", ARG_GRID),
	KEY("open", ARG_OPEN),
	KEY("name", ARG_NAME),
	KEY("block", ARG_BLOCK),
	KEY("Bytes", ARG_BYTES),
	KEY("bytes", ARG_BYTES),
	KEY("Shape", ARG_SHAPE),
	KEY("Device", ARG_IGNORED), /* 2020: the thread, once more */
	KEY("device", ARG_DEVICE),
	KEY("stream", ARG_STREAM),
	KEY("Ev Idx", ARG_EVENT_INDEX),
	KEY("queued", ARG_IGNORED),
	KEY("labels", ARG_LABELS),
	KEY("context", ARG_IGNORED),
	KEY("Category", ARG_CATEGORY),
	KEY("inferred", ARG_INFERRED),
	KEY("Device Id", ARG_DEVICE_ID),
	KEY("Python id", ARG_IGNORED),
	KEY("Input Dims", ARG_INPUT_DIMS),
	KEY("Input dims", ARG_INPUT_DIMS),
	KEY("Input type", ARG_INPUT_TYPES),
	KEY("Call stack", ARG_CALL_STACK),
	KEY("Trace name", ARG_IGNORED),
	KEY("sort_index", ARG_SORT_INDEX),
	KEY("Output dims", ARG_IGNORED),
	KEY("Output type", ARG_IGNORED),
	KEY("Input names", ARG_IGNORED),
	KEY("external id", ARG_EXTERNAL_ID),
	KEY("External id", ARG_EXTERNAL_ID),
	KEY("external ts", ARG_IGNORED),
	KEY("Device Type", ARG_DEVICE_TYPE),
	KEY("correlation", ARG_CORRELATION),
	KEY("Output names", ARG_IGNORED),
	KEY("warps per SM", ARG_WARPS_PER_SM),
	KEY("Input Strides", ARG_INPUT_STRIDES),
	KEY("shared memory", ARG_SHARED_MEMORY),
	KEY("blocks per SM", ARG_BLOCKS_PER_SM),
	KEY("Python thread", ARG_IGNORED),
	KEY("Fwd thread id", ARG_FORWARD_THREAD),
	KEY("Total Reserved", ARG_TOTAL_RESERVED),
	KEY("Total Allocated", ARG_TOTAL_ALLOCATED),
	KEY("Sequence number", ARG_SEQUENCE),
	KEY("Concrete Inputs", ARG_INPUT_VALUES),
	KEY("Trace iteration", ARG_IGNORED),
	KEY("Extra arguments", ARG_IGNORED),
	KEY("Module Hierarchy", ARG_IGNORED),
	KEY("Python parent id", ARG_IGNORED),
	KEY("Python module id", ARG_IGNORED),
	KEY("Record function id", ARG_IGNORED),
	KEY("registers per thread", ARG_REGISTERS),
	KEY("Profiler Event Index", ARG_IGNORED),
	KEY("memory bandwidth (GB/s)", ARG_BANDWIDTH),
	KEY("est. achieved occupancy %", ARG_OCCUPANCY),
};

enum kineto_field kineto_field_of(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof field_keys / sizeof *field_keys; i++)
		if (field_keys[i].length == length && memcmp(field_keys[i].text, text, length) == 0)
			return (enum kineto_field)field_keys[i].key;
	return EVENT_FIELD_COUNT;
}

enum kineto_key kineto_key_of(const char *text, size_t length)
{
	size_t count = sizeof arg_keys / sizeof *arg_keys;
	size_t low = LOWER_BOUND(arg_keys, count, key, key->length < length); /* the first of that length */
	for (; low < count && arg_keys[low].length == length; low++)
		if (arg_keys[low].text[0] == text[0] && memcmp(arg_keys[low].text, text, length) == 0)
			return (enum kineto_key)arg_keys[low].key;
	return ARG_OTHER;
}

bool kineto_is_document_key(const char *text, size_t length)
{
	static const char *const keys[] = {"traceEvents",     "schemaVersion",       "deviceProperties",
	                                   "displayTimeUnit", "baseTimeNanoseconds", "distributedInfo",
	                                   "traceName"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strlen(keys[i]) == length && memcmp(keys[i], text, length) == 0)
			return true;
	return false;
}
