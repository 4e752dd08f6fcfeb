/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_waits.h: work of a device that had to wait for work of another stream, if the trace has such waits. CUPTI
 * records cudaStreamWaitEvent() as "Stream Wait Event", with the number of the cudaEventRecord() that it waits for.
 * Work launched on the waiting stream after the first call waits for the work launched on the other stream before the
 * second.
 *
 *     size_t *waits_for = stream_waits_find(model, launches, &work, process);
 *     if (waits_for && waits_for[i] != STREAM_WAITS_NONE)
 *             ...work.items[waits_for[i]] is what work.items[i] waits for
 *     free(waits_for);
 *
 * If there are several waits, it is the one that ended last. An event that was recorded before the trace started is
 * unknown.
 */
#ifndef ANALYSIS_DEVICES_STREAM_WAITS_H
#define ANALYSIS_DEVICES_STREAM_WAITS_H

#include "analysis/devices/device_work.h"

#define STREAM_WAITS_NONE SIZE_MAX

/* Returns the work waited for, by number of work. `work` must be all work of the process. NULL: the trace has no such
 * waits. */
size_t *stream_waits_find(const struct model *model, const struct launches *launches, const struct device_work *work,
                          uint32_t process);

#endif
