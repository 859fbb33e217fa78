// A libcuda.so.1 that has no device: each call goes as words to the function that consan registers (consan/libcuda/calls.py). Served here
// is what needs the program's own addresses: names of errors, addresses of functions, pinned memory.
//
// All parameters of the driver API are integers or pointers. The calling conventions of x86-64 and AArch64 put these into words, and a
// function may read more words than it was given; so one signature serves all calls. Bits above a short parameter are not defined.
//
// In a program that is not Python nobody registers a function. Calls go to consan through a socket then (remote.h).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "words.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

typedef int (*server)(const char *name, const word *words);

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, DEINITIALIZED = 4, NOT_PERMITTED = 800, NOT_SUPPORTED = 801 };

#include "remote.h"

static server serve;

// Calls go to this function from now on; none: the driver is shut down.
EXPORT void consan_serve(server function) { __atomic_store_n(&serve, function, __ATOMIC_SEQ_CST); }

// The interpreter's: only a program in Python has a server.
extern int PyGILState_Ensure(void) __attribute__((weak));
extern void PyGILState_Release(int state) __attribute__((weak));
extern void PyErr_Fetch(void **type, void **value, void **traceback) __attribute__((weak));
extern void PyErr_Restore(void *type, void *value, void *traceback) __attribute__((weak));

// A library may free its arrays while an exception is on its way through this thread: the server, in Python, cannot start with one.
static int asked(server function, const char *name, const word *words) {
    void *type = NULL, *value = NULL, *traceback = NULL;
    const int state = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &traceback);
    const int code = function(name, words);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return code;
}

// Libraries destroy at exit what went with the session, and print each error of that.
static int ends(const char *name) {
    static const char *const words[] = {"Destroy", "Free", "Unload", "Query"};
    for (size_t at = 0; at < COUNT(words); at++)
        if (strstr(name, words[at])) return 1;
    return 0;
}

static int call(const char *name, const word *words) {
    server function = __atomic_load_n(&serve, __ATOMIC_SEQ_CST);
    const int code = function ? asked(function, name, words) : remote(name, words);
    return code == DEINITIALIZED && ends(name) ? SUCCESS : code;
}

// For consan's libcudart.so.
EXPORT int consan_call(const char *name, const word *words) { return call(name, words); }

#include "graph_arrays.h"

