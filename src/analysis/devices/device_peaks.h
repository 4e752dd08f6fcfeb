/* SPDX-License-Identifier: Apache-2.0
 *
 * device_peaks.h: the peak rate of floating point operations of a device, by its name and the type of the elements. It
 * is the maker's number for dense matrices, without sparsity. A device or type that is not in the table is unknown.
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

/* name: as the driver gives it ("NVIDIA A100-SXM4-80GB"). dtype: as Python writes it ("bfloat16"). is_tensor_core
 * matters for float32 and float64, which may run on tensor cores (float32: as TF32) or not. Other types always count
 * against tensor cores. */
bool device_peak_find(struct device_peak *peak, const char *name, const char *dtype, bool is_tensor_core);

#endif
