/* SPDX-License-Identifier: Apache-2.0
 *
 * import_bytes.h: bytes as a file that an importer recognises. The caller releases the model in any case.
 */
#ifndef UNIT_IMPORT_BYTES_H
#define UNIT_IMPORT_BYTES_H

#include "importers/importer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static inline enum status load(const void *bytes, size_t length, struct model *model, struct error *err)
{
	char path[64];
	int fd = memfd_create("import", 0);
	assert_true(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	model_init(model, 0);
	enum status status = import_path(path, &(struct model_filter){0}, model, err);
	close(fd);
	return status;
}

#endif
