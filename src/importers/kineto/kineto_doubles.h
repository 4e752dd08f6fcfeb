/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_doubles.h: removes events that a file contains twice.
 */
#ifndef IMPORTERS_KINETO_KINETO_DOUBLES_H
#define IMPORTERS_KINETO_KINETO_DOUBLES_H

#include "importers/kineto/kineto_stage.h"

/* Keeps one of each pair if every span that its writer did not number occurs twice. Then does the same for marks and
 * for values, if all of those occur twice (kineto_doubles.c). */
void kineto_leave_out_doubles(struct kineto_stage *stage);

#endif
