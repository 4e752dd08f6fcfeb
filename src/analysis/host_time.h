/* SPDX-License-Identifier: Apache-2.0
 *
 * host_time.h: the time that threads are in operators, in calls that do not wait for the device, or wait for data, in the steps that count;
 * with all that is inside, each instant of a thread once, the sum of the threads.
 */
#ifndef ANALYSIS_HOST_TIME_H
#define ANALYSIS_HOST_TIME_H

#include "analysis/report.h"

double host_time_ns(struct report *report);

#endif
