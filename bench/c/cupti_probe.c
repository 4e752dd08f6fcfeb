/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_probe.c: see cupti_probe.h. Buffers are counted and written when CUPTI delivers them, in its thread or in the
 * flushing thread. The lock is never held during a call of CUPTI: a thread of CUPTI may hold its own lock and wait for
 * ours.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cupti_probe.h"

#include "cupti_library.h"
#include "cupti_numbers.h"
#include "cupti_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (1u << 20)
#define SMALL_BYTES (1u << 16)
#define BUFFERS_MAX 256
#define SMALL_MAX 16
#define CALLS_MAX 128 /* limit for runtime and for driver calls */
#define BATCH 128     /* records per acquisition of the lock */
#define STREAMS_MAX 256
#define LOG_MAX 400
#define LOG_ALL 100 /* later calls are logged only if they failed or took LOG_SLOW_NS */
#define LOG_SLOW_NS 50000
#define END_SECONDS 5 /* limit for the flush at the end */

enum text_name {
	KERNELS,
	MARKERS,
	CALLBACKS,
	LAUNCHES,
	MARKS,
	TEXTS
};

struct buffer {
	uint8_t *bytes;
	bool is_out;
};

struct stream { /* start of its last kernel */
	uint64_t key, start_ns;
	bool is_used;
};

struct logged { /* a call of CUPTI */
	const char *call;
	uint32_t argument;
	int result;
	int64_t time_ns, took_ns;
};

struct calls {
	uint32_t ids[CALLS_MAX];
	int count;
};

struct counts {
	uint64_t rows[CUPTI_KIND_LIMIT + 1], untimed[CUPTI_KIND_LIMIT + 1];
	uint64_t records, late_in_stream, late_across, streams_left_out;
	uint64_t buffers, empty_buffers, bytes_written, bytes_left_out, dropped, walk_errors, write_error;
	uint64_t small_given, small_rows, refused, foreign_buffers, foreign_rows, most_out;
	uint64_t resource[32], launches[2][1024];
};

static struct probe {
	pthread_mutex_t lock;
	struct cupti_functions cupti;
	char path[512];
	uint32_t version;
	pid_t process;
	bool is_ready, is_ours, has_attribute;
	atomic_bool is_gone; /* forked child, or CUPTI has ended itself: CUPTI is not called again */
	void *subscriber;    /* NULL without a subscription */
	bool wanted[CUPTI_KIND_LIMIT];
	bool wants_calls, wants_graphs, asks_all_ids;
	atomic_int wants_launches;
	struct calls runtime, driver;
	char holder[128], fatal[256];

	struct buffer buffers[BUFFERS_MAX], small[SMALL_MAX];
	uint64_t buffers_limit, bytes_limit, out;
	uint64_t last_start_ns;
	struct stream streams[STREAMS_MAX];
	struct counts counts;
	int raw;
	char prefix[512];
	struct text texts[TEXTS];

	struct logged log[LOG_MAX];
	int logged, log_left_out;

	pthread_cond_t end_changed;
	bool has_flushed;
	int64_t end_flush_ns;
} probe = {.lock = PTHREAD_MUTEX_INITIALIZER, .end_changed = PTHREAD_COND_INITIALIZER, .raw = -1};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t clock_for_cupti(void)
{
	return (uint64_t)now_ns();
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	uint64_t value = text ? strtoull(text, &end, 10) : 0;
	return text && end != text ? value : otherwise;
}

/* --- calls of CUPTI, each logged with its time; never with the lock held --- */

static int note(const char *call, uint32_t argument, int result, int64_t start_ns)
{
	int64_t end_ns = now_ns();
	pthread_mutex_lock(&probe.lock);
	bool is_dull = probe.logged >= LOG_ALL && result == CUPTI_OK && end_ns - start_ns < LOG_SLOW_NS;
	if (!is_dull && probe.logged < LOG_MAX)
		probe.log[probe.logged++] = (struct logged){call, argument, result, start_ns, end_ns - start_ns};
	else
		probe.log_left_out++;
	pthread_mutex_unlock(&probe.lock);
	return result;
}

