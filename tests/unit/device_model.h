/* SPDX-License-Identifier: Apache-2.0
 *
 * device_model.h: two training steps with a device made by hand, whose tables can be computed on paper. Times in us:
 *
 *     host      step 0: 0-100   DataLoader 0-20   aten::mm 20-40 {cudaLaunchKernel 25-30: gemm}   aten::copy_ 40-60
 *                       {cudaMemcpyAsync 45-50: copy}   cudaDeviceSynchronize 80-95
 *               step 1: 100-200   aten::mm 120-140 {cuLaunchKernel 125-130: gemm}   c10d::allreduce_ 140-150
 *                       {cudaLaunchKernel 142-144: nccl}   cudaLaunchKernel 160-162 (in no operator): gemm
 *     stream 7  gemm 35-65   copy 65-75   gemm 135-155   (gemm) 164-174   lonely 180-182 (its launch is not there)
 *     stream 9  nccl 150-170
 */
#ifndef UNIT_DEVICE_MODEL_H
#define UNIT_DEVICE_MODEL_H

#include "model/model.h"

#define US 1000LL

enum {
	DEVICE_MODEL_HOST,
	DEVICE_MODEL_STREAM_7,
	DEVICE_MODEL_STREAM_9,
};

/* Initialises and finishes the model; release it with model_release(). */
void device_model_init(struct model *model);

#endif
