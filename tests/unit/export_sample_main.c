/* SPDX-License-Identifier: Apache-2.0
 *
 * export_sample_main FORMAT FILE [cross] [ranks]: writes the sample model and prints "<spans> <total ns>".
 */
#include "export_sample.h"
#include "output/export/exporter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const struct exporter *exporter = argc >= 3 ? exporter_find(argv[1]) : NULL;
	struct export_options options = {0};
	struct export_result result;
	struct error err;
	struct model model;
	struct sample_sum sum;

	if (!exporter) {
		fprintf(stderr, "usage: export_sample_main FORMAT FILE [cross|ranks]\n");
		return 2;
	}
	model_init(&model, 0);
	sample_fill(&model, argc > 3 && strcmp(argv[3], "ranks") == 0 ? 2 : 1);
	if (argc > 3 && strcmp(argv[3], "cross") == 0)
		sample_cross_kernels(&model);
	if (exporter->write(&model, argv[2], &options, &result, &err) != STATUS_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	sum = sample_sum(&model);
	printf("%" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sum.spans, sum.dur_ns, result.flows,
	       result.counters, result.instants);
	model_release(&model);
	return 0;
}
