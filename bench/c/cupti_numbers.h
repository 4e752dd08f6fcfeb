/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_numbers.h: our own definitions for CUPTI 11.8 to 13.x: numbers, signatures, and the parts of records that are
 * the same in all these versions. NVIDIA's headers are not needed. Nothing is linked: every function is looked up.
 * Records are longer than these structs: never add sizeof; cuptiActivityGetNextRecord finds the next record.
 */
#ifndef BENCH_CUPTI_NUMBERS_H
#define BENCH_CUPTI_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum cupti_error {
	CUPTI_OK = 0,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MAX_LIMIT_REACHED = 12, /* cuptiActivityGetNextRecord: no more records */
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_KERNEL = 10, /* the concurrent kind; 3 would serialize kernels */
	CUPTI_KIND_MARKER = 12,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_PEER_MEMCPY = 22,
	CUPTI_KIND_CUDA_EVENT = 36,
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_MEMORY = 49,
	CUPTI_KIND_MEMORY_POOL = 50,
	CUPTI_KIND_GRAPH_TRACE = 51,
	CUPTI_KIND_LIMIT = 64, /* our limit: larger kinds are counted as one */
};

enum cupti_attribute {
	CUPTI_PER_THREAD_BUFFERS = 9, /* uint8_t; set before the buffer callbacks are registered */
};

enum cupti_domain {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_DOMAIN_STATE = 6,
};

enum cupti_resource_callback {
	CUPTI_GRAPH_CREATED = 9,
	CUPTI_GRAPH_DESTROY = 10,
	CUPTI_GRAPH_CLONED = 11,
	CUPTI_NODE_CREATE = 12, /* before the creation: there is no node yet */
	CUPTI_NODE_CREATED = 13,
	CUPTI_NODE_DESTROY = 14,
	CUPTI_DEPENDENCY_CREATED = 15,
	CUPTI_DEPENDENCY_DESTROY = 16,
	CUPTI_EXEC_CREATE = 17,
	CUPTI_EXEC_CREATED = 18,
	CUPTI_EXEC_DESTROY = 19,
	CUPTI_NODE_CLONED = 20,
	CUPTI_NODE_UPDATED = 22, /* 13.x, like the next */
	CUPTI_NODE_PARAMETERS = 23,
};

enum cupti_call { /* callback ids of runtime and driver calls that launch work */
	CUPTI_RUNTIME_LAUNCH_KERNEL = 211,
	CUPTI_RUNTIME_LAUNCH_KERNEL_PER_THREAD = 214, /* per thread: with a default stream per thread */
	CUPTI_RUNTIME_LAUNCH_COOPERATIVE = 269,
	CUPTI_RUNTIME_GRAPH_LAUNCH = 311,
	CUPTI_RUNTIME_GRAPH_LAUNCH_PER_THREAD = 312,
	CUPTI_RUNTIME_LAUNCH_KERNEL_EX = 430,
	CUPTI_RUNTIME_LAUNCH_KERNEL_EX_PER_THREAD = 431,
	CUPTI_DRIVER_LAUNCH_KERNEL = 307,
	CUPTI_DRIVER_LAUNCH_KERNEL_PER_THREAD = 442,
	CUPTI_DRIVER_LAUNCH_COOPERATIVE = 477,
	CUPTI_DRIVER_GRAPH_LAUNCH = 514,
	CUPTI_DRIVER_GRAPH_LAUNCH_PER_THREAD = 515,
	CUPTI_DRIVER_LAUNCH_KERNEL_EX = 652,
	CUPTI_DRIVER_LAUNCH_KERNEL_EX_PER_THREAD = 653,
};

enum cupti_site {
	CUPTI_SITE_ENTER = 0,
	CUPTI_SITE_EXIT = 1,
};

/* The first 160 bytes of a kernel record. */
struct cupti_kernel {
	uint32_t kind;
	uint8_t cache, shared_memory;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start_ns, end_ns, completed_ns;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /* invalid after the module is unloaded */
	void *reserved;
	uint64_t queued_ns, submitted_ns;
	uint8_t launch_type, carveout[2], padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t limit_config, graph;
};

struct cupti_memcpy { /* the first 80 bytes */
	uint32_t kind;
	uint8_t copy_kind, source_kind, target_kind, flags;
	uint64_t bytes, start_ns, end_ns;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
};

