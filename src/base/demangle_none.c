/* SPDX-License-Identifier: Apache-2.0
 *
 * demangle_none.c: see demangle.h; built where libiberty is missing.
 */
#include "base/demangle.h"

#include <stddef.h>

const char *demangler_text(struct demangler *demangler, const char *name)
{
	return NULL;
}

void demangler_release(struct demangler *demangler) {}
