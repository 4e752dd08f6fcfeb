/* SPDX-License-Identifier: Apache-2.0
 *
 * device_parts.h: divides the time of a process with a device, or of one of its devices, into parts. An instant
 * belongs to the first part that applies, so the parts of any stretch of time sum to it. Parts are activities of the
 * device or, if it is idle, the reasons.
 *
 *     struct device_parts parts = {0};
 *     device_parts_find(&parts, &context, process, DEVICE_ANY);
 *     int64_t parts_ns[PARTS];
 *     device_parts_within(&parts, start_ns, end_ns, parts_ns);
 *     device_parts_release(&parts);
 */
#ifndef ANALYSIS_DEVICES_DEVICE_PARTS_H
#define ANALYSIS_DEVICES_DEVICE_PARTS_H

#include "analysis/devices/device_work.h"

enum device_part {
	PART_COMPUTE,
	PART_COMMUNICATION,
	PART_COPIES,
	PART_QUEUED,
	PART_LAUNCH,
	PART_DATA,
	PART_SYNC,
	PART_RUNTIME,
	PART_HOST,
	PART_OTHER, /* the rest; has no list */
	PARTS,
};

struct part_text {
	const char *name, *column, *meaning;
};
extern const struct part_text device_part_texts[PARTS];

struct device_parts {
	struct device_work work;
	struct device_times device;
	struct device_gaps gaps;
	struct name_classes names;
	struct intervals lists[PART_OTHER]; /* disjoint */
	struct intervals covered, spare;
	enum device_part last; /* parts of threads after this one are not searched */
};

/* Replaces the contents. The threads are those that launched work of these devices or mark steps of the process. */
void device_parts_find(struct device_parts *parts, struct analysis_context *context, uint32_t process, int32_t device);
/* Finds only `work`, `device` and the list of PART_DATA, which is not cut: for idle time of the device. Cheaper. */
void device_parts_find_data(struct device_parts *parts, struct analysis_context *context, uint32_t process,
                            int32_t device);
void device_parts_within(const struct device_parts *parts, int64_t start_ns, int64_t end_ns, int64_t parts_ns[PARTS]);
void device_parts_release(struct device_parts *parts);

#endif
