/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_nsys.c: any bytes as an SQLite export of nsys: see one_importer.h.
 */
#include "one_importer.h"

extern const struct importer importer_nsys;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/fuzz_nsys_XXXXXX"; /* SQLite opens no file that has no name */
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	import_twice(&importer_nsys, path, false);
	close(fd);
	unlink(path);
	return 0;
}
