/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_importer.c: any bytes as a file of the importer FUZZED, and its tables: see one_importer.h. An importer that needs more than that has a
 * fuzz_NAME.c instead.
 */
#include "one_importer.h"

extern const struct importer FUZZED;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(&FUZZED, data, size, true);
	return 0;
}
