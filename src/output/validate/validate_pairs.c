/* SPDX-License-Identifier: Apache-2.0
 *
 * validate_pairs.c: rules that compare events with each other. Events are kept as short records per kind and sorted at
 * the end, because files are not in order of time.
 */
#include "base/hash.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "output/validate/validate_chrome.h"

#include <stdlib.h>
#include <string.h>

/* ---- recording ---- */

static void pairs_remember(struct chrome_check *check, enum ref_kind kind, int64_t key, int64_t a, int64_t b,
                           uint64_t offset)
{
	struct ref_list *list = &check->lists[kind];

	if (list->count == VALIDATE_MOST_SPANS) {
		check->validation->is_partly_checked = true;
		return;
	}
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? list->capacity * 2 : 1024;
		if (list->capacity > VALIDATE_MOST_SPANS)
			list->capacity = VALIDATE_MOST_SPANS;
		list->refs = memory_resize(list->refs, list->capacity, sizeof(*list->refs));
	}
	list->refs[list->count++] = (struct ref){key, a, b, offset};
}

/* Hashes are enough, because threads and streams only need to be distinct. */
int64_t check_word(const char *first, const char *second)
{
	uint64_t hash = hash_byte(hash_bytes(HASH_BYTES, first, strlen(first)), 0x1f);

	return (int64_t)hash_bytes(hash, second, strlen(second));
}

static void remember_kernel(struct chrome_check *check, const struct chrome_event *event)
{
	const struct json_value *args = event->args;
	bool is_kernel = strcmp(event->cat, "kernel") == 0;

	if (is_kernel && args[CHROME_ARG_EXTERNAL_ID].is_integer)
		pairs_remember(check, REF_KERNEL, args[CHROME_ARG_EXTERNAL_ID].integer, event->ts_ns, 0, event->offset);
	if (is_kernel)
		pairs_remember(check, REF_STREAM_KERNEL,
		               check_word(args[CHROME_ARG_DEVICE].text, args[CHROME_ARG_STREAM].text), event->ts_ns,
		               event->ts_ns + event->dur_ns, event->offset);
	if (args[CHROME_ARG_CORRELATION].is_integer && args[CHROME_ARG_CORRELATION].integer > 0)
		pairs_remember(check, REF_GPU_CORR, args[CHROME_ARG_CORRELATION].integer, 0, 0, event->offset);
}

static void remember_call(struct chrome_check *check, const struct chrome_event *event)
{
	const struct json_value *args = event->args;
	bool is_record = strncmp(event->name, "cudaEventRecord", 15) == 0;

	if (args[CHROME_ARG_CORRELATION].is_integer && args[CHROME_ARG_CORRELATION].integer > 0)
		pairs_remember(check, REF_CPU_CORR, args[CHROME_ARG_CORRELATION].integer, 0, 0, event->offset);
	if (args[CHROME_ARG_EXTERNAL_ID].is_integer && strcmp(event->name, "cudaLaunchKernel") == 0)
		pairs_remember(check, REF_LAUNCH, args[CHROME_ARG_EXTERNAL_ID].integer, event->ts_ns, 0, event->offset);
	if (is_record && args[CHROME_ARG_CORRELATION].is_integer)
		pairs_remember(check, REF_RECORD, args[CHROME_ARG_CORRELATION].integer, event->ts_ns, 0, event->offset);
	if (is_record && args[CHROME_ARG_EXTERNAL_ID].is_integer)
		pairs_remember(check, REF_RECORD, args[CHROME_ARG_EXTERNAL_ID].integer, event->ts_ns, 0, event->offset);
}

