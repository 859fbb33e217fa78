// The CUDA runtime for programs that are audited. Memory of the device is memory of the process at the same address, so a copy is a copy;
// on a GPU all but its variables. A launch goes to the device, by the functions that consan sets, and has ended when the call returns: streams and events order
// nothing more.
//
// Not here: graphs that are built node by node, surfaces, peers. A program that calls one of these ends with the name of the function.
#include "cuda_runtime.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace {
struct Hooks {
    void *(*allocate)(size_t bytes);
    void (*release)(void *address);
    // The address of a variable of the device, and its size; null: there is none.
    void *(*symbol)(const void *host, size_t *bytes);
    // Returns a cudaError_t.
    int (*launch)(const void *stub, const unsigned *shape, size_t shared, int cooperative, int count, const void *const *values, const size_t *sizes);
    int (*attributes)(const void *stub, cudaFuncAttributes *attributes);
    // The handle of a new texture object (consan_textures.h has its fields); 0: there is none.
    unsigned long long (*texture)(const long long *fields);
    void (*release_texture)(unsigned long long handle);
    // Copies between host and device, and returns a cudaError_t; null: the process reaches all memory of the device.
    int (*copy)(void *to, const void *from, size_t bytes);
    // Whether an address is in memory that was allocated through the hooks.
    int (*known)(const void *address);
    // The launches from here on are kept for a graph, or no longer. Returns the number of the next one, by which `replay` makes it.
    int (*capture)(int begins);
    int (*replay)(int number);
} hooks;

// A graph is what a capture saw, in its order: the order of one stream.
using Work = std::vector<std::function<cudaError_t()>>;
std::unique_ptr<Work> captured; // null: nothing is captured

struct Shape {
    dim3 grid, block;
    size_t shared;
} next;

cudaError_t last = cudaSuccess;
unsigned made = 0; // streams and events
std::string source_folder; // the folder of the program's source, with a slash

cudaError_t noted(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}

cudaError_t launch(const void *stub, const Shape &shape, int cooperative, dim3 cluster, int count, const void *const *values, const size_t *sizes) {
    const int number = captured ? hooks.capture(1) : 0;
    const unsigned numbers[] = {shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z, cluster.x, cluster.y, cluster.z};
    const auto status = noted(cudaError_t(hooks.launch(stub, numbers, shape.shared, cooperative, count, values, sizes)));
    if (captured && hooks.capture(0) > number) captured->push_back([number] { return noted(cudaError_t(hooks.replay(number))); });
    return status;
}

// Does something, or keeps it for the graph that is captured.
template <class F> cudaError_t in_stream(F work) {
    if (!captured) return work();
    captured->push_back(work);
    return cudaSuccess;
}

cudaError_t allocated(void **address, size_t bytes) {
    if (address == nullptr) return noted(cudaErrorInvalidValue);
    *address = bytes == 0 ? nullptr : hooks.allocate(bytes);
    return *address != nullptr || bytes == 0 ? cudaSuccess : noted(cudaErrorMemoryAllocation);
}

cudaError_t released(void *address) {
    if (address != nullptr) hooks.release(address);
    return cudaSuccess;
}

cudaError_t copied(void *to, const void *from, size_t bytes) {
    if (bytes == 0) return cudaSuccess;
    if (to == nullptr || from == nullptr) return noted(cudaErrorInvalidValue);
    if (hooks.copy != nullptr) return noted(cudaError_t(hooks.copy(to, from, bytes)));
    std::memmove(to, from, bytes);
    return cudaSuccess;
}

cudaError_t copied_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row) std::memmove(static_cast<char *>(to) + row * to_pitch, static_cast<const char *>(from) + row * from_pitch, width);
    return cudaSuccess;
}

void *placed(const void *symbol, size_t offset, size_t bytes) {
    size_t whole = 0;
    char *address = static_cast<char *>(hooks.symbol(symbol, &whole));
    return address == nullptr || offset + bytes > whole ? nullptr : address + offset;
}

// A signal that ends the program: the places of its calls, innermost first, for the table. The handler is gone then, and the signal comes again.
void ended(int) {
    void *calls[32];
    const int count = backtrace(calls, 32);
    char line[32 * 20], *at = line + std::sprintf(line, "\nconsan: calls");
    for (int i = 2; i < count; ++i) at += std::sprintf(at, " %zx", reinterpret_cast<size_t>(calls[i]));
    *at++ = '\n';
    if (write(2, line, at - line) < 0) return;
}

void watch_signals() {
    static char stack[1 << 16];
    void *call;
    backtrace(&call, 1); // which loads a library the first time
    stack_t given = {};
    given.ss_sp = stack;
    given.ss_size = sizeof stack;
    sigaltstack(&given, nullptr);
    struct sigaction action = {};
    action.sa_handler = ended;
    action.sa_flags = SA_RESETHAND | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}

