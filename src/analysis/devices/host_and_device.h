/* SPDX-License-Identifier: Apache-2.0
 *
 * host_and_device.h: the two times that rlhf-canary compares, over the steps that count.
 */
#ifndef ANALYSIS_DEVICES_HOST_AND_DEVICE_H
#define ANALYSIS_DEVICES_HOST_AND_DEVICE_H

#include "analysis/report.h"

/* Returns the time of threads in operators, in calls that do not wait for the device, and in waits for data, with
 * everything nested in them. Each instant of a thread counts once; threads are summed. */
double host_time_ns(struct report *report);
/* Returns the time in which devices are busy with work launched in these steps. Each instant of a device counts once;
 * devices are summed. */
double device_time_ns(struct report *report);

#endif
