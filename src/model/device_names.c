/* SPDX-License-Identifier: Apache-2.0
 *
 * device_names.c: see device_names.h. Lists of names and their sources; docs/device-tables.md shows them to users.
 */
#include "model/device_names.h"

#include "model/cell_words.h"

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
	                                    "ncclDevKernel", /* NCCL up to 2.18, and from 2.19 on; RCCL has the same */
	                                    "rcclKernel",
	                                    "mscclKernel",
	                                    "mscclpp",
	                                    "nvshmem",
	                                    "rocshmem",
	                                    "deep_ep::",
	                                    "dpsk::ep::", /* DeepEP, also in SGLang, vLLM and Megatron */
	                                    "all_reduce_one_shot",
	                                    "one_shot_all_reduce",
	                                    "two_shot_all_reduce",
	                                    "multimem_all_reduce", /* PyTorch, symmetric memory */
	                                    "cross_device_reduce_",
	                                    "allreduce_prototype_", /* vLLM, SGLang, AITER; Quick Reduce */
	                                    "oneShotAllReduce",
	                                    "twoShotAllReduce",
	                                    "lowPrecisionTwoShotAllReduce",
	                                    "allreduce_fusion_kernel",
	                                    "moeAllToAll",  /* TensorRT-LLM, FlashInfer */
	                                    "userbuffers_", /* Transformer Engine */
	                                    "hcom_",
	                                    "Hccl",
	                                    "xccl_",
	                                    "oneccl_", /* HCCL, XCCL, oneCCL */
	                                    NULL};

	return contains_any(name, parts);
}

/* Sources: cuBLAS, cuDNN, CUTLASS, Tensile; PyTorch's own kernels, cuDNN's norms, the kernels that Inductor generates
 * (pointwise, reduction, persistent reduction), CUB, FBGEMM's tables. */
const char *work_of_kernel(const char *name)
{
	static const char *const matrix[] = {
		"gemm",         "gemv",   "scudnn",    "hcudnn", "convolve",  "conv2d",       "3dconv",   "wgrad",
		"dgrad",        "fprop",  "winograd",  "Cijk_",  "nvjet_",    "flash_fwd",    "fmha",     "flash_bwd",
		"xmma_",        "mfma",   "cutlass::", "sdpa",   "attn_",     "splitKreduce", "im2col4d", "triton_mm",
		"triton_tem_f", "matmul", "bmm_",      "Fmha",   "FlashAttn", "sage_fwd",     NULL};
	static const char *const memory[] = {
		"elementwise", "reduce_kernel", "oftmax",     "SoftMax",      "layer_norm",     "LayerNorm",
		"RowwiseM",    "GammaBeta",     "batch_norm", "bn_fw_",       "bn_bw_",         "CatArray",
		"index",       "Index",         "embedding",  "permute_",     "dropout",        "multi_tensor_apply",
		"pool_",       "_pool",         "triton_poi", "triton_red",   "triton_per",     "DeviceReduce",
		"DeviceScan",  "RadixSort",     "transpose",  "nchwToNhwc",   "nhwcToNchw",     "scalePackedTensor",
		"upsample",    "nll_loss",      "FP8row",     "FP8_quantize", "tensor_kernel_", NULL};

	/* FBGEMM is a library of tables as well; its products are of CUTLASS */
	if (strstr(name, "fbgemm") && !strstr(name, "cutlass"))
		return CELL_WORK_MEMORY;
	return contains_any(name, matrix) ? CELL_WORK_MATRIX : contains_any(name, memory) ? CELL_WORK_MEMORY : NULL;
}

/* Types that only tensor cores multiply: 8 and 4 bits. */
static const char *const small_types[] = {"fp8",  "FP8",  "e4m3", "E4m3", "e5m2",  "E5m2",  "e2m1", "E2m1",
                                          "mxfp", "MxE4", "MxE2", "fp4",  "nvfp4", "MXFP4", NULL};