static void remember_sync(struct chrome_check *check, const struct chrome_event *event)
{
	const struct json_value *args = event->args;
	const char *kind = args[CHROME_ARG_SYNC_KIND].text;
	bool is_wait = strcmp(kind, "Stream Wait Event") == 0;
	bool is_named = args[CHROME_ARG_WAIT_CORR].is_integer && args[CHROME_ARG_WAIT_CORR].integer >= 0;

	if ((is_wait || strcmp(kind, "Event Sync") == 0) && !is_named)
		validate_count(check->validation, VALIDATE_V2, event->offset, kind);
	if (is_wait && is_named)
		pairs_remember(check, REF_WAIT, args[CHROME_ARG_WAIT_CORR].integer, event->ts_ns, 0, event->offset);
	if (strcmp(kind, "Stream Sync") == 0 && strcmp(event->cat, "cuda_sync") == 0)
		pairs_remember(check, REF_STREAM_SYNC,
		               check_word(args[CHROME_ARG_DEVICE].text, args[CHROME_ARG_STREAM].text), event->ts_ns, 0,
		               event->offset);
}

static void check_collective(struct chrome_check *check, const struct chrome_event *event)
{
	static const enum arg_key needed[] = {CHROME_ARG_COLLECTIVE, CHROME_ARG_DTYPE, CHROME_ARG_IN_NELEMS,
	                                      CHROME_ARG_OUT_NELEMS, CHROME_ARG_GROUP_SIZE};

	if (strcmp(event->name, "record_param_comms") != 0)
		return;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (event->args[needed[i]].type == TYPE_ABSENT) {
			validate_count(check->validation, VALIDATE_V5, event->offset, event->name);
			return;
		}
	}
}

static void remember_flow(struct chrome_check *check, const struct chrome_event *event)
{
	if (event->phase != 's' && event->phase != 'f')
		return;
	pairs_remember(check, event->phase == 's' ? REF_FLOW_START : REF_FLOW_END,
	               check_word(event->keys[KEY_ID].text, event->cat), event->ts_ns, 0, event->offset);
}

void check_remember(struct chrome_check *check, const struct chrome_event *event)
{
	if (!event->has_ts)
		return;
	remember_flow(check, event);
	if (event->phase != 'X' || !event->has_dur || event->dur_ns < 0)
		return;
	pairs_remember(check, REF_SPAN, check_word(event->keys[KEY_PID].text, event->keys[KEY_TID].text), event->ts_ns,
	               event->ts_ns + event->dur_ns, event->offset);
	if (check_is_device_category(event->cat))
		remember_kernel(check, event);
	else if (check_is_launch_category(event->cat))
		remember_call(check, event);
	if (event->args[CHROME_ARG_SYNC_KIND].type == TYPE_TEXT)
		remember_sync(check, event);
	check_collective(check, event);
	if (strstr(event->name, "autograd::engine::evaluate_function:") && event->args[CHROME_ARG_SEQUENCE].is_integer)
		pairs_remember(check, REF_BACKWARD, event->args[CHROME_ARG_SEQUENCE].integer,
		               check_word(event->name, ""), 0, event->offset);
}

/* ---- comparing ---- */

/* Sorts by key, then start, then the longer one first (a parent before its children), then offset in the file. */
static int compare_refs(const void *left, const void *right)
{
	const struct ref *x = left, *y = right;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b > y->b ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort(struct ref_list *list)
{
	if (list->count)
		qsort(list->refs, list->count, sizeof(*list->refs), compare_refs);
}

/* Returns the first record with this key; NULL if there is none. */
static const struct ref *pairs_find(const struct ref_list *list, int64_t key)
{
	uint32_t low = LOWER_BOUND(list->refs, list->count, item, item->key < key);

	return low < list->count && list->refs[low].key == key ? &list->refs[low] : NULL;
}

static void check_nesting(struct chrome_check *check)
{
	const struct ref_list *list = &check->lists[REF_SPAN];
	int64_t *open = NULL;
	uint32_t count = 0, capacity = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		const struct ref *span = &list->refs[i];

		if (i && list->refs[i - 1].key != span->key)
			count = 0;
		while (count && open[count - 1] <= span->a)
			count--;
		if (count && open[count - 1] < span->b) {
			validate_count(check->validation, VALIDATE_P3, span->offset, NULL);
			continue;
		}
		MEMORY_GROW(open, count, capacity, 64);
		open[count++] = span->b;
	}
	free(open);
}

