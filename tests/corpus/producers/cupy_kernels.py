"""Kernels that CuPy generates, compiled to PTX without a GPU: `python cupy_kernels.py NAME ARCH` prints PTX.

The CUDA source comes from CuPy's own code generators (ElementwiseKernel, ReductionKernel, cupyx.jit), which are private functions, the PTX
from its NVRTC wrapper. CONSAN_CORPUS_INCLUDES names the CUDA include folders; NVRTC must be on the loader's path.
"""

import os
import sys

import cupy
import numpy as np
from cupy._core import _kernel, _reduction, core
from cupy.cuda import compiler
from cupyx import jit
from cupyx.jit import _compile, _cuda_types

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


KERNELS = {"elementwise": elementwise, "reduction": reduction, "jit_sum": jit_sum}


def compile_ptx(name, arch):
    own = os.path.join(os.path.dirname(cupy.__file__), "_core", "include")
    folders = [own, *os.environ["CONSAN_CORPUS_INCLUDES"].split(os.pathsep)]
    options = (f"-arch=compute_{arch.removeprefix('sm_')}", "-lineinfo", "--std=c++17", *(f"-I{folder}" for folder in folders))
    ptx, *_ = compiler._NVRTCProgram(KERNELS[name](), f"{name}.cu", method="ptx").compile(options)
    return ptx.decode() if isinstance(ptx, bytes) else ptx


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
