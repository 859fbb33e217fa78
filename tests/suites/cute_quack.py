"""A kernel class of quack on random rows: consan run --device cpu cute_quack.py NAME COLUMNS [ROWS]"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import driver
from cute_arrays import Array, begin, from_device, on_device
from cutlass import Float32, Int32
from cutlass.cute.runtime import make_ptr
from quack.cross_entropy import CrossEntropy, CrossEntropyBackward
from quack.rmsnorm import RMSNorm, RMSNormBackward
from quack.softmax import Softmax, SoftmaxBackward
from quack.topk import TopK, TopKBackward

NAME, N = sys.argv[1], int(sys.argv[2])
M: Final = int(sys.argv[3]) if len(sys.argv) > 3 else 8
BEST: Final = 8
rng = np.random.default_rng(1)
x, other, weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((M, N), (M, N), (N,), (N,)))
target = rng.integers(0, N, M).astype(np.int32)
soft = np.exp(x - x.max(1, keepdims=True))
soft /= soft.sum(1, keepdims=True)
scale, lse = 1 / np.sqrt((x * x).mean(1) + 1e-6), np.log(np.exp(x).sum(1))
best = np.argsort(-x, 1)[:, :BEST].astype(np.int32)
EPSILON, IGNORED, CTAS = Float32(1e-6), Int32(-100), Int32(2)


def out(*shape: int, dtype: Any = np.float32) -> Array:
    """What a kernel writes."""
    return np.zeros(shape, dtype)


Row = tuple[Any, list[Any], dict[int, Array]]  # the kernel, its arguments, and what is expected in some of them
KERNELS: Final[dict[str, Callable[[], Row]]] = {
    "softmax": lambda: (Softmax(Float32, N), [x, out(M, N)], {1: soft}),
    "softmax_two_pass": lambda: (Softmax(Float32, N, online_softmax=False), [x, out(M, N)], {1: soft}),
    "softmax_bwd": lambda: (
        SoftmaxBackward(Float32, N),
        [other, soft, out(M, N)],
        {2: soft * (other - (other * soft).sum(1, keepdims=True))},
    ),
    "rmsnorm": lambda: (
        RMSNorm(Float32, N),
        [x, weight, None, None, out(M, N), None, out(M), None, EPSILON],
        {4: x * scale[:, None] * weight},
    ),
    "rmsnorm_residual": lambda: (
        RMSNorm(Float32, N),
        [x, weight, bias, other, out(M, N), out(M, N), out(M), None, EPSILON],
        {5: x + other},
    ),
    "layernorm": lambda: (
        RMSNorm(Float32, N, is_layernorm=True),
        [x, weight, bias, None, out(M, N), None, out(M), out(M), EPSILON],
        {4: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * weight + bias},
    ),
    "rmsnorm_bwd": lambda: (
        RMSNormBackward(Float32, N),
        [x, weight, other, None, scale, None, out(M, N), out(2, N), None, None, CTAS],
        {},
    ),
    "cross_entropy": lambda: (CrossEntropy(Float32, N), [x, target, None, out(M), out(M), None, None, IGNORED], {4: lse}),
    "cross_entropy_grad": lambda: (
        CrossEntropy(Float32, N, online_softmax=False),
        [x, target, None, out(M), out(M), out(M, N), None, IGNORED],
        {4: lse},
    ),
    "cross_entropy_bwd": lambda: (CrossEntropyBackward(Float32, N), [x, target, scale, out(M, N), lse, None, IGNORED], {}),
    "topk": lambda: (TopK(Float32, N, BEST), [x, out(M, BEST), out(M, BEST, dtype=np.int32)], {}),
    "topk_softmax": lambda: (TopK(Float32, N, BEST, softmax=True), [x, out(M, BEST), out(M, BEST, dtype=np.int32)], {}),
    "topk_bwd": lambda: (TopKBackward(Float32, N, BEST), [np.ascontiguousarray(other[:, :BEST]), None, best, out(M, N)], {}),
}
TYPES: Final = {np.dtype(np.float32): Float32, np.dtype(np.int32): Int32}


@cute.jit
def launch(kernel: cutlass.Constexpr, arrays: tuple, shapes: cutlass.Constexpr, given: cutlass.Constexpr, stream: driver.CUstream):
    tensors = []
    for at in cutlass.range_constexpr(len(shapes)):
        layout = cute.make_ordered_layout(shapes[at], order=tuple(reversed(range(len(shapes[at])))))
        tensors.append(cute.make_tensor(arrays[at], layout))
    kernel(*[tensors[each] if isinstance(each, int) else each for each in given], stream)


begin()
kernel, arguments, expected = KERNELS[NAME]()
arrays = [
    np.ascontiguousarray(each, np.int32 if each.dtype.kind == "i" else np.float32) for each in arguments if isinstance(each, np.ndarray)
]
numbers = iter(range(len(arrays)))
given = tuple(next(numbers) if isinstance(each, np.ndarray) else each for each in arguments)
addresses = [on_device(each) for each in arrays]
places = (make_ptr(TYPES[each.dtype], at, cute.AddressSpace.gmem, assumed_align=16) for at, each in zip(addresses, arrays, strict=True))
launch(kernel, tuple(places), tuple(each.shape for each in arrays), given, driver.CUstream(0))
for position, right in expected.items():
    found = from_device(addresses[given[position]], arrays[given[position]])
    print("largest error", float(np.abs(found - right).max()))
