/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_trend.h: how memory of a process changed up to its end: by how much a step, since which step, and of which
 * category. From recorded allocations or, without them, from samples of the process's resident memory.
 *
 *     struct memory_trends trends;
 *     memory_trends_init(&trends, context);
 *     const struct memory_trend trend = memory_trends_of(&trends, process, device);
 *     memory_trends_release(&trends);
 */
#ifndef ANALYSIS_MEMORY_MEMORY_TREND_H
#define ANALYSIS_MEMORY_MEMORY_TREND_H

#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"

struct memory_trend {
	const char *unknown; /* why the trend is unknown; the other fields are then empty. NULL: it is known */
	bool is_growing;
	bool is_resident;      /* from samples of resident memory */
	double bytes_per_step; /* over the last half of the steps */
	double last_bytes;     /* at the end of the last step */
	int64_t since_step, last_step;
	int category; /* the one that grows most; MEMORY_CATEGORIES: unknown */
};

struct memory_trends {
	struct analysis_context *context;
	bool is_found; /* they are found at the first use */
	struct trend_pool *pools;
	uint32_t count, capacity;
};

void memory_trends_init(struct memory_trends *trends, struct analysis_context *context);
void memory_trends_release(struct memory_trends *trends);

/* device -1: host memory. */
struct memory_trend memory_trends_of(struct memory_trends *trends, uint32_t process, int16_t device);

#endif
