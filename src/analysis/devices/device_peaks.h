/* SPDX-License-Identifier: Apache-2.0
 *
 * device_peaks.h: how many floating point operations a second a device could do at most, by its name and the type of the elements: what
 * its maker says of dense matrices, without sparsity. A device or type that is not in the table is not known.
 */
#ifndef ANALYSIS_DEVICES_DEVICE_PEAKS_H
#define ANALYSIS_DEVICES_DEVICE_PEAKS_H

#include <stdbool.h>

struct device_peak {
	double flops_per_s;
	const char *device; /* "H100 SXM" */
	const char *unit;   /* "tensor cores", "FP32", ... */
	const char *source;
};

/* name: as the driver gives it ("NVIDIA A100-SXM4-80GB"); dtype: as Python writes it ("bfloat16"). is_tensor_core matters for float32 and
 * float64, which may run on tensor cores (float32: as TF32) or not; others count against tensor cores always. */
bool device_peak_find(struct device_peak *peak, const char *name, const char *dtype, bool is_tensor_core);

#endif
