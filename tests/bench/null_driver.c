// A driver of CUDA whose device does nothing, and no call costs anything: kernels do not run, memory is the host's.
//
// Only the receipts of recorded launches (consan/checker/logs/receipts.py) are written, as if no thread had done anything.
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NUMBER 0
#define SUMS 8
#define RESULTS 32

enum { OTHER = 1, RECEIPT = 2 };
static uint64_t context = 0x1000;
static const int attributes[128] = {[16] = 132, [75] = 9, [76] = 0, [81] = 233472, [95] = 1, [97] = 232448, [120] = 1};
EXPORT uint64_t null_calls; // of the driver
EXPORT uint64_t null_sum;   // in the receipts of launches from now on
EXPORT int null_status;     // of launches but those of consan
EXPORT _Atomic int null_full; // launches but those of consan wait; -1: one does
EXPORT uint64_t null_function; // that was launched last, but for those of consan
EXPORT int null_late;       // receipts come when `null_deliver` is called
static struct Receipt {
    char *slip;
    uint64_t number, sum;
} late[64];
static int waiting;

EXPORT int null_ok(void) {
    null_calls++;
    return 0;
}
EXPORT int cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int number, int device) {
    (void)device;
    *value = number < 128 ? attributes[number] : 0;
    return 0;
}
EXPORT int cuDeviceGetName(char *name, int most, int device) {
    (void)device;
    strncpy(name, "no device", most);
    return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t *size, int device) {
    (void)device;
    *size = (size_t)80 << 30;
    return 0;
}
EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total) {
    *left = *total = (size_t)80 << 30;
    return 0;
}
EXPORT int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void **made, int device) {
    (void)device;
    *made = &context;
    return 0;
}
EXPORT int cuCtxGetCurrent(void **current) {
    null_calls++;
    *current = &context;
    return 0;
}
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size) {
    void *made = NULL;
    if (posix_memalign(&made, 256, size)) return 2;
    memset(made, 0, size < 1 << 20 ? size : 1 << 20);
    *address = (uintptr_t)made;
    return 0;
}
EXPORT int cuMemFree_v2(uint64_t address) {
    free((void *)(uintptr_t)address);
    return 0;
}
EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned flags) {
    (void)flags;
    *address = (uintptr_t)host;
    return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { return cuMemcpyDtoHAsync_v2(to, from, size, NULL); }
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = (void *)(uintptr_t)(strcmp(name, "consan_receipt") ? OTHER : RECEIPT);
    return 0;
}
EXPORT int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name) {
    (void)module, (void)name;
    *size = 256;
    return cuMemAlloc_v2(address, *size);
}
EXPORT int cuFuncGetAttribute(int *value, int number, void *function) {
    (void)number, (void)function;
    *value = 0;
    return 0;
}
EXPORT int cuFuncGetParamInfo(void *function, size_t number, size_t *offset, size_t *size) {
    (void)function, (void)number, (void)offset, (void)size;
    return 1;
}
EXPORT int cuStreamCreate(void **made, unsigned flags) {
    (void)flags;
    *made = malloc(8);
    return 0;
}
EXPORT int cuEventCreate(void **made, unsigned flags) { return cuStreamCreate(made, flags); }
EXPORT int cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    null_calls++;
    *status = 0;
    return 0;
}
EXPORT int null_deliver(void) {
    for (int at = 0; at < waiting; at++) {
        memcpy(late[at].slip + SUMS, &late[at].sum, 8);
        memcpy(late[at].slip + NUMBER, &late[at].number, 8);
    }
    waiting = 0;
    return 0;
}
EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void *stream,
                          void **parameters, void **extra) {
    (void)x, (void)y, (void)z, (void)a, (void)b, (void)c, (void)shared, (void)stream, (void)extra;
    null_calls++;
    if ((uintptr_t)function != RECEIPT) {
        null_function = (uintptr_t)function;
        if (null_full) null_full = -1;
        while (null_full) sched_yield();
        return null_status;
    }
    uint64_t numbers[7];
    for (int at = 0; at < 7; at++) numbers[at] = *(uint64_t *)parameters[at];
    char *slip = (char *)(uintptr_t)numbers[5];
    memset(slip + SUMS, 0, RESULTS - SUMS);
    memcpy(slip + RESULTS, (void *)(uintptr_t)numbers[3], 4 * numbers[4]);
    late[waiting++] = (struct Receipt){slip, numbers[6], null_sum};
    return null_late ? 0 : null_deliver();
}