template <class T> cudaError_t handle(T *made_handle) {
    *made_handle = reinterpret_cast<T>(size_t(0x1000 + 16 * ++made));
    return cudaSuccess;
}
} // namespace

extern "C" {
void consan_set_hooks(const Hooks *given) { hooks = *given; }
// Before `main`. `source`: its file.
void consan_begin(const char *source) {
    watch_signals();
    source_folder = std::string(source, std::string(source).rfind('/') + 1);
}
// The program's `fopen` (building.py). It runs in a folder of its own; inputs may lie beside its source.
FILE *__wrap_fopen(const char *name, const char *mode) {
    FILE *opened = fopen(name, mode);
    const int error = errno;
    if (opened == nullptr && name != nullptr && *name != '/' && *mode == 'r') opened = fopen((source_folder + name).c_str(), mode);
    if (opened == nullptr) std::fprintf(stderr, "\nconsan: it could not open %s\n", name);
    errno = error;
    return opened;
}
void *consan_allocate(size_t bytes) { return hooks.allocate(bytes); }
void consan_release(void *address) { hooks.release(address); }
void consan_shape(dim3 grid, dim3 block, size_t shared, cudaStream_t) { next = {grid, block, shared}; }
void consan_hand_over(const void *stub, int count, const void *const *values, const size_t *sizes) {
    launch(stub, next, 0, dim3(1, 1, 1), count, values, sizes);
}

cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **values, size_t shared, cudaStream_t) {
    return launch(stub, {grid, block, shared}, 0, dim3(1, 1, 1), -1, values, nullptr);
}
cudaError_t cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **values, size_t shared, cudaStream_t) {
    return launch(stub, {grid, block, shared}, 1, dim3(1, 1, 1), -1, values, nullptr);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *stub, void **values) {
    dim3 cluster(1, 1, 1);
    int cooperative = 0;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            const auto &given = config->attrs[i].val.clusterDim;
            cluster = dim3(given.x, given.y, given.z);
        }
        if (config->attrs[i].id == cudaLaunchAttributeCooperative) cooperative = config->attrs[i].val.cooperative;
    }
    return launch(stub, {config->gridDim, config->blockDim, config->dynamicSmemBytes}, cooperative, cluster, -1, values, nullptr);
}

cudaError_t cudaMalloc(void **address, size_t bytes) { return allocated(address, bytes); }
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t) { return allocated(address, bytes); }
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned) { return allocated(address, bytes); }
cudaError_t cudaMallocHost(void **address, size_t bytes) { return allocated(address, bytes); }
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned) { return allocated(address, bytes); }
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) { return *device = host, cudaSuccess; }
cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocated(address, *pitch * height);
}
cudaError_t cudaFree(void *address) { return released(address); }
cudaError_t cudaFreeAsync(void *address, cudaStream_t) { return released(address); }
cudaError_t cudaFreeHost(void *address) { return released(address); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) { return copied(to, from, bytes); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return in_stream([=] { return copied(to, from, bytes); });
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind) {
    return copied_rows(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind, cudaStream_t) {
    return copied_rows(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t bytes) { return copied(to, from, bytes); }
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t) { return copied(to, from, bytes); }
cudaError_t cudaMemset(void *to, int value, size_t bytes) { return bytes ? (std::memset(to, value, bytes), cudaSuccess) : cudaSuccess; }
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
    return in_stream([=] { return cudaMemset(to, value, bytes); });
}
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row) std::memset(static_cast<char *>(to) + row * pitch, value, width);
    return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind) {
    void *to = placed(symbol, offset, bytes);
    return to ? copied(to, from, bytes) : noted(cudaErrorInvalidSymbol);
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
    const void *from = placed(symbol, offset, bytes);
    return from ? copied(to, from, bytes) : noted(cudaErrorInvalidSymbol);
}
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) { return (*address = placed(symbol, 0, 0)) ? cudaSuccess : noted(cudaErrorInvalidSymbol); }
cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) { return hooks.symbol(symbol, bytes) ? cudaSuccess : noted(cudaErrorInvalidSymbol); }
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) { return *available = *total = size_t(1) << 34, cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    std::memset(attributes, 0, sizeof *attributes);
    attributes->type = hooks.known(pointer) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->devicePointer = attributes->hostPointer = const_cast<void *>(pointer);
    return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
cudaError_t cudaHostRegister(void *, size_t, unsigned) { return cudaErrorNotSupported; }
cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *stub) {
    std::memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    return noted(cudaError_t(hooks.attributes(stub, attributes)));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int threads, size_t, unsigned) {
    *blocks = threads > 0 ? 2048 / threads : 0;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub, int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}

cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidDevice; }
cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaErrorPeerAccessNotEnabled; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) { return *config = cudaSharedMemBankSizeFourByte, cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void *, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return last; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    std::memset(properties, 0, sizeof *properties);
    std::strcpy(properties->name, "consan's virtual machine");
    properties->totalGlobalMem = size_t(1) << 34;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->sharedMemPerMultiprocessor = 228 << 10;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->maxBlocksPerMultiProcessor = 32;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 2147483647;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->totalConstMem = 65536;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->l2CacheSize = 50 << 20;
    properties->cooperativeLaunch = properties->managedMemory = properties->concurrentKernels = properties->unifiedAddressing = 1;
    properties->concurrentManagedAccess = properties->canMapHostMemory = 1;
    properties->pageableMemoryAccess = 0;  // kernels reach what the runtime has allocated, and nothing else
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return *value = 1024, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock: return *value = 48 << 10, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return *value = 227 << 10, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return *value = 228 << 10, cudaSuccess;
    case cudaDevAttrMultiProcessorCount: return *value = 4, cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return *value = 2048, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: return *value = 9, cudaSuccess;
    case cudaDevAttrWarpSize: return *value = 32, cudaSuccess;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing: return *value = 1, cudaSuccess;
    default: return *value = 0, cudaSuccess;
    }
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return handle(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return handle(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) { return handle(stream); }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -1, cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return last; }
cudaError_t cudaStreamQuery(cudaStream_t) { return last; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void *, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void *data) {
    return in_stream([=] { return function(data), cudaSuccess; });
}

// Graphs by capture. Those that are built node by node are not served: a program that calls such a function ends, and its row says which.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    if (captured) return noted(cudaErrorIllegalState);
    captured = std::make_unique<Work>();
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
    *graph = reinterpret_cast<cudaGraph_t>(captured.release());
    return *graph ? cudaSuccess : noted(cudaErrorIllegalState);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
    *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
    *made = reinterpret_cast<cudaGraphExec_t>(new Work(*reinterpret_cast<Work *>(graph)));
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(made, graph, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    for (const auto &work : *reinterpret_cast<Work *>(graph))
        if (const cudaError_t error = in_stream(work)) return error;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete reinterpret_cast<Work *>(graph), cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete reinterpret_cast<Work *>(graph), cudaSuccess; }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    if (nodes != nullptr) return noted(cudaErrorNotSupported);
    return *count = reinterpret_cast<Work *>(graph)->size(), cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned) {
    return function(stream, last, data), cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return handle(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) { return handle(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return last; }
cudaError_t cudaEventQuery(cudaEvent_t) { return last; }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t) { return *milliseconds = 1.0f, cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaGetLastError() {
    const cudaError_t error = last;
    if (error != cudaErrorLaunchFailure && error != cudaErrorIllegalAddress) last = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char *cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an error of CUDA, as consan's runtime says"; }
const char *cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }
}

// What hosts call of cuRAND: numbers of the distribution that they ask for, and not those that cuRAND makes.
namespace {
using Generator = std::mt19937_64;

template <class T, class Distribution> int filled(Generator *generator, T *to, size_t count, Distribution of) {
    for (size_t i = 0; i < count; ++i) to[i] = of(*generator);
    return 0;
}
// Without 0 and with 1.
template <class T> int filled_uniformly(Generator *generator, T *to, size_t count) {
    return filled(generator, to, count, [of = std::uniform_real_distribution<T>(0, 1)](Generator &random) mutable { return 1 - of(random); });
}
} // namespace

extern "C" {
int curandCreateGenerator(Generator **generator, int) { return *generator = new Generator, 0; }
int curandCreateGeneratorHost(Generator **generator, int) { return *generator = new Generator, 0; }
int curandDestroyGenerator(Generator *generator) { return delete generator, 0; }
int curandSetPseudoRandomGeneratorSeed(Generator *generator, unsigned long long seed) { return generator->seed(seed), 0; }
int curandSetGeneratorOffset(Generator *generator, unsigned long long offset) { return generator->discard(offset), 0; }
int curandSetGeneratorOrdering(Generator *, int) { return 0; }
int curandSetQuasiRandomGeneratorDimensions(Generator *, unsigned) { return 0; }
int curandSetStream(Generator *, cudaStream_t) { return 0; }
int curandGenerate(Generator *generator, unsigned *to, size_t count) {
    return filled(generator, to, count, [](Generator &random) { return unsigned(random()); });
}
int curandGenerateUniform(Generator *generator, float *to, size_t count) { return filled_uniformly(generator, to, count); }
int curandGenerateUniformDouble(Generator *generator, double *to, size_t count) { return filled_uniformly(generator, to, count); }
int curandGenerateNormal(Generator *generator, float *to, size_t count, float mean, float deviation) {
    return filled(generator, to, count, std::normal_distribution<float>(mean, deviation));
}
int curandGenerateNormalDouble(Generator *generator, double *to, size_t count, double mean, double deviation) {
    return filled(generator, to, count, std::normal_distribution<double>(mean, deviation));
}
int curandGeneratePoisson(Generator *generator, unsigned *to, size_t count, double mean) {
    return filled(generator, to, count, std::poisson_distribution<unsigned>(mean));
}
}

#include "consan_textures.h"
