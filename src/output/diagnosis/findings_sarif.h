/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_sarif.h: a diagnosis as SARIF 2.1.0, which code hosts show beside the code. A problem is a warning, a hint a note.
 *
 * Readers want a file for every result: the line of Python that a finding names, else line 1 of the program's script, else line 1 of
 * the input itself; logicalLocations say where in words.
 */
#ifndef OUTPUT_DIAGNOSIS_FINDINGS_SARIF_H
#define OUTPUT_DIAGNOSIS_FINDINGS_SARIF_H

#include "diagnosis/diagnosis.h"

/* `input`: the path of what was diagnosed. `command`: the recorded command line, NULL: not known. */
void findings_sarif(struct buffer *out, const struct diagnosis *diagnosis, const struct rule_set *rules,
                    const char *input, const char *command);

#endif
