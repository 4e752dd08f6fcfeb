/* SPDX-License-Identifier: Apache-2.0
 *
 * option_rows.h: the rows of record_options_table by number, for the code that interprets them.
 */
#ifndef RECORDER_OPTION_ROWS_H
#define RECORDER_OPTION_ROWS_H

#include "recorder/options.h"

#include <assert.h>

enum row {
	ROW_ENABLED,
	ROW_STEPS,
	ROW_START_STEP,
	ROW_NUM_STEPS,
	ROW_WAIT,
	ROW_WARMUP,
	ROW_ACTIVE,
	ROW_REPEAT,
	ROW_SKIP_FIRST,
	ROW_SKIP_FIRST_WAIT,
	ROW_FREQUENCY,
	ROW_TYPE,
	ROW_WITH,
	ROW_SHAPES,
	ROW_MEMORY,
	ROW_STACK,
	ROW_MEMORY_TIMELINE,
	ROW_RANKS,
	ROW_OUT,
	ROW_POOL,
	ROW_KEEP_SIZE,
	ROW_KEEP_TIME,
	ROW_SEGMENT_SIZE,
	ROW_SYNC_EVERY,
	ROW_BUDGET,
	ROW_COST_EVERY,
	ROW_SAMPLE_PROCESS,
	ROW_COUNT,
};
static_assert(ROW_COUNT <= RECORDER_MAX_OPTIONS, "record_settings is too small");

/* Indexes in record_type_words and in record_with_words. */
enum {
	TYPE_SIMPLE,
	TYPE_ADVANCED,
	TYPE_PYTORCH
};
extern const char *const record_type_words[];
enum {
	WITH_SHAPES,
	WITH_MEMORY,
	WITH_LINES
};
extern const char *const record_with_words[];

#endif
