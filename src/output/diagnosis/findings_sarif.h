/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_sarif.h: a diagnosis as SARIF 2.1.0, for code-scanning viewers. A problem is a warning, a hint is a note.
 *
 * Readers require a file for every result. It is the line of Python that a finding names, otherwise line 1 of the
 * program's script, otherwise line 1 of the input itself. logicalLocations describe the place in words.
 */
#ifndef OUTPUT_DIAGNOSIS_FINDINGS_SARIF_H
#define OUTPUT_DIAGNOSIS_FINDINGS_SARIF_H

#include "diagnosis/diagnosis.h"

/* `input` is the path of the diagnosed input, `command` the recorded command line or NULL if it is unknown. */
void findings_sarif(struct buffer *out, const struct diagnosis *diagnosis, const struct rule_set *rules,
                    const char *input, const char *command);

#endif
