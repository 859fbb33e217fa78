"""What host code does around launches: each way is one program, right and with a race. Arguments, shapes and data arrive as they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from audit_server import server

from consan.audit.runner import AuditRequest

WAIT = "WAIT"
"""In place of `__syncthreads()` in the right form of a program, and of nothing in the other."""
REVERSED = f"tile[threadIdx.x] = p[threadIdx.x]; {WAIT}; p[threadIdx.x] = by * tile[63 - threadIdx.x];"
KERNEL = f"__global__ void k(float *p, float by) {{ __shared__ float tile[64]; {REVERSED} }}\n"
BEFORE = (
    "float *p; cudaMalloc(&p, 4 * 64); float h[64]; for (int i = 0; i < 64; ++i) h[i] = i;\n"
    "  cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice);"
)
AFTER = "cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost); return h[0] == {first} ? 0 : 1;"


@dataclass(frozen=True)
class Host:
    """A program. `first`: the first element of its result, without which it has status 1. `kernels`: all of them with their launches."""

    body: str
    before: str = KERNEL
    first: float = 126
    kernels: tuple[tuple[str, int, str], ...] = (("k", 1, "1 x 64"),)
    racy: str = "k"

    def text(self, *, right: bool) -> str:
        """The source."""
        main = f"int main() {{ {BEFORE}\n  {self.body}\n  {AFTER.format(first=self.first)}\n}}\n"
        text = f"#include <vector>\n#include <cstdlib>\n{self.before}{main}"
        return text.replace(WAIT, "__syncthreads()" if right else "")


_POINTERS = "float by = 2; void *args[] = {&p, &by};"
_DYNAMIC = f"extern __shared__ float tile[];\n__global__ void k(float *p, float by) {{ {REVERSED} }}\n"
HOSTS = {
    "a template's instance as an argument of a template": Host(
        "k<float, by_two<float, 2>><<<1, 64>>>(p);",
        "template <class T, int N> __device__ T by_two(const T &x) { return N * x; }\n"
        "constexpr int bits(unsigned n) { return 32 - __builtin_clz(n) - (__builtin_popcount(n) == 1); }\n"
        "template <class T, T (*F)(const T &)> __global__ void k(T *p) { __shared__ T tile[1 << bits(64)];"
        f" tile[threadIdx.x] = p[threadIdx.x]; {WAIT}; p[threadIdx.x] = F(tile[63 - threadIdx.x]); }}\n",
        kernels=(("k<float, &by_two<float, 2>>", 1, "1 x 64"),),
        racy="k<float, &by_two<float, 2>>",
    ),
    "a captured graph": Host(  # what is captured is not done before the graph is launched, and then each time
        "cudaStream_t stream; cudaStreamCreate(&stream); cudaGraph_t graph; cudaGraphExec_t made; float by = 2, first = 0; size_t nodes;"
        " cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); k<<<1, 64, 0, stream>>>(p, by); by = 9;"
        " cudaMemcpyAsync(&first, p, 4, cudaMemcpyDeviceToHost, stream); cudaStreamEndCapture(stream, &graph);"
        " cudaGraphGetNodes(graph, nullptr, &nodes); if (nodes != 2 || p[0] != 0) return 8;"
        " cudaGraphInstantiate(&made, graph, 0); cudaGraphLaunch(made, stream); if (first != 126) return 9;"
        " cudaGraphLaunch(made, stream); if (first != 0) return 7; cudaGraphExecDestroy(made); cudaGraphDestroy(graph);",
        first=0,
        kernels=(("k", 2, "1 x 64"),),
    ),
    "cudaPointerGetAttributes": Host(
        "cudaPointerAttributes of[2]; cudaPointerGetAttributes(of, p + 5); cudaPointerGetAttributes(of + 1, h);"
        " if (of[0].type != cudaMemoryTypeDevice || of[1].type == cudaMemoryTypeDevice) return 9; k<<<1, 64>>>(p, 2.0f);"
    ),
    "cudaLaunchKernel": Host(f"{_POINTERS} cudaLaunchKernel((void *)k, dim3(1), dim3(64), args, 0, 0);"),
    "cudaLaunchKernel of a template": Host(
        f"{_POINTERS} cudaLaunchKernel((const void *)k<float, 64>, 1, 64, args, 0, nullptr);",
        f"template <class T, int N> __global__ void k(T *p, T by) {{ __shared__ T tile[N]; {REVERSED} }}\n",
        kernels=(("k<float, 64>", 1, "1 x 64"),),
        racy="k<float, 64>",
    ),
    "cudaLaunchKernelEx": Host(
        "cudaLaunchConfig_t config = {}; config.gridDim = 1; config.blockDim = 64; float by = 2; cudaLaunchKernelEx(&config, k, p, by);"
    ),
    "cudaLaunchCooperativeKernel": Host(f"{_POINTERS} cudaLaunchCooperativeKernel((void *)k, 1, 64, args, 0, 0);"),
    "cudaOccupancyMaxPotentialBlockSize": Host(
        "int grid, block, blocks, least, greatest; cudaOccupancyMaxPotentialBlockSize(&grid, &block, k, 0, 64);"
        " cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, block, 0); cudaDeviceGetStreamPriorityRange(&least, &greatest);"
        " if (grid != 4 * blocks || greatest > least) return 9; k<<<1, block>>>(p, 2.0f);"
    ),
    "cublasSetVector": Host(
        "float pairs[128]; for (int i = 0; i < 64; ++i) pairs[2 * i] = i + 1; cublasSetVector(64, 4, pairs, 2, p, 1);"
        " k<<<1, 64>>>(p, 2.0f); cublasGetMatrix(2, 32, 4, p, 2, pairs, 4); cudaMemcpyPeer(p, 0, pairs, 0, 8);",
        f"#include <cublas_v2.h>\n{KERNEL}",
        first=128,
    ),
    "cudaFuncSetAttribute": Host(
        "if (cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10) != cudaSuccess) return 9;"
        " k<<<1, 64, 100 << 10>>>(p, 2.0f);",
        _DYNAMIC,
        kernels=(("k", 1, "1 x 64, 102400 B"),),
    ),
    "cudaMemcpyToSymbol": Host(
        "float by[2] = {1, 2}; cudaMemcpyToSymbol(factor, by, sizeof by); float back = 0;"
        " cudaMemcpyFromSymbol(&back, factor, 4, 4); if (back != 2) return 9; k<<<1, 64>>>(p);",
        f"__constant__ float factor[2];\n__global__ void k(float *p) {{ __shared__ float tile[64]; float by = factor[1]; {REVERSED} }}\n",
    ),
    "cudaMemcpyToSymbol of a part": Host(
        "int n = 1; cudaMemcpyToSymbol(table, &n, 4, offsetof(Table, n)); float by = 2; cudaMemcpyToSymbol(table, &by, 4);"
        " k<<<1, 64>>>(p);",
        "#include <cstddef>\nstruct Table { float by; int n; };\n__constant__ Table table;\n"
        f"__global__ void k(float *p) {{ __shared__ float tile[64]; float by = table.by * table.n; {REVERSED} }}\n",
    ),
    "constants with values": Host(
        "k<<<1, 64>>>(p);",
        "__constant__ float factor[2] = {1, 2};\n__device__ int shift = 0;\n"
        f"__global__ void k(float *p) {{ __shared__ float tile[64]; float by = factor[1] + shift; {REVERSED} }}\n",
    ),
    "streams and events": Host(
        "cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking); cudaEvent_t e, f;"
        " cudaEventCreate(&e); cudaEventCreateWithFlags(&f, cudaEventDisableTiming); k<<<1, 64, 0, a>>>(p, 1.0f); cudaEventRecord(e, a);"
        " cudaStreamWaitEvent(b, e, 0);"
        " k<<<1, 64, 0, b>>>(p, 2.0f); cudaEventRecord(f, b); cudaEventSynchronize(f); float ms = -1; cudaEventElapsedTime(&ms, e, f);"
        " if (ms < 0 || cudaStreamQuery(b) != cudaSuccess) return 9; cudaEventDestroy(e); cudaStreamSynchronize(a); cudaStreamDestroy(a);",
        first=0,
        kernels=(("k", 2, "1 x 64"),),
    ),
    "default arguments": Host(
        "k<<<1, 64>>>(p);",
        f"__global__ void k(float *p, float by = 2.0f, const int *none = nullptr) {{ __shared__ float tile[64]; {REVERSED} }}\n",
    ),
    "a pointer to a kernel": Host(
        "void (*chosen)(float *, float) = p != nullptr ? k : other; chosen<<<1, 64>>>(p, 2.0f); other<<<1, 1>>>(p + 63, 3.0f);",
        f"{KERNEL}__global__ void other(float *p, float by) {{ *p = by; }}\n",
        kernels=(("k", 1, "1 x 64"), ("other", 1, "1 x 1")),
    ),
    "a table of kernels": Host(
        "using Kernel = void (*)(float *, float); Kernel all[] = {other, k}; for (Kernel each : all) each<<<1, 64>>>(p, 2.0f);",
        f"{KERNEL}__global__ void other(float *p, float by) {{ p[threadIdx.x] += 0 * by; }}\n",
        kernels=(("other", 1, "1 x 64"), ("k", 1, "1 x 64")),
    ),
    "functions of the device by pointer": Host(
        "k<<<1, 64>>>(p, 1);",
        "typedef float (*Operation)(float);\n__device__ float once(float x) { return x; }\n"
        "__device__ float twice(float x) { return 2 * x; }\n"
        "__device__ Operation operations[] = {once, twice};\n"
        f"__global__ void k(float *p, int number) {{ __shared__ float tile[64]; float by = operations[number](1.0f); {REVERSED} }}\n",
    ),
    "overloads of a kernel": Host(
        "const float *q = p; k<<<1, 64>>>(q); k<<<1, 64>>>(p, 2.0f); k<<<1, 64, 0>>>(p, 0L);",
        f'{KERNEL}__global__ void k(float *p);\n__global__ void k(const float *p) {{ if (*p < 0) printf(""); }}\n'
        "template <class T> __global__ void k(T *p, long by) { p[threadIdx.x] += by; }\n",
        kernels=(("k", 2, "1 x 64"), ("k<float>", 1, "1 x 64")),
    ),
    "several kernels in a row": Host(
        "add<<<2, 32>>>(p, 1.0f); k<<<1, 64>>>(p, 2.0f); add<<<2, 32>>>(p, -2.0f);",
        f"{KERNEL}__global__ void add(float *p, float by) {{ p[blockIdx.x * blockDim.x + threadIdx.x] += by; }}\n",
        kernels=(("add", 2, "2 x 32"), ("k", 1, "1 x 64")),
    ),
    "cuBLAS between": Host(
        "cublasHandle_t handle; cublasCreate(&handle); float one = 1, none = 0, *q; cudaMalloc(&q, 4 * 64); k<<<1, 64>>>(p, 1.0f);"
        " add<<<1, 64>>>(q); cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, p, 8, q, 8, &none, p, 8);"
        " k<<<1, 64>>>(p, 0.0f); cublasSscal(handle, 64, &one, p, 1); cublasDestroy(handle);",
        f"#include <cublas_v2.h>\n{KERNEL}__global__ void add(float *p) {{ p[threadIdx.x] = threadIdx.x; }}\n",
        first=0,
        kernels=(("k", 2, "1 x 64"), ("add", 1, "1 x 64")),
    ),
    "thrust between": Host(
        "thrust::device_vector<float> v(64); thrust::sequence(v.begin(), v.end(), 1.0f);"
        " k<<<1, 64>>>(thrust::raw_pointer_cast(v.data()), 1.0f); thrust::sort(thrust::device, v.begin(), v.end());"
        " thrust::transform(v.begin(), v.end(), v.begin(), Twice{1});"
        " thrust::inclusive_scan(thrust::cuda::par.on(0), v.begin(), v.end(), v.begin()); thrust::device_ptr<float> q(p);"
        " thrust::copy(v.begin(), v.end(), q); k<<<1, 64>>>(p, thrust::reduce(v.begin(), v.end()) / 91520);",
        "#include <thrust/device_vector.h>\n#include <thrust/sequence.h>\n#include <thrust/sort.h>\n#include <thrust/transform.h>\n"
        "#include <thrust/reduce.h>\n#include <thrust/scan.h>\n#include <thrust/copy.h>\n#include <thrust/execution_policy.h>\n"
        f"struct Twice {{ int by; __device__ float operator()(float x) const {{ return 2 * by * x; }} }};\n{KERNEL}",
        first=4160,
        kernels=(("k", 2, "1 x 64"),),
    ),
    "CUB between": Host(
        "void *storage = nullptr; size_t bytes = 0; float *q, *chosen; int *count; cudaMalloc(&q, 256); cudaMalloc(&count, 4);"
        " cudaMalloc(&chosen, 256); k<<<1, 64>>>(p, 1.0f); cub::DeviceScan::ExclusiveSum(storage, bytes, p, q, 64);"
        " if (bytes == 0) return 8; cudaMalloc(&storage, bytes); cub::DeviceScan::ExclusiveSum(storage, bytes, p, q, 64);"
        " cub::DeviceSelect::Flagged(storage, bytes, q, p, chosen, count, 64);"
        " cub::DeviceRadixSort::SortKeysDescending(storage, bytes, q, chosen, 64);"
        " int kept; cudaMemcpy(&kept, count, 4, cudaMemcpyDefault); if (kept != 63) return 9;"
        " cub::DeviceReduce::Max(storage, bytes, chosen, p + 63, 64); k<<<1, 64>>>(p, 2.0f);",
        f"#include <cub/cub.cuh>\n{KERNEL}",
        first=4032,
        kernels=(("k", 2, "1 x 64"),),
    ),
    "cuFFT between": Host(
        "cufftHandle plan, back; cufftComplex *q; cudaMalloc(&q, 33 * 8); "
        " if (cufftPlan1d(&plan, 64, CUFFT_R2C, 1) != CUFFT_SUCCESS) return 8;"
        " int n[] = {64}; cufftPlanMany(&back, 1, n, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2R, 1); k<<<1, 64>>>(p, 1.0f);"
        " cufftExecR2C(plan, p, q); cufftComplex sum; cudaMemcpy(&sum, q, 8, cudaMemcpyDefault); if (sum.x != 2016 || sum.y != 0) return 9;"
        " cufftExecC2R(back, q, p); add<<<1, 64>>>(p); k<<<1, 64>>>(p, 1.0f); cufftDestroy(plan);",
        f"#include <cufft.h>\n{KERNEL}__global__ void add(float *p) {{ p[threadIdx.x] = roundf(p[threadIdx.x] / 64); }}\n",
        first=0,
        kernels=(("k", 2, "1 x 64"), ("add", 1, "1 x 64")),
    ),
    "numbers of cuRAND": Host(
        "void *g; float *q, h2[512], sum = 0; cudaMalloc(&q, sizeof h2); curandCreateGenerator(&g, 100);"
        " curandSetPseudoRandomGeneratorSeed(g, 7); curandGenerateUniform(g, q, 512); cudaMemcpy(h2, q, sizeof h2, cudaMemcpyDefault);"
        " for (float each : h2) if (each <= 0 || each > 1) return 8; else sum += each; if (sum < 200 || sum > 312) return 9;"
        " curandGenerateNormal(g, q, 512, 10, 1); cudaMemcpy(h2, q, sizeof h2, cudaMemcpyDefault); sum = 0;"
        " for (float each : h2) sum += each; if (sum < 4608 || sum > 5632) return 10; curandDestroyGenerator(g); k<<<1, 64>>>(p, 2.0f);",
        'extern "C" { int curandCreateGenerator(void **, int); int curandSetPseudoRandomGeneratorSeed(void *, unsigned long long);\n'
        "int curandGenerateUniform(void *, float *, size_t); int curandGenerateNormal(void *, float *, size_t, float, float);\n"
        f"int curandDestroyGenerator(void *); }}\n{KERNEL}",
    ),
    "vectors of cuBLAS": Host(
        "cublasHandle_t handle; cublasCreate(&handle); float *q, two = 2, one = 1, none = 0, dot, sum, norm, product; cudaMalloc(&q, 256);"
        " k<<<1, 64>>>(p, 1.0f); cublasScopy(handle, 64, p, 1, q, 1); cublasSscal(handle, 64, &two, q, 1);"
        " cublasSaxpy(handle, 64, &one, p, 1, q, 1); cublasSdot(handle, 2, p + 62, 1, q + 62, 1, &dot);"
        " cublasSasum(handle, 2, p + 61, 1, &sum);"
        " cublasSnrm2(handle, 2, p + 59, 1, &norm); cublasSgemv(handle, CUBLAS_OP_T, 8, 8, &one, p, 8, p + 56, 1, &none, q, 1);"
        " cudaMemcpy(&product, q, 4, cudaMemcpyDeviceToHost); if (dot != 3 || sum != 3 || norm != 5 || product != 1708) return 9;"
        " k<<<1, 64>>>(p, 2.0f);",
        f"#include <cublas_v2.h>\n{KERNEL}",
        first=0,
        kernels=(("k", 2, "1 x 64"),),
    ),
    "names that CUDA 13 has removed": Host(
        "struct cudaDeviceProp of; cudaGetDeviceProperties(&of, 0); if (of.clockRate <= 0 || of.warpSize != 32) return 9;"
        " cudaMemPrefetchAsync(p, 256, 0); cudaMemAdvise(p, 256, cudaMemAdviseSetReadMostly, 0); int grid, block;"
        " cudaOccupancyMaxPotentialBlockSize(&grid, &block, k, 0, 64); if (block != 64) return 9;"
        " k<<<1, 64>>>(p, 2.0f); cudaThreadSynchronize();",
        f"__global__ void k(float *p, float by) {{ __shared__ float tile[64]; by = __shfl(by, 1) + __shfl_xor(0.0f, 1); {REVERSED} }}\n",
    ),
    "functions of the host in a stream": Host(
        "float by = 1; cudaLaunchHostFunc(0, doubled, &by); cudaStreamAddCallback(0, added, &by, 0); k<<<1, 64>>>(p, by - 1);",
        "void doubled(void *by) { *(float *)by *= 2; }\nvoid added(cudaStream_t, cudaError_t, void *by) { *(float *)by += 1; }\n" + KERNEL,
    ),
    "textures": Host(
        "cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(); cudaArray_t array; cudaMallocArray(&array, &f, 8, 8);"
        " cudaMemcpy2DToArray(array, 0, 0, h, 32, 32, 8, cudaMemcpyHostToDevice); float *q, *out; size_t pitch;"
        " cudaMallocPitch(&q, &pitch, 32, 8); cudaMemcpy2D(q, pitch, h, 32, 32, 8, cudaMemcpyHostToDevice); cudaMalloc(&out, 256);"
        " cudaResourceDesc r = {}; cudaTextureDesc t = {}; cudaTextureObject_t a, b, c, none;"
        " r.resType = cudaResourceTypeArray; r.res.array.array = array; cudaCreateTextureObject(&a, &r, &t, nullptr);"
        " r.resType = cudaResourceTypeLinear; r.res.linear = {p, f, 256}; cudaCreateTextureObject(&b, &r, &t, nullptr);"
        " r.resType = cudaResourceTypePitch2D; r.res.pitch2D = {q, f, 8, 8, pitch}; t.normalizedCoords = 1;"
        " t.filterMode = cudaFilterModeLinear; cudaCreateTextureObject(&c, &r, &t, nullptr); t.sRGB = 1;"
        " if (cudaCreateTextureObject(&none, &r, &t, nullptr) != cudaErrorNotSupported) return 9;"
        " k<<<1, 64>>>(out, a, b, c);"
        " cudaMemcpy(p, out, 256, cudaMemcpyDefault); cudaDestroyTextureObject(a); cudaFreeArray(array);",
        "__global__ void k(float *p, cudaTextureObject_t a, cudaTextureObject_t b, cudaTextureObject_t c) {\n"
        "__shared__ float tile[64]; float x = threadIdx.x % 8 + 0.5f, y = threadIdx.x / 8 + 0.5f;\n"
        "tile[threadIdx.x] = tex2D<float>(a, x, y) + tex1Dfetch<float>(b, threadIdx.x) + tex2D<float>(c, x / 8, y / 8);\n"
        f"{WAIT}; p[threadIdx.x] = tile[63 - threadIdx.x]; }}\n",
        first=189,
    ),
    "a struct by value": Host(
        "k<<<1, 64>>>({p, 2.0f, 64});",
        "struct Given { float *p; float by; int n; };\n"
        f"__global__ void k(const Given given) {{ __shared__ float tile[64]; float *p = given.p, by = given.by; {REVERSED} }}\n",
    ),
    "managed and pinned memory": Host(
        "float *m, *pinned; cudaMallocManaged(&m, 256); cudaMallocHost(&pinned, 256); for (int i = 0; i < 64; ++i) m[i] = pinned[i] = i;"
        " k<<<1, 64>>>(m, 2.0f); cudaDeviceSynchronize(); cudaMemcpyAsync(p, m, 256, cudaMemcpyDeviceToDevice, 0); cudaFreeHost(pinned);"
    ),
}


_QUICK = (
    "cudaLaunchKernel",
    "streams and events",
    "functions of the device by pointer",
    "overloads of a kernel",
    "vectors of cuBLAS",
    "textures",
)  # each takes about a second
_CASES = [pytest.param(host, id=name, marks=[] if name in _QUICK else pytest.mark.slow) for name, host in HOSTS.items()]


@pytest.mark.parametrize("right", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("host", _CASES)
def test_a_launch_arrives_as_the_host_makes_it(host: Host, right: bool) -> None:
    result = server().result(AuditRequest("k.cu", host.text(right=right)))
    found = {(row.kernel, row.launches, row.launch): row.verdict for row in result.rows}
    assert {each: found.get(each) for each in host.kernels} == {
        each: "violations" if each[0] == host.racy and not right else "clean" for each in host.kernels
    }, (found, [row.note for row in result.rows], result.notes)
    assert len(found) == len(host.kernels)
    assert [note for note in result.notes if "status" in note] == [] or not right


def test_an_input_beside_the_source_is_read(tmp_path: Path) -> None:
    """The program runs in another folder."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/by.txt").write_text("2")
    opened = 'FILE *f = fopen("data/by.txt", "r"); if (f == nullptr || fopen("data/none.txt", "r") != nullptr) return 9;'
    text = Host(f"{opened} k<<<1, 64>>>(p, fgetc(f) - '0');").text(right=True)
    result = server().result(AuditRequest(str(tmp_path / "k.cu"), text))
    assert ([row.verdict for row in result.rows], result.notes) == (["clean"], ())
