/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trace_tables.c: any bytes as a trace -> every table, also in the form of torch.profiler. No table breaks what its columns promise.
 */
#include "analysis/operators/torch_ops.h"
#include "one_importer.h"

static void make_all(const struct model *model)
{
	const struct torch_ops_options options = {.process = MODEL_NONE};
	struct torch_ops ops;
	make_tables(model, &(struct analysis_options){.by = BY_SHAPE});
	torch_ops_init(&ops, model, &options);
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
		make_all(&model);
	model_release(&model);
	close(fd);
	return 0;
}
