/* SPDX-License-Identifier: Apache-2.0
 *
 * exporters.c: the table of formats. A new one is its file, its line here and its line in meson.build.
 */
#include "output/export/exporter.h"

#include "output/export/compress.h"

#include <string.h>

extern const struct exporter export_chrome;
extern const struct exporter export_perfetto;
extern const struct exporter export_memory;
extern const struct exporter export_speedscope;
extern const struct exporter export_folded;
extern const struct exporter export_ssr;

const struct exporter *const exporters[] = {
	&export_chrome, &export_perfetto, &export_memory, &export_speedscope, &export_folded, &export_ssr, NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (int i = 0; exporters[i]; i++)
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	return NULL;
}

static bool has_suffix(const char *path, size_t length, const char *suffix)
{
	size_t tail = strlen(suffix);

	return length > tail && memcmp(path + length - tail, suffix, tail) == 0;
}

const struct exporter *exporter_by_suffix(const char *path)
{
	size_t length = output_stem_length(path), longest = 0;
	const struct exporter *found = NULL;

	for (int i = 0; exporters[i]; i++) {
		const struct exporter *exporter = exporters[i];

		if (has_suffix(path, length, exporter->suffix) && strlen(exporter->suffix) > longest) {
			longest = strlen(exporter->suffix);
			found = exporter;
		} else if (!found && exporter->other_suffix && has_suffix(path, length, exporter->other_suffix)) {
			found = exporter;
		}
	}
	return found;
}
