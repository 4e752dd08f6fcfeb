/* SPDX-License-Identifier: Apache-2.0
 *
 * module_work.h: gives modules the work that happens outside their forwards. An operator works for the innermost
 * module around it. A node of a backward works for the module of the operator that made it, even if the call of
 * another module runs the backward.
 */
#ifndef ANALYSIS_OPERATORS_MODULE_WORK_H
#define ANALYSIS_OPERATORS_MODULE_WORK_H

#include "analysis/operators/module_fold.h"

/* Adds the sums of backwards, allocations, work of devices and floating point operations. */
void module_work_add(struct module_fold *fold, struct analysis_context *context);

#endif
