/* SPDX-License-Identifier: Apache-2.0
 *
 * report_torch.h: `stepscope report --style torch`: operators as torch.profiler prints them, for comparisons, and for
 * python/stepscope/profiler.py, which uses only this report.
 */
#ifndef OUTPUT_TEXT_REPORT_TORCH_H
#define OUTPUT_TEXT_REPORT_TORCH_H

#include "base/buffer.h"
#include "base/error.h"
#include "model/model.h"

#define REPORT_TORCH_WIDTH INT64_MIN /* width of a column: torch's own limit */

struct report_torch {
	const char *style;   /* "torch", "torch-1.13" */
	const char *columns; /* wanted columns: "memory,flops,cuda"; NULL: all that were recorded */
	const char *sort, *header, *time_unit;
	int64_t limit, frames, name_width, shapes_width, source_width;
	bool is_top_level, is_by_shape, is_json, has_events;
	bool is_window;        /* of a profiler in the program */
	bool is_profiled_only; /* of a window: only the threads that its profiler followed, as in torch.profiler */
};

/* Checks the words before the run is loaded. */
enum status report_torch_check(const struct report_torch *wish, struct error *err) MUST_CHECK;
enum status report_torch_write(struct buffer *out, const struct model *model, const struct report_torch *wish,
                               struct error *err) MUST_CHECK;

#endif
