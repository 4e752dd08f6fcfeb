/* SPDX-License-Identifier: Apache-2.0
 *
 * layout_info.c: the part of `stepscope info` below the list of files.
 */
#include "output/text/layout.h"

const struct layout_section layout_info[] = {
	{.form = LAYOUT_TABLE, .table = "run"},
	{.form = LAYOUT_TABLE,
         .table = "processes",
         .has_heading = true,
         .is_kept_empty = true,
         .limit = 32,
         .is_all_in_report = true,
         .columns = "pid,parent_pid,role,rank,wall_ns,last_step,last_open,end"},
	{.form = LAYOUT_TABLE,
         .table = "threads",
         .has_heading = true,
         .is_kept_empty = true,
         .limit = 32,
         .is_all_in_report = true,
         .columns = "process,thread,kind,spans,busy_ns,busy_ratio"},
	{.form = LAYOUT_TABLE,
         .table = "cost",
         .has_heading = true,
         .is_kept_empty = true,
         .limit = 16,
         .is_all_in_report = true,
         .columns = "process,events,per_event_ns,events_ns,stacks_ns,drainer_cpu_ns,wall_ns,cpu_ns,ratio"},
	{.form = LAYOUT_SENTENCES,
         .table = "ledger",
         .is_kept_empty = true,
         .template = "{what}: {sentence} ({count}, {process}[, {where}][, at byte {first_offset}])"},
	{.form = LAYOUT_TABLE,
         .table = "facts",
         .has_heading = true,
         .limit = 64,
         .is_all_in_report = true,
         .columns = "key,value,process"},
	{.form = LAYOUT_END},
};
