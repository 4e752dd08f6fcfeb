/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_nvidia_smi.c: see one_importer.h.
 */
#include "one_importer.h"

extern const struct importer importer_nvidia_smi;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(&importer_nvidia_smi, data, size, true);
	return 0;
}
