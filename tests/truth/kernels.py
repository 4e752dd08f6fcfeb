# SPDX-License-Identifier: Apache-2.0
"""Names and times of the kernels that the simulated training launches (gpusim.py)."""

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN"
GEMM_W = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN"
FLASH = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, false, true, false, false, true, true, false, false>(flash::Flash_fwd_params)"
FLASH_B = "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 8, cutlass::bfloat16_t> >, false, true, false, false, false, true, false>(flash::Flash_bwd_params)"
LN = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)"
LN_B = "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)"
GELU_B = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}, std::array<char*, 3ul> >(int, std::array<char*, 3ul>)"
REDUCE = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, c10::BFloat16, 4, 4> >(at::native::ReduceOp<c10::BFloat16>)"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)"
SOFTMAX_B = "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::LogSoftMaxBackwardEpilogue>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16*, long)"
NLL = "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<c10::BFloat16, float, long>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, long const*, c10::BFloat16 const*, bool, long, long, long, long)"
MULTI = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 2, 1, 1>, std::multiplies<float>, float>(at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 2, 1, 1>, std::multiplies<float>, float)"
TINY = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul>)"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

# The forward pass of a layer: operator, inner operators, kernel, time in us, node of the backward pass.
LAYER = [("aten::layer_norm", ("aten::native_layer_norm",), LN, 14, "NativeLayerNormBackward0"),
         ("aten::linear", ("aten::addmm",), GEMM, 190, "AddmmBackward0"),
         ("aten::scaled_dot_product_attention", ("aten::_scaled_dot_product_flash_attention", "aten::_flash_attention_forward"), FLASH, 150,
          "ScaledDotProductFlashAttentionBackward0"),
         ("aten::linear", ("aten::addmm",), GEMM, 75, "AddmmBackward0"),
         ("aten::add", (), ADD, 11, "AddBackward0"),
         ("aten::layer_norm", ("aten::native_layer_norm",), LN, 14, "NativeLayerNormBackward0"),
         ("aten::linear", ("aten::addmm",), GEMM, 250, "AddmmBackward0"),
         ("aten::gelu", (), GELU, 26, "GeluBackward0"),
         ("aten::linear", ("aten::addmm",), GEMM, 245, "AddmmBackward0"),
         ("aten::add", (), ADD, 11, "AddBackward0")]
# The kernels of a node of the backward pass: operator, kernel, and its time as a multiple of the forward kernel's time.
BACK = {"NativeLayerNormBackward0": (("aten::native_layer_norm_backward", LN_B, 1.6),),
        "AddmmBackward0": (("aten::mm", GEMM, 1.0), ("aten::mm", GEMM_W, 1.05), ("aten::sum", REDUCE, 0.05)),
        "ScaledDotProductFlashAttentionBackward0": (("aten::_scaled_dot_product_flash_attention_backward", FLASH_B, 2.4),),
        "AddBackward0": (), "GeluBackward0": (("aten::gelu_backward", GELU_B, 1.3),)}
