/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_stand_in.c: a stand-in for libcupti.so.13, to test cupti_probe.c without a GPU. Its records are invented, in
 * the layout of CUPTI 13.0. stand_in_set("what", value) makes it misbehave. It contains no part of CUPTI and uses no
 * device.
 */
#include "cupti_numbers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define KERNEL_BYTES 216
#define NODES_MAX 64

struct node {
	uint64_t id;
};

struct graph {
	uint32_t id;
	struct node nodes[NODES_MAX];
};

static struct stand_in {
	pthread_mutex_t lock;
	cupti_callback callback;
	cupti_buffer_requested requested;
	cupti_buffer_completed completed;
	cupti_clock clock;
	bool is_held_by_other, is_subscribed;
	bool kinds[CUPTI_KIND_LIMIT];
	uint8_t runtime[1024], driver[1024], callbacks[8][1024];
	uint8_t *buffer, *kept[300];
	size_t bytes, used;
	int kept_count;
	uint32_t correlation, graphs;
	/* set by stand_in_set() */
	int64_t version_error, untimed_every, late_every, drops, hangs, keeps_buffers, one_buffer_each;
} stand_in = {.lock = PTHREAD_MUTEX_INITIALIZER};

EXPORT void stand_in_set(const char *name, int64_t value)
{
	struct {
		const char *name;
		int64_t *value;
	} table[] = {{"version_error", &stand_in.version_error},
	             {"untimed_every", &stand_in.untimed_every},
	             {"late_every", &stand_in.late_every},
	             {"drops", &stand_in.drops},
	             {"hangs", &stand_in.hangs},
	             {"keeps_buffers", &stand_in.keeps_buffers},
	             {"one_buffer_each", &stand_in.one_buffer_each}};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0)
			*table[i].value = value;
	if (strcmp(name, "other") == 0)
		stand_in.is_held_by_other = value != 0;
	if (strcmp(name, "finalize") == 0) {
		stand_in.is_subscribed = false;
		memset(stand_in.kinds, 0, sizeof(stand_in.kinds));
		memset(stand_in.callbacks, 0, sizeof(stand_in.callbacks));
	}
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	return stand_in.clock ? stand_in.clock() : (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void complete(void)
{
	uint8_t *buffer = stand_in.buffer;
	size_t used = stand_in.used;
	stand_in.buffer = NULL;
	stand_in.used = 0;
	if (buffer && stand_in.completed)
		stand_in.completed(NULL, 0, buffer, stand_in.bytes, used);
}

static void *record(uint32_t kind, size_t bytes)
{
	size_t most;
	if (stand_in.buffer && (stand_in.used + bytes > stand_in.bytes || stand_in.one_buffer_each)) {
		if (stand_in.keeps_buffers && stand_in.kept_count < 300) {
			stand_in.kept[stand_in.kept_count++] = stand_in.buffer;
			stand_in.buffer = NULL;
			stand_in.used = 0;
		}
		complete();
	}
	if (!stand_in.buffer && stand_in.requested)
		stand_in.requested(&stand_in.buffer, &stand_in.bytes, &most);
	if (!stand_in.buffer || stand_in.used + bytes > stand_in.bytes)
		return NULL;
	void *found = stand_in.buffer + stand_in.used;
	stand_in.used += bytes;
	memset(found, 0, bytes);
	memcpy(found, &kind, sizeof(kind));
	return found;
}

static void call_back(uint32_t domain, uint32_t id, const void *data)
{
	if (stand_in.is_subscribed && stand_in.callbacks[domain][id])
		stand_in.callback(NULL, domain, id, data);
}

static void make_kernel(uint32_t stream, uint64_t node, const char *name)
{
	if (!stand_in.kinds[CUPTI_KIND_KERNEL])
		return;
	struct cupti_kernel *kernel = record(CUPTI_KIND_KERNEL, KERNEL_BYTES);
	if (!kernel)
		return;
	kernel->start_ns = now();
	kernel->end_ns = kernel->start_ns + 900;
	if (stand_in.late_every && stand_in.correlation % stand_in.late_every == 0)
		kernel->start_ns -= 1000000;
	if (stand_in.untimed_every && stand_in.correlation % stand_in.untimed_every == 0)
		kernel->end_ns = 0;
	kernel->context = 1;
	kernel->stream = stream;
	kernel->correlation = stand_in.correlation;
	kernel->name = name;
	kernel->graph_node = node;
	kernel->graph = (uint32_t)(node >> 32);
}

/* Launches kernels one by one, as a program does through the runtime. */
EXPORT void stand_in_launch(int count, int stream)
{
	pthread_mutex_lock(&stand_in.lock);
	for (int i = 0; i < count; i++) {
		struct cupti_callback_data data = {.correlation = ++stand_in.correlation,
		                                   .function = "cudaLaunchKernel"};
		call_back(CUPTI_DOMAIN_RUNTIME, CUPTI_RUNTIME_LAUNCH_KERNEL, &data);
		if (stand_in.kinds[CUPTI_KIND_RUNTIME] || stand_in.runtime[CUPTI_RUNTIME_LAUNCH_KERNEL]) {
			struct cupti_call_record *call = record(CUPTI_KIND_RUNTIME, sizeof(*call));
			if (call) {
				call->start_ns = now();
				call->end_ns = now();
				call->callback = CUPTI_RUNTIME_LAUNCH_KERNEL;
				call->correlation = stand_in.correlation;
			}
		}
		make_kernel((uint32_t)stream, 0, "_Z8stand_inv");
		data.site = CUPTI_SITE_EXIT;
		call_back(CUPTI_DOMAIN_RUNTIME, CUPTI_RUNTIME_LAUNCH_KERNEL, &data);
	}
	pthread_mutex_unlock(&stand_in.lock);
}

static void graph_call_back(uint32_t id, struct cupti_graph_data *data)
{
	struct cupti_resource_data resource = {.descriptor = data};
	call_back(CUPTI_DOMAIN_RESOURCE, id, &resource);
}

static struct graph *make_graph(int nodes)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	if (!graph)
		exit(3);
	graph->id = ++stand_in.graphs;
	for (int i = 0; i < nodes; i++)
		graph->nodes[i].id = (uint64_t)graph->id << 32 | (uint64_t)i;
	return graph;
}

