# SPDX-License-Identifier: Apache-2.0
"""Operators with inputs of every kind, inside a range "window" under torch.profiler, whose trace goes to theirs.json. Used by test_inputs.py."""
import json
import sys
import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

warnings.simplefilter("ignore")
TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.bfloat16,
         torch.bool, torch.complex64, torch.complex128]
VALUES = [0.0, 1.0, -2.5, 1e-7, 1 / 3, 1e20, -1e5, 123456789012.5, float("inf"), -float("inf"), float("nan"), 2 ** 40, -7, True, False]


def types():
    """By themselves: in a program that has also many sizes, the values of what makes a tensor may be too many."""
    x = torch.randn(4, 6)
    for dtype in TYPES:
        x.to(dtype).to(torch.float32)


def tensors():
    x = torch.randn(4, 6)
    flat, scalar, deep = torch.ones(11), torch.ones(()), torch.ones([1] * 11 + [3])
    for tensor in (flat, scalar, deep, torch.empty((2, 0, 3)), x.t(), x[1:, ::2], x.expand(3, 4, 6), torch.empty(0),
                   nn.Parameter(torch.ones(2)), torch.ones(3).as_subclass(Mine), torch.randn(3, dtype=torch.complex64).conj()):
        torch.neg(tensor)
        torch.add(tensor, tensor)
    with torch.inference_mode():
        torch.neg(torch.ones(3))
    torch.neg(x[:1, :1].expand(4, 6))  # strides of 0, and then none
    torch.neg(x.to_sparse())
    torch.neg(torch._efficientzerotensor((3, 4)))
    for tensor in kinds():
        torch.is_same_size(tensor, tensor)
        torch.nn.functional.relu(tensor) if tensor.layout == torch._mkldnn else tensor.dequantize() if tensor.is_quantized else tensor.to_dense()
    if hasattr(torch, "func"):
        for sizes in ((3, 4), (3, 1, 1, 2, 1, 2, 1)):
            torch.func.vmap(torch.neg)(torch.ones(sizes))
            torch.func.grad(lambda x: x.neg().sum())(torch.ones(sizes))
            torch.func.jvp(torch.neg, (torch.ones(sizes),), (torch.ones(sizes),))
    for bits in (16, 32, 64):
        if hasattr(torch, f"uint{bits}"):
            torch.ones(2, dtype=getattr(torch, f"int{bits}")).view(getattr(torch, f"uint{bits}")).view(-1)
    for tensor in subclassed(None):
        torch.neg(tensor)
    torch.neg(torch.ones(5, device="meta"))
    torch.neg(torch.ones(1, device="meta").expand(2 ** 40, 2 ** 20))
    torch.ones(1).expand(2 ** 33)[5].add(1)


def kinds():
    """Tensors of other kinds than the plain one, which have sizes all the same."""
    x, deep = torch.randn(4, 6), torch.randn(3, 1, 2, 1, 2, 1)
    yield from (torch.quantize_per_tensor(x, 0.1, 0, dtype) for dtype in (torch.quint8, torch.qint8, torch.qint32))
    yield torch.quantize_per_tensor(deep, 0.1, 0, torch.quint8).transpose(0, 4)
    yield torch.quantize_per_channel(x, torch.ones(4), torch.zeros(4), 0, torch.qint8)
    yield from (torch.ones(4, 2, 3, 5).to_mkldnn(), x.to_mkldnn())
    yield from (x.to_sparse(), x.to_sparse_csr(), torch.ones(2, 3, 4).to_sparse_csr(), x.double().to_sparse_csc())
    yield from (x.to_sparse_bsr((2, 3)), x.to_sparse_bsc((2, 3)))


class Around(torch.Tensor):
    """Another tensor; policy: what it computes itself."""

    @staticmethod
    def __new__(cls, inner, policy=None):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device,
                                                   dispatch_sizes_strides_policy=policy)

    def __init__(self, inner, policy=None):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if "is_same_size" in str(function):
            return True
        return function(*(each.inner if isinstance(each, Around) else each for each in args), **(kwargs or {}))


def subclassed(policy):
    return [Around(inner, policy) for inner in (torch.ones(4, 6).t(), torch.ones(()), torch.ones(3, 1, 2, 1, 2, 1))]


def known():
    """What there is to know of them, from themselves."""
    for tensor in [*kinds(), *subclassed(None)]:
        torch.is_same_size(tensor, tensor)
        strides = tensor.stride() if tensor.layout == torch.strided else ()
        print(json.dumps([list(tensor.shape), list(strides), str(tensor.dtype)]))


class Mine(torch.Tensor):
    pass


def lists():
    x = torch.ones(4, 6)
    torch.cat([x, x], 1), torch.stack([x]), torch.cat([x] * 30), torch.cat([x] * 31), torch._foreach_add([x] * 40, [1.0] * 40)
    torch._foreach_mul([x, x], [2.0, 3.0])
    x[torch.tensor([0])], x[:, torch.tensor([1])], x[None, ..., 1]
    torch.ones(40).view([1] * 35 + [40]), x.view(2, -1, 3), x.sum([0, 1]), x.sum()
    torch.einsum("ij,jk->ik", x, x.t()), torch.meshgrid(torch.ones(2), torch.ones(3), indexing="ij")
    nn.functional.interpolate(x[None, None], scale_factor=(2.0, 3.0)), nn.functional.pad(x, (1, 2))


def values():
    for value in VALUES:
        torch.full((2,), value)
    x = torch.ones(2, requires_grad=True)
    nn.functional.gelu(x, approximate="tanh").sum().backward()
    torch.clamp(torch.ones(2), max=1)
    nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3), padding="same")
    with record_function("range with a text", "text"):
        pass


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        torch.neg(x)
        raise RuntimeError("on purpose")


def throwing():
    """Records of operators that throw are closed all the same."""
    for _ in range(300):
        for operate in (lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)), lambda: torch.ones(2).view(3),
                        lambda: Raises.apply(torch.ones(2, requires_grad=True))):
            try:
                operate()
            except RuntimeError:
                pass


def untrusted():
    """Not compared: what we do not trust has no sizes here."""
    torch.neg(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        torch.neg(torch.ones(7, 7))


def computing():
    """Tensors that compute sizes or strides themselves, which would run code of theirs: what lies where sizes do is not read."""
    for policy in (None, "strides", "sizes"):
        with record_function(str(policy)):
            torch.mul(Around(torch.ones(3, 5), policy), 2.0)


def main():
    work = globals()[sys.argv[1]]
    torch.manual_seed(1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        with record_function("window"):
            work()
    prof.export_chrome_trace("theirs.json")


if __name__ == "__main__":
    main()
