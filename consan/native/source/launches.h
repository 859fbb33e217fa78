// Launches.
#pragma once

#include "images.h"
#include "unasked.h"

#define LEGACY_STREAM 1  // it cannot be captured, and a query while another stream is captured would end that capture

// A launch into a graph is no launch yet.
static bool captured(Handle stream) {
    static _Atomic(void *) found;
    int status = 0;
    if ((uintptr_t)stream <= LEGACY_STREAM) return false;
    Result (*query)(Handle, int *) = found_once(&found, "cuStreamIsCapturing");
    return query && query(stream, &status) == 0 && status != 0;
}

static void count(Handle function) {
    struct Launches *entries = atomic_load(&table);
    uint64_t handle = (uintptr_t)function, at = handle >> 4;
    for (unsigned tried = 0; handle && entries && tried < TABLE_ENTRIES; tried++, at++) {
        struct Launches *entry = &entries[at % TABLE_ENTRIES];
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&entry->handle, &expected, handle) || expected == handle) {
            atomic_fetch_add(&entry->count, 1);
            break;
        }
    }
}

static Result counted(Result result, Handle function, Handle stream) {
    if (result == 0 && !captured(stream)) count(function);
    return result;
}

#define UNKNOWN 999          // CUDA_ERROR_UNKNOWN
#define STREAM_PER_THREAD 2
// In place of a stream: consan cannot wait for what is launched.
#define NO_LAUNCH ((Handle)(intptr_t)-1)
#define OF_DEVICES ((Handle)(intptr_t)-2)
#define CHANGED_NODE ((Handle)(intptr_t)-3)

// The context of a launch: that of its stream, or the thread's.
static uint64_t context_of(Handle stream) {
    static _Atomic(void *) asked;
    void *found = NULL;
    bool made = (uintptr_t)stream > STREAM_PER_THREAD && (uintptr_t)stream < (uintptr_t)CHANGED_NODE;
    Result (*get)(Handle, void **) = made ? found_once(&asked, "cuStreamGetCtx") : NULL;
    return get && get(stream, &found) == 0 && found ? (uintptr_t)found : context();
}

#define SAMPLE 64  // one of so many launches is timed

struct LaunchCheck {
    Handle function;  // what to launch
    bool recorded, refused;
    struct MadeUnasked unasked;  // no head: the server was asked
};

// Before a launch: the server gives it a log, or names the form of its kernel that needs none. Until `launched` nobody else has the turn.
static struct LaunchCheck starting(Handle function, Handle stream, struct Shape shape, void **arguments, void **extra) {
    struct LaunchCheck started = {function, false, false, {NULL, 0}};
    struct Head head;
    char *answer;
    if (!atomic_load(&records) || function == NULL) return started;
    static _Thread_local unsigned looks;
    bool timed = ++looks % SAMPLE == 0;
    uint64_t begun = timed ? nanoseconds() : 0;
    shape.context = shape.context ? shape.context : context_of(stream);
    started.unasked = make_unasked(function, stream, &shape, arguments, &started.function);
    if (timed) spend(false, SAMPLE * (nanoseconds() - begun));
    if (started.unasked.head) return unseen = true, started;
    pthread_mutex_lock(&turn);
    atomic_store(&launch_arguments, arguments);
    atomic_store(&launch_extra, extra);
    if (ask_in_turn(LAUNCH, (uintptr_t)function, (uintptr_t)stream, &shape, sizeof shape, &head, &answer)) {
        free(answer);
        started = (struct LaunchCheck){head.a ? (Handle)(uintptr_t)head.a : function, head.b == 1, head.b > 1, {NULL, 0}};
    } else {
        started.refused = true;  // a recorded kernel without a log would write anywhere
    }
    atomic_store(&launch_arguments, NULL);
    atomic_store(&launch_extra, NULL);
    if (!started.recorded) pthread_mutex_unlock(&turn);
    unseen = started.recorded;
    return started;
}

static Result launched(struct LaunchCheck started, Result result) {
    struct Head head;
    char *answer;
    if (started.unasked.head) {
        unseen = false;
        if (result) uncount(started.unasked);
    }
    if (!started.recorded) return result;
    unseen = false;
    if (ask_in_turn(LAUNCHED, (uint64_t)result, 0, NULL, 0, &head, &answer)) free(answer);
    pthread_mutex_unlock(&turn);
    return result;
}

// The default stream of a thread is another one in consan's.
static Handle waitable(Handle stream, bool per_thread) { return per_thread && stream == NULL ? (Handle)STREAM_PER_THREAD : stream; }

