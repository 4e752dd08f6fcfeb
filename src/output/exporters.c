/* SPDX-License-Identifier: Apache-2.0
 *
 * exporters.c: the table of formats. A new one is its file, its line here and its line in meson.build.
 */
#include "output/exporter.h"

#include <string.h>

extern const struct exporter export_chrome;
extern const struct exporter export_perfetto;
extern const struct exporter export_memory;
extern const struct exporter export_speedscope;
extern const struct exporter export_folded;

const struct exporter *const exporters[] = {
	&export_chrome, &export_perfetto, &export_memory, &export_speedscope, &export_folded, NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (int i = 0; exporters[i]; i++)
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	return NULL;
}
