/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_rows.h: finds the span of a track that is open at an instant.
 */
#ifndef IMPORTERS_KINETO_KINETO_ROWS_H
#define IMPORTERS_KINETO_KINETO_ROWS_H

#include "importers/kineto/kineto_stage.h"

/* Fills track and row of every spot with the innermost span open at its time. Call after the tracks are delivered. */
void kineto_find_rows(const struct kineto_stage *stage, const struct model *model, struct kineto_spot *spots,
                      uint32_t count);

#endif
