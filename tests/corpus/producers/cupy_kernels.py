"""Kernels that CuPy generates, compiled to PTX without a GPU: `python cupy_kernels.py NAME ARCH` prints PTX.

The CUDA source comes from CuPy's own code generators (ElementwiseKernel, ReductionKernel, cupy.sum over CUB's BlockReduce, cupy.partition,
cupyx.jit), which are private functions, the PTX from its NVRTC wrapper. CONSAN_CORPUS_INCLUDES names the CUDA include folders; NVRTC must
be on the loader's path. (`cupy.sort` itself is not here: it is Thrust, compiled into CuPy as machine code.)
"""

import importlib.util
import os
import sys

import numpy as np


def import_without_device():
    """Import CuPy with what it remembers for each device remembered for none, since asking for the device needs a driver."""
    spec = importlib.util.find_spec("cupy")
    module = importlib.util.module_from_spec(spec)
    sys.modules["cupy"] = module
    import cupy._util

    warp_size = {"_get_warpsize": lambda: 32}
    cupy._util.memoize = lambda for_each_device=False: lambda function: warp_size.get(function.__name__, function)
    spec.loader.exec_module(module)


import_without_device()

import cupy  # noqa: E402
from cupy._core import _cub_reduction, _kernel, _reduction, _routines_sorting, core  # noqa: E402
from cupy.cuda import compiler  # noqa: E402
from cupyx import jit  # noqa: E402
from cupyx.jit import _compile, _cuda_types  # noqa: E402

PREAMBLE = "".join(f"#include <cupy/{name}>\n" for name in ("complex.cuh", "carray.cuh", "atomics.cuh", "math_constants.h"))
NDARRAY, INDEXER, SCALAR = 1, 2, 3
FLOAT = np.float32


def array(dimensions=1):
    return _kernel._ArgInfo(NDARRAY, core.ndarray, FLOAT, dimensions, True, True)


def indexer(dimensions=1):
    return _kernel._ArgInfo(INDEXER, object, None, dimensions, True, True)


def elementwise():
    made = cupy.ElementwiseKernel("T x, T y", "T z", "z = x * y + z", "axpy")
    parameters = made.in_params + made.out_params + _kernel._get_param_info("CIndexer _ind", False)
    arguments = (array(), array(), array(), indexer())
    return PREAMBLE + _kernel._get_elementwise_kernel_code(
        arguments, _kernel._TypeMap((("T", FLOAT),)), parameters, made.operation, made.name, ""
    )


def reduction():
    name, mapped, reduced, finished = "reduce_norm", "x * x", "a + b", "y = sqrt(a)"
    made = cupy.ReductionKernel("T x", "T y", mapped, reduced, finished, "0", name)
    parameters = (
        made.in_params
        + made.out_params
        + _kernel._get_param_info("CIndexer _in_ind, CIndexer _out_ind", False)
        + _kernel._get_param_info("int32 _block_stride", True)
    )
    block_stride = _kernel._ArgInfo(SCALAR, np.int32, np.int32, 0, True, True)
    arguments = (array(), array(0), indexer(), indexer(0), block_stride)
    # CuPy passes these three texts as it builds them for the call's types.
    read, written, index = "const float x = _raw_x[_in_ind.get()];", "float &y = _raw_y[_out_ind.get()];", "typedef int IndexT;\n"
    types = _kernel._TypeMap((("T", FLOAT),))
    return PREAMBLE + _reduction._create_reduction_function_code(
        name, 512, "T", parameters, arguments, "0", mapped, reduced, finished, types, read, written, index, ()
    )


class _Generated(Exception):  # noqa: N818 - carries the source out of CuPy
    """CuPy wanted this source compiled."""


def _source_of(function, *arguments):
    """The source that a function of CuPy generates and would compile next."""

    def stop(source, *_, **__):
        raise _Generated(source)

    compiler._compile_module_with_cache = stop
    try:
        function(*arguments)
    except _Generated as generated:
        return generated.args[0]
    raise SystemExit(f"{function} compiled nothing")


def cub_sum():
    """What cupy.sum runs with its default accelerator: a segment for each CTA, through BlockLoad and BlockReduce."""
    scalar = _kernel._ArgInfo(SCALAR, np.int64, np.int64, 0, True, True)
    parameters = (
        _kernel._get_param_info("T in0", True)
        + _kernel._get_param_info("T out0", False)
        + _kernel._get_param_info("int64 _segment_size, int64 _array_size", True)
    )
    types = _kernel._TypeMap((("T", FLOAT), ("type_in0_raw", FLOAT), ("type_out0_raw", FLOAT)))
    return _source_of(
        _cub_reduction._SimpleCubReductionKernel_get_cached_function,
        *("in0", "a + b", "out0 = type_out0_raw(a)", "type_in0_raw", parameters, (array(), array(0), scalar, scalar), types),
        *("cupy_sum", 256, "0", "typedef long long sizeT;", (), 4),
    )


def partition():
    """What cupy.partition runs: bitonic sorts of warps in global memory."""
    return _source_of(_routines_sorting._partition_kernel, np.dtype(FLOAT))


@jit.rawkernel()
def _jit_sum(x, out, size):
    shared = jit.shared_memory(cupy.float32, 256)
    lane = jit.threadIdx.x
    total = cupy.float32(0)
    for i in range(jit.blockIdx.x * jit.blockDim.x + lane, size, jit.gridDim.x * jit.blockDim.x):
        total += x[i]
    shared[lane] = total
    jit.syncthreads()
    step = cupy.uint32(128)
    while step > 0:
        if lane < step:
            shared[lane] += shared[lane + step]
        jit.syncthreads()
        step = step >> cupy.uint32(1)
    if lane == 0:
        out[jit.blockIdx.x] = shared[0]


def jit_sum():
    values = _cuda_types.CArray(np.dtype(FLOAT), 1, True, True)
    types = (values, values, _cuda_types.Scalar(np.dtype(np.uint32)))
    return _compile.transpile(_jit_sum._func, ['extern "C"', "__global__"], "cuda", types, _cuda_types.void).code


KERNELS = {"elementwise": elementwise, "reduction": reduction, "cub_sum": cub_sum, "partition": partition, "jit_sum": jit_sum}


def compile_ptx(name, arch):
    own = os.path.join(os.path.dirname(cupy.__file__), "_core", "include")
    bundled = [os.path.join(own, "cupy", "_cccl", part) for part in ("cub", "thrust", "libcudacxx")]
    folders = [own, *bundled, *os.environ["CONSAN_CORPUS_INCLUDES"].split(os.pathsep)]
    options = (f"-arch=compute_{arch.removeprefix('sm_')}", "-lineinfo", "--std=c++17", *(f"-I{folder}" for folder in folders))
    ptx, *_ = compiler._NVRTCProgram(KERNELS[name](), f"{name}.cu", method="ptx").compile(options)
    return ptx.decode() if isinstance(ptx, bytes) else ptx


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
