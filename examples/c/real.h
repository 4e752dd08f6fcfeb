/* SPDX-License-Identifier: Apache-2.0 */
/* The number type of the model: float for training; double when built with TRAINER_DOUBLE, which the gradient check
 * uses so that rounding does not hide a wrong derivative. */
#ifndef TRAINER_REAL_H
#define TRAINER_REAL_H

#include <cblas.h>

#ifdef TRAINER_DOUBLE
typedef double real;
#define REAL_GEMM cblas_dgemm
#define REAL_DTYPE STEPSCOPE_DTYPE_F64
#define REAL_EXP exp
#define REAL_SQRT sqrt
#else
typedef float real;
#define REAL_GEMM cblas_sgemm
#define REAL_DTYPE STEPSCOPE_DTYPE_F32
#define REAL_EXP expf
#define REAL_SQRT sqrtf
#endif

#endif
