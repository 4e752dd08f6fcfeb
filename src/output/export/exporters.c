/* SPDX-License-Identifier: Apache-2.0
 *
 * exporters.c: the table of formats. A new one is its file, its line here and its line in meson.build.
 */
#include "output/export/compress.h"
#include "output/export/exporter.h"

#include <stdio.h>
#include <string.h>

#define EXPORTERS(X) X(chrome) X(perfetto) X(memory) X(speedscope) X(folded) X(ssr)

#define DECLARE(name) extern const struct exporter export_##name;
#define ENTRY(name) &export_##name,

EXPORTERS(DECLARE)

const struct exporter *const exporters[] = {EXPORTERS(ENTRY) NULL};

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

static const char *exporters_name_of(const struct exporter *exporter)
{
	return exporter->name;
}

static const char *suffix_of(const struct exporter *exporter)
{
	return exporter->suffix;
}

static void list(char words[EXPORTER_WORDS_BYTES], const char *(*word_of)(const struct exporter *))
{
	size_t length = 0;

	words[0] = '\0';
	for (int i = 0; exporters[i] && length < EXPORTER_WORDS_BYTES; i++)
		length += (size_t)snprintf(words + length, EXPORTER_WORDS_BYTES - length, "%s%s",
		                           i == 0             ? ""
		                           : exporters[i + 1] ? ", "
		                                              : " or ",
		                           word_of(exporters[i]));
}

void exporter_list_names(char words[EXPORTER_WORDS_BYTES])
{
	list(words, exporters_name_of);
}

void exporter_list_suffixes(char words[EXPORTER_WORDS_BYTES])
{
	list(words, suffix_of);
}