/* Reads the start before the call: the arguments of note() are evaluated in no fixed order. */
#define CALL(field, argument, ...)                                                                                     \
	({                                                                                                             \
		int64_t start_ns_ = now_ns();                                                                          \
		int result_ = probe.cupti.field ? probe.cupti.field(__VA_ARGS__) : -1;                                 \
		note(#field, (uint32_t)(argument), result_, start_ns_);                                                \
	})

static bool is_usable(void)
{
	return probe.is_ready && !atomic_load(&probe.is_gone);
}

/* --- files --- */

static void texts_write(void)
{
	pthread_mutex_lock(&probe.lock);
	for (int i = 0; i < TEXTS; i++)
		text_write(&probe.texts[i]);
	pthread_mutex_unlock(&probe.lock);
}

/* --- records --- */

/* Counts kernels out of order of their start, within a stream and across streams. The caller holds the lock. */
static void count_order(const struct cupti_kernel *kernel)
{
	probe.counts.late_across += kernel->start_ns < probe.last_start_ns;
	if (kernel->start_ns > probe.last_start_ns)
		probe.last_start_ns = kernel->start_ns;
	uint64_t key = (uint64_t)kernel->device << 48 | (uint64_t)(kernel->context & 0xffff) << 32 | kernel->stream;
	for (uint32_t i = 0, at = kernel->stream * 31 + kernel->device; i < STREAMS_MAX; i++, at++) {
		struct stream *stream = &probe.streams[at % STREAMS_MAX];
		if (stream->is_used && stream->key != key)
			continue;
		probe.counts.late_in_stream += stream->is_used && kernel->start_ns < stream->start_ns;
		*stream = (struct stream){key, kernel->start_ns, true};
		return;
	}
	probe.counts.streams_left_out++;
}

static void take_kernel(const struct cupti_kernel *kernel)
{
	if (kernel->start_ns && kernel->end_ns)
		count_order(kernel);
	text_add(&probe.texts[KERNELS], "%lu %lu %u %u %u %u %lu %.*s\n", kernel->start_ns, kernel->end_ns,
	         kernel->correlation, kernel->stream, kernel->device, kernel->context, kernel->graph_node,
	         TEXT_NAME_BYTES, kernel->name ? kernel->name : "?");
}

/* Records of sets have start and end at the offsets of copies, records of synchronizations at those of calls. */
static void take_record(const void *record)
{
	uint32_t kind = *(const uint32_t *)record;
	uint32_t index = kind < CUPTI_KIND_LIMIT ? kind : CUPTI_KIND_LIMIT;
	uint64_t start_ns = 1, end_ns = 1;
	if (kind == CUPTI_KIND_KERNEL) {
		const struct cupti_kernel *kernel = record;
		start_ns = kernel->start_ns;
		end_ns = kernel->end_ns;
		take_kernel(kernel);
	} else if (kind == CUPTI_KIND_MEMCPY || kind == CUPTI_KIND_MEMSET || kind == CUPTI_KIND_PEER_MEMCPY) {
		start_ns = ((const struct cupti_memcpy *)record)->start_ns;
		end_ns = ((const struct cupti_memcpy *)record)->end_ns;
	} else if (kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER || kind == CUPTI_KIND_SYNCHRONIZATION) {
		start_ns = ((const struct cupti_call_record *)record)->start_ns;
		end_ns = ((const struct cupti_call_record *)record)->end_ns;
	} else if (kind == CUPTI_KIND_MARKER) {
		const struct cupti_marker *marker = record;
		text_add(&probe.texts[MARKERS], "%lu %u %u %.*s %.*s\n", marker->time_ns, marker->flags, marker->id,
		         TEXT_NAME_BYTES, marker->domain ? marker->domain : "-", TEXT_NAME_BYTES,
		         marker->name ? marker->name : "-");
	}
	probe.counts.untimed[index] += !start_ns || !end_ns;
	probe.counts.rows[index]++;
	probe.counts.records++;
}

static uint64_t walk(uint8_t *bytes, size_t valid_bytes, bool is_foreign)
{
	void *record = NULL, *batch[BATCH];
	uint64_t total = 0;
	int result = CUPTI_OK;
	while (result == CUPTI_OK) {
		int count = 0;
		while (count < BATCH && (result = probe.cupti.next_record(bytes, valid_bytes, &record)) == CUPTI_OK)
			batch[count++] = record;
		pthread_mutex_lock(&probe.lock);
		for (int i = 0; i < count && !is_foreign; i++)
			take_record(batch[i]);
		probe.counts.walk_errors += result != CUPTI_OK && result != CUPTI_MAX_LIMIT_REACHED;
		pthread_mutex_unlock(&probe.lock);
		total += (uint64_t)count;
	}
	return total;
}

/* Writes a buffer completely or not at all. A buffer torn by a full disk ends the file. The caller holds the lock. */
static void write_raw(const uint8_t *bytes, size_t valid_bytes)
{
	uint64_t head[2] = {valid_bytes, (uint64_t)now_ns()};
	if (probe.raw < 0)
		return;
	if (probe.counts.write_error || probe.counts.bytes_written + sizeof(head) + valid_bytes > probe.bytes_limit) {
		probe.counts.bytes_left_out += valid_bytes;
		return;
	}
	struct iovec parts[2] = {{head, sizeof(head)}, {(void *)(uintptr_t)bytes, valid_bytes}};
	ssize_t got = writev(probe.raw, parts, 2);
	if (got != (ssize_t)(sizeof(head) + valid_bytes))
		probe.counts.write_error = got < 0 ? (uint64_t)errno : ENOSPC;
	else
		probe.counts.bytes_written += (uint64_t)got;
}

/* --- buffers --- */

static struct buffer *free_buffer(struct buffer *buffers, uint64_t count, size_t bytes)
{
	for (uint64_t i = 0; i < count; i++) {
		struct buffer *buffer = &buffers[i];
		if (buffer->is_out)
			continue;
		if (!buffer->bytes && posix_memalign((void **)&buffer->bytes, 64, bytes) != 0)
			buffer->bytes = NULL;
		return buffer->bytes ? buffer : NULL;
	}
	return NULL;
}

static struct buffer *find_buffer(struct buffer *buffers, int count, const uint8_t *bytes)
{
	for (int i = 0; i < count && buffers[i].bytes; i++)
		if (buffers[i].bytes == bytes)
			return &buffers[i];
	return NULL;
}

/* Always gives a buffer: CUPTI before API 27 crashes without one. */
static void buffer_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	static uint8_t last_resort[SMALL_BYTES] __attribute__((aligned(64)));
	*most_records = 0;
	*buffer = last_resort;
	*bytes = sizeof(last_resort);
	if (atomic_load(&probe.is_gone))
		return;
	pthread_mutex_lock(&probe.lock);
	struct buffer *found = free_buffer(probe.buffers, probe.buffers_limit, BUFFER_BYTES);
	bool is_small = !found;
	if (is_small)
		found = free_buffer(probe.small, SMALL_MAX, SMALL_BYTES);
	probe.counts.small_given += is_small && found;
	probe.counts.refused += !found;
	if (found) {
		found->is_out = true;
		*buffer = found->bytes;
		*bytes = is_small ? SMALL_BYTES : BUFFER_BYTES;
	}
	probe.out++;
	if (probe.out > probe.counts.most_out)
		probe.counts.most_out = probe.out;
	pthread_mutex_unlock(&probe.lock);
}

