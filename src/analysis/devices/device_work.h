/* SPDX-License-Identifier: Apache-2.0
 *
 * device_work.h: the work of a device in the order of time, and when it did work of each class. Kernels, copies and
 * fills are work, by the kind of their spans. The name of a kernel tells whether it computes or communicates
 * (device_names.h).
 *
 *     struct device *devices;
 *     size_t count = devices_find(&devices, model);
 *     struct device_work work = {0};
 *     device_work_collect(&work, model, devices[0].process, devices[0].device);
 *     struct device_times times = {0};
 *     device_times_fill(&times, &work);    // times.busy, times.compute, ...
 *     device_times_release(&times);
 *     device_work_release(&work);
 *     free(devices);
 */
#ifndef ANALYSIS_DEVICES_DEVICE_WORK_H
#define ANALYSIS_DEVICES_DEVICE_WORK_H

#include "analysis/analysis.h"
#include "analysis/shared/intervals.h"
#include "model/launches.h"
#include "model/name_classes.h"

enum work_class {
	WORK_COMPUTE,
	WORK_COMMUNICATION,
	WORK_COPY,
	WORK_FILL,
	WORK_CLASSES,
};

struct device {
	uint32_t process;
	int32_t device;
	uint32_t streams;  /* streams with work */
	uint32_t siblings; /* number of devices of the process, this one included */
};

/* Sets *devices to the devices with work, sorted by process and number. Returns their number. The caller frees them. */
size_t devices_find(struct device **devices, const struct model *model);

#define DEVICE_ANY INT32_MIN

struct work {
	int64_t start_ns, end_ns;
	uint32_t track, row;
	uint8_t class; /* enum work_class */
};

struct device_work { /* sorted by start */
	struct work *items;
	size_t count, capacity;
	struct storage *storage; /* of the items; owned by the model */
	struct name_classes kernels;
	struct kept_device *kept; /* owner of the items; NULL: this struct */
};

/* Replaces the contents. DEVICE_ANY: all devices of the process. */
void device_work_collect(struct device_work *work, const struct model *model, uint32_t process, int32_t device);
void device_work_release(struct device_work *work);

/* Returns the time from the start of its first work to the end of its last, even if it takes no time; without work [0,
 * 0). */
struct interval device_work_extent(const struct device_work *work);

/* Like device_work_collect(), but a context collects and sorts the work of each device once. It also keeps the times
 * and gaps that device_times_fill() and device_gaps_fill() find. The work must not outlive the context. */
void device_work_get(struct device_work *work, struct analysis_context *context, uint32_t process, int32_t device);
void kept_devices_release(struct kept_device *devices);

/* Returns the class of a span that is device work. */
enum work_class device_work_class(struct device_work *work, const struct model *model, uint8_t kind, uint32_t name);

struct device_times {
	struct intervals compute, communication, kernels, copies, busy; /* copies: with fills; kernels: the first two */
};

void device_times_fill(struct device_times *times, const struct device_work *work); /* replaces */
void device_times_release(struct device_times *times);

struct device_gaps {             /* time before stretches of work, by the reason why the work did not start earlier */
	struct intervals queued; /* its launch was over when the device stopped */
	struct intervals launch; /* from the call that launched it, or the device's stop if later, to its start */
	struct intervals unlaunched; /* from the end of the previous work to that call */
};

/* Replaces the contents. busy: of the times of that work. Excluded are gaps before work whose launch is not in the
 * trace, and the time before the first call. */
void device_gaps_fill(struct device_gaps *gaps, const struct model *model, const struct launches *launches,
                      const struct device_work *work, const struct intervals *busy);
void device_gaps_release(struct device_gaps *gaps);

/* Returns the number of calls that launch kernels but have none in the trace, in processes whose devices worked. */
uint64_t launches_without_work(const struct model *model, const struct launches *launches);

/* Returns the step (index, -1: none) in which the work was launched. If its launch is not in the trace, returns the
 * step in which it ran. */
int32_t device_work_step(const struct model *model, const struct launches *launches, uint32_t track, uint32_t row);

/* Returns true if tables count the work: it was launched in a selected step (see device_work_step()), or no steps were
 * selected. */
bool device_work_is_selected(struct analysis_context *context, uint32_t track, uint32_t row);

/* Returns "rank 0, device 1", or "device 0" if there is one process. */
const char *device_label(const struct model *model, uint32_t process, int32_t device, struct arena *arena);
#define DEVICE_DEFINITION "number of the device; if there are several processes, after the rank or pid"
#define DEVICE_COLUMN                                                                                                  \
	{                                                                                                              \
		.name = "device", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = DEVICE_DEFINITION                \
	}

#define DEVICE_NOTHING "no device kernels, copies or fills were recorded"

#endif
