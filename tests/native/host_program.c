// A program of the CUDA driver that touches managed and pinned memory while work of the device may use it, or does not.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t address;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxSynchronize(void);
int cuMemAlloc_v2(address *, size_t), cuMemAllocManaged(address *, size_t, unsigned), cuMemHostAlloc(void **, size_t, unsigned);
int cuMemHostGetDevicePointer_v2(address *, void *, unsigned), cuMemFreeHost(void *);
int cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuMemsetD8Async(address, unsigned char, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, address, size_t, void *), cuMemcpyHtoDAsync_v2(address, const void *, size_t, void *);

#define OK(call) \
    if (call) return printf("line %d\n", __LINE__), 1;
enum { BYTES = 6000 };  // more than a page

static volatile unsigned sum;
static void read_all(const unsigned char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; ++at) sum += from[at];
}

int main(int count, char **words) {
    const char *what = words[1];
    int device, waits = count > 2;
    void *context, *stream = NULL, *other;
    unsigned char *pinned, *mapped;
    address memory, managed, place;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    if (strcmp(what, "the end")) {
        OK(cuStreamCreate(&stream, 1));
        OK(cuStreamCreate(&other, 1));
    }
    OK(cuMemAlloc_v2(&memory, BYTES));
    OK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    OK(cuMemHostAlloc((void **)&mapped, BYTES, 2));
    OK(cuMemHostGetDevicePointer_v2(&place, mapped, 0));
    OK(cuMemAllocManaged(&managed, BYTES, 1));
    unsigned char *shared = (unsigned char *)(uintptr_t)managed;
    memset(pinned, 1, BYTES), memset(mapped, 1, BYTES), memset(shared, 1, BYTES);
    OK(cuMemsetD8Async(managed, 2, BYTES / 2, stream));
    if (!strcmp(what, "a read of managed memory")) {
        if (waits) OK(cuStreamSynchronize(stream));
        read_all(shared, BYTES);
        if (sum != 3 * BYTES / 2) return printf("sum %u\n", sum), 1;
    }
    if (!strcmp(what, "its other half")) read_all(shared + (waits ? BYTES / 2 : BYTES / 2 - 1), BYTES / 2);
    if (!strcmp(what, "mapped memory")) {
        OK(cuMemsetD8Async(place, 3, BYTES, other));
        if (waits) OK(cuStreamSynchronize(other));
        if (mapped[BYTES - 1] != 3) return 1;
    }
    if (!strcmp(what, "a write of what is copied")) {
        OK(cuMemcpyHtoDAsync_v2(memory, pinned, BYTES, stream));
        read_all(pinned, BYTES);
        if (waits) OK(cuStreamSynchronize(stream));
        pinned[4321] = 2;
    }
    if (!strcmp(what, "a read behind another wait")) {
        OK(cuMemcpyDtoHAsync_v2(pinned, memory, BYTES, stream));
        OK(cuStreamSynchronize(waits ? stream : other));
        read_all(pinned, 1);
    }
    if (strcmp(what, "the end")) OK(cuCtxSynchronize());
    if (!strcmp(what, "the end") && !waits) read_all(shared, 1);  // nothing is called behind it
    if (!strcmp(what, "mapped memory")) OK(cuMemFreeHost(mapped));
    return 0;
}