static void buffer_completed(void *context, uint32_t stream, uint8_t *bytes, size_t size, size_t valid_bytes)
{
	if (atomic_load(&probe.is_gone) || !bytes)
		return;
	pthread_mutex_lock(&probe.lock);
	struct buffer *large = find_buffer(probe.buffers, BUFFERS_MAX, bytes);
	struct buffer *small = large ? NULL : find_buffer(probe.small, SMALL_MAX, bytes);
	bool is_foreign = !large && !small; /* another holder's, or last_resort, which two threads may have written */
	probe.counts.buffers++;
	probe.counts.empty_buffers += !valid_bytes;
	if (large && valid_bytes && valid_bytes <= size)
		write_raw(bytes, valid_bytes);
	pthread_mutex_unlock(&probe.lock);

	uint64_t rows = valid_bytes && valid_bytes <= size ? walk(bytes, valid_bytes, is_foreign) : 0;
	size_t dropped = 0;
	if (probe.cupti.dropped_records(context, stream, &dropped) != CUPTI_OK)
		dropped = 0;

	pthread_mutex_lock(&probe.lock);
	probe.counts.small_rows += small ? rows : 0;
	probe.counts.foreign_buffers += is_foreign;
	probe.counts.foreign_rows += is_foreign ? rows : 0;
	probe.counts.dropped += dropped;
	probe.out -= probe.out > 0;
	if (large)
		large->is_out = false;
	if (small)
		small->is_out = false;
	text_write(
		&probe.texts[KERNELS]); /* if the process is killed, its files have all names of the written records */
	pthread_mutex_unlock(&probe.lock);
}

/* --- callbacks --- */

static bool has_bit(uint32_t bits, uint32_t id)
{
	return id < 32 && (bits >> id & 1);
}

#define BIT(id) (1u << (id))

