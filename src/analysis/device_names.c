/* SPDX-License-Identifier: Apache-2.0
 *
 * device_names.c: see device_names.h. Lists, with where each name comes from; docs/device-tables.md shows them to users.
 */
#include "analysis/device_names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static bool starts_with_any(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strncmp(name, *list, strlen(*list)))
			return true;
	return false;
}

static bool contains_any(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strstr(name, *list))
			return true;
	return false;
}

bool is_communication_kernel(const char *name)
{
	static const char *const parts[] = {"ncclKernel",
	                                    "ncclDevKernel", /* NCCL to 2.18, from 2.19; RCCL has the same */
	                                    "rcclKernel",
	                                    "mscclKernel",
	                                    "nvshmem",
	                                    "all_reduce_one_shot",
	                                    "one_shot_all_reduce",
	                                    "two_shot_all_reduce",
	                                    "multimem_all_reduce",  /* PyTorch, symmetric memory */
	                                    "cross_device_reduce_", /* vLLM, SGLang */
	                                    NULL};

	return contains_any(name, parts);
}

/* Volta to Ampere: the list of PyProf (NVIDIA/PyProf, prof/tc.py), which the TensorBoard plugin has, too, less "conv1x1" and the like,
 * which also name kernels without tensor cores. Later: names of cuBLAS, cuDNN and CUTLASS for Hopper and Blackwell, FlashAttention and
 * the attention of PyTorch, Tensile and Composable Kernel of AMD. */
bool is_tensor_core_kernel(const char *name)
{
	static const char *const no[] = {"_ffma", "simt", "_dffma", NULL};
	static const char *const yes[] = {"h884",
	                                  "s884",
	                                  "h1688",
	                                  "s1688",
	                                  "c1688",
	                                  "d884",
	                                  "hmma",
	                                  "i8816",
	                                  "i16832",
	                                  "16816",
	                                  "161616",
	                                  "dgrad_1x1_stride_2x2",
	                                  "first_layer_wgrad_kernel",
	                                  "xmma_gemm",
	                                  "xmma_implicit_gemm",
	                                  "xmma_sparse",
	                                  "xmma_warp_specialized",
	                                  "xmma_fprop",
	                                  "xmma_dgrad",
	                                  "xmma_wgrad",
	                                  "tensorop",
	                                  "nvjet_",
	                                  "gmma",
	                                  "tcgen05",
	                                  "flash_fwd",
	                                  "flash_bwd",
	                                  "fmha_cutlassF_f16",
	                                  "fmha_cutlassF_bf16",
	                                  "fmha_cutlassB_f16",
	                                  "fmha_cutlassB_bf16",
	                                  "cudnn_generated_fort_native_sdpa",
	                                  "_MI16x16x",
	                                  "_MI32x32x",
	                                  "_MI4x4x",
	                                  "mfma",
	                                  "ck_tile::FmhaFwd",
	                                  "ck_tile::FmhaBwd",
	                                  NULL};

	return contains_any(name, yes) && !contains_any(name, no);
}

bool is_synchronizing_call(const char *name)
{
	static const char *const whole[] = {"cudaDeviceSynchronize",
	                                    "cudaStreamSynchronize",
	                                    "cudaEventSynchronize",
	                                    "cuCtxSynchronize",
	                                    "cuStreamSynchronize",
	                                    "cuEventSynchronize",
	                                    "hipDeviceSynchronize",
	                                    "hipStreamSynchronize",
	                                    "hipEventSynchronize",
	                                    "cudaMemcpy",
	                                    "hipMemcpy",
	                                    "hipMemcpyWithStream",
	                                    "cudaThreadSynchronize"};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(name, whole[i]))
			return true;
	return false;
}

bool is_data_wait(const char *name)
{
	static const char *const begins[] = {"enumerate(DataLoader)#", "DataLoader.__next__", NULL};

	return starts_with_any(name, begins);
}

const char *collective_of_name(const char *name)
{
	static const struct {
		const char *part, *collective;
	} list[] = {{"allreduce", "allreduce"},
	            {"all_reduce", "allreduce"},
	            {"device_reduce_", "allreduce"},
	            {"reducescatter", "reducescatter"},
	            {"reduce_scatter", "reducescatter"},
	            {"allgather", "allgather"},
	            {"all_gather", "allgather"},
	            {"alltoall", "alltoall"},
	            {"all_to_all", "alltoall"},
	            {"broadcast", "broadcast"},
	            {"sendrecv", "sendrecv"},
	            {"send", "sendrecv"},
	            {"recv", "sendrecv"},
	            {"reduce", "reduce"},
	            {"barrier", "barrier"},
	            {"gather", "gather"},
	            {"scatter", "scatter"}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcasestr(name, list[i].part))
			return list[i].collective;
	return NULL;
}
