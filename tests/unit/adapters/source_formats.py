"""Sources of kernels that a program makes from literals: formats, and parts that it joins."""

from __future__ import annotations


def source(sync: str, op: str = "=") -> str:
    return f"""
extern "C" __global__ void one(float *x) {{
    if (x) {{ {sync}; }}
    x[threadIdx.x] {op} x[0] + 1.f;
}}"""


PERCENT = """__global__ void two(float *x, float *y) {
    y[threadIdx.x] = x[threadIdx.x];
    %s
    x[threadIdx.x] %s y[0];
}"""


def joined(*, racy: bool) -> str:
    code = """
__global__ void three(float *x, float *y) {
    y[threadIdx.x] = x[threadIdx.x];
    """
    if not racy:
        code += "__syncthreads();"
    code += """
    x[threadIdx.x] = y[0];  // three
}"""
    return code


HEAD = """__device__ float half(float x) { return x / 2; }
"""
# between
BODY = """__global__ void four(float *x) {
    x[threadIdx.x] = half(x[threadIdx.x]);
}"""
SHORT = "__global__ void five(float *x, %s n) { x[threadIdx.x] = n; }"
