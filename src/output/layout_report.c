/* SPDX-License-Identifier: Apache-2.0
 *
 * layout_report.c: what `stepscope report` prints, from top to bottom.
 */
#include "output/layout.h"

const struct layout_section layout_report[] = {
	{.form = LAYOUT_TEXT, .label = "run", .template = "{run}"},
	{.form = LAYOUT_LINE, .label = "program", .table = "run",
	 .template = "[{command}][   on {host}][   {processes:process}]"},
	{.form = LAYOUT_LINE, .label = "window", .table = "run",
	 .template = "[steps {first_step} to {last_step}: {steps:complete step}, {detail_steps} with operations, "
		     "{incomplete_steps} incomplete; ][{duration_ns} recorded]"},
	{.form = LAYOUT_LINE, .label = "capture", .table = "run", .template = "[{capture}]"},
	{.form = LAYOUT_LINE, .label = "ended", .table = "run", .template = "[{ended}]"},
	{.form = LAYOUT_LINE, .label = "cost", .table = "run",
	 .template = "[recording took {overhead_ratio} of the time; {events:event} recorded, {lost_events} dropped]"},
	{.form = LAYOUT_SPACE},
	{.form = LAYOUT_LINE, .label = "Step time", .table = "step_time", .is_kept_empty = true,
	 .template = "{mean_ns}[  ±{ci95_half_ns} (95 % interval)]   p50 {p50_ns}   p95 {p95_ns}   p99 {p99_ns}   "
		     "max {max_ns}[   {tokens_per_s} tokens/s][   {samples_per_s} samples/s]"},
	{.form = LAYOUT_TABLE, .table = "phases", .columns = "name,mean_ns,ratio", .bar = "ratio"},
	{.form = LAYOUT_TABLE, .table = "between_steps", .columns = "part,total_ns,ratio"},
	{.form = LAYOUT_TABLE, .table = "ops", .limit = 10, .has_heading = true, .is_kept_empty = true,
	 .columns = "self_ns,self_ratio,calls,mean_ns,flops_per_s,name,kind"},
	{.form = LAYOUT_TABLE, .table = "memory", .has_heading = true, .limit = 16,
	 .columns = "process,device,category,at_peak_bytes,peak_bytes,live_bytes,growth_bytes_per_step"},
	{.form = LAYOUT_TABLE, .table = "ranks", .has_heading = true, .least_rows = 2, .limit = 16,
	 .columns = "process,steps,mean_ns,data_ns,communication_ns,own_ns,behind_ratio,is_slowest"},
	{.form = LAYOUT_TABLE, .table = "metrics", .has_heading = true, .limit = 8,
	 .columns = "name,process,count,first,last,min,max,nan_count,first_nan_step"},
	{.form = LAYOUT_TABLE, .table = "processes", .has_heading = true, .limit = 16,
	 .columns = "pid,role,rank,wall_ns,cpu_ns,rss_peak_bytes,read_bytes,write_bytes,last_step,last_open,end"},
	{.form = LAYOUT_SENTENCES, .table = "ledger", .limit = 20,
	 .template = "{what}: {sentence} ({count}[, {where}])"},
	{.form = LAYOUT_SPACE},
	{.form = LAYOUT_TEXT, .template = "more: stepscope report {run} --tables, --table NAME, --explain, --json"},
	{.form = LAYOUT_END},
};
