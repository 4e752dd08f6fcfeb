/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_report.c: one segment file -> every table, also in the form of torch.profiler, and the summary; with all checksums put right.
 */
#include "analysis/operators/torch_ops.h"
#include "analysis/report.h"
#include "importers/recording/recording.h"
#include "output/text/summary.h"
#include "sealed.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_tables(const struct model *model, unsigned by)
{
	const struct analysis_options options = {.by = by};
	struct report report;
	struct buffer out;
	buffer_init(&out, (size_t)64 << 20);
	report_init(&report, model, &options, "runs/fuzz");
	for (int i = 0; analyses[i]; i++)
		(void)report_table(&report, analyses[i]->name);
	summary_write(&out, &report);
	report_release(&report);
	buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = sealed_copy(data, size);
	const struct recording_bytes segment = {bytes, size, "host.1.2.3.ssr"};
	struct model model;
	struct error err;
	model_init(&model, 1 << 20);
	if (recording_load_memory(&segment, 1, NULL, &model, &err) == STATUS_OK) {
		const struct torch_ops_options options = {.process = MODEL_NONE, .group = TORCH_BY_SHAPE, .frames = 3};
		struct torch_ops ops;
		model_finish(&model);
		write_tables(&model, BY_NAME);
		write_tables(&model, BY_SHAPE | BY_THREAD | BY_PHASE);
		torch_ops_init(&ops, &model, &options);
		torch_ops_release(&ops);
	}
	model_release(&model);
	free(bytes);
	return 0;
}