/* Asks for ids only of handles that exist: not in callbacks before a creation. */
static void graph_changed(uint32_t id, const struct cupti_graph_data *data)
{
	const uint32_t safe = BIT(CUPTI_GRAPH_CREATED) | BIT(CUPTI_GRAPH_CLONED) | BIT(CUPTI_NODE_CREATED) |
	                      BIT(CUPTI_NODE_CLONED);
	const uint32_t nodes = BIT(CUPTI_NODE_CREATED) | BIT(CUPTI_NODE_DESTROY) | BIT(CUPTI_DEPENDENCY_CREATED) |
	                       BIT(CUPTI_DEPENDENCY_DESTROY) | BIT(CUPTI_NODE_CLONED) | BIT(CUPTI_NODE_UPDATED) |
	                       BIT(CUPTI_NODE_PARAMETERS);
	const uint32_t graphs = safe | BIT(CUPTI_GRAPH_DESTROY) | BIT(CUPTI_NODE_DESTROY) | BIT(CUPTI_EXEC_CREATED);
	uint32_t asked = probe.asks_all_ids ? ~0u : safe;
	uint64_t node = 0, original_node = 0, dependency = 0;
	uint32_t graph = 0, original_graph = 0, exec = 0;
	int node_result = -1, original_result = -1, graph_result = -1, dependency_result = -1, exec_result = -1;
	const struct cupti_functions *cupti = &probe.cupti;

	if (has_bit(nodes & asked, id) && data->node && cupti->node_id)
		node_result = cupti->node_id(data->node, &node);
	if (id == CUPTI_NODE_CLONED && data->original_node && cupti->node_id)
		original_result = cupti->node_id(data->original_node, &original_node);
	if (has_bit(graphs & asked, id) && data->graph && cupti->graph_id)
		graph_result = cupti->graph_id(data->graph, &graph);
	if ((id == CUPTI_GRAPH_CLONED || id == CUPTI_NODE_CLONED) && data->original_graph && cupti->graph_id)
		cupti->graph_id(data->original_graph, &original_graph);

	char more[64] = "";
	if (probe.asks_all_ids && (id == CUPTI_DEPENDENCY_CREATED || id == CUPTI_DEPENDENCY_DESTROY)) {
		if (data->dependency && cupti->node_id)
			dependency_result = cupti->node_id(data->dependency, &dependency);
		snprintf(more, sizeof(more), " dependency %lx (%d)", dependency, dependency_result);
	} else if (probe.asks_all_ids && (id == CUPTI_EXEC_CREATED || id == CUPTI_EXEC_DESTROY)) {
		if (data->exec && cupti->exec_id)
			exec_result = cupti->exec_id(data->exec, &exec);
		snprintf(more, sizeof(more), " execid %u (%d)", exec, exec_result);
	}
	int64_t time_ns = now_ns();
	pthread_mutex_lock(&probe.lock);
	probe.counts.resource[id % 32]++;
	text_add(&probe.texts[CALLBACKS],
	         "%ld tid %ld cbid %u node %lx (%d) orig %lx (%d) graph %u (%d) orig %u exec %p type %u%s\n", time_ns,
	         syscall(SYS_gettid), id, node, node_result, original_node, original_result, graph, graph_result,
	         original_graph, data->exec, data->node_type, more);
	pthread_mutex_unlock(&probe.lock);
}

static void launched(uint32_t domain, uint32_t id, const struct cupti_callback_data *data)
{
	int64_t time_ns = now_ns();
	pthread_mutex_lock(&probe.lock);
	if (data->site == CUPTI_SITE_ENTER)
		probe.counts.launches[domain - 1][id % 1024]++;
	if (atomic_load(&probe.wants_launches) > 1)
		text_add(&probe.texts[LAUNCHES], "%ld tid %ld domain %u cbid %u site %u correlation %u\n", time_ns,
		         syscall(SYS_gettid), domain, id, data->site, data->correlation);
	pthread_mutex_unlock(&probe.lock);
}

struct state_data {
	int result;
	const char *message;
};

static void called_back(void *user, uint32_t domain, uint32_t id, const void *data)
{
	(void)user;
	if (atomic_load(&probe.is_gone) || !data)
		return;
	if (domain == CUPTI_DOMAIN_RESOURCE && id >= CUPTI_GRAPH_CREATED && id <= CUPTI_NODE_PARAMETERS) {
		const struct cupti_resource_data *resource = data;
		if (resource->descriptor)
			graph_changed(id, resource->descriptor);
	} else if (domain == CUPTI_DOMAIN_RUNTIME || domain == CUPTI_DOMAIN_DRIVER) {
		launched(domain, id, data);
	} else if (domain == CUPTI_DOMAIN_STATE) {
		const struct state_data *state = data;
		pthread_mutex_lock(&probe.lock);
		snprintf(probe.fatal, sizeof(probe.fatal), "%u: %d %s", id, state->result,
		         state->message ? state->message : "");
		pthread_mutex_unlock(&probe.lock);
		if (id == 1) /* a fatal error: CUPTI ends itself */
			atomic_store(&probe.is_gone, true);
	}
}

/* --- taking and releasing --- */

static int first_error(int so_far, int result)
{
	return so_far != CUPTI_OK ? so_far : result;
}

static int set_calls(bool is_on)
{
	int result = CUPTI_OK;
	for (int i = 0; i < probe.runtime.count; i++)
		result = first_error(result,
		                     CALL(enable_runtime_call, probe.runtime.ids[i], probe.runtime.ids[i], is_on));
	for (int i = 0; i < probe.driver.count; i++)
		result = first_error(result, CALL(enable_driver_call, probe.driver.ids[i], probe.driver.ids[i], is_on));
	return result;
}

