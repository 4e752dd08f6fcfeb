/* SPDX-License-Identifier: Apache-2.0
 *
 * telemetry.h: which time values from outside count in: that of the program, or of the steps that are selected. Where nothing but
 * telemetry was read, all of it.
 */
#ifndef ANALYSIS_MACHINE_TELEMETRY_H
#define ANALYSIS_MACHINE_TELEMETRY_H

#include "analysis/step_times/step_times.h"

struct telemetry_window {
	int64_t first_ns, last_ns;
	bool has_any; /* else all values count */
};

struct telemetry_window telemetry_window_find(const struct model *model, const struct step_times *times,
                                              bool has_steps);
bool telemetry_window_holds(const struct telemetry_window *window, int64_t time_ns);

#endif
