/* SPDX-License-Identifier: Apache-2.0
 *
 * host_and_device.h: the two times that rlhf-canary holds against each other, of the steps that count.
 */
#ifndef ANALYSIS_DEVICES_HOST_AND_DEVICE_H
#define ANALYSIS_DEVICES_HOST_AND_DEVICE_H

#include "analysis/report.h"

/* That threads are in operators, in calls that do not wait for the device, or wait for data; with all that is inside, each instant of a
 * thread once, the sum of the threads. */
double host_time_ns(struct report *report);
/* That devices are busy with what these steps launched, each instant of a device once, the sum of the devices. */
double device_time_ns(struct report *report);

#endif
