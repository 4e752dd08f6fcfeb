/* SPDX-License-Identifier: Apache-2.0
 *
 * built_in.h: the files of rules/ inside the program. tools/embed_texts writes the array when the program is built.
 */
#ifndef DIAGNOSIS_BUILT_IN_H
#define DIAGNOSIS_BUILT_IN_H

struct built_in_rule {
	const char *name; /* of the file */
	const char *text;
};

extern const struct built_in_rule built_in_rules[]; /* ends with an empty one */

#endif
