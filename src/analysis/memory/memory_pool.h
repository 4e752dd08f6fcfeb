/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_pool.h: replays the allocations and frees of each device of each process in the order of time, and reports
 * the levels at the ends of steps.
 *
 *     static void step_end(void *context, const struct memory_pool *pool, uint32_t step) {...}
 *     static void end(void *context, const struct memory_pool *pool) {...}
 *     memory_pools_each(&context, &(struct memory_visitor){.context = &mine, .step_end = step_end, .end = end});
 *
 * Levels start at the first event of all, even if only some steps are selected. Then peaks are those of these steps,
 * and the replay ends with the last of them.
 *
 * A free without a recorded allocation changes no level, but it is counted. So levels are never negative.
 *
 * If allocations or frees are missing, the replay stops. After that time, `unknown` has the reason instead of levels.
 */
#ifndef ANALYSIS_MEMORY_MEMORY_POOL_H
#define ANALYSIS_MEMORY_MEMORY_POOL_H

#include "analysis/analysis.h"

#define MEMORY_CATEGORIES 9 /* values of enum stepscope_memory */

struct memory_level {
	wide_bytes now, peak, at_peak, allocated;
	wide_bytes at_step_peak;
	int64_t count;
};

struct memory_pool {
	const struct model *model;
	uint32_t process;
	int16_t device;
	uint32_t first, last; /* events of the process: [first, last) */
	uint32_t replayed;    /* the first event that was not replayed */
	uint32_t peak_event;  /* the event that made the peak, or the last one before the step that started with it */
	bool has_peaks;       /* peaks count: in selected steps, or everywhere if all are */
	wide_bytes now, peak, step_peak;
	bool has_gaps;         /* steps without memory between the reported ones: memory alive over them is unknown */
	bool is_behind_gap;    /* now: memory may have been freed in a gap */
	wide_bytes found;      /* bytes alive before recording started, as far as owners reported */
	int64_t unknown_frees; /* of memory that was allocated before recording started */
	int64_t lost_frees;    /* allocations whose address was allocated again without a free */
	struct memory_level levels[MEMORY_CATEGORIES];
	/* Reasons for unknown values; NULL: known. Levels are then the last known ones, or those of the remaining
	 * events. */
	const char *unknown;        /* of the current levels, and of the peak of the step */
	const char *unknown_peak;   /* in end(): of the overall peak, and of the sums */
	bool is_part;               /* in end(): only because older events were removed; the rest is complete */
	const char *unknown_growth; /* in end(): of growth */
	int64_t known_until_ns;
	int64_t frees_before; /* unknown and lost ones, at the first step that growth looks at */
	uint32_t step_count;  /* complete steps with memory, which are reported */
	uint32_t ordinal;     /* of the step, while step_end() runs */
};

struct memory_visitor {
	void *context;
	/* (optional) Called before the first event. */
	void (*begin)(void *context, const struct memory_pool *pool);
	/* (optional) +1: alive now, -1: no longer alive. */
	void (*change)(void *context, const struct memory_event *event, int sign);
	/* (optional) Called after a complete step with memory. */
	void (*step_end)(void *context, const struct memory_pool *pool, uint32_t step);
	/* (optional) Not called if nothing was allocated. */
	void (*end)(void *context, const struct memory_pool *pool);
};

void memory_pools_each(struct analysis_context *context, const struct memory_visitor *visitor);

/* Calls use() for each allocation that was alive when the pool held most, in the order of time. */
void memory_pool_at_peak(const struct memory_pool *pool, void (*use)(void *context, const struct memory_event *event),
                         void *context);

/* Returns "optimizer state", ... for a category, and "all" for MEMORY_CATEGORIES. */
const char *memory_category_name(int category);
/* Returns the category at a place in the order of tables: "other" is last. */
int memory_category_at(int place);
const char *memory_device_name(struct arena *arena, int16_t device);
#define MEMORY_DEVICE_COLUMN                                                                                           \
	{                                                                                                              \
		.name = "device", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "host, or device and its number" \
	}
/* Returns the allocating operation or range: the innermost that did more than getting memory. 0: nothing was open. */
uint32_t memory_allocated_by(const struct model *model, const struct memory_event *event);

/* Returns the reason for an unknown peak, with a lower bound if there is one. */
const char *memory_peak_unknown(const struct memory_pool *pool, struct arena *arena);
/* The pools that a table of living memory lacks. memory_unknown_tell() adds the reason after the last row, if there
 * are rows. */
struct memory_unknown {
	const char *reason, *of; /* of the first one */
	uint32_t count;
};
void memory_unknown_add(struct memory_unknown *unknown, const struct memory_pool *pool, const char *reason,
                        struct table *table);
void memory_unknown_tell(const struct memory_unknown *unknown, struct table *table);
/* Returns why sums of allocations and frees are unknown for some process; NULL: they are known. */
const char *memory_sums_unknown(const struct model *model);
/* Returns the note on memory that all numbers lack because only some steps were read; NULL: they lack nothing. */
const char *memory_lacks(const struct model *model, const struct analysis_options *options);
/* Returns why there are no allocations. */
const char *memory_not_recorded(struct analysis_context *context, struct arena *arena);

#endif
