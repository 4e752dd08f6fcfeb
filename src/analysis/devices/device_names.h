/* SPDX-License-Identifier: Apache-2.0
 *
 * device_names.h: what the names of kernels, copies and calls of the runtime tell: the only place that knows them.
 */
#ifndef ANALYSIS_DEVICES_DEVICE_NAMES_H
#define ANALYSIS_DEVICES_DEVICE_NAMES_H

#include <stdbool.h>

/* Kernels that exchange data between devices: of NCCL, RCCL, MSCCL, NVSHMEM and the all-reduces that inference servers bring. */
bool is_communication_kernel(const char *name);

/* Kernels of the families that are known to compute on matrix units (NVIDIA: tensor cores, AMD: matrix cores). */
bool is_tensor_core_kernel(const char *name);

/* "matrix": products, convolutions and attention, which tensor cores can compute; "memory": kernels that do few operations for each
 * byte; NULL: it does not say it. */
const char *work_of_kernel(const char *name);

/* Calls of a runtime or driver that come back when the device is done with something: "cudaStreamSynchronize", "hipMemcpy". */
bool is_synchronizing_call(const char *name);

/* Calls of a runtime or driver that have a device run kernels: "cudaLaunchKernel", "hipGraphLaunch". */
bool is_launching_call(const char *name);

/* Operators in which a thread waits for the next batch: "enumerate(DataLoader)#...". */
bool is_data_wait(const char *name);

/* "allreduce", ... from the name of a kernel or an operator; NULL: it does not say it. */
const char *collective_of_name(const char *name);

/* "Memcpy DtoH (Device -> Pageable)" */
bool is_copy_to_pageable(const char *name);

enum copy_direction {
	COPY_UNKNOWN,
	COPY_TO_DEVICE,
	COPY_TO_HOST,
	COPY_ON_DEVICES,
	COPY_TO_PEER,
	COPY_ON_HOST,
};

/* By the name of a copy and by the direction its launch gives ("HtoD"; "": none). */
enum copy_direction copy_direction(const char *name, const char *said);
const char *copy_direction_name(enum copy_direction direction); /* "host to device"; NULL: unknown */

#endif
