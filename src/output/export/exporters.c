/* SPDX-License-Identifier: Apache-2.0
 *
 * exporters.c: the table of formats. A new format needs its file, a line here and a line in meson.build.
 */
#include "base/text.h"
#include "output/export/compress.h"
#include "output/export/exporter.h"

#include <string.h>

#define EXPORTERS(X) X(chrome) X(perfetto) X(memory) X(speedscope) X(folded) X(ssr)

#define DECLARE(name) extern const struct exporter export_##name;
#define ENTRY(name) &export_##name,

EXPORTERS(DECLARE)

const struct exporter *const exporters[] = {EXPORTERS(ENTRY) NULL};

#define EXPORTER_COUNT (sizeof(exporters) / sizeof(exporters[0]) - 1)

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

void exporter_list_names(char words[EXPORTER_WORDS_BYTES])
{
	const char *names[EXPORTER_COUNT];

	for (size_t i = 0; i < EXPORTER_COUNT; i++)
		names[i] = exporters[i]->name;
	text_alternatives(words, EXPORTER_WORDS_BYTES, names, EXPORTER_COUNT);
}

void exporter_list_suffixes(char words[EXPORTER_WORDS_BYTES])
{
	const char *suffixes[2 * EXPORTER_COUNT];
	size_t count = 0;

	for (size_t i = 0; i < EXPORTER_COUNT; i++) {
		suffixes[count++] = exporters[i]->suffix;
		if (exporters[i]->other_suffix)
			suffixes[count++] = exporters[i]->other_suffix;
	}
	text_alternatives(words, EXPORTER_WORDS_BYTES, suffixes, count);
}
