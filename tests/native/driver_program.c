// A program of the CUDA driver: PTX from the file that it is given, threads with a context each, a forked child.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t address;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxGetCurrent(void **);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *), cuCtxSynchronize(void);
int cuMemAlloc_v2(address *, size_t), cuMemAllocManaged(address *, size_t, unsigned), cuMemFree_v2(address);
int cuMemcpyHtoD_v2(address, const void *, size_t), cuMemcpyDtoH_v2(void *, address, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

#define OK(call) \
    if (call) return printf("line %d\n", __LINE__), 1;

static void *another(void *result) {
    void *current = result;
    cuCtxGetCurrent(&current);
    *(int *)result = current == NULL;  // a thread begins without a context
    return NULL;
}

static int run(const char *ptx) {
    int device, given[128], found[128], apart = 0;
    void *context, *module, *kernel;
    address to, from;
    pthread_t thread;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(pthread_create(&thread, NULL, another, &apart));
    OK(pthread_join(thread, NULL));
    OK(!apart);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&kernel, module, "reverse"));
    OK(cuMemAlloc_v2(&to, sizeof found));
    OK(cuMemAllocManaged(&from, sizeof given, 1));
    for (int at = 0; at < 128; ++at) given[at] = at;
    memcpy((void *)(uintptr_t)from, given, sizeof given);
    void *params[] = {&to, &from};
    OK(cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(found, to, sizeof found));
    for (int at = 0; at < 128; ++at) OK(found[at] != 127 - at);
    OK(cuMemcpyDtoH_v2((void *)(uintptr_t)from, to, sizeof given));  // managed memory as memory of the host
    OK(memcmp((void *)(uintptr_t)from, found, sizeof found));
    OK(cuMemFree_v2(from));
    return 0;
}

int main(int count, char **words) {
    static char ptx[1 << 16];
    FILE *file = fopen(words[1], "r");
    int status = 0;
    if (!file || count < 2) return 2;
    ptx[fread(ptx, 1, sizeof ptx - 1, file)] = 0;
    OK(run(ptx));
    if (fork() == 0) _exit(run(ptx));
    OK(wait(&status) < 0 || status);
    puts("right");
    return 0;
}
