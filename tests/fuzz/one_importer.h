/* SPDX-License-Identifier: Apache-2.0
 *
 * one_importer.h: any bytes as a file of one importer, whether it would recognise them or not -> every table. The same comes out twice, no
 * table breaks what its columns promise, and callers have smaller numbers than what they call.
 */
#ifndef FUZZ_ONE_IMPORTER_H
#define FUZZ_ONE_IMPORTER_H

#include "analysis/report.h"
#include "importers/importer.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct imported {
	uint64_t status, samples, stacks, tracks, values, ledger, sum;
};

static inline void make_tables(const struct model *model)
{
	struct report report;
	report_init(&report, model, &(struct analysis_options){.by = BY_THREAD}, "fuzz");
	for (int i = 0; analyses[i]; i++)
		(void)report_table(&report, analyses[i]->name);
	for (int i = 0; i < report.defect_count; i++)
		fprintf(stderr, "%s\n", report.defects[i]);
	if (report.defect_count)
		abort();
	report_release(&report);
}

static inline struct imported import_once(const struct importer *importer, const char *path, bool has_tables)
{
	struct model model;
	struct error err;
	struct imported imported = {0};
	model_init(&model, 0);
	imported.status = importer->load(path, &(struct model_filter){0}, &model, &err);
	if (imported.status != STATUS_OK && imported.status != STATUS_INPUT)
		abort();
	for (uint32_t i = 1; i < model.stacks_count; i++)
		if (model.stacks[i].parent >= i)
			abort();
	for (uint32_t i = 0; i < model.samples_count; i++)
		imported.sum += model.samples[i].weight ^ (uint64_t)model.samples[i].time_ns << 1;
	for (uint32_t i = 0; i < model.series_count; i++)
		imported.values += model.series[i]->count;
	imported.samples = model.samples_count;
	imported.stacks = model.stacks_count;
	imported.tracks = model.tracks_count;
	imported.ledger = model.ledger_count;
	if (imported.status == STATUS_OK && has_tables) {
		model_finish(&model);
		make_tables(&model);
	}
	model_release(&model);
	return imported;
}

static inline void import_bytes(const struct importer *importer, const uint8_t *data, size_t size)
{
	char path[64];
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct imported first = import_once(importer, path, false), second = import_once(importer, path, true);
	if (memcmp(&first, &second, sizeof first) != 0)
		abort();
	(void)importer->recognises(path, false, (const char *)data, size < 4096 ? size : 4096);
	close(fd);
}

#endif
