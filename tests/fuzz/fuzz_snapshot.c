/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_snapshot.c: any bytes as a memory snapshot of PyTorch's CUDA allocator: see one_importer.h.
 */
#include "one_importer.h"

extern const struct importer importer_snapshot;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_bytes(&importer_snapshot, data, size, false);
	return 0;
}
