/* SPDX-License-Identifier: Apache-2.0
 *
 * validate_chrome.h: shared by validate_chrome.c (reading, rules about one event) and validate_pairs.c (rules about
 * several events).
 */
#ifndef OUTPUT_VALIDATE_VALIDATE_CHROME_H
#define OUTPUT_VALIDATE_VALIDATE_CHROME_H

#include "output/validate/validate.h"

enum json_type {
	TYPE_ABSENT,
	TYPE_NUMBER,
	TYPE_TEXT,
	TYPE_NULL,
	TYPE_BARE,
	TYPE_LIST,
	TYPE_OBJECT,
	TYPE_BOOL
};

struct json_value {   /* value of a key that is checked */
	uint8_t type; /* enum json_type */
	bool is_integer;
	int64_t integer;
	char text[160]; /* as written, cut */
};

enum event_key {
	KEY_PH,
	KEY_CAT,
	KEY_NAME,
	KEY_PID,
	KEY_TID,
	KEY_TS,
	KEY_DUR,
	KEY_ID,
	KEY_S,
	CHROME_EVENT_KEYS
};

enum arg_key {
	CHROME_ARG_EXTERNAL_ID,
	CHROME_ARG_EV_IDX,
	CHROME_ARG_CORRELATION,
	CHROME_ARG_STREAM,
	CHROME_ARG_DEVICE,
	CHROME_ARG_SYNC_KIND,
	CHROME_ARG_WAIT_CORR,
	CHROME_ARG_SEQUENCE,
	CHROME_ARG_COLLECTIVE,
	CHROME_ARG_DTYPE,
	CHROME_ARG_IN_NELEMS,
	CHROME_ARG_OUT_NELEMS,
	CHROME_ARG_GROUP_SIZE,
	CHROME_ARG_INPUT_DIMS,
	CHROME_ARG_BYTES,
	CHROME_ARG_PYTHON_PARENT,
	CHROME_ARG_KEYS
};

struct chrome_event {
	uint64_t offset;
	struct json_value keys[CHROME_EVENT_KEYS];
	struct json_value args[CHROME_ARG_KEYS];
	uint8_t args_type;
	bool has_bad_counter; /* an arg is not a number */
	bool has_ts, has_dur;
	int64_t ts_ns, dur_ns;
	char phase;
	const char *cat, *name;
};

struct ref { /* a record that is compared with others later */
	int64_t key;
	int64_t a, b;
	uint64_t offset;
};

struct ref_list {
	struct ref *refs;
	uint32_t count, capacity;
};

enum ref_kind {
	REF_SPAN,          /* key: thread; a, b: start, end */
	REF_LAUNCH,        /* External id of a cudaLaunchKernel; a: ts */
	REF_KERNEL,        /* External id of a kernel; a: ts */
	REF_STREAM_KERNEL, /* key: device and stream; a, b: start, end */
	REF_STREAM_SYNC,   /* key: device and stream; a: ts */
	REF_RECORD,        /* correlation or External id of a cudaEventRecord; a: ts */
	REF_WAIT,          /* the record that a stream wait names; a: ts */
	REF_BACKWARD,      /* sequence number; a: name */
	REF_CPU_CORR,      /* correlation of a runtime call */
	REF_GPU_CORR,      /* correlation of a device event */
	REF_FLOW_START,    /* id and category */
	REF_FLOW_END,
	REF_KINDS
};

struct chrome_marker { /* of the TensorBoard plugin: the first or the last instant of the recording */
	bool is_found;
	uint64_t offset;
	int64_t ns;
};

struct chrome_check {
	struct validation *validation;
	struct ref_list lists[REF_KINDS];
	uint64_t last_nameless; /* offset of the last event without a name */
	bool has_step, has_rank;
	bool has_events; /* the key traceEvents was found */
	bool has_phase;  /* an event has a phase */
	bool has_other;  /* an entry of the events is not an object */
	struct chrome_marker start_marker, end_marker;
};

/* Returns a number that stands for two texts. */
int64_t check_word(const char *first, const char *second);
void check_remember(struct chrome_check *check, const struct chrome_event *event);
void check_pairs(struct chrome_check *check);
void check_pairs_release(struct chrome_check *check);
bool check_is_device_category(const char *cat);
bool check_is_launch_category(const char *cat);

#endif
