// A libcupti.so for tests. The made-up driver (fake_cuda.c) tells it of its calls, and it calls its subscriber behind those that are enabled.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef void (*Subscriber)(void *, int, uint32_t, const void *);

static const char *const names[] = {
    "", "cuStreamCreate", "cuEventRecord", "cuStreamWaitEvent", "cuCtxSynchronize", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuStreamSynchronize",
    "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphAddKernelNode_v2", "cuMemsetD8Async",
    "cuGraphKernelNodeSetParams_v2", "cuIpcOpenMemHandle_v2", "cuIpcGetMemHandle", "cuCtxEnablePeerAccess"};
#define COUNT (sizeof names / sizeof *names)
static int enabled[COUNT];
static Subscriber subscriber;

static void tell(const char *name, const void *parameters, int status, void *context) {
    for (uint32_t number = 1; number < COUNT; number++) {
        if (strcmp(names[number], name) || !enabled[number]) continue;
        struct { int site; const char *name; const void *parameters; const int *status; const char *symbol; void *context; } data = {
            0, name, parameters, &status, NULL, context};
        subscriber(NULL, 1, number, &data);
        data.site = 1;
        subscriber(NULL, 1, number, &data);
    }
}

Result cuptiGetCallbackName(int domain, uint32_t number, const char **name) {
    return number < COUNT ? *name = names[number], domain != 1 : 1;
}

Result cuptiSubscribe(void **made, Subscriber callback, void *with) {
    if (getenv("FAKE_CUPTI_TAKEN")) return 39;
    *made = with;
    subscriber = callback;
    *(void **)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fakeTells") = (void *)tell;
    return 0;
}

Result cuptiEnableCallback(uint32_t enable, void *by, int domain, uint32_t number) { return enabled[number] = enable, domain != 1 || by; }