#define SERVED(name, prepared) \
    EXPORT int name(PARAMETERS) { \
        prepared; \
        const word words[] = {WORDS}; \
        return call(#name, words); \
    }
#define CALL(name) SERVED(name, )
#define NODE(name) SERVED(name, make_array(e >> 32 ? e : f))  // older ones have no kinds of edges in front of the number of edges
#define ENDS(name) SERVED(name, p = ends_of_thread())
#include "calls.h"
#include "refused.h"
#undef CALL
#undef NODE
#undef ENDS
#define RUNTIME(name) \
    EXPORT int runtime_##name(PARAMETERS) __asm__("_" #name); \
    EXPORT int runtime_##name(PARAMETERS) { \
        const word words[] = {WORDS}; \
        return call("_" #name, words); \
    }
#include "runtime.h"
#undef RUNTIME

// ---- calls that are not served: each name that is asked for gets a function that reports the name ----

// clang-format off
#define SIXTEEN(make, x)                                         \
    make(x##0) make(x##1) make(x##2) make(x##3) make(x##4) make(x##5) make(x##6) make(x##7) \
    make(x##8) make(x##9) make(x##a) make(x##b) make(x##c) make(x##d) make(x##e) make(x##f)
#define ALL(make) \
    SIXTEEN(make, 0x0) SIXTEEN(make, 0x1) SIXTEEN(make, 0x2) SIXTEEN(make, 0x3) \
    SIXTEEN(make, 0x4) SIXTEEN(make, 0x5) SIXTEEN(make, 0x6) SIXTEEN(make, 0x7) \
    SIXTEEN(make, 0x8) SIXTEEN(make, 0x9) SIXTEEN(make, 0xa) SIXTEEN(make, 0xb) \
    SIXTEEN(make, 0xc) SIXTEEN(make, 0xd) SIXTEEN(make, 0xe) SIXTEEN(make, 0xf) \
    SIXTEEN(make, 0x10) SIXTEEN(make, 0x11) SIXTEEN(make, 0x12) SIXTEEN(make, 0x13) \
    SIXTEEN(make, 0x14) SIXTEEN(make, 0x15) SIXTEEN(make, 0x16) SIXTEEN(make, 0x17) \
    SIXTEEN(make, 0x18) SIXTEEN(make, 0x19) SIXTEEN(make, 0x1a) SIXTEEN(make, 0x1b) \
    SIXTEEN(make, 0x1c) SIXTEEN(make, 0x1d) SIXTEEN(make, 0x1e) SIXTEEN(make, 0x1f) \
    SIXTEEN(make, 0x20) SIXTEEN(make, 0x21) SIXTEEN(make, 0x22) SIXTEEN(make, 0x23) \
    SIXTEEN(make, 0x24) SIXTEEN(make, 0x25) SIXTEEN(make, 0x26) SIXTEEN(make, 0x27) \
    SIXTEEN(make, 0x28) SIXTEEN(make, 0x29) SIXTEEN(make, 0x2a) SIXTEEN(make, 0x2b) \
    SIXTEEN(make, 0x2c) SIXTEEN(make, 0x2d) SIXTEEN(make, 0x2e) SIXTEEN(make, 0x2f) \
    SIXTEEN(make, 0x30) SIXTEEN(make, 0x31) SIXTEEN(make, 0x32) SIXTEEN(make, 0x33) \
    SIXTEEN(make, 0x34) SIXTEEN(make, 0x35) SIXTEEN(make, 0x36) SIXTEEN(make, 0x37) \
    SIXTEEN(make, 0x38) SIXTEEN(make, 0x39) SIXTEEN(make, 0x3a) SIXTEEN(make, 0x3b) \
    SIXTEEN(make, 0x3c) SIXTEEN(make, 0x3d) SIXTEEN(make, 0x3e) SIXTEEN(make, 0x3f)
// clang-format on

static char *unserved[1024];
#define UNSERVED(number) \
    static int unserved_##number(PARAMETERS) { \
        const word words[] = {WORDS}; \
        return call(unserved[number], words); \
    }
ALL(UNSERVED)
#define ENTRY(number) (void *)unserved_##number,
static void *const unserved_functions[] = {ALL(ENTRY)};

static void *unserved_function(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t at = 0;
    pthread_mutex_lock(&lock);
    while (at < COUNT(unserved) && unserved[at] && strcmp(unserved[at], name) != 0) ++at;
    if (at < COUNT(unserved) && !unserved[at]) unserved[at] = strdup(name);
    pthread_mutex_unlock(&lock);
    return at < COUNT(unserved) ? unserved_functions[at] : NULL;
}

// For copies of the CUDA runtime.
EXPORT void *consan_unserved(const char *name) { return unserved_function(name); }

// ---- pinned memory ----

static int pinned_pages(void **memory, size_t bytes) {
    const word place[16] = {(word)(uintptr_t)memory, bytes};
    if (!__atomic_load_n(&serve, __ATOMIC_SEQ_CST) && call("_consan_keep_pinned", place) == SUCCESS) return SUCCESS;
    size_t pages = bytes / PAGE + 1;  // nothing else lies on them: they may be closed (watched.h)
    if (posix_memalign(memory, PAGE, pages * PAGE)) return OUT_OF_MEMORY;
    const word words[16] = {(word)(uintptr_t)*memory, bytes};
    call("_consan_pinned", words);  // copies to and from it are compared
    return SUCCESS;
}

// Mapped memory is managed memory: it has one address for both. Other pinned memory lies where the device has a place for it, and becomes
// managed memory when a kernel is given it: until then it is not copied before and behind each operation. A small block is mapped at once: a
// kernel may find its address in memory.
EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    enum { MAPPED = 2, SMALL = PAGE };
    word address = 0;
    const word words[16] = {(word)(uintptr_t)&address, bytes, 1};
    int is_mapped = (flags & MAPPED || bytes <= SMALL) && !__atomic_load_n(&serve, __ATOMIC_SEQ_CST);
    int code = is_mapped ? call("cuMemAllocManaged", words) : NOT_SUPPORTED;
    if (code != SUCCESS) return pinned_pages(memory, bytes);
    *memory = (void *)(uintptr_t)address;
    return SUCCESS;
}
EXPORT int cuMemAllocHost_v2(void **memory, size_t bytes) { return cuMemHostAlloc(memory, bytes, 0); }
EXPORT int cuMemHostGetDevicePointer_v2(word *device, void *memory, unsigned flags) {
    const word words[16] = {(word)(uintptr_t)memory, (word)(uintptr_t)device, flags};
    return call("_cuMemHostGetDevicePointer", words);
}
EXPORT int cuMemFreeHost(void *memory) {
    word laid = 0;
    const word words[16] = {(word)(uintptr_t)memory, (word)(uintptr_t)&laid};
    int code = memory ? call("_consan_free_host", words) : SUCCESS;
    if (laid) munmap(memory, (size_t)laid);
    else if (code == SUCCESS) free(memory);
    return code;
}

// ---- names of kernels: the program keeps the pointer ----

static const char *kept(const char *text) {
    static struct kept_text {
        struct kept_text *next;
        char text[];
    } *all;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct kept_text *found = all;
    while (found && strcmp(found->text, text) != 0) found = found->next;
    if (!found) {
        found = malloc(sizeof *found + strlen(text) + 1);
        if (found) {
            memcpy(found->text, text, strlen(text) + 1);
            found->next = all, all = found;
        }
    }
    pthread_mutex_unlock(&lock);
    return found ? found->text : NULL;
}

EXPORT int cuFuncGetName(const char **name, word function) {
    char text[4096];
    const word words[16] = {(word)(uintptr_t)text, sizeof text, function};
    int code = call("cuFuncGetName", words);
    if (code == SUCCESS) *name = kept(text);
    return code;
}
EXPORT int cuKernelGetName(const char **name, word kernel) { return cuFuncGetName(name, kernel); }

// ---- functions of the host: the server lets them run (host_functions.h) ----

struct callback {
    void (*function)(void *, int, void *);
    void *stream, *data;
};

static void call_back(void *memory) {
    struct callback callback = *(struct callback *)memory;
    free(memory);
    callback.function(callback.stream, SUCCESS, callback.data);
}

EXPORT int cuStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data, unsigned flags) {
    struct callback *callback = malloc(sizeof *callback);
    (void)flags;
    if (!callback) return OUT_OF_MEMORY;
    *callback = (struct callback){function, stream, data};
    const word words[16] = {(word)(uintptr_t)stream, (word)(uintptr_t)call_back, (word)(uintptr_t)callback};
    return call("_consan_callback", words);  // NOLINT(clang-analyzer-unix.Malloc): call_back frees it
}