static void check_launches(struct chrome_check *check)
{
	const struct ref_list *kernels = &check->lists[REF_KERNEL];

	for (uint32_t i = 0; i < kernels->count; i++) {
		const struct ref *kernel = &kernels->refs[i];
		const struct ref *launch;

		if (i && kernels->refs[i - 1].key == kernel->key)
			continue; /* torch compares the earliest kernel with the earliest launch */
		launch = pairs_find(&check->lists[REF_LAUNCH], kernel->key);
		if (launch && kernel->a < launch->a)
			validate_count(check->validation, VALIDATE_V1, kernel->offset, NULL);
	}
}

static void check_waits(struct chrome_check *check)
{
	const struct ref_list *waits = &check->lists[REF_WAIT];

	for (uint32_t i = 0; i < waits->count; i++) {
		const struct ref *record = pairs_find(&check->lists[REF_RECORD], waits->refs[i].key);

		if (!record || record->a > waits->refs[i].a)
			validate_count(check->validation, VALIDATE_V4, waits->refs[i].offset, NULL);
	}
}

/* Both lists are sorted by stream, then start. */
static void check_syncs(struct chrome_check *check)
{
	const struct ref_list *syncs = &check->lists[REF_STREAM_SYNC];
	const struct ref_list *kernels = &check->lists[REF_STREAM_KERNEL];
	uint32_t k = 0;
	int64_t latest_end = INT64_MIN;

	for (uint32_t i = 0; i < syncs->count; i++) {
		const struct ref *sync = &syncs->refs[i];

		if (i == 0 || syncs->refs[i - 1].key != sync->key)
			latest_end = INT64_MIN;
		for (; k < kernels->count && kernels->refs[k].key <= sync->key; k++) {
			if (kernels->refs[k].key == sync->key && kernels->refs[k].a >= sync->a)
				break;
			if (kernels->refs[k].key == sync->key && kernels->refs[k].b > latest_end)
				latest_end = kernels->refs[k].b;
		}
		if (latest_end > sync->a)
			validate_count(check->validation, VALIDATE_V3, sync->offset, NULL);
	}
}

static void check_sequences(struct chrome_check *check)
{
	const struct ref_list *list = &check->lists[REF_BACKWARD];
	bool is_counted = false;

	for (uint32_t i = 1; i < list->count; i++) {
		bool is_same = list->refs[i].key == list->refs[i - 1].key;

		if (is_same && list->refs[i].a != list->refs[i - 1].a && !is_counted) {
			validate_count(check->validation, VALIDATE_V6, list->refs[i].offset, NULL);
			is_counted = true;
		}
		if (!is_same)
			is_counted = false;
	}
}

static void check_correlations(struct chrome_check *check)
{
	const struct ref_list *calls = &check->lists[REF_CPU_CORR];
	const struct ref_list *works = &check->lists[REF_GPU_CORR];

	for (uint32_t i = 0; i < works->count; i++) {
		const struct ref *call = pairs_find(calls, works->refs[i].key);
		bool is_last = call && call == &calls->refs[calls->count - 1];

		if (!call || (!is_last && call[1].key == call->key))
			validate_count(check->validation, VALIDATE_H6, works->refs[i].offset, NULL);
	}
}

static void check_flow_ends(struct chrome_check *check, enum ref_kind these, enum ref_kind others)
{
	const struct ref_list *list = &check->lists[these];

	for (uint32_t i = 0; i < list->count; i++)
		if (!pairs_find(&check->lists[others], list->refs[i].key))
			validate_count(check->validation, VALIDATE_P5n, list->refs[i].offset, NULL);
}

void check_pairs(struct chrome_check *check)
{
	for (int kind = 0; kind < REF_KINDS; kind++)
		sort(&check->lists[kind]);
	check_nesting(check);
	check_launches(check);
	check_waits(check);
	check_syncs(check);
	check_sequences(check);
	check_correlations(check);
	check_flow_ends(check, REF_FLOW_START, REF_FLOW_END);
	check_flow_ends(check, REF_FLOW_END, REF_FLOW_START);
}

void check_pairs_release(struct chrome_check *check)
{
	for (int kind = 0; kind < REF_KINDS; kind++)
		free(check->lists[kind].refs);
}
