// A program of the CUDA driver with functions of the host in its streams. "waits": what follows is behind them.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t address;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxSynchronize(void);
int cuMemAlloc_v2(address *, size_t), cuMemHostAlloc(void **, size_t, unsigned), cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *);
int cuMemsetD8Async(address, unsigned char, size_t, void *), cuMemcpyHtoDAsync_v2(address, const void *, size_t, void *);
int cuLaunchHostFunc(void *, void (*)(void *), void *), cuStreamAddCallback(void *, void (*)(void *, int, void *), void *, unsigned);
int cuGraphCreate(void **, unsigned), cuGraphAddHostNode(void **, void *, void *const *, size_t, const void *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long), cuGraphLaunch(void *, void *);

#define OK(call) \
    if (call) return printf("line %d\n", __LINE__), 1;
enum { BYTES = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_done;
static atomic_int flag;
static int code_inside;

static void write_first(void *memory) { *(volatile char *)memory = 1; }
static void write_second(void *memory) { ((volatile char *)memory)[1] = 1; }
static void tell(void *none) {
    pthread_mutex_lock(&lock);
    is_done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    code_inside = none != NULL;
}
static void tell_and_stay(void *none) {
    tell(none);
    for (int turn = 0; turn < 5000 && !flag; ++turn) usleep(1000);
}
static void tell_by_a_variable(void *none) { flag = none == NULL; }
static void call_inside(void *stream) { code_inside = cuStreamSynchronize(stream); }
static void call_back(void *stream, int code, void *memory) { *(volatile char *)memory = (char)(stream != NULL && code == 0); }

static void wait_until_told(void) {
    pthread_mutex_lock(&lock);
    while (!is_done) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static address shared_bytes;
static void *write_when_told(void *stream) {
    wait_until_told();
    code_inside = cuMemsetD8Async(shared_bytes, 2, BYTES, stream);
    flag = 1;
    return NULL;
}

int main(int count, char **words) {
    const char *what = words[1];
    int device, waits = count > 2;
    void *context, *stream, *other, *node, *graph, *executable;
    char *pinned;
    address memory;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamCreate(&other, 1));
    OK(cuMemAlloc_v2(&memory, BYTES));
    OK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    memset(pinned, 0, BYTES);
    if (!strcmp(what, "the host reads") || !strcmp(what, "a callback")) {
        if (*what == 'a') OK(cuStreamAddCallback(stream, call_back, pinned, 0));
        if (*what == 't') OK(cuLaunchHostFunc(stream, write_first, pinned));
        if (waits) OK(cuStreamSynchronize(stream));
        if (waits && *(volatile char *)pinned != 1) return 1;
        if (!waits) code_inside = *(volatile char *)pinned;
    }
    if (!strcmp(what, "a copy")) {
        OK(cuLaunchHostFunc(stream, write_first, pinned));
        OK(cuMemcpyHtoDAsync_v2(memory, pinned, BYTES, waits ? stream : other));
    }
    if (!strcmp(what, "what is before") || !strcmp(what, "a variable")) {
        OK(cuMemsetD8Async(memory, 1, BYTES, stream));
        OK(cuLaunchHostFunc(stream, *what == 'w' ? tell : tell_by_a_variable, NULL));
        if (*what == 'a') {
            while (!flag) {
            }
        } else if (waits) wait_until_told();
        OK(cuMemsetD8Async(memory, 2, BYTES, other));
    }
    if (!strcmp(what, "another thread calls")) {  // before the function has returned
        pthread_t thread;
        shared_bytes = memory;
        OK(cuMemsetD8Async(memory, 1, BYTES, stream));
        OK(pthread_create(&thread, NULL, write_when_told, other));
        OK(cuLaunchHostFunc(stream, tell_and_stay, NULL));
        OK(pthread_join(thread, NULL) || code_inside);
    }
    if (!strcmp(what, "the caller has the lock")) {  // the function runs behind it
        pthread_mutex_lock(&lock);
        OK(cuLaunchHostFunc(stream, tell, NULL));
        pthread_mutex_unlock(&lock);
        wait_until_told();
    }
    if (!strcmp(what, "nodes of a graph")) {
        const uint64_t first[] = {(uint64_t)(uintptr_t)write_first, (uint64_t)(uintptr_t)pinned};
        const uint64_t second[] = {(uint64_t)(uintptr_t)(waits ? write_second : write_first), (uint64_t)(uintptr_t)pinned};
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddHostNode(&node, graph, NULL, 0, first));
        OK(cuGraphAddHostNode(&node, graph, NULL, 0, second));
        OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
        if (*(volatile char *)pinned) return 1;
        OK(cuGraphLaunch(executable, stream));
        OK(cuCtxSynchronize());
        if (!*(volatile char *)pinned) return 1;
    }
    if (!strcmp(what, "a call inside")) {
        OK(cuLaunchHostFunc(stream, call_inside, stream));
        OK(cuCtxSynchronize());
        if (code_inside != 800) return 1;
    }
    OK(cuCtxSynchronize());
    return 0;
}
