/* SPDX-License-Identifier: Apache-2.0
 *
 * many_reports FOLDER: what a metamorphic test wants to know of many traces, without a process for each (metamorphic.py). On stdin "WHAT
 * LENGTH\n" and so many bytes of a trace, again and again; on stdout "STATUS LENGTH\n" and so many bytes of answer: the summary (json), a
 * table (ops.csv), or what was written to FOLDER/WHAT as an export, which must keep the rules of its readers. Broken promises of
 * columns and broken rules are the status "defect". A trace that takes longer than a minute ends the program.
 */
#include "base/buffer.h"
#include "importers/importer.h"
#include "output/export/exporter.h"
#include "output/text/csv.h"
#include "output/text/summary.h"
#include "output/validate/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)64 << 20)
#define LIMIT_S 60

static void fail(const char *why)
{
	fprintf(stderr, "many_reports: %s\n", why);
	exit(2);
}

static void answer(const char *status, const struct buffer *text)
{
	printf("%s %zu\n", status, text->length);
	fwrite(text->data, 1, text->length, stdout);
	fflush(stdout);
}

/* "ops.csv": the table ops. */
static void write_table(struct buffer *text, struct report *report, const char *what)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(what, "."), what);
	const struct table *table = report_table(report, name);
	if (!table)
		fail(what);
	csv_table(text, table);
}

static void answer_report(const struct model *model, const char *what)
{
	const struct analysis_options options = {0};
	struct report report;
	struct buffer text;
	buffer_init(&text, TEXT_MAX);
	report_init(&report, model, &options, "trace.json");
	if (strstr(what, ".csv"))
		write_table(&text, &report, what);
	else
		summary_write(&text, &report);
	if (report.defect_count) {
		buffer_clear(&text);
		buffer_add_text(&text, report.defects[0]);
	}
	answer(report.defect_count ? "defect" : "ok", &text);
	report_release(&report);
	buffer_release(&text);
}

/* The rules of readers; those of torch, and H10 about durations, are about what was traced. */
static void check_rules(const char *path, struct buffer *text)
{
	struct validation *validation = calloc(1, sizeof *validation);
	struct error err;
	if (!validation)
		fail("out of memory");
	if (validate_file(path, validation, &err) != STATUS_OK)
		buffer_add_text(text, err.text);
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		if (validation->findings[i].count && validate_rules[i].is_error && i != VALIDATE_H10 &&
		    strcmp(validate_rules[i].reader, "torch") != 0)
			buffer_printf(text, "%s %s (%s) ", validate_rules[i].id, validate_rules[i].text,
			              validation->findings[i].detail);
	free(validation);
}

static void answer_export(const struct model *model, const char *folder, const char *what)
{
	const struct exporter *exporter = exporter_by_suffix(what);
	const struct export_options options = {0};
	struct export_result result;
	struct buffer text;
	struct error err;
	char path[4096];
	if (!exporter)
		fail(what);
	buffer_init(&text, TEXT_MAX);
	snprintf(path, sizeof path, "%s/%s", folder, what);
	enum status status = exporter->write(model, path, &options, &result, &err);
	if (status != STATUS_OK)
		buffer_add_text(&text, err.text);
	else if (strcmp(exporter->name, "chrome") == 0 || strcmp(exporter->name, "perfetto") == 0)
		check_rules(path, &text);
	answer(status == STATUS_INPUT ? "nothing" : text.length ? "defect" : "ok", &text);
	buffer_release(&text);
}

static void take(const char *what, const char *folder, const char *bytes, size_t length)
{
	char path[64];
	struct model model;
	struct buffer text;
	struct error err;
	int fd = memfd_create("trace", 0);
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		fail("cannot keep the trace");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	model_init(&model, 0);
	enum status status = import_path(path, &(struct model_filter){0}, &model, &err);
	buffer_init(&text, TEXT_MAX);
	buffer_add_text(&text, status == STATUS_OK ? "" : err.text);
	if (status != STATUS_OK)
		answer(status == STATUS_INPUT ? "nothing" : "defect", &text);
	else if (strchr(what, '.') && !strstr(what, ".csv"))
		answer_export(&model, folder, what);
	else
		answer_report(&model, what);
	buffer_release(&text);
	model_release(&model);
	close(fd);
}

int main(int argc, char **argv)
{
	char what[64];
	size_t length;
	while (argc == 2 && scanf("%63s %zu", what, &length) == 2 && getchar() == '\n') {
		char *bytes = malloc(length + 1);
		if (!bytes || fread(bytes, 1, length, stdin) != length)
			fail("half of a trace");
		alarm(LIMIT_S);
		take(what, argv[1], bytes, length);
		alarm(0);
		free(bytes);
	}
	return argc != 2 || !feof(stdin);
}