static int set_callbacks(bool has_graphs, bool has_launches)
{
	static const uint32_t runtime[] = {CUPTI_RUNTIME_LAUNCH_KERNEL,
	                                   CUPTI_RUNTIME_LAUNCH_KERNEL_PER_THREAD,
	                                   CUPTI_RUNTIME_LAUNCH_COOPERATIVE,
	                                   CUPTI_RUNTIME_GRAPH_LAUNCH,
	                                   CUPTI_RUNTIME_GRAPH_LAUNCH_PER_THREAD,
	                                   CUPTI_RUNTIME_LAUNCH_KERNEL_EX,
	                                   CUPTI_RUNTIME_LAUNCH_KERNEL_EX_PER_THREAD};
	static const uint32_t driver[] = {CUPTI_DRIVER_LAUNCH_KERNEL,
	                                  CUPTI_DRIVER_LAUNCH_KERNEL_PER_THREAD,
	                                  CUPTI_DRIVER_LAUNCH_COOPERATIVE,
	                                  CUPTI_DRIVER_GRAPH_LAUNCH,
	                                  CUPTI_DRIVER_GRAPH_LAUNCH_PER_THREAD,
	                                  CUPTI_DRIVER_LAUNCH_KERNEL_EX,
	                                  CUPTI_DRIVER_LAUNCH_KERNEL_EX_PER_THREAD};
	int result = CUPTI_OK;
	void *subscriber = probe.subscriber;
	if (!subscriber)
		return CUPTI_OK;
	for (uint32_t id = CUPTI_GRAPH_CREATED; id <= CUPTI_NODE_PARAMETERS; id++)
		if (id != 21) /* 21 is an attribute of a stream; 22 and 23 are unknown before 13.x */
			result = first_error(
				result, CALL(enable_callback, id, has_graphs, subscriber, CUPTI_DOMAIN_RESOURCE, id));
	for (size_t i = 0; i < sizeof(runtime) / sizeof(runtime[0]); i++)
		CALL(enable_callback, runtime[i], has_launches, subscriber, CUPTI_DOMAIN_RUNTIME, runtime[i]);
	for (size_t i = 0; i < sizeof(driver) / sizeof(driver[0]); i++)
		CALL(enable_callback, driver[i], has_launches, subscriber, CUPTI_DOMAIN_DRIVER, driver[i]);
	return result;
}

static int subscribe(int version)
{
	void *subscriber = NULL;
	int result = CUPTI_OK;
	if (version == 2) {
		char holder[128] = "";
		struct cupti_subscriber_parameters parameters = {.struct_bytes = sizeof(parameters),
		                                                 .name = "stepscope",
		                                                 .old_name = holder,
		                                                 .old_name_bytes = sizeof(holder)};
		result = CALL(subscribe_v2, 2, &subscriber, called_back, NULL, &parameters);
		holder[sizeof(holder) - 1] = 0;
		memcpy(probe.holder, holder, sizeof(holder));
	} else if (version == 1) {
		result = CALL(subscribe, 1, &subscriber, called_back, NULL);
	}
	probe.subscriber = result == CUPTI_OK ? subscriber : NULL;
	return result;
}

/* Registers all callbacks each time, since another holder of CUPTI may have registered its own. Sets the attribute only
 * once: setting it is undefined after CUPTI has a buffer. */
static void register_all(void)
{
	uint8_t is_per_thread = number("CUPTI_PROBE_PER_THREAD", 1) != 0;
	size_t bytes = sizeof(is_per_thread);
	if (!probe.has_attribute)
		CALL(set_attribute, CUPTI_PER_THREAD_BUFFERS, CUPTI_PER_THREAD_BUFFERS, &bytes, &is_per_thread);
	probe.has_attribute = true;
	const char *clock = getenv("CUPTI_PROBE_CLOCK");
	if (!clock || strcmp(clock, "cupti") != 0)
		CALL(register_clock, 0, clock_for_cupti);
	CALL(register_callbacks, 0, buffer_requested, buffer_completed);
	if (number("CUPTI_PROBE_SYNC_ALL", 0))
		CALL(enable_all_synchronizations, 1, 1);
	if (number("CUPTI_PROBE_EVENT_TIMES", 0))
		CALL(enable_event_times, 1, 1);
	uint32_t period_ms = (uint32_t)number("CUPTI_PROBE_PERIOD", 0);
	if (period_ms)
		CALL(flush_period, period_ms, period_ms);
}

