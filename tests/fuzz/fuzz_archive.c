/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_archive.c: see one_importer.h; any bytes as any file. Its inputs are archives of files of ranks: what they are is told by the first
 * bytes of each.
 */
#include "one_importer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(NULL, data, size, false);
	return 0;
}