/* Captures a graph, instantiates it, launches it, and destroys everything. */
EXPORT void stand_in_graph(int nodes, int launches)
{
	pthread_mutex_lock(&stand_in.lock);
	nodes = nodes < NODES_MAX ? nodes : NODES_MAX;
	struct graph *graph = make_graph(nodes), *clone = make_graph(nodes);
	struct node exec = {clone->id};
	struct cupti_graph_data data = {.graph = graph};
	graph_call_back(CUPTI_GRAPH_CREATED, &data);
	for (int i = 0; i < nodes; i++) {
		data = (struct cupti_graph_data){.graph = graph, .node = (void *)8}; /* the node does not exist yet */
		graph_call_back(CUPTI_NODE_CREATE, &data);
		if (i) {
			data.node = &graph->nodes[i];
			data.dependency = &graph->nodes[i - 1];
			graph_call_back(CUPTI_DEPENDENCY_CREATED, &data);
		}
		data = (struct cupti_graph_data){.graph = graph, .node = &graph->nodes[i]};
		graph_call_back(CUPTI_NODE_CREATED, &data);
	}
	data = (struct cupti_graph_data){.graph = clone};
	graph_call_back(CUPTI_GRAPH_CREATED, &data);
	for (int i = 0; i < nodes; i++) {
		data = (struct cupti_graph_data){clone, graph, &clone->nodes[i], &graph->nodes[i], 0, NULL, NULL};
		graph_call_back(CUPTI_NODE_CLONED, &data);
	}
	data = (struct cupti_graph_data){.graph = clone, .exec = &exec};
	graph_call_back(CUPTI_EXEC_CREATED, &data);
	for (int launch = 0; launch < launches; launch++) {
		stand_in.correlation++;
		for (int i = 0; i < nodes; i++)
			make_kernel(7, clone->nodes[i].id, "_Z4nodev");
	}
	graph_call_back(CUPTI_EXEC_DESTROY, &data);
	free(clone);
	free(graph);
	pthread_mutex_unlock(&stand_in.lock);
}

/* Delivers to us a buffer that another holder's callback provided. */
EXPORT void stand_in_foreign(void)
{
	uint64_t *buffer = calloc(1, 1 << 16);
	if (!buffer)
		exit(3);
	buffer[0] = CUPTI_KIND_KERNEL;
	if (stand_in.completed)
		stand_in.completed(NULL, 0, (uint8_t *)buffer, 1 << 16, KERNEL_BYTES);
	free(buffer);
}

/* --- functions with CUPTI's names --- */

