/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnosis_canary.c: see the header. The texts and the limits 2.0, 0.5 and 0.3 are the notebook's.
 */
#include "output/diagnosis/diagnosis_canary.h"

#include "analysis/devices/host_and_device.h"
#include "compare/canary_metrics.h"
#include "query/query.h"

#include <string.h>

#define RULER "============================================================\n"
#define NO_KERNELS                                                                                                     \
	"This can happen when CUPTI profiling is unavailable (common on some cloud GPUs)\n"                            \
	"CPU-side CUDA calls were still captured - see CPU operations above\n"
#define CPU_BOUND_RATIO 2.0
#define GPU_BOUND_RATIO 0.5
#define COPY_SHARE 0.3

struct quick {
	double cpu_ms, cuda_ms, top_ms, copy_ms;
	bool has_top;
};

static const char question[] =
	"SELECT sum(self_device_ns) / 1e6 AS top, sum(CASE WHEN lower(name) LIKE '%copy%' THEN self_device_ns END) / 1e6 AS copies "
	"FROM (SELECT name, self_device_ns FROM ops WHERE self_device_ns > 0 ORDER BY self_device_ns DESC LIMIT 10)";

static enum status diagnosis_canary_measure(struct report *report, struct quick *quick, struct error *err)
{
	const struct query_limits limits = {0};
	struct query query;
	struct table rows;
	enum status status = query_init(&query, report, &limits, err);

	*quick = (struct quick){.cpu_ms = host_time_ns(report) / 1e6, .cuda_ms = device_time_ns(report) / 1e6};
	if (status)
		return status;
	status = query_begin(&query, question, err);
	status = status ? status : query_fetch(&query, &rows, 1, err);
	if (!status) {
		quick->has_top = table_number(&rows, 0, 0, &quick->top_ms);
		table_number(&rows, 0, 1, &quick->copy_ms); /* a missing sum counts as 0, as in the notebook */
		table_release(&rows);
	}
	query_release(&query);
	return status;
}

static double value_ms(const struct compared_run *run, const char *name)
{
	const struct compared_value *value = compared_run_value(run, name);

	return value && value->has_value ? value->value / 1e6 : 0;
}

static struct quick quick_of_metrics(const struct compared_run *run)
{
	struct quick quick = {.cpu_ms = value_ms(run, "profiled_host_time"),
	                      .cuda_ms = value_ms(run, "profiled_device_time")};

	for (size_t i = 0; i < run->parts_count; i++) {
		const struct compared_part *part = &run->parts[i];

		if (strcmp(part->level, CANARY_CUDA_OPERATORS) != 0)
			continue;
		quick.has_top = true;
		quick.top_ms += part->amount / 1e6;
		quick.copy_ms += strcasestr(part->name, "copy") ? part->amount / 1e6 : 0;
	}
	return quick;
}

static void add_balance(struct buffer *out, const struct quick *quick)
{
	double ratio = quick->cuda_ms > 0 ? quick->cpu_ms / quick->cuda_ms : 0;

	if (quick->cpu_ms > 0 && quick->cuda_ms > 0) {
		if (ratio > CPU_BOUND_RATIO)
			buffer_printf(out,
			              "\nWARNING: CPU time (%.0fms) >> CUDA time (%.0fms)\n"
			              "This suggests a CPU bottleneck (dataloader, tokenization, or Python overhead)\n",
			              quick->cpu_ms, quick->cuda_ms);
		else if (ratio < GPU_BOUND_RATIO)
			buffer_printf(out,
			              "\nGOOD: CUDA time (%.0fms) >> CPU time (%.0fms)\n"
			              "GPU is well-utilized, training is compute-bound (optimal)\n",
			              quick->cuda_ms, quick->cpu_ms);
		else
			buffer_printf(out,
			              "\nBALANCED: CPU time (%.0fms) ~ CUDA time (%.0fms)\n"
			              "Mixed workload - both CPU and GPU contribute significantly\n",
			              quick->cpu_ms, quick->cuda_ms);
	} else if (quick->cpu_ms > 0) {
		buffer_printf(out, "\nINFO: No CUDA kernel times recorded (CPU time: %.0fms)\n" NO_KERNELS,
		              quick->cpu_ms);
	} else { /* the notebook prints nothing here */
		buffer_add_text(out, "\nINFO: No times of PyTorch's operators recorded\n");
	}
}

static void add_copies(struct buffer *out, const struct quick *quick)
{
	double share = quick->top_ms > 0 ? quick->copy_ms / quick->top_ms : 0;

	if (!quick->has_top)
		return;
	if (!(quick->top_ms > 0))
		buffer_add_text(out, "\nNo CUDA kernel times recorded\n" NO_KERNELS);
	else if (share > COPY_SHARE)
		buffer_printf(out,
		              "\nWARNING: Memory copies are %.0f%% of CUDA time\n"
		              "Consider: reducing CPU<->GPU transfers, using pinned memory\n",
		              100 * share);
	else
		buffer_printf(out, "\nMemory copy overhead: %.0f%% of CUDA time (acceptable)\n", 100 * share);
}

static void add_title(struct buffer *out)
{
	buffer_add_text(out, "\n" RULER "QUICK DIAGNOSIS\n" RULER);
}

static void diagnosis_canary_add_block(struct buffer *out, const struct quick *quick)
{
	add_balance(out, quick);
	add_copies(out, quick);
}

enum status diagnosis_canary_metrics(struct buffer *out, const struct compared_run *run, struct error *err)
{
	struct quick quick = quick_of_metrics(run);

	if (!(quick.cpu_ms > 0) && !(quick.cuda_ms > 0)) {
		error_set(err, STATUS_INPUT, "'%s' has no profiler times: profiler.cpu_time_total_ms is missing or 0",
		          run->path);
		error_hint(err, "rlhf-canary writes this block only if its profiler ran");
		return STATUS_INPUT;
	}
	add_title(out);
	diagnosis_canary_add_block(out, &quick);
	return STATUS_OK;
}

enum status diagnosis_canary(struct buffer *out, const struct diagnosis *diagnosis, struct report *report,
                             struct error *err)
{
	const char *headline = table_text(&diagnosis->verdict, 0, VERDICT_HEADLINE);
	struct quick quick;
	enum status status = diagnosis_canary_measure(report, &quick, err);

	if (status)
		return status;
	add_title(out);
	if (headline)
		buffer_printf(out, "\nNOTE: %s\n", headline);
	if (diagnosis->torn)
		buffer_printf(out, "\nCANNOT TELL: %s\n", diagnosis->torn);
	else
		diagnosis_canary_add_block(out, &quick);
	return STATUS_OK;
}
