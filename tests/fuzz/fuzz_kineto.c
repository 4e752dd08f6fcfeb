/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_kineto.c: any bytes as a trace, plain or compressed: see one_importer.h.
 */
#include "one_importer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(NULL, data, size, false);
	return 0;
}
