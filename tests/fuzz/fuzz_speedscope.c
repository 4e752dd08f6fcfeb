/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_speedscope.c: see one_importer.h.
 */
#include "one_importer.h"

extern const struct importer importer_speedscope;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(&importer_speedscope, data, size, true);
	return 0;
}