int cupti_probe_take(int version)
{
	if (!is_usable())
		return -1;
	if (probe.is_ours)
		return CUPTI_OK;
	int result = subscribe(version);
	if (result != CUPTI_OK)
		return result;
	register_all();
	probe.is_ours = true;
	if (probe.subscriber)
		CALL(enable_callback, 1, 1, probe.subscriber, CUPTI_DOMAIN_STATE, 1);
	for (uint32_t kind = 0; kind < CUPTI_KIND_LIMIT; kind++)
		if (probe.wanted[kind])
			CALL(enable, kind, kind);
	if (probe.wants_calls)
		set_calls(true);
	if (probe.wants_graphs || atomic_load(&probe.wants_launches))
		set_callbacks(probe.wants_graphs, atomic_load(&probe.wants_launches) > 0);
	return CUPTI_OK;
}

int cupti_probe_release(int is_forced)
{
	if (!is_usable())
		return -1;
	if (!probe.is_ours)
		return CUPTI_OK;
	for (uint32_t kind = 0; kind < CUPTI_KIND_LIMIT; kind++)
		if (probe.wanted[kind])
			CALL(disable, kind, kind);
	if (probe.wants_calls)
		set_calls(false);
	CALL(flush_all, 0, 0);
	if (is_forced)
		CALL(flush_all, 1, 1);
	int result = CUPTI_OK;
	if (probe.subscriber)
		result = CALL(unsubscribe, 0, probe.subscriber);
	probe.subscriber = NULL;
	probe.is_ours = false;
	texts_write();
	return result;
}

int cupti_probe_enable(uint32_t kind)
{
	if (!is_usable() || kind >= CUPTI_KIND_LIMIT)
		return -1;
	probe.wanted[kind] = true;
	return probe.is_ours ? CALL(enable, kind, kind) : CUPTI_OK;
}

int cupti_probe_disable(uint32_t kind)
{
	if (!is_usable() || kind >= CUPTI_KIND_LIMIT)
		return -1;
	probe.wanted[kind] = false;
	return probe.is_ours ? CALL(disable, kind, kind) : CUPTI_OK;
}

int cupti_probe_calls(int is_on)
{
	if (!is_usable())
		return -1;
	probe.wants_calls = is_on;
	return probe.is_ours ? set_calls(is_on) : CUPTI_OK;
}

int cupti_probe_callbacks(int has_graphs, int launches)
{
	if (!is_usable())
		return -1;
	probe.wants_graphs = has_graphs;
	atomic_store(&probe.wants_launches, launches);
	return probe.is_ours ? set_callbacks(has_graphs, launches > 0) : CUPTI_OK;
}

int64_t cupti_probe_flush(uint32_t flag)
{
	if (!is_usable())
		return -2;
	int64_t start_ns = now_ns();
	int result = probe.cupti.flush_all(flag);
	int64_t took_ns = now_ns() - start_ns;
	note("flush_all", flag, result, start_ns);
	texts_write();
	return result == CUPTI_OK ? took_ns : -1 - result;
}

/* --- answers --- */

int cupti_probe_state(void)
{
	if (atomic_load(&probe.is_gone))
		return -1;
	return !probe.is_ready ? 0 : probe.is_ours ? 2 : 1;
}

uint64_t cupti_probe_rows(uint32_t kind)
{
	pthread_mutex_lock(&probe.lock);
	uint64_t rows = kind == 0 ? probe.counts.records
	                          : probe.counts.rows[kind < CUPTI_KIND_LIMIT ? kind : CUPTI_KIND_LIMIT];
	pthread_mutex_unlock(&probe.lock);
	return rows;
}

uint64_t cupti_probe_buffers_out(void)
{
	pthread_mutex_lock(&probe.lock);
	uint64_t out = probe.out;
	pthread_mutex_unlock(&probe.lock);
	return out;
}

void cupti_probe_mark(const char *text)
{
	int64_t time_ns = now_ns();
	pthread_mutex_lock(&probe.lock);
	text_add(&probe.texts[MARKS], "%ld %.*s\n", time_ns, TEXT_NAME_BYTES, text);
	text_write(&probe.texts[MARKS]);
	pthread_mutex_unlock(&probe.lock);
}

void cupti_probe_holder(char *name, size_t bytes)
{
	if (bytes)
		snprintf(name, bytes, "%s", probe.holder);
}

static void report_kinds(FILE *file, const char *name, const uint64_t *counts, int count)
{
	const char *comma = "";
	fprintf(file, "\"%s\": {", name);
	for (int i = 0; i < count; i++)
		if (counts[i]) {
			fprintf(file, "%s\"%d\": %lu", comma, i, counts[i]);
			comma = ", ";
		}
	fprintf(file, "},\n");
}

static void report_quoted(FILE *file, const char *name, const char *text)
{
	fprintf(file, "\"%s\": \"", name);
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < 32)
			fprintf(file, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, file);
	fprintf(file, "\",\n");
}