EXPORT int cuptiGetVersion(uint32_t *version)
{
	*version = stand_in.version_error || getenv("STAND_IN_VERSION_ERROR") ? 0 : 130001;
	return *version ? CUPTI_OK : CUPTI_UNKNOWN;
}

EXPORT int cuptiSubscribe(void **subscriber, cupti_callback callback, void *user)
{
	(void)user;
	if (stand_in.is_held_by_other || stand_in.is_subscribed || getenv("STAND_IN_HELD"))
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	stand_in.callback = callback;
	stand_in.is_subscribed = true;
	*subscriber = &stand_in;
	return CUPTI_OK;
}

EXPORT int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *user,
                             struct cupti_subscriber_parameters *parameters)
{
	if (parameters && parameters->old_name && stand_in.is_held_by_other)
		snprintf(parameters->old_name, parameters->old_name_bytes, "another");
	return cuptiSubscribe(subscriber, callback, user);
}

EXPORT int cuptiUnsubscribe(void *subscriber)
{
	if (subscriber != &stand_in || !stand_in.is_subscribed)
		return CUPTI_NOT_INITIALIZED;
	stand_in.is_subscribed = false;
	memset(stand_in.callbacks, 0, sizeof(stand_in.callbacks));
	return CUPTI_OK;
}

EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id)
{
	if (subscriber != &stand_in || !stand_in.is_subscribed || domain > 7 || id > 1023)
		return 1;
	stand_in.callbacks[domain][id] = enable != 0;
	return CUPTI_OK;
}

EXPORT int cuptiActivityEnable(uint32_t kind)
{
	if (stand_in.is_held_by_other)
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	stand_in.kinds[kind % CUPTI_KIND_LIMIT] = true;
	return CUPTI_OK;
}

EXPORT int cuptiActivityDisable(uint32_t kind)
{
	stand_in.kinds[kind % CUPTI_KIND_LIMIT] = false;
	return CUPTI_OK;
}

EXPORT int cuptiActivityRegisterCallbacks(cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	stand_in.requested = requested;
	stand_in.completed = completed;
	return CUPTI_OK;
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, void **at)
{
	uint8_t *next = buffer;
	if (*at) {
		uint32_t kind;
		memcpy(&kind, *at, sizeof(kind));
		next = (uint8_t *)*at + (kind == CUPTI_KIND_KERNEL ? KERNEL_BYTES : sizeof(struct cupti_call_record));
	}
	if (next >= buffer + valid_bytes)
		return CUPTI_MAX_LIMIT_REACHED;
	*at = next;
	return CUPTI_OK;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context;
	(void)stream;
	*dropped = (size_t)stand_in.drops;
	stand_in.drops = 0;
	return CUPTI_OK;
}

static void *flush_elsewhere(void *argument)
{
	complete();
	while (stand_in.kept_count && stand_in.completed) {
		uint8_t *buffer = stand_in.kept[--stand_in.kept_count];
		stand_in.completed(NULL, 0, buffer, 1 << 16, KERNEL_BYTES);
	}
	return argument;
}

EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	pthread_t thread;
	(void)flag;
	if (stand_in.hangs)
		sleep(30);
	pthread_mutex_lock(&stand_in.lock);
	if (pthread_create(&thread, NULL, flush_elsewhere, NULL) == 0)
		pthread_join(thread, NULL);
	pthread_mutex_unlock(&stand_in.lock);
	return CUPTI_OK;
}

EXPORT int cuptiActivityRegisterTimestampCallback(cupti_clock clock)
{
	stand_in.clock = clock;
	return CUPTI_OK;
}

EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)value;
	return attribute == CUPTI_PER_THREAD_BUFFERS && *bytes == 1 ? CUPTI_OK : 1;
}

EXPORT int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable)
{
	stand_in.runtime[id % 1024] = enable;
	return CUPTI_OK;
}

EXPORT int cuptiActivityEnableDriverApi(uint32_t id, uint8_t enable)
{
	stand_in.driver[id % 1024] = enable;
	return CUPTI_OK;
}

EXPORT int cuptiGetGraphId(void *graph, uint32_t *id)
{
	*id = ((struct graph *)graph)->id;
	return CUPTI_OK;
}

EXPORT int cuptiGetGraphNodeId(void *node, uint64_t *id)
{
	*id = ((struct node *)node)->id;
	return CUPTI_OK;
}

EXPORT int cuptiGetGraphExecId(void *exec, uint32_t *id)
{
	*id = (uint32_t)((struct node *)exec)->id;
	return CUPTI_OK;
}
