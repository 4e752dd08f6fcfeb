/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trace_tables.c: any bytes as a trace -> every table, also in the form of torch.profiler. No table breaks what its columns promise.
 */
#include "analysis/report.h"
#include "analysis/torch_ops.h"
#include "importers/importer.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_tables(const struct model *model)
{
	const struct analysis_options options = {.by = BY_SHAPE};
	const struct torch_ops_options torch_options = {.process = MODEL_NONE};
	struct torch_ops ops;
	struct report report;
	report_init(&report, model, &options, "fuzz.json");
	for (int i = 0; analyses[i]; i++)
		(void)report_table(&report, analyses[i]->name);
	for (int i = 0; i < report.defect_count; i++)
		fprintf(stderr, "%s\n", report.defects[i]);
	if (report.defect_count)
		abort();
	report_release(&report);
	torch_ops_init(&ops, model, &torch_options);
	torch_ops_release(&ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model;
	struct error err;
	char path[64];
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	model_init(&model, 0);
	if (import_path(path, &(struct model_filter){0}, &model, &err) == STATUS_OK)
		make_tables(&model);
	model_release(&model);
	close(fd);
	return 0;
}
