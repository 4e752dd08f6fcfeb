/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_doubles.h: events that are in a file twice.
 */
#ifndef IMPORTERS_KINETO_KINETO_DOUBLES_H
#define IMPORTERS_KINETO_KINETO_DOUBLES_H

#include "importers/kineto/kineto_stage.h"

/* Where each span that its writer did not number is there twice, and of marks and values all are (kineto_doubles.c). */
void kineto_leave_out_doubles(struct kineto_stage *stage);

#endif
