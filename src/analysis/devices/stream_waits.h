/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_waits.h: which work of a device had to wait for work of another stream, where a trace says it: cudaStreamWaitEvent(), which CUPTI
 * records as "Stream Wait Event" with the number of the cudaEventRecord() that it waits for. What is launched on the waiting stream
 * behind the one waits for what was launched on the other stream before the other.
 *
 *     size_t *waits_for = stream_waits_find(model, launches, &work, process);
 *     if (waits_for && waits_for[i] != STREAM_WAITS_NONE)
 *             ...work.items[waits_for[i]] is what work.items[i] waits for
 *     free(waits_for);
 *
 * Of several waits it is the one that ended last. An event that was recorded before the trace began is not known.
 */
#ifndef ANALYSIS_DEVICES_STREAM_WAITS_H
#define ANALYSIS_DEVICES_STREAM_WAITS_H

#include "analysis/devices/device_work.h"

#define STREAM_WAITS_NONE SIZE_MAX

/* By number of work, which is all of the process; NULL: the trace has no such waits. */
size_t *stream_waits_find(const struct model *model, const struct launches *launches, const struct device_work *work,
                          uint32_t process);

#endif
