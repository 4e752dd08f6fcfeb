/* SPDX-License-Identifier: Apache-2.0
 *
 * telemetry.h: the time in which values from outside count: that of the program, or of the selected steps. If only
 * telemetry was read, all values count.
 */
#ifndef ANALYSIS_MACHINE_TELEMETRY_H
#define ANALYSIS_MACHINE_TELEMETRY_H

#include "analysis/step_times/step_times.h"

struct telemetry_window {
	int64_t first_ns, last_ns;
	bool has_any; /* false: all values count */
};

struct telemetry_window telemetry_window_find(const struct model *model, const struct step_times *times,
                                              bool has_steps);
bool telemetry_window_holds(const struct telemetry_window *window, int64_t time_ns);

#endif
