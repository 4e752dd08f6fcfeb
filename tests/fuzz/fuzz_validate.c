/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_validate.c: validates any bytes as a file, plain or compressed, JSON or packets. What can be read twice must give
 * the same findings.
 */
#include "output/validate/validate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct validation first, second;
	struct error err;
	enum status status;
	char path[64];
	int fd = memfd_create("fuzz", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	status = validate_file(path, &first, &err);
	if (validate_file(path, &second, &err) != status)
		abort();
	if (first.events != second.events || memcmp(first.findings, second.findings, sizeof(first.findings)) != 0)
		abort();
	close(fd);
	return 0;
}