/* Volta to Ampere: the list of PyProf (NVIDIA/PyProf, prof/tc.py), which the TensorBoard plugin also has. Here it
 * lacks "conv1x1" and the like, which also name kernels without tensor cores. Later: names of cuBLAS, cuDNN and
 * CUTLASS for Hopper and Blackwell, FlashAttention and the attention of PyTorch, Tensile, MIOpen and Composable Kernel
 * of AMD. */
static const char *const tensor_core_names[] = {
	"h884",
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
	"_gtcx",
	"mfma",
	"ck_tile::FmhaFwd",
	"ck_tile::FmhaBwd",
	NULL,
};

/* Names of cuBLAS, cuDNN and CUTLASS give the types of inputs, results and sums: "tf32f32_tf32f32_f32". Others have them
 * as parameters of templates. Vectors and helpers of products are limited by memory. */
static bool is_float32_product(const char *name)
{
	static const char *const float32[] = {"sgemm", "scudnn",  "f32f32_f32f32_f32", "_ffma_",
	                                      "_f32_", "<float,", ", float,",          NULL};
	static const char *const others[] = {"half", "bfloat16",     "f16",      "int8",
	                                     "gemv", "splitKreduce", "im2col4d", NULL};

	return contains_any(name, float32) && !contains_any(name, others) && !contains_any(name, small_types);
}

enum name_answer tensor_cores_of_kernel(const char *name)
{
	static const char *const without[] = {"_ffma",  "simt",     "_dffma",       "gemv",     "gemmk1_", "gemmSN_",
	                                      "gcgemm", "winograd", "splitKreduce", "im2col4d", NULL};
	/* of PyTorch itself: its products are those of libraries */
	static const char *const elsewhere[] = {"at::native::", "at_cuda_detail::", "cub::", NULL};
	const char *work = work_of_kernel(name);
	bool is_product = work && !strcmp(work, CELL_WORK_MATRIX);

	if (contains_any(name, without) || is_communication_kernel(name))
		return NAME_NO;
	if (contains_any(name, tensor_core_names) || (is_product && contains_any(name, small_types)))
		return NAME_YES;
	if (is_product)
		return is_float32_product(name) ? NAME_NO : NAME_UNKNOWN;
	return work || contains_any(name, elsewhere) ? NAME_NO : NAME_UNKNOWN;
}

enum product_type product_type_of_kernel(const char *name)
{
	static const char *const tf32[] = {"tf32", "s1688", NULL};
	static const char *const older[] = {"maxwell_", "volta_", "turing_", NULL}; /* they have no TF32 */
	const char *work = work_of_kernel(name);

	if (!work || strcmp(work, CELL_WORK_MATRIX) != 0)
		return PRODUCT_OTHER;
	if (tensor_cores_of_kernel(name) == NAME_YES)
		return contains_any(name, tf32) ? PRODUCT_TF32 : PRODUCT_OTHER;
	if (!is_float32_product(name))
		return PRODUCT_OTHER;
	return contains_any(name, older) ? PRODUCT_FLOAT32_OLDER : PRODUCT_FLOAT32;
}

bool is_launching_call(const char *name)
{
	static const char *const parts[] = {"LaunchKernel", /* cuda, cu, hip, hipExtModule, zeCommandListAppend */
	                                    "LaunchCooperativeKernel", "GraphLaunch", "KernelLaunch", /* urEnqueue */
	                                    NULL};

	return contains_any(name, parts);
}

