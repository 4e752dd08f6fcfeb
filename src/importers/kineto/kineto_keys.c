/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_keys.c: the keys of events and of their args, as the versions of PyTorch write them.
 */
#include "importers/kineto/kineto_keys.h"

#include "base/lower_bound.h"
#include "importers/kineto/kineto_event.h"

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
	KEY("ph", KINETO_EVENT_PH),   KEY("ts", KINETO_EVENT_TS),     KEY("dur", KINETO_EVENT_DUR),
	KEY("pid", KINETO_EVENT_PID), KEY("tid", KINETO_EVENT_TID),   KEY("name", KINETO_EVENT_NAME),
	KEY("cat", KINETO_EVENT_CAT), KEY("args", KINETO_EVENT_ARGS), KEY("id", KINETO_EVENT_ID),
	KEY("id2", KINETO_EVENT_ID),  KEY("s", KINETO_EVENT_SCOPE),   KEY("bp", KINETO_EVENT_BP),
};

/* Sorted by length, so that few are compared. */
static const struct named_key arg_keys[] = {
	KEY("cid", KINETO_ARG_IGNORED),
	KEY("Addr", KINETO_ARG_ADDRESS),
	KEY("cbid", KINETO_ARG_IGNORED),
	KEY("grid", KINETO_ARG_GRID),
	KEY("open", KINETO_ARG_OPEN),
	KEY("name", KINETO_ARG_NAME),
	KEY("block", KINETO_ARG_BLOCK),
	KEY("Bytes", KINETO_ARG_BYTES),
	KEY("bytes", KINETO_ARG_BYTES),
	KEY("Shape", KINETO_ARG_SHAPE),
	KEY("Device", KINETO_ARG_IGNORED), /* 2020: the thread again */
	KEY("device", KINETO_ARG_DEVICE),
	KEY("stream", KINETO_ARG_STREAM),
	KEY("Ev Idx", KINETO_ARG_EVENT_INDEX),
	KEY("queued", KINETO_ARG_IGNORED),
	KEY("labels", KINETO_ARG_LABELS),
	KEY("context", KINETO_ARG_IGNORED),
	KEY("Category", KINETO_ARG_CATEGORY),
	KEY("inferred", KINETO_ARG_INFERRED),
	KEY("Device Id", KINETO_ARG_DEVICE_ID),
	KEY("Python id", KINETO_ARG_IGNORED),
	KEY("Input Dims", KINETO_ARG_INPUT_DIMS),
	KEY("Input dims", KINETO_ARG_INPUT_DIMS),
	KEY("Input type", KINETO_ARG_INPUT_TYPES),
	KEY("Call stack", KINETO_ARG_CALL_STACK),
	KEY("Trace name", KINETO_ARG_IGNORED),
	KEY("sort_index", KINETO_ARG_SORT_INDEX),
	KEY("Output dims", KINETO_ARG_IGNORED),
	KEY("Output type", KINETO_ARG_IGNORED),
	KEY("Input names", KINETO_ARG_IGNORED),
	KEY("external id", KINETO_ARG_EXTERNAL_ID),
	KEY("External id", KINETO_ARG_EXTERNAL_ID),
	KEY("external ts", KINETO_ARG_IGNORED),
	KEY("Device Type", KINETO_ARG_DEVICE_TYPE),
	KEY("correlation", KINETO_ARG_CORRELATION),
	KEY("Output names", KINETO_ARG_IGNORED),
	KEY("warps per SM", KINETO_ARG_WARPS_PER_SM),
	KEY("Input Strides", KINETO_ARG_INPUT_STRIDES),
	KEY("shared memory", KINETO_ARG_SHARED_MEMORY),
	KEY("blocks per SM", KINETO_ARG_BLOCKS_PER_SM),
	KEY("Python thread", KINETO_ARG_IGNORED),
	KEY("Fwd thread id", KINETO_ARG_FORWARD_THREAD),
	KEY("Total Reserved", KINETO_ARG_TOTAL_RESERVED),
	KEY("Total Allocated", KINETO_ARG_TOTAL_ALLOCATED),
	KEY("Sequence number", KINETO_ARG_SEQUENCE),
	KEY("Concrete Inputs", KINETO_ARG_INPUT_VALUES),
	KEY("Trace iteration", KINETO_ARG_IGNORED),
	KEY("Extra arguments", KINETO_ARG_IGNORED),
	KEY("Module Hierarchy", KINETO_ARG_IGNORED),
	KEY("Python parent id", KINETO_ARG_IGNORED),
	KEY("Python module id", KINETO_ARG_IGNORED),
	KEY("Record function id", KINETO_ARG_IGNORED),
	KEY("registers per thread", KINETO_ARG_REGISTERS),
	KEY("Profiler Event Index", KINETO_ARG_IGNORED),
	KEY("memory bandwidth (GB/s)", KINETO_ARG_BANDWIDTH),
	KEY("est. achieved occupancy %", KINETO_ARG_OCCUPANCY),
};

enum kineto_field kineto_field_of(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof field_keys / sizeof *field_keys; i++)
		if (field_keys[i].length == length && memcmp(field_keys[i].text, text, length) == 0)
			return (enum kineto_field)field_keys[i].key;
	return KINETO_EVENT_FIELD_COUNT;
}

enum kineto_key kineto_key_of(const char *text, size_t length)
{
	size_t count = sizeof arg_keys / sizeof *arg_keys;
	size_t low = LOWER_BOUND(arg_keys, count, key, key->length < length); /* the first key of that length */
	for (; low < count && arg_keys[low].length == length; low++)
		if (arg_keys[low].text[0] == text[0] && memcmp(arg_keys[low].text, text, length) == 0)
			return (enum kineto_key)arg_keys[low].key;
	return KINETO_ARG_OTHER;
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
