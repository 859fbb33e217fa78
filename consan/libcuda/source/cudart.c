// A libcudart.so without a device, for programs of the CUDA runtime: its calls are words for consan, as those of libcuda.c, through which
// they go. Served here are memory of the host, errors and the configuration of a launch <<<...>>>. Programs that hold a copy of the runtime
// are led here, too (static_copy.h).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

typedef int (*caller)(const char *name, const word *words);
typedef struct {
    unsigned x, y, z;
} dim3;

enum { SUCCESS = 0, INSUFFICIENT_DRIVER = 35 };

static __thread int last_error;

static int noted(int code) {
    if (code) last_error = code;
    return code;
}

static void *in_driver(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    return driver ? dlsym(driver, name) : NULL;
}

static int call(const char *name, const word *words) {
    static caller function;
    caller found = __atomic_load_n(&function, __ATOMIC_ACQUIRE);
    if (!found) {
        found = (caller)in_driver("consan_call");
        __atomic_store_n(&function, found, __ATOMIC_RELEASE);
    }
    return noted(found ? found(name, words) : INSUFFICIENT_DRIVER);
}

static void *unserved(const char *name) {
    void *(*found)(const char *) = (void *(*)(const char *))in_driver("consan_unserved");
    return found ? found(name) : NULL;
}

#include "graph_arrays.h"

#define PREPARED(symbol, name, prepared) \
    EXPORT int symbol(PARAMETERS) { \
        prepared; \
        const word words[] = {WORDS}; \
        return call("_" #name, words); \
    }
#define SERVED(symbol, name) PREPARED(symbol, name, )
#define CALL(name) SERVED(name, name)
#define HOST(name) SERVED(__##name, name)
#define NODE(name) PREPARED(name, name, make_array(e >> 32 ? e : f))  // as in libcuda.c
#define ENDS(name) PREPARED(name, name, p = ends_of_thread())
#include "cudart_calls.h"
#include "refused_runtime.h"
#undef SERVED
#undef NODE
#undef ENDS

EXPORT void **__cudaRegisterFatBinary(void *wrapper) {
    word handle = 0;
    const word words[16] = {(word)(uintptr_t)&handle, (word)(uintptr_t)wrapper};
    call("_cudaRegisterFatBinary", words);
    return (void **)(uintptr_t)handle;
}

// Managed variables get their addresses, once for each fat binary.
EXPORT char __cudaInitModule(void **handle) {
    const word words[16] = {(word)(uintptr_t)handle};
    call("_cudaInitModule", words);
    return 1;
}

// ---- the configuration of a launch, between the expression <<<...>>> and the stub of its kernel ----

static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} configured;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    configured.grid = grid, configured.block = block, configured.shared = shared, configured.stream = stream;
    return 0;
}
EXPORT int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream) {
    *grid = configured.grid, *block = configured.block, *shared = configured.shared, *stream = configured.stream;
    return SUCCESS;
}

// ---- errors ----

EXPORT int cudaPeekAtLastError(void) { return last_error; }
EXPORT int cudaGetLastError(void) {
    int code = last_error;
    last_error = SUCCESS;
    return code;
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, name, runtime, text) {code, "cuda" #runtime, text},
#include "errors.h"
#undef ERROR
};

static const char *error_text(int code, int is_name) {
    for (size_t at = 0; at < sizeof errors / sizeof *errors; ++at)
        if (errors[at].code == code) return is_name ? errors[at].name : errors[at].text;
    return "unrecognized error code";
}
EXPORT const char *cudaGetErrorName(int code) { return error_text(code, 1); }
EXPORT const char *cudaGetErrorString(int code) { return error_text(code, 0); }

// ---- memory and functions of the host ----

EXPORT int cudaMallocHost(void **memory, size_t bytes) {
    int (*found)(void **, size_t) = (int (*)(void **, size_t))in_driver("cuMemAllocHost_v2");
    return noted(found ? found(memory, bytes) : INSUFFICIENT_DRIVER);
}
EXPORT int cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    int (*found)(void **, size_t, unsigned) = (int (*)(void **, size_t, unsigned))in_driver("cuMemHostAlloc");
    return noted(found ? found(memory, bytes, flags) : INSUFFICIENT_DRIVER);
}
EXPORT int cudaHostGetDevicePointer(word *device, void *memory, unsigned flags) {
    int (*found)(word *, void *, unsigned) = (int (*)(word *, void *, unsigned))in_driver("cuMemHostGetDevicePointer_v2");
    return noted(found ? found(device, memory, flags) : INSUFFICIENT_DRIVER);
}
EXPORT int cudaFreeHost(void *memory) {
    int (*found)(void *) = (int (*)(void *))in_driver("cuMemFreeHost");
    return noted(found ? found(memory) : INSUFFICIENT_DRIVER);
}

typedef void (*host_callback)(void *, int, void *);

EXPORT int cudaStreamAddCallback(void *stream, host_callback function, void *data, unsigned flags) {
    int (*found)(void *, host_callback, void *, unsigned) = (int (*)(void *, host_callback, void *, unsigned))in_driver("cuStreamAddCallback");
    return noted(found ? found(stream, function, data, flags) : INSUFFICIENT_DRIVER);
}

// ---- arrays: these calls take or give structures by value ----

typedef struct {
    int x, y, z, w, kind;
} channels;
typedef struct {
    size_t width, height, depth;
} extent;

EXPORT channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind) { return (channels){x, y, z, w, kind}; }
EXPORT int cudaMalloc3DArray(void **array, const channels *elements, extent size, unsigned flags) {
    const word words[16] = {(word)(uintptr_t)array, (word)(uintptr_t)elements, size.width, size.height, size.depth, flags};
    return call("_cudaMalloc3DArray", words);
}
EXPORT int cudaMallocMipmappedArray(void **array, const channels *elements, extent size, unsigned levels, unsigned flags) {
    const word words[16] = {(word)(uintptr_t)array, (word)(uintptr_t)elements, size.width, size.height, size.depth, levels, flags};
    return call("_cudaMallocMipmappedArray", words);
}

// ---- programs that hold a copy of the runtime ----

#define SERVED(symbol, name) {#symbol, (void *)symbol},
#define NODE CALL
#define ENDS CALL
#define OWN(name) {#name, (void *)name}
static const struct {
    const char *name;
    void *function;
} functions[] = {
#include "cudart_calls.h"
    OWN(__cudaRegisterFatBinary),
    OWN(__cudaPushCallConfiguration),
    OWN(__cudaPopCallConfiguration),
    OWN(cudaPeekAtLastError),
    OWN(cudaGetLastError),
    OWN(cudaGetErrorName),
    OWN(cudaGetErrorString),
    OWN(cudaCreateChannelDesc),
    OWN(cudaMalloc3DArray),
    OWN(cudaMallocMipmappedArray),
    OWN(cudaMallocHost),
    OWN(cudaHostAlloc),
    OWN(cudaHostGetDevicePointer),
    OWN(cudaFreeHost),
    OWN(__cudaInitModule),
    OWN(cudaStreamAddCallback),
};

#include "static_copy.h"