// ---- errors ----

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, name, runtime, text) {code, "CUDA_" #name, text},
#include "errors.h"
#undef ERROR
};

static int error_text(int code, const char **text, int is_name) {
    for (size_t at = 0; at < COUNT(errors); ++at)
        if (errors[at].code == code) {
            *text = is_name ? errors[at].name : errors[at].text;
            return SUCCESS;
        }
    *text = NULL;
    return INVALID_VALUE;
}
EXPORT int cuGetErrorName(int code, const char **text) { return error_text(code, text, 1); }
EXPORT int cuGetErrorString(int code, const char **text) { return error_text(code, text, 0); }

#include "cute_dsl.h"

// ---- addresses of functions ----

EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

static const struct {
    const char *name;
    void *function;
} functions[] = {
#define CALL(name) {#name, (void *)name},
#define NODE CALL
#define ENDS CALL
#include "calls.h"
#undef CALL
#define OWN(name) {#name, (void *)name}
    OWN(cuMemAllocHost_v2), OWN(cuMemHostAlloc),   OWN(cuMemHostGetDevicePointer_v2), OWN(cuMemFreeHost),
    OWN(cuFuncGetName),     OWN(cuKernelGetName),  OWN(cuStreamAddCallback),          OWN(cuGetErrorName),
    OWN(cuGetErrorString),  OWN(cuGetProcAddress), OWN(cuGetProcAddress_v2),
};

// Versions of a call with other parameters, and the first CUDA that has each. All other calls have one version: the newest serves every program.
static const struct {
    const char *name;
    int since;
    const char *version;
} versions[] = {
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 0, "cuGetProcAddress"},
};

static void *named(const char *name) {
    for (size_t at = 0; at < COUNT(functions); ++at)
        if (strcmp(functions[at].name, name) == 0) return functions[at].function;
    return NULL;
}

static void *newest(const char *name, int version) {
    for (size_t at = 0; at < COUNT(versions); ++at)
        if (version >= versions[at].since && strcmp(versions[at].name, name) == 0) return named(versions[at].version);
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    for (size_t at = 0; at < COUNT(suffixes); ++at) {
        char full[128];
        snprintf(full, sizeof full, "%s%s", name, suffixes[at]);
        void *found = named(full);
        if (found) return found;
    }
    return NULL;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
    (void)flags;
    void *found = newest(name, version);
    *function = found ? found : unserved_function(name);
    if (status) *status = 0;
    return *function ? SUCCESS : NOT_SUPPORTED;
}
EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