/* The caller holds the lock. */
static void report(FILE *file)
{
	const struct counts *counts = &probe.counts;
	fprintf(file, "{\"process\": %d, \"version\": %u, \"is_ready\": %d, \"is_ours\": %d, \"buffers_out\": %lu,\n",
	        (int)getpid(), probe.version, probe.is_ready, probe.is_ours, probe.out);
	report_quoted(file, "library", probe.path);
	report_quoted(file, "holder", probe.holder);
	report_quoted(file, "state", probe.fatal);
	report_kinds(file, "rows", counts->rows, CUPTI_KIND_LIMIT + 1);
	report_kinds(file, "untimed", counts->untimed, CUPTI_KIND_LIMIT + 1);
	report_kinds(file, "resource_callbacks", counts->resource, 32);
	report_kinds(file, "driver_launches", counts->launches[CUPTI_DOMAIN_DRIVER - 1], 1024);
	report_kinds(file, "runtime_launches", counts->launches[CUPTI_DOMAIN_RUNTIME - 1], 1024);
	for (int i = 0; i < TEXTS; i++)
		fprintf(file, "\"%s\": {\"rows\": %lu, \"left_out\": %lu, \"error\": %d},\n", probe.texts[i].ending,
		        probe.texts[i].rows, probe.texts[i].rows_left_out, probe.texts[i].error);
#define NUMBER(field) fprintf(file, "\"%s\": %lu,\n", #field, counts->field)
	NUMBER(records);
	NUMBER(late_in_stream);
	NUMBER(late_across);
	NUMBER(streams_left_out);
	NUMBER(buffers);
	NUMBER(empty_buffers);
	NUMBER(bytes_written);
	NUMBER(bytes_left_out);
	NUMBER(dropped);
	NUMBER(walk_errors);
	NUMBER(write_error);
	NUMBER(small_given);
	NUMBER(small_rows);
	NUMBER(refused);
	NUMBER(foreign_buffers);
	NUMBER(foreign_rows);
	NUMBER(most_out);
#undef NUMBER
	fprintf(file, "\"end_flush_ns\": %ld,\n\"calls_left_out\": %d,\n\"calls\": [", probe.end_flush_ns,
	        probe.log_left_out);
	for (int i = 0; i < probe.logged; i++) {
		const struct logged *call = &probe.log[i];
		fprintf(file, "%s\n[\"%s\", %u, %d, %ld, %ld]", i ? "," : "", call->call, call->argument, call->result,
		        call->time_ns, call->took_ns);
	}
	fprintf(file, "]}\n");
}

size_t cupti_probe_report(char *text, size_t bytes)
{
	char *whole = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&whole, &length);
	if (!file)
		return 0;
	pthread_mutex_lock(&probe.lock);
	report(file);
	pthread_mutex_unlock(&probe.lock);
	fclose(file);
	if (bytes)
		snprintf(text, bytes, "%s", whole);
	free(whole);
	return length + 1;
}

/* --- start and end --- */

static void write_report(void)
{
	if (!probe.prefix[0])
		return;
	char path[800];
	snprintf(path, sizeof(path), "%s-%d.json", probe.prefix, (int)getpid());
	FILE *file = fopen(path, "we");
	if (!file)
		return;
	pthread_mutex_lock(&probe.lock);
	report(file);
	pthread_mutex_unlock(&probe.lock);
	fclose(file);
}

int cupti_probe_open(const char *prefix)
{
	if (atomic_load(&probe.is_gone))
		return ESRCH;
	texts_write();
	write_report();
	pthread_mutex_lock(&probe.lock);
	if (probe.raw >= 0)
		close(probe.raw);
	probe.raw = prefix ? text_file(prefix, "bin") : -1;
	int error = prefix && probe.raw < 0 ? errno : 0;
	for (int i = 0; i < TEXTS; i++) {
		int text_error = text_open(&probe.texts[i], prefix);
		error = error ? error : text_error;
	}
	probe.counts.bytes_written = 0;
	snprintf(probe.prefix, sizeof(probe.prefix), "%s", prefix ? prefix : "");
	pthread_mutex_unlock(&probe.lock);
	return error;
}

/* Drops the state in a forked child, which has the memory of its parent but no threads of CUPTI. */
static void forked(void)
{
	atomic_store(&probe.is_gone, true);
	pthread_mutex_init(&probe.lock, NULL);
	if (probe.raw >= 0)
		close(probe.raw);
	probe.raw = -1;
	for (int i = 0; i < TEXTS; i++)
		text_close(&probe.texts[i], 1);
	probe.prefix[0] = 0;
}

static void *end_flush(void *argument)
{
	int64_t took_ns = cupti_probe_flush(0);
	(void)argument;
	pthread_mutex_lock(&probe.lock);
	probe.has_flushed = true;
	probe.end_flush_ns = took_ns;
	pthread_cond_signal(&probe.end_changed);
	pthread_mutex_unlock(&probe.lock);
	return NULL;
}

