/* SPDX-License-Identifier: Apache-2.0
 *
 * device_names.h: facts from the names of kernels, copies and calls of the runtime. No other file knows these names.
 */
#ifndef MODEL_DEVICE_NAMES_H
#define MODEL_DEVICE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true for kernels that exchange data between devices: of NCCL, RCCL, MSCCL, NVSHMEM and the all-reduces of
 * inference servers. */
bool is_communication_kernel(const char *name);

/* Answers from names. */
enum name_answer {
	NAME_UNKNOWN,
	NAME_NO,
	NAME_YES,
};

/* Returns whether the kernel computes on matrix units (NVIDIA: tensor cores, AMD: matrix cores). */
enum name_answer tensor_cores_of_kernel(const char *name);

/* Returns "matrix" for products, convolutions and attention, which tensor cores can compute; "memory" for kernels with
 * few operations per byte; NULL if the name does not tell. */
const char *work_of_kernel(const char *name);

/* Types of products that run faster with less precision. */
enum product_type {
	PRODUCT_OTHER,         /* no product, or one of another type, or the name does not tell */
	PRODUCT_FLOAT32,       /* without matrix units */
	PRODUCT_FLOAT32_OLDER, /* same, of a device that has no TF32 */
	PRODUCT_TF32,
	PRODUCT_TYPES,
};
enum product_type product_type_of_kernel(const char *name);

/* Kinds of calls of a runtime or driver: CUDA, HIP, Level Zero, the unified runtime, MTIA. */
enum device_call {
	CALL_OTHER,
	CALL_WAITS_ALL,    /* waits for all work */
	CALL_WAITS_STREAM, /* for the work of a stream */
	CALL_WAITS_EVENT,  /* for an event */
	CALL_COPIES,       /* for the copy that it starts */
	CALL_STREAM_WAITS, /* a stream waits for an event, the thread does not */
	CALL_ALLOCATES,    /* takes memory of the device or pinned memory, or gives pinned memory back */
	CALL_FREES,        /* gives memory of the device back: it waits for all work */
};

/* Returns enum device_call. */
uint8_t device_call_kind(const char *name);

/* Returns true for calls that return when the device has finished something: "cudaStreamSynchronize", "hipMemcpy". */
bool is_synchronizing_call(const char *name);

/* Returns true for calls of a runtime or driver that make a device run kernels: "cudaLaunchKernel",
 * "hipGraphLaunch". */
bool is_launching_call(const char *name);

/* Returns true for operators in which a thread waits for the next batch: "enumerate(DataLoader)#...". */
bool is_data_wait(const char *name);

/* Returns "allreduce", ... from the name of a kernel or an operator; NULL if the name does not tell. */
const char *collective_of_name(const char *name);

/* Returns true for "Memcpy DtoH (Device -> Pageable)". */
bool is_copy_to_pageable(const char *name);
/* Returns true for a copy to or from pageable memory. */
bool is_pageable_copy(const char *name);

enum copy_direction {
	COPY_UNKNOWN,
	COPY_TO_DEVICE,
	COPY_TO_HOST,
	COPY_ON_DEVICES,
	COPY_TO_PEER,
	COPY_ON_HOST,
};

/* Returns the direction from the name of a copy and the text in its launch ("HtoD", "": none). */
enum copy_direction copy_direction(const char *name, const char *said);
/* Returns "host to device", ...; NULL for COPY_UNKNOWN. */
const char *copy_direction_name(enum copy_direction direction);

#endif
