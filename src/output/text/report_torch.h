/* SPDX-License-Identifier: Apache-2.0
 *
 * report_torch.h: `stepscope report --style torch`: operators as torch.profiler prints them, for those who compare, and for
 * python/stepscope/profiler.py, which asks for nothing else.
 */
#ifndef OUTPUT_TEXT_REPORT_TORCH_H
#define OUTPUT_TEXT_REPORT_TORCH_H

#include "base/buffer.h"
#include "base/error.h"
#include "model/model.h"

#define REPORT_TORCH_WIDTH INT64_MIN /* of a column: torch's own limit */

struct report_torch {
	const char *style;   /* "torch", "torch-1.13" */
	const char *columns; /* "memory,flops,cuda": those of what was asked for; NULL: those of what was recorded */
	const char *sort, *header, *time_unit;
	int64_t limit, frames, name_width, shapes_width, source_width;
	bool is_top_level, is_by_shape, is_json, has_events;
	bool is_window;        /* of a profiler in the program */
	bool is_profiled_only; /* of a window: what its profiler followed, as torch.profiler does */
};

/* Before the run is loaded: are the words known? */
enum status report_torch_check(const struct report_torch *wish, struct error *err) MUST_CHECK;
enum status report_torch_write(struct buffer *out, const struct model *model, const struct report_torch *wish,
                               struct error *err) MUST_CHECK;

#endif