struct cupti_memset { /* the first 80 bytes */
	uint32_t kind, value;
	uint64_t bytes, start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
};

struct cupti_call_record { /* RUNTIME and DRIVER: the whole record */
	uint32_t kind, callback;
	uint64_t start_ns, end_ns;
	uint32_t process, thread, correlation, result;
};

struct cupti_marker { /* NVTX: the whole record */
	uint32_t kind, flags;
	uint64_t time_ns;
	uint32_t id, object_kind, object[3], pad;
	const char *name, *domain; /* name is NULL at the end of a range */
};

struct cupti_graph_data { /* data of resource callbacks 9 to 23; handles are the driver's */
	void *graph, *original_graph, *node, *original_node;
	uint32_t node_type;
	void *dependency, *exec;
};

struct cupti_resource_data {
	void *context, *stream;
	void *descriptor; /* struct cupti_graph_data for 9 to 23 */
};

struct cupti_callback_data { /* for the domains RUNTIME and DRIVER */
	uint32_t site;
	const char *function;
	const void *parameters;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *correlation_data;
	uint32_t correlation;
};

struct cupti_subscriber_parameters { /* cuptiSubscribe_v2 of 13.0; later versions append fields */
	size_t struct_bytes;
	const char *name; /* at most 53 characters */
	char *old_name;   /* at least 64 bytes */
	size_t old_name_bytes;
};

typedef void (*cupti_callback)(void *user, uint32_t domain, uint32_t id, const void *data);
typedef void (*cupti_buffer_requested)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*cupti_buffer_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                       size_t valid_bytes);
typedef uint64_t (*cupti_clock)(void);

/* X(field, name, parameters): all return an enum cupti_error as int. */
#define CUPTI_FUNCTIONS_NEEDED(X)                                                                                      \
	X(get_version, cuptiGetVersion, (uint32_t *))                                                                  \
	X(subscribe, cuptiSubscribe, (void **, cupti_callback, void *))                                                \
	X(unsubscribe, cuptiUnsubscribe, (void *))                                                                     \
	X(enable_callback, cuptiEnableCallback, (uint32_t, void *, uint32_t, uint32_t))                                \
	X(enable, cuptiActivityEnable, (uint32_t))                                                                     \
	X(disable, cuptiActivityDisable, (uint32_t))                                                                   \
	X(register_callbacks, cuptiActivityRegisterCallbacks, (cupti_buffer_requested, cupti_buffer_completed))        \
	X(next_record, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                                       \
	X(dropped_records, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                            \
	X(flush_all, cuptiActivityFlushAll, (uint32_t))

#define CUPTI_FUNCTIONS_OPTIONAL(X)                                                                                    \
	X(subscribe_v2, cuptiSubscribe_v2, (void **, cupti_callback, void *, struct cupti_subscriber_parameters *))    \
	X(register_clock, cuptiActivityRegisterTimestampCallback, (cupti_clock))                                       \
	X(set_attribute, cuptiActivitySetAttribute, (uint32_t, size_t *, void *))                                      \
	X(get_attribute, cuptiActivityGetAttribute, (uint32_t, size_t *, void *))                                      \
	X(flush_period, cuptiActivityFlushPeriod, (uint32_t))                                                          \
	X(enable_runtime_call, cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))                                     \
	X(enable_driver_call, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))                                       \
	X(enable_all_synchronizations, cuptiActivityEnableAllSyncRecords, (uint8_t))                                   \
	X(enable_event_times, cuptiActivityEnableCudaEventDeviceTimestamps, (uint8_t))                                 \
	X(graph_id, cuptiGetGraphId, (void *, uint32_t *))                                                             \
	X(node_id, cuptiGetGraphNodeId, (void *, uint64_t *))                                                          \
	X(exec_id, cuptiGetGraphExecId, (void *, uint32_t *))

#define CUPTI_FUNCTIONS(X) CUPTI_FUNCTIONS_NEEDED(X) CUPTI_FUNCTIONS_OPTIONAL(X)

struct cupti_functions {
#define CUPTI_FIELD(field, name, parameters) int(*field) parameters;
	CUPTI_FUNCTIONS(CUPTI_FIELD)
#undef CUPTI_FIELD
};

#endif