#define STARTED(stream, per_thread, extra, ...) \
    struct LaunchCheck started = starting(function, waitable(stream, per_thread), (struct Shape)__VA_ARGS__, arguments, extra); \
    if (started.refused) return UNKNOWN
#define SHAPE {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared}

struct Attribute {  // CUlaunchAttribute
    int number, unused;
    unsigned value[16];
};
#define CLUSTER_SHAPE 4
#define PROGRAMMATIC 6  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
#define PROGRAMMATIC_EVENT 7
#define LAUNCH_COMPLETION_EVENT 12

struct Config {  // CUlaunchConfig
    unsigned grid[3], block[3], shared;
    Handle stream;
    const struct Attribute *attributes;
    unsigned count;
};

static struct Shape shape_of(const struct Config *config) {
    struct Shape shape = {.cluster = {1, 1, 1}, .shared = config->shared};
    memcpy(shape.grid, config->grid, sizeof shape.grid);
    memcpy(shape.block, config->block, sizeof shape.block);
    for (unsigned i = 0; config->attributes && i < config->count; i++) {
        const struct Attribute *given = &config->attributes[i];
        if (given->number == CLUSTER_SHAPE) memcpy(shape.cluster, given->value, sizeof shape.cluster);
        if (given->number == PROGRAMMATIC) shape.programmatic = *given->value != 0;
        if (given->number == PROGRAMMATIC_EVENT || given->number == LAUNCH_COMPLETION_EVENT) shape.records = 1;
    }
    return shape;
}

#define PLAIN_LAUNCH(name, per_thread) \
    EXPORTED Result name(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
                         unsigned shared, Handle stream, void **arguments, void **extra) { \
        STARTED(stream, per_thread, extra, SHAPE); \
        Result result = ORIGINAL(name, started.function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, extra); \
        return counted(launched(started, result), function, stream); \
    }
#define COOPERATIVE_LAUNCH(name, per_thread) \
    EXPORTED Result name(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
                         unsigned shared, Handle stream, void **arguments) { \
        STARTED(stream, per_thread, NULL, SHAPE); \
        Result result = ORIGINAL(name, started.function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments); \
        return counted(launched(started, result), function, stream); \
    }
#define CONFIGURED_LAUNCH(name, per_thread) \
    EXPORTED Result name(const struct Config *config, Handle function, void **arguments, void **extra) { \
        if (config == NULL) return ORIGINAL(name, config, function, arguments, extra); \
        struct LaunchCheck started = starting(function, waitable(config->stream, per_thread), shape_of(config), arguments, extra); \
        if (started.refused) return UNKNOWN; \
        Result result = ORIGINAL(name, config, started.function, arguments, extra); \
        return counted(launched(started, result), function, config->stream); \
    }

PLAIN_LAUNCH(cuLaunchKernel, false)
PLAIN_LAUNCH(cuLaunchKernel_ptsz, true)
COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel, false)
COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel_ptsz, true)
CONFIGURED_LAUNCH(cuLaunchKernelEx, false)
CONFIGURED_LAUNCH(cuLaunchKernelEx_ptsz, true)

// What a program hands over with a kernel in it, where no launch in a stream follows: it gets the kernel as it was, which needs no log.
static bool without_log(Handle *function, Handle instead, struct Shape shape) {
    struct LaunchCheck started = starting(*function, instead, shape, NULL, NULL);
    *function = started.function;
    return !started.refused;
}

struct Params {  // CUDA_LAUNCH_PARAMS
    Handle function;
    unsigned grid[3], block[3], shared;
    Handle stream;
    void **arguments;
};

EXPORTED Result cuLaunchCooperativeKernelMultiDevice(struct Params *launches, unsigned count, unsigned flags) {
    struct Params *all = launches ? calloc(count + 1, sizeof *all) : NULL;
    bool fine = all || launches == NULL;
    for (unsigned i = 0; all && i < count && fine; i++) {
        struct Shape shape = {.cluster = {1, 1, 1}, .shared = launches[i].shared, .context = context_of(launches[i].stream)};
        all[i] = launches[i];
        memcpy(shape.grid, all[i].grid, sizeof shape.grid);
        memcpy(shape.block, all[i].block, sizeof shape.block);
        fine = without_log(&all[i].function, OF_DEVICES, shape);
    }
    Result result = fine ? ORIGINAL(cuLaunchCooperativeKernelMultiDevice, all, count, flags) : UNKNOWN;
    free(all);
    for (unsigned i = 0; launches && i < count; i++) counted(result, launches[i].function, launches[i].stream);
    return result;
}
