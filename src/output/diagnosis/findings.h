/* SPDX-License-Identifier: Apache-2.0
 *
 * findings.h: a diagnosis as text for people, and as JSON (schema stepscope.diagnosis/1).
 */
#ifndef OUTPUT_DIAGNOSIS_FINDINGS_H
#define OUTPUT_DIAGNOSIS_FINDINGS_H

#include "diagnosis/diagnosis.h"
#include "output/text/text.h"

void findings_text(struct buffer *out, const struct diagnosis *diagnosis, const struct text_style *style);
void findings_json(struct buffer *out, const struct diagnosis *diagnosis, const char *run, bool has_times);

/* Writes the time that each rule and table took. */
void findings_times(struct buffer *out, const struct diagnosis *diagnosis, const struct text_style *style);

/* Writes all rules with their thresholds. */
void findings_rules(struct buffer *out, const struct rule_set *rules, const struct text_style *style);

#endif
