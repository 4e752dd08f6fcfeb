/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: the list of importers. How to add one: write importers/FORMAT/NAME.c with a struct importer at its end, add it
 * here and in meson.build, give it a test and a fuzz target.
 */
#include "importers/importer.h"

/* In the order in which they are asked for a file. */
#define IMPORTERS(X)                                                                                                   \
	X(speedscope) /* before other JSON */                                                                          \
	X(kineto)     /* before recordings, which take every other directory */                                        \
	X(converted)  /* such a file looks like one of a recording */                                                  \
	X(nsys)                                                                                                        \
	X(snapshot)                                                                                                    \
	X(recording)                                                                                                   \
	X(nvidia_smi) /* before stacks: some lines end in a number */                                                  \
	X(folded)

#define DECLARE(name) extern const struct importer importer_##name;
#define ENTRY(name) &importer_##name,

IMPORTERS(DECLARE)

const struct importer *const importers[] = {IMPORTERS(ENTRY) NULL};