uint8_t device_call_kind(const char *name)
{
	static const char *const prefixes[] = {"cuda", "hip", "musa", "cu", "ze", "ur", ""};
	static const struct {
		const char *name; /* without the prefix of the runtime */
		enum device_call call;
	} list[] = {
		{"DeviceSynchronize", CALL_WAITS_ALL},
		{"ThreadSynchronize", CALL_WAITS_ALL},
		{"CtxSynchronize", CALL_WAITS_ALL},
		{"synchronize", CALL_WAITS_ALL}, /* MTIA, as is the next */
		{"synchronizeStream", CALL_WAITS_STREAM},
		{"StreamSynchronize", CALL_WAITS_STREAM},
		{"EventSynchronize", CALL_WAITS_EVENT},
		{"EventHostSynchronize", CALL_WAITS_EVENT}, /* Intel: Level Zero, as are the next three */
		{"FenceHostSynchronize", CALL_WAITS_EVENT},
		{"CommandQueueSynchronize", CALL_WAITS_STREAM},
		{"CommandListHostSynchronize", CALL_WAITS_STREAM},
		{"EventWait", CALL_WAITS_EVENT}, /* Intel: unified runtime, as is the next */
		{"QueueFinish", CALL_WAITS_STREAM},
		{"Memcpy", CALL_COPIES},
		{"MemcpyWithStream", CALL_COPIES},
		{"StreamWaitEvent", CALL_STREAM_WAITS},
		{"Free", CALL_FREES},
		{"Malloc", CALL_ALLOCATES},
		{"MallocHost", CALL_ALLOCATES},
		{"FreeHost", CALL_ALLOCATES},
		{"HostAlloc", CALL_ALLOCATES},
		{"HostMalloc", CALL_ALLOCATES},
		{"HostFree", CALL_ALLOCATES},
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], length) != 0)
			continue;
		for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
			if (!strcmp(name + length, list[k].name))
				return (uint8_t)list[k].call;
	}
	return CALL_OTHER;
}

bool is_synchronizing_call(const char *name)
{
	uint8_t call = device_call_kind(name);

	return call == CALL_WAITS_ALL || call == CALL_WAITS_STREAM || call == CALL_WAITS_EVENT || call == CALL_COPIES;
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
	            {CELL_SEND_RECEIVE, CELL_SEND_RECEIVE},
	            {"send", CELL_SEND_RECEIVE},
	            {"recv", CELL_SEND_RECEIVE},
	            {"reduce", "reduce"},
	            {"barrier", "barrier"},
	            {"gather", "gather"},
	            {"scatter", "scatter"}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcasestr(name, list[i].part))
			return list[i].collective;
	return NULL;
}

bool is_copy_to_pageable(const char *name)
{
	static const char *const parts[] = {"-> Pageable", "-> Memory)", NULL}; /* Intel's word */

	return contains_any(name, parts);
}

bool is_pageable_copy(const char *name)
{
	return is_copy_to_pageable(name) || strstr(name, "Pageable ->") != NULL;
}

enum copy_direction copy_direction(const char *name, const char *said)
{
	static const struct {
		const char *part;
		enum copy_direction direction;
	} list[] = {
		{"HtoD", COPY_TO_DEVICE},       {"HostToDevice", COPY_TO_DEVICE}, {"DtoH", COPY_TO_HOST},
		{"DeviceToHost", COPY_TO_HOST}, {"DtoD", COPY_ON_DEVICES},        {"DeviceToDevice", COPY_ON_DEVICES},
		{"PtoP", COPY_TO_PEER},         {"HtoH", COPY_ON_HOST},           {" M2D", COPY_TO_DEVICE},
		{" D2M", COPY_TO_HOST}, /* Intel: M is pageable memory */
		{" H2D", COPY_TO_DEVICE},       {" D2H", COPY_TO_HOST},           {" D2D", COPY_ON_DEVICES},
		{" M2M", COPY_ON_HOST},         {" M2H", COPY_ON_HOST},           {" H2M", COPY_ON_HOST},
		{" H2H", COPY_ON_HOST}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strstr(name, list[i].part) || strstr(said, list[i].part))
			return list[i].direction;
	return COPY_UNKNOWN;
}

const char *copy_direction_name(enum copy_direction direction)
{
	static const char *const names[] = {
		[COPY_UNKNOWN] = NULL,
		[COPY_TO_DEVICE] = CELL_COPY_TO_DEVICE,
		[COPY_TO_HOST] = CELL_COPY_TO_HOST,
		[COPY_ON_DEVICES] = CELL_COPY_ON_DEVICES,
		[COPY_TO_PEER] = CELL_COPY_TO_PEER,
		[COPY_ON_HOST] = CELL_COPY_ON_HOST,
	};

	return names[direction];
}
