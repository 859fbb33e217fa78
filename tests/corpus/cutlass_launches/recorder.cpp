// A CUDA runtime that launches nothing: it tells a callback what would have been launched, and leaves tensor maps to another.
//
// Linked in place of libcudart into a library of host code that nvcc compiled, so that CUTLASS's own host code, untouched, works out grids,
// shared memory and parameter structures on a machine without a GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <map>
#include <string>

namespace {

using LaunchCallback = void (*)(const char* name, const unsigned* shape, void** arguments);
using EncodeCallback = int (*)(void* map, int type, unsigned rank, void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                               const cuuint32_t* box, const cuuint32_t* steps, int interleave, int swizzle, int l2, int oob);

LaunchCallback on_launch;
EncodeCallback on_encode;

std::map<const void*, std::string>& names() {
    static std::map<const void*, std::string> found;  // filled by static initialisers, so it cannot be one itself
    return found;
}

void tell(const void* function, dim3 grid, dim3 block, dim3 cluster, size_t shared, void** arguments) {
    const unsigned shape[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, cluster.x, cluster.y, cluster.z, (unsigned)shared};
    on_launch(names()[function].c_str(), shape, arguments);
}

}  // namespace

extern "C" {

void recorder_set(LaunchCallback launch, EncodeCallback encode) {
    on_launch = launch;
    on_encode = encode;
}

void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return &handle;
}

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
    names()[host] = name;
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
    dim3 cluster(1, 1, 1);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute& attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeClusterDimension) {
            cluster = dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
        }
    }
    tell(function, config->gridDim, config->blockDim, cluster, config->dynamicSmemBytes, arguments);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t) {
    tell(function, grid, block, dim3(1, 1, 1), shared, arguments);
    return cudaSuccess;
}

// A kernel is known by its host function, and <<<>>> goes the same way as the other launches.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel((const void*)kernel, grid, block, arguments, shared, stream);
}

static struct {
    dim3 grid, block;
    size_t shared;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t) {
    configuration = {grid, block, shared};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void*) {
    *grid = configuration.grid, *block = configuration.block, *shared = configuration.shared;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetLastError() { return cudaSuccess; }
cudaError_t CUDARTAPI cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t CUDARTAPI cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t) { return "no error"; }

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}

// What the host code calls elsewhere: nothing of it is needed to record a launch, and all of it must be there for the library to load.
#define REFUSE(name, ...) \
    cudaError_t CUDARTAPI name(__VA_ARGS__) { return cudaErrorNotSupported; }
REFUSE(cudaDeviceGetAttribute, int*, cudaDeviceAttr, int)
REFUSE(cudaEventCreate, cudaEvent_t*)
REFUSE(cudaEventDestroy, cudaEvent_t)
REFUSE(cudaEventElapsedTime, float*, cudaEvent_t, cudaEvent_t)
REFUSE(cudaEventRecord, cudaEvent_t, cudaStream_t)
REFUSE(cudaEventSynchronize, cudaEvent_t)
REFUSE(cudaFree, void*)
REFUSE(cudaFuncGetAttributes, cudaFuncAttributes*, const void*)
REFUSE(cudaGetDeviceCount, int*)
REFUSE(cudaGetDeviceProperties, cudaDeviceProp*, int)
REFUSE(cudaMalloc, void**, size_t)
REFUSE(cudaMemGetInfo, size_t*, size_t*)
REFUSE(cudaMemcpyAsync, void*, const void*, size_t, cudaMemcpyKind, cudaStream_t)
REFUSE(cudaMemsetAsync, void*, int, size_t, cudaStream_t)
REFUSE(cudaSetDevice, int)
REFUSE(cudaStreamSynchronize, cudaStream_t)
const char* CUDARTAPI cudaGetErrorName(cudaError_t) { return "cudaErrorNotSupported"; }

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
                                        const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps,
                                        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                                        CUtensorMapFloatOOBfill oob) {
    return (CUresult)on_encode(map, type, rank, address, dims, strides, box, steps, interleave, swizzle, l2, oob);
}

}  // extern "C"
