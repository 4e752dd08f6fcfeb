/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: the list of importers. To add one, write importers/FORMAT/NAME.c with a struct importer at its end. Add
 * it here and in meson.build, and give it a test and a fuzz target.
 */
#include "importers/importer.h"

/* Importers are asked in this order. */
#define IMPORTERS(X)                                                                                                   \
	X(speedscope) /* before other JSON */                                                                          \
	X(kineto)     /* before recordings, which take every other directory */                                        \
	X(converted)  /* before recordings: such a file looks like a segment */                                        \
	X(nsys)                                                                                                        \
	X(snapshot)                                                                                                    \
	X(recording)                                                                                                   \
	X(nvidia_smi) /* before stacks: some lines end in a number */                                                  \
	X(folded)

#define DECLARE(name) extern const struct importer importer_##name;
#define ENTRY(name) &importer_##name,

IMPORTERS(DECLARE)

const struct importer *const importers[] = {IMPORTERS(ENTRY) NULL};
