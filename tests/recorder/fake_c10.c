/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_c10.c: see fake_c10.h.
 */
#include "fake_c10.h"

FAKE_C10_API void _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm(void *reporter, void *address, size_t bytes);
FAKE_C10_API void _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv(void *reporter, void *address);

uint64_t fake_allocations, fake_releases;
static char own;

void _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm(void *reporter, void *address, size_t bytes)
{
	fake_allocations++;
}

void _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv(void *reporter, void *address)
{
	fake_releases++;
}

void fake_allocate(void *address, size_t bytes)
{
	_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm(&own, address, bytes);
}

void fake_release(void *address)
{
	_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv(&own, address);
}
