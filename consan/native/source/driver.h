// Functions of the driver, of NVRTC, nvJitLink and nvPTXCompiler that are replaced.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef int Result;  // CUresult: 0 is success
typedef void *Handle;

#define EXPORTED __attribute__((visibility("default")))
#define NOT_FOUND 500
#define PER_THREAD 2        // cuGetProcAddress: flag for functions with a default stream for each thread
#define LONGEST (1ull << 31)  // bytes of a message; a longer one is an error
#ifndef SILENCE_SECONDS
#define SILENCE_SECONDS 60  // without a word from the server, which says WAIT while it works: it is taken to be gone
#endif
#define FINISH_SECONDS 20   // how long the end of the process waits for another thread's request

// clang-format off
#define ENTRIES(X) \
    X(cuGetProcAddress) X(cuGetProcAddress_v2) \
    X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleUnload) \
    X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryUnload) \
    X(cuModuleGetFunction) X(cuModuleEnumerateFunctions) \
    X(cuLibraryGetKernel) X(cuLibraryEnumerateKernels) X(cuLibraryGetModule) X(cuKernelGetFunction) \
    X(cuLaunchKernel) X(cuLaunchKernel_ptsz) X(cuLaunchKernelEx) X(cuLaunchKernelEx_ptsz) \
    X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernel_ptsz) X(cuLaunchCooperativeKernelMultiDevice) \
    X(cuGraphInstantiate) X(cuGraphInstantiate_v2) X(cuGraphInstantiateWithFlags) \
    X(cuGraphInstantiateWithParams) X(cuGraphInstantiateWithParams_ptsz) \
    X(cuGraphLaunch) X(cuGraphLaunch_ptsz) X(cuGraphExecDestroy) \
    X(cuGraphAddKernelNode) X(cuGraphAddKernelNode_v2) X(cuGraphAddNode) X(cuGraphAddNode_v2) \
    X(cuGraphKernelNodeSetParams) X(cuGraphKernelNodeSetParams_v2) X(cuGraphNodeSetParams) \
    X(cuGraphExecKernelNodeSetParams) X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecNodeSetParams) \
    X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxRelease_v2) \
    X(cuCtxDestroy) X(cuCtxDestroy_v2) \
    X(cuIpcOpenMemHandle) X(cuIpcOpenMemHandle_v2) X(cuIpcGetMemHandle) X(cuMemMap) \
    X(cuMemImportFromShareableHandle) X(cuMemExportToShareableHandle) X(cuMulticastCreate) \
    X(cuMulticastBindMem) X(cuMulticastBindAddr) X(cuMemRetainAllocationHandle) X(cuMemGetHandleForAddressRange) \
    X(cuMemPoolImportPointer) X(cuMemPoolExportPointer) X(cuCtxEnablePeerAccess) \
    X(cuLinkAddData) X(cuLinkAddData_v2) X(cuLinkAddFile) X(cuLinkAddFile_v2) X(cuLinkComplete) X(cuLinkDestroy) \
    X(nvrtcCompileProgram) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) \
    X(nvPTXCompilerCreate) X(nvPTXCompilerGetCompiledProgram) X(nvPTXCompilerDestroy) \
    X(nvJitLinkAddData) X(nvJitLinkAddFile) X(nvJitLinkGetLinkedCubin) X(nvJitLinkDestroy) JIT_LINK_VERSIONS(JIT_LINK, X)

// nvJitLink's header gives each function the name of its version.
#define JIT_LINK_VERSIONS(Y, X) \
    Y(X, 12_0) Y(X, 12_1) Y(X, 12_2) Y(X, 12_3) Y(X, 12_4) Y(X, 12_5) Y(X, 12_6) Y(X, 12_8) Y(X, 12_9) \
    Y(X, 13_0) Y(X, 13_1) Y(X, 13_2) Y(X, 13_3) Y(X, 13_4) Y(X, 13_5)
#define JIT_LINK(X, version) \
    X(__nvJitLinkAddData_##version) X(__nvJitLinkAddFile_##version) X(__nvJitLinkGetLinkedCubin_##version) X(__nvJitLinkDestroy_##version)

// clang-format on

#define AT(name) AT_##name,
enum Entry { ENTRIES(AT) ENTRY_COUNT };
#undef AT

#define DECLARED(name) EXPORTED Result name();
ENTRIES(DECLARED)
#undef DECLARED

#define NAMED(name) #name,
static const char *const names[] = {ENTRIES(NAMED)};
#undef NAMED
#define REPLACED(name) (void *)name,
static void *const replacements[] = {ENTRIES(REPLACED)};
#undef REPLACED

static _Atomic(void *) originals[ENTRY_COUNT];

typedef void *(*Finder)(void *, const char *);

static Finder finder(void) {
    static _Atomic(Finder) found;
    Finder find = atomic_load(&found);
    const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; find == NULL && i < sizeof versions / sizeof *versions; i++) find = (Finder)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (find == NULL) {
        fputs("consan: error: this C library's dlsym is not known\n", stderr);
        abort();
    }
    atomic_store(&found, find);
    return find;
}

