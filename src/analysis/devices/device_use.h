/* SPDX-License-Identifier: Apache-2.0
 *
 * device_use.h: how much of a device its kernels use, in stretches of time (steps, the whole trace): multiprocessors
 * with a block, occupancy, tensor cores. A kernel counts with its part within a stretch.
 *
 *     struct use_window windows[] = {{.start_ns = a, .end_ns = b}, ...}; // by start
 *     device_use_fill(windows, count, model, &work);                     // work of one device
 *     windows[0].use.tensor_core_ns / windows[0].use.kernel_ns
 */
#ifndef ANALYSIS_DEVICES_DEVICE_USE_H
#define ANALYSIS_DEVICES_DEVICE_USE_H

#include "analysis/devices/device_work.h"

/* A share of tensor cores is measured if at most this part of the kernels' time has names that do not tell. */
#define MOST_UNKNOWN_NAMES 0.05
#define NAMES_DO_NOT_TELL                                                                                              \
	"the names of kernels with more than a twentieth of the time do not tell whether they use tensor cores"

struct device_use { /* sums of times; kernels that run together all count; 0 if unknown */
	double kernel_ns, tensor_core_ns;
	double unknown_ns; /* of kernels of which the name does not tell whether they use tensor cores */
	double efficiency_ns, efficiency_of_ns; /* smaller of 1 and blocks per multiprocessor, by time; where known */
	double occupancy_ns, occupancy_of_ns;   /* the same for the occupancy */
	/* Time, each instant weighted by the share of multiprocessors with a block. Kernels that run together add up,
	 * to at most 1. */
	double sm_ns;
};

struct use_window {
	int64_t start_ns, end_ns;
	struct device_use use;
};

/* Adds to the windows, which are sorted by start. */
void device_use_fill(struct use_window *windows, size_t count, const struct model *model,
                     const struct device_work *work);

/* The columns of both tables of devices, and their cells in a row. all_ns: denominator of step_sm_ratio, 0: there is
 * none. */
#define USE_COLUMNS 4
extern const struct table_column device_use_columns[USE_COLUMNS];
void device_use_set(struct table *table, int row, int first, const struct device_use *use, int64_t all_ns,
                    const char *no_time);

#endif
