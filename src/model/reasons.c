/* SPDX-License-Identifier: Apache-2.0
 *
 * reasons.c: see the header.
 */
#include "model/reasons.h"

#include "model/model.h"

#define REASON_WORDS(name, words) [name] = (words),
static const char *const of_recordings[REASON_COUNT] = {REASONS(REASON_WORDS)};

const char *model_reason(const struct model *model, enum reason reason)
{
	const char *words = model->reasons ? model->reasons[reason] : NULL;

	return words ? words : of_recordings[reason];
}
