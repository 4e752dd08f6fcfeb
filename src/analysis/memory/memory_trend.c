/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_trend.c: see the header. The slope is that of the last half of the levels. The growth began at the first step
 * from which on all levels are near the line through the last one.
 */
#include "analysis/memory/memory_trend.h"

#include "analysis/memory/growth.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

#define NEAR_RATIO 0.05 /* of the growth up to the end, a level may be away from the line; at least a step's growth */
#define LEAST_LEVELS 4u
#define RESIDENT "process.rss_bytes"

struct trend_pool { /* levels at the ends of steps */
	uint32_t process;
	int16_t device;
	const char *unknown;
	double *steps, *levels[MEMORY_CATEGORIES + 1]; /* the last: all together */
	uint32_t count, capacity;
};

static void trend_pool_add(struct trend_pool *pool, double step)
{
	if (pool->count == pool->capacity) {
		pool->capacity = 2 * pool->capacity + 64;
		pool->steps = memory_resize(pool->steps, pool->capacity, sizeof(double));
		for (int i = 0; i <= MEMORY_CATEGORIES; i++)
			pool->levels[i] = memory_resize(pool->levels[i], pool->capacity, sizeof(double));
	}
	pool->steps[pool->count++] = step;
}

static void trend_pool_release(struct trend_pool *pool)
{
	free(pool->steps);
	for (int i = 0; i <= MEMORY_CATEGORIES; i++)
		free(pool->levels[i]);
}

static struct trend_pool *trends_pool_of(struct memory_trends *trends, const struct memory_pool *pool)
{
	for (uint32_t i = trends->count; i-- > 0;)
		if (trends->pools[i].process == pool->process && trends->pools[i].device == pool->device)
			return &trends->pools[i];
	MEMORY_GROW(trends->pools, trends->count, trends->capacity, 8);
	trends->pools[trends->count] = (struct trend_pool){.process = pool->process, .device = pool->device};
	return &trends->pools[trends->count++];
}

static void trends_end_step(void *context, const struct memory_pool *pool, uint32_t step)
{
	struct trend_pool *mine = trends_pool_of(context, pool);

	if (pool->unknown) {
		mine->unknown = pool->unknown;
		return;
	}
	trend_pool_add(mine, (double)pool->model->steps[step].number);
	for (int i = 0; i < MEMORY_CATEGORIES; i++)
		mine->levels[i][mine->count - 1] = (double)pool->levels[i].now;
	mine->levels[MEMORY_CATEGORIES][mine->count - 1] = (double)pool->now;
}

void memory_trends_init(struct memory_trends *trends, struct analysis_context *context)
{
	*trends = (struct memory_trends){.context = context};
}

/* It replays all allocations, and few runs end out of memory. */
static void find_trends(struct memory_trends *trends)
{
	if (!trends->is_found)
		memory_pools_each(trends->context,
		                  &(struct memory_visitor){.context = trends, .step_end = trends_end_step});
	trends->is_found = true;
}

void memory_trends_release(struct memory_trends *trends)
{
	for (uint32_t i = 0; i < trends->count; i++)
		trend_pool_release(&trends->pools[i]);
	free(trends->pools);
}

/* ---- one series of levels ---- */

static double since_of(const struct trend_pool *pool, double bytes_per_step)
{
	const double *levels = pool->levels[MEMORY_CATEGORIES];
	uint32_t last = pool->count - 1, i = last;

	while (i-- > 0) {
		double grown = bytes_per_step * (pool->steps[last] - pool->steps[i]);

		if (fabs(levels[last] - grown - levels[i]) > fmax(NEAR_RATIO * grown, 1.01 * bytes_per_step))
			break;
	}
	return pool->steps[i + 1];
}

static int trend_category(const struct trend_pool *pool, uint32_t first)
{
	int found = MEMORY_CATEGORIES;
	double most = 0;

	for (int i = 0; i < MEMORY_CATEGORIES; i++) {
		struct slope slope;

		if (slope_compute(&slope, pool->steps + first, pool->levels[i] + first, pool->count - first) &&
		    slope.slope > most)
			found = i, most = slope.slope;
	}
	return found;
}

static struct memory_trend trend_of(const struct trend_pool *pool, bool is_resident)
{
	uint32_t first = pool->count / 2;
	struct memory_trend trend = {.is_resident = is_resident, .category = MEMORY_CATEGORIES};
	struct slope slope;

	if (pool->count < LEAST_LEVELS) {
		trend.unknown = pool->unknown ? pool->unknown : "fewer than four steps have a level of memory";
		return trend;
	}
	first = pool->count - first < LEAST_LEVELS ? pool->count - LEAST_LEVELS : first;
	if (!slope_compute(&slope, pool->steps + first, pool->levels[MEMORY_CATEGORIES] + first, pool->count - first) ||
	    !slope.has_interval) {
		trend.unknown = "all levels of memory are of one step";
		return trend;
	}
	trend.is_growing = slope.low > 0;
	trend.bytes_per_step = slope.slope;
	trend.last_step = (int64_t)pool->steps[pool->count - 1];
	trend.last_bytes = pool->levels[MEMORY_CATEGORIES][pool->count - 1];
	if (trend.is_growing)
		trend.since_step = (int64_t)since_of(pool, slope.slope);
	if (trend.is_growing && !is_resident)
		trend.category = trend_category(pool, first);
	return trend;
}

/* ---- resident memory ---- */

/* A sample counts in the step that is open. */
static struct memory_trend resident_trend(const struct model *model, uint32_t process)
{
	uint32_t name = intern_find(&model->strings, RESIDENT);
	struct trend_pool pool = {.process = process};
	struct memory_trend trend;

	for (uint32_t i = 0; i < model->series_count && name; i++) {
		const struct value_series *series = model->series[i];

		if (series->process != process || series->name != name)
			continue;
		for (uint32_t k = 0; k < series->count; k++) {
			if (series->step[k] < 0)
				continue;
			trend_pool_add(&pool, (double)model->steps[series->step[k]].number);
			pool.levels[MEMORY_CATEGORIES][pool.count - 1] = series->value[k];
		}
	}
	pool.unknown = "memory was not recorded (--with memory), and fewer than four samples of resident memory are in "
		       "steps";
	trend = trend_of(&pool, true);
	trend_pool_release(&pool);
	return trend;
}

/* Returns the trend of the recorded allocations. */
static struct memory_trend allocations_trend(const struct memory_trends *trends, uint32_t process, int16_t device)
{
	for (uint32_t i = 0; i < trends->count; i++)
		if (trends->pools[i].process == process && trends->pools[i].device == device)
			return trend_of(&trends->pools[i], false);
	return (struct memory_trend){
		.unknown = trends->context->model->steps_count
	                           ? "memory of the device was not recorded: record with --with memory"
	                           : "no steps were recorded",
		.category = MEMORY_CATEGORIES};
}

struct memory_trend memory_trends_of(struct memory_trends *trends, uint32_t process, int16_t device)
{
	find_trends(trends);
	struct memory_trend trend = allocations_trend(trends, process, device), resident;

	if (device >= 0 || trend.is_growing)
		return trend;
	resident = resident_trend(trends->context->model, process); /* also has memory outside of PyTorch's allocator */
	return resident.is_growing || trend.unknown ? resident : trend;
}
