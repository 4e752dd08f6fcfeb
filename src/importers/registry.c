/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: the list of importers. How to add one: write importers/NAME.c with a struct importer at its end, add it
 * here and in meson.build, give it a test and a fuzz target.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "importers/importer.h"

extern const struct importer importer_recording, importer_kineto;

const struct importer *const importers[] = {
	&importer_recording,
	&importer_kineto,
	NULL,
};

static enum status read_head(const char *path, bool *is_directory, char *head, size_t *length, struct error *err)
{
	struct stat info;
	*length = 0;
	if (stat(path, &info) != 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	*is_directory = S_ISDIR(info.st_mode);
	if (*is_directory)
		return STATUS_OK;
	if (!S_ISREG(info.st_mode))
		return error_set(err, STATUS_INPUT, "'%s' is neither a file nor a directory", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot open '%s'", path);
	ssize_t n = read(fd, head, *length = 4096);
	int number = errno;
	close(fd);
	*length = n > 0 ? (size_t)n : 0;
	return n < 0 ? error_errno(err, STATUS_INPUT, number, "cannot read '%s'", path) : STATUS_OK;
}

enum status import_path(const char *path, const struct model_filter *filter, struct model *model, struct error *err)
{
	char head[4096];
	size_t length;
	bool is_directory = false;
	enum status status = read_head(path, &is_directory, head, &length, err);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; importers[i]; i++) {
		if (!importers[i]->recognises(path, is_directory, head, length))
			continue;
		status = importers[i]->load(path, filter, model, err);
		if (status == STATUS_OK)
			model_finish(model);
		return status;
	}
	error_set(err, STATUS_INPUT,
	          "'%s' is not a recording: looked for a run directory with *.ssr files, or one of those files", path);
	error_hint(err, "'stepscope run -- PROGRAM' makes a recording");
	return STATUS_INPUT;
}
