/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels and calls of devices: what they tell, and what they do not.
 */
#include "model/device_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names_tell_what_kernels_do(void **state)
{
	assert_true(
		is_communication_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
	assert_true(is_communication_kernel("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)"));
	assert_false(is_communication_kernel("void at::native::reduce_kernel<512, 1>"));
	assert_true(is_synchronizing_call("cudaMemcpy"));
	assert_false(is_synchronizing_call("cudaMemcpyAsync"));
	assert_true(is_synchronizing_call("synchronizeStream"));
	assert_true(is_synchronizing_call("zeEventHostSynchronize"));
	assert_false(is_synchronizing_call("urEnqueueUSMMemcpy"));
	assert_string_equal(collective_of_name("ncclKernel_ReduceScatter_RING_LL_Sum_half"), "reducescatter");
	assert_string_equal(collective_of_name("ncclDevKernel_AllReduce_Sum_bf16"), "allreduce");
	assert_null(collective_of_name("gemm"));
}

static void fault_T5_names_that_do_not_tell_of_tensor_cores_are_unknown(void **state)
{
	static const struct {
		enum name_answer answer;
		const char *name;
	} kernels[] = {
		{NAME_YES, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn"},
		{NAME_YES, "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"},
		{NAME_YES, "Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1_SN_K1"},
		{NAME_YES, "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x128x32_wt32x32x8"},
		{NAME_YES,
	         "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_dptp128c_acc::GemmKernel>(Params)"},
		{NAME_YES, "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_fused_moe"},
		{NAME_YES, "fmhaSm100aKernel_QkvE4m3OBfloat16"},
		{NAME_YES, "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1"},
		{NAME_NO, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma_aligna4"},
		{NAME_NO, "cutlass_80_simt_sgemm_128x128_8x4_nn_align1"},
		{NAME_NO, "volta_scudnn_128x64_relu_interior_nn_v1"},
		{NAME_NO, "void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>"},
		{NAME_NO, "void GammaBetaBackwardCUDAKernel<float, float>"},
		{NAME_NO, "void at::native::(anonymous namespace)::some_kernel_of_later"},
		{NAME_NO, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
		{NAME_UNKNOWN, "aiter::fmha_fwd_hd128_bf16_rtz"},
		{NAME_UNKNOWN, "attn_fwd"},
		{NAME_UNKNOWN, "sage_fwd"},
		{NAME_UNKNOWN, "my_kernel"},
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (tensor_cores_of_kernel(kernels[i].name) != kernels[i].answer)
			fail_msg("'%s': %d", kernels[i].name, tensor_cores_of_kernel(kernels[i].name));
}

static void fault_T4_kernels_of_communication_libraries_are_communication(void **state)
{
	static const char *const names[] = {
		"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"void deep_ep::internode::dispatch<false, 8, false, 8>(int4*)",
		"dpsk::ep::internode::cached_notify",
		"void nvshmemi_transfer_amo",
		"void mscclpp::allreduce<float>",
		"void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)",
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<__half, 8, true>",
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<4>",
		"one_shot_all_reduce_kernel",
		"void quickreduce::allreduce_prototype_twoshot<int>",
		"userbuffers_fp16_sum_inplace_gpu_rr_rw",
		"hcom_allReduce__123_1",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(is_communication_kernel(names[i]));
	assert_false(is_communication_kernel("void at::native::reduce_kernel<512, 1>"));
	assert_false(is_communication_kernel("ampere_bf16_s16816gemm_bf16_128x128"));
}

static void names_tell_the_types_of_products(void **state)
{
	static const struct {
		enum product_type type;
		const char *name;
	} kernels[] = {
		{PRODUCT_FLOAT32, "ampere_sgemm_128x64_nn"},
		{PRODUCT_FLOAT32, "cutlass_80_simt_sgemm_128x32_8x5_nn_align1"},
		{PRODUCT_FLOAT32, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_warpsize1x4x1_ffma_aligna4"},
		{PRODUCT_FLOAT32, "fmha_cutlassF_f32_aligned_64x64_rf_sm80"},
		{PRODUCT_FLOAT32, "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>"},
		{PRODUCT_FLOAT32_OLDER, "volta_sgemm_64x32_sliced1x4_nn"},
		{PRODUCT_TF32,
	         "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"},
		{PRODUCT_TF32, "cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4"},
		{PRODUCT_OTHER, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"},
		{PRODUCT_OTHER, "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT"},
		{PRODUCT_OTHER, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn"},
		{PRODUCT_OTHER, "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"},
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		assert_int_equal(product_type_of_kernel(kernels[i].name), kernels[i].type);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_tell_what_kernels_do),
		cmocka_unit_test(fault_T5_names_that_do_not_tell_of_tensor_cores_are_unknown),
		cmocka_unit_test(fault_T4_kernels_of_communication_libraries_are_communication),
		cmocka_unit_test(names_tell_the_types_of_products),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