static void *of_driver(const char *name) {
    void *driver = strncmp(name, "cu", 2) == 0 ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;
    return finder()(driver ? driver : RTLD_NEXT, name);
}

// The same, looked up once.
static void *found_once(_Atomic(void *) *found, const char *name) {
    if (atomic_load(found) == NULL) atomic_store(found, of_driver(name));
    return atomic_load(found);
}

static void *original(enum Entry at) {
    void *found = atomic_load(&originals[at]);
    if (found == NULL) atomic_store(&originals[at], found = of_driver(names[at]));
    return found;
}

#define CALLED(function, ...) (function ? ((Result (*)())function)(__VA_ARGS__) : NOT_FOUND)
#define ORIGINAL(name, ...) CALLED(original(AT_##name), __VA_ARGS__)

// The function that a library's own call would reach: in itself (a compiler that is linked statically), or in what it is linked with. A
// library that the program has opened for itself (RTLD_LOCAL) is not where RTLD_NEXT looks, and a process may have several versions.
static void *callers(enum Entry at, void *caller) {
    Dl_info about;
    void *library = dladdr(caller, &about) ? dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = library ? finder()(library, names[at]) : NULL;
    if (library) dlclose(library);
    return found && found != replacements[at] ? found : original(at);
}

// cuDNN looks into the machine code that it compiles, and has no plan to run without it: what it compiles and loads is left as it is.
static bool is_of_cudnn(void *caller) {
    Dl_info library;
    const char *file = dladdr(caller, &library) && library.dli_fname ? strrchr(library.dli_fname, '/') : NULL;
    return file && strncmp(file, "/libcudnn", strlen("/libcudnn")) == 0;
}

#define CALLERS(name) void *own = callers(AT_##name, __builtin_return_address(0))

static int entry_of(const char *name) {
    if (name == NULL || (strncmp(name, "cu", 2) != 0 && strncmp(name, "nv", 2) != 0 && strncmp(name, "__nv", 4) != 0)) return -1;
    for (int at = 0; at < ENTRY_COUNT; at++)
        if (strcmp(name, names[at]) == 0) return at;
    return -1;
}

static const char *socket_path(void) { return getenv("_CONSAN_SOCKET"); }

// What a look-up gives to the program in place of what it found.
static void *replaced(int at, void *found) {
    if (at < 0 || found == NULL || found == replacements[at] || socket_path() == NULL) return found;
    atomic_store(&originals[at], found);
    return replacements[at];
}

EXPORTED void *dlsym(void *handle, const char *name) {
    int at = entry_of(name);
    // A tail call: RTLD_NEXT means the library that the return address lies in.
    if (at < 0) return finder()(handle, name);
    return replaced(at, finder()(handle, name));
}

// The entry that a name means to cuGetProcAddress. Versions are those in which the newer form came.
static int entry_asked(const char *name, int version, uint64_t flags) {
    char full[64];
    static const struct {
        const char *name;
        int since;
    } newer[] = {{"cuGetProcAddress", 12000},
                 {"cuCtxDestroy", 4000},
                 {"cuDevicePrimaryCtxReset", 11000},
                 {"cuDevicePrimaryCtxRelease", 11000},
                 {"cuIpcOpenMemHandle", 11000},
                 {"cuLinkAddData", 6050},
                 {"cuLinkAddFile", 6050},
                 {"cuGraphAddKernelNode", 12000},
                 {"cuGraphKernelNodeSetParams", 12000},
                 {"cuGraphExecKernelNodeSetParams", 12000},
                 {"cuGraphAddNode", 12030}};
    const char *suffix = "";
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (strcmp(name, newer[i].name) == 0 && version >= newer[i].since) suffix = "_v2";
    if (snprintf(full, sizeof full, "%s_ptsz", name) < (int)sizeof full && (flags & PER_THREAD) && entry_of(full) >= 0) return entry_of(full);
    if (snprintf(full, sizeof full, "%s%s", name, suffix) >= (int)sizeof full) return -1;
    return entry_of(full);
}

EXPORTED Result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    Result result = ORIGINAL(cuGetProcAddress, name, found, version, flags);
    if (result == 0 && name && found) *found = replaced(entry_asked(name, version, flags), *found);
    return result;
}

EXPORTED Result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, void *status) {
    Result result = ORIGINAL(cuGetProcAddress_v2, name, found, version, flags, status);
    if (result == 0 && name && found) *found = replaced(entry_asked(name, version, flags), *found);
    return result;
}
