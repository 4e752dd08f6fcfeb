/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_pool.h: replays what each device of each process allocated and freed, in order of time, and tells of it at the ends of steps.
 *
 *     static void step_end(void *context, const struct memory_pool *pool, uint32_t step) {...}
 *     static void end(void *context, const struct memory_pool *pool) {...}
 *     memory_pools_each(&context, &(struct memory_visitor){.context = &mine, .step_end = step_end, .end = end});
 *
 * Levels start at the first event of all, also when only some steps are selected; then peaks are those of the steps, and the replay ends
 * with the last of them.
 * Frees of what nobody saw allocated change no level: they are counted. So levels are never negative.
 * Where allocations or frees are missing the replay stops: what is told behind that time has the reason in `unknown` instead of levels.
 */
#ifndef ANALYSIS_MEMORY_MEMORY_POOL_H
#define ANALYSIS_MEMORY_MEMORY_POOL_H

#include "analysis/analysis.h"

#define MEMORY_CATEGORIES 9 /* of enum stepscope_memory */

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
	uint32_t replayed;    /* the first one that was not */
	uint32_t peak_event;  /* the one that made the peak, or before the step that began with it */
	bool has_peaks;       /* in selected steps, or all is */
	wide_bytes now, peak, step_peak;
	bool has_gaps;         /* between the steps that will be told of: what is alive over them is not known */
	bool is_behind_gap;    /* now: something may have been freed in one */
	wide_bytes found;      /* bytes alive before recording began, as far as owners told */
	int64_t unknown_frees; /* of memory that was allocated before recording began */
	int64_t lost_frees;    /* allocations whose address was allocated again without a free */
	struct memory_level levels[MEMORY_CATEGORIES];
	/* Why it is not known; NULL: it is. Levels are then the last ones that were, or what is left of them. */
	const char *unknown;        /* what is alive now, and the peak of the step */
	const char *unknown_peak;   /* in end(): the peak of all, and what was allocated in all */
	bool is_part;               /* in end(): that is because older ones were removed; what is left is whole */
	const char *unknown_growth; /* in end(): what grows */
	int64_t known_until_ns;
	int64_t frees_before; /* unknown and lost ones, at the first step that growth is looked for in */
	uint32_t step_count;  /* complete steps with memory that will be told of */
	uint32_t ordinal;     /* of the step, while step_end() runs */
};

struct memory_visitor {
	void *context;
	void (*begin)(void *context, const struct memory_pool *pool); /* (optional) before the first event */
	void (*change)(void *context, const struct memory_event *event,
	               int sign); /* (optional) +1: alive now, -1: not any more */
	void (*step_end)(void *context, const struct memory_pool *pool,
	                 uint32_t step);                            /* (optional) complete, with memory */
	void (*end)(void *context, const struct memory_pool *pool); /* (optional) nothing was allocated: not called */
};

void memory_pools_each(struct analysis_context *context, const struct memory_visitor *visitor);

/* What was alive when the pool held most: calls for each allocation, in order of time. */
void memory_pool_at_peak(const struct memory_pool *pool, void (*use)(void *context, const struct memory_event *event),
                         void *context);

/* "optimizer state"; the index is a category, or MEMORY_CATEGORIES for "all". */
const char *memory_category_name(int category);
/* Order of categories in tables: the other ones first, "other" last. */
int memory_category_at(int place);
const char *memory_device_name(struct arena *arena, int16_t device);
#define MEMORY_DEVICE_COLUMN                                                                                           \
	{                                                                                                              \
		.name = "device", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "host, or device and its number" \
	}
/* What allocated it: the innermost operation or range that did more than getting memory. 0: nothing was open. */
uint32_t memory_allocated_by(const struct model *model, const struct memory_event *event);

/* The reason for a peak that is not known, with what there was at least. */
const char *memory_peak_unknown(const struct memory_pool *pool, struct arena *arena);
/* A table of what was alive does not have the pool, for this reason: it is said behind the last row, if there are any. */
struct memory_unknown {
	const char *reason, *of; /* of the first one */
	uint32_t count;
};
void memory_unknown_add(struct memory_unknown *unknown, const struct memory_pool *pool, const char *reason,
                        struct table *table);
void memory_unknown_tell(const struct memory_unknown *unknown, struct table *table);
/* Why sums of what was allocated and freed are not known, of any process; NULL: they are. */
const char *memory_sums_unknown(const struct model *model);
/* What all numbers lack where only some steps were read: for the table's note; NULL: nothing. */
const char *memory_lacks(const struct model *model, const struct analysis_options *options);
/* Why there is nothing. */
const char *memory_not_recorded(struct analysis_context *context, struct arena *arena);

#endif