/* Flushes in another thread, which is abandoned after END_SECONDS: a flush that never returns must not block the exit.
 * Returns true if it returned. */
static bool flush_in_time(void)
{
	pthread_t thread;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_SECONDS;
	if (pthread_create(&thread, NULL, end_flush, NULL) != 0)
		return false;
	pthread_detach(thread);
	int result = 0;
	pthread_mutex_lock(&probe.lock);
	while (!probe.has_flushed && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&probe.end_changed, &probe.lock, &until);
	bool has_flushed = probe.has_flushed;
	if (!has_flushed)
		probe.end_flush_ns = -1000000;
	pthread_mutex_unlock(&probe.lock);
	return has_flushed;
}

static void ended(void)
{
	if (!is_usable() || getpid() != probe.process)
		return;
	const char *end = getenv("CUPTI_PROBE_END");
	bool has_flushed = !probe.is_ours || (end && strcmp(end, "none") == 0) || flush_in_time();
	if (has_flushed && probe.is_ours && end && strcmp(end, "force") == 0)
		cupti_probe_flush(1);
	texts_write();
	write_report();
}

static void numbers(const char *name, uint32_t *ids, int *count, int most)
{
	const char *text = getenv(name);
	char *end;
	while (text && *text && *count < most) {
		unsigned long value = strtoul(text, &end, 10);
		if (end == text)
			break;
		ids[(*count)++] = (uint32_t)value;
		text = *end == ',' ? end + 1 : end;
	}
}

static void configure(void)
{
	static const char *const endings[TEXTS] = {"kernels.txt", "markers.txt", "callbacks.txt", "launches.txt",
	                                           "marks.txt"};
	uint32_t kinds[CUPTI_KIND_LIMIT];
	int count = 0;
	numbers("CUPTI_PROBE_KINDS", kinds, &count, CUPTI_KIND_LIMIT);
	for (int i = 0; i < count; i++)
		if (kinds[i] < CUPTI_KIND_LIMIT)
			probe.wanted[kinds[i]] = true;
	numbers("CUPTI_PROBE_RUNTIME", probe.runtime.ids, &probe.runtime.count, CALLS_MAX);
	numbers("CUPTI_PROBE_DRIVER", probe.driver.ids, &probe.driver.count, CALLS_MAX);
	probe.wants_calls = probe.runtime.count || probe.driver.count;
	probe.wants_graphs = number("CUPTI_PROBE_GRAPHS", 0) != 0;
	const char *ids = getenv("CUPTI_PROBE_IDS");
	probe.asks_all_ids = !ids || strcmp(ids, "safe") != 0;
	atomic_store(&probe.wants_launches, (int)number("CUPTI_PROBE_LAUNCHES", 0));
	uint64_t buffers = number("CUPTI_PROBE_BUFFERS", 64);
	probe.buffers_limit = buffers < BUFFERS_MAX ? buffers : BUFFERS_MAX;
	probe.bytes_limit = number("CUPTI_PROBE_BYTES", 64u << 20);
	uint64_t rows_limit = number("CUPTI_PROBE_ROWS", 1000000);
	for (int i = 0; i < TEXTS; i++)
		text_init(&probe.texts[i], endings[i], rows_limit);
}

static void complain(const char *what, int error)
{
	fprintf(stderr, "cupti_probe: %s (%d)\n", what, error);
}

int InitializeInjection(void)
{
	if (probe.process == getpid() || atomic_load(&probe.is_gone))
		return 1;
	probe.process = getpid();
	configure();
	const char *prefix = getenv("CUPTI_PROBE_OUT");
	int error = prefix ? cupti_probe_open(prefix) : 0;
	if (error)
		complain("cannot write to CUPTI_PROBE_OUT", error);
	if (!number("CUPTI_PROBE_ANYWAY", 0) && !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
		complain("no driver here", 0);
		return 1;
	}
	if (!cupti_library_find(&probe.cupti, getenv("CUPTI_PROBE_LIBRARY"), probe.path, sizeof(probe.path))) {
		complain("no CUPTI here; CUPTI_PROBE_LIBRARY may name it", 0);
		return 1;
	}
	int result = CALL(get_version, 0, &probe.version);
	if (result != CUPTI_OK) {
		complain("CUPTI does not work here", result);
		return 1;
	}
	probe.is_ready = true;
	pthread_atfork(NULL, NULL, forked);
	atexit(ended);
	const char *subscribed = getenv("CUPTI_PROBE_SUBSCRIBE");
	if (subscribed && strcmp(subscribed, "no") == 0)
		return 1;
	result = cupti_probe_take((int)number("CUPTI_PROBE_SUBSCRIBE", 1));
	if (result != CUPTI_OK)
		complain("CUPTI is not ours", result);
	return 1;
}
