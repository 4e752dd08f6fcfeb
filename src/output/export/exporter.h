/* SPDX-License-Identifier: Apache-2.0
 *
 * exporter.h: writes a model to a file for another tool. One file per format, one line in output/export/exporters.c.
 */
#ifndef OUTPUT_EXPORT_EXPORTER_H
#define OUTPUT_EXPORT_EXPORTER_H

#include "base/error.h"
#include "model/model.h"

struct export_options {
	bool has_steps;
	int64_t first_step, last_step;
	/* limit of the uncompressed output, 0: no limit. Whole steps are left out from the end, and a note says so. */
	int64_t max_bytes;
	const bool *processes; /* (optional) per process of the model: whether to write it */
	const char *device;    /* (optional) device of a memory timeline: "cpu", "cuda:0" */
	void (*progress)(void *context, uint64_t done, uint64_t total); /* (optional) counts spans */
	void *context;
};

struct export_result {
	uint64_t slices, counters, instants, flows; /* written */
	uint64_t bytes_raw, bytes_file;
	char note[512]; /* left-out data and the reason; "" if complete */
};

struct exporter {
	const char *name;         /* "chrome", "perfetto" */
	const char *suffix;       /* ".pt.trace.json", ".pftrace"; -o picks the exporter by it */
	const char *other_suffix; /* (optional) also picks it */
	const char *what;         /* what a file holds, for `export --formats` and the pages of commands */
	const char *viewers;      /* programs that open such a file */
	bool is_whole;            /* it has no options and writes the whole model */
	bool is_of_a_device;      /* it writes the device in export_options.device; other exporters write all devices */
	bool honours_max_bytes;   /* it leaves out steps for export_options.max_bytes */
	/* Writes to path, atomically by a temporary file and rename. ".gz" or ".zst" after the suffix compresses; "-"
	 * is stdout. */
	enum status (*write)(const struct model *model, const char *path, const struct export_options *options,
	                     struct export_result *result, struct error *err);
};

extern const struct exporter *const exporters[]; /* NULL-terminated */
const struct exporter *exporter_find(const char *name);
const struct exporter *exporter_by_suffix(const char *path); /* NULL: no exporter has such a suffix */

#define EXPORTER_WORDS_BYTES 256
/* Lists "chrome, perfetto, ... or ssr". */
void exporter_list_names(char words[EXPORTER_WORDS_BYTES]);
/* Lists ".json, .pftrace, ... or .ssr", with both suffixes of an exporter that has two. */
void exporter_list_suffixes(char words[EXPORTER_WORDS_BYTES]);

#endif
