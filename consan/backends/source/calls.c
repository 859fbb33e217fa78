// The function that CUPTI calls, on the thread that has called the driver. It does not wait for the interpreter of Python.
//
// It drops what has no effect on the order of streams, notes calls that Python reads later, and reports all others to Python at once
// (consan/backends/call_filter.py has the kinds of calls, and when they are noted).
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define API_EXIT 1      // CUPTI_API_EXIT
#define OUT_OF_MEMORY 2 // CUDA_ERROR_OUT_OF_MEMORY
#define MEMORY_TYPE 2   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
#define PROGRAMMATIC_EVENT 7        // of CUlaunchAttributeID
#define LAUNCH_COMPLETION_EVENT 12
#define TO_KERNEL 56    // CUDA_KERNEL_NODE_PARAMS: from `func` to `kern`
#define LEGACY 1        // CU_STREAM_LEGACY; no stream is less
#define MOST_IN_TURN 64    // launches that are looked at for an earlier one of a graph
#define MOST_OPERATIONS 64 // one more: a launch of unknown accesses stands for all of them

struct CallbackData { // CUpti_CallbackData
    int site;
    const char *name;
    const void *parameters;
    const int *status;
    const char *symbol;
    void *context;
};

typedef void Tell(void *, int, uint32_t, const struct CallbackData *);
typedef int Attribute(void *, int, uint64_t);
typedef int GetCurrent(void **);
typedef int Push(void *);
typedef int Pop(void **);
typedef int IsCapturing(void *, int *);
typedef int Set(uint64_t, unsigned char, size_t, void *);
typedef int Copy(uint64_t, const void *, size_t, void *);
typedef int Record(void *, void *);
typedef int Launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

#include "layouts.h"

static __thread int own_calls; // more than 0: this thread calls for consan itself

EXPORTED int *consan_own_calls(void) { return &own_calls; }

static __thread int made_launches; // more than 0: this thread makes a launch of a framework (consan/backends/driver.py)

EXPORTED int *consan_made_launches(void) { return &made_launches; }

static __thread int quiet_launches; // more than 0: and it adds nothing to the order of streams, so nobody needs the call

EXPORTED int *consan_quiet_launches(void) { return &quiet_launches; }

#include "around.h"

// Python reads and writes these fields, too.
static uint64_t load(const u64 *field) { return __atomic_load_n(field, __ATOMIC_SEQ_CST); }
static void store(u64 *field, uint64_t value) { __atomic_store_n(field, value, __ATOMIC_SEQ_CST); }

static void lock(struct Filter *filter) {
    for (uint32_t held = 1; held;) held = __atomic_exchange_n(&filter->busy, 1, __ATOMIC_ACQUIRE);
}
static void unlock(struct Filter *filter) { __atomic_store_n(&filter->busy, 0, __ATOMIC_RELEASE); }

// Read a handle: `behind` bytes after the begin of the parameters, or `within` bytes behind an address that is there.
static bool read_handle(const char *parameters, uint32_t behind, int32_t within, uint64_t *handle) {
    if (!parameters) return false;
    const char *at = parameters + behind;
    if (within >= 0) {
        const char *configuration;
        memcpy(&configuration, at, sizeof configuration);
        if (!configuration) return false;
        at = configuration + within;
    }
    memcpy(handle, at, sizeof *handle);
    return true;
}

static bool find_stream(const struct CallRule *rule, const char *parameters, uint64_t *stream) {
    *stream = 0;
    return !rule->behind || read_handle(parameters, rule->behind - 1, rule->within, stream);
}

// The place of a kernel, or the free one where it would be. Null: all are taken.
static struct SeenKernel *find_kernel(struct Filter *filter, uint64_t handle) {
    uint64_t at = (handle >> 4) * 0x9E3779B97F4A7C15ull >> 32;
    for (uint32_t tried = 0; tried < KERNELS; tried++, at++) {
        struct SeenKernel *found = &filter->kernels[at % KERNELS];
        uint64_t there = load(&found->handle);
        if (there == handle || !there) return found;
    }
    return NULL;
}

// The place of a kernel that Python knows. Null: it knows nothing of it.
static struct SeenKernel *seen_kernel(struct Filter *filter, uint64_t handle) {
    struct SeenKernel *found = handle ? find_kernel(filter, handle) : NULL;
    return found && load(&found->handle) == handle ? found : NULL;
}

static bool see_kernel(struct Filter *filter, uint64_t handle, bool counted, bool named) {
    lock(filter);
    struct SeenKernel *found = handle ? find_kernel(filter, handle) : NULL;
    if (found) {
        found->counted |= counted, found->named |= named;
        store(&found->handle, handle);
    }
    unlock(filter);
    return found != NULL;
}

// A kernel, or an executable graph. Gives whether there is room.
EXPORTED int consan_count_kernel(struct Filter *filter, uint64_t handle) { return see_kernel(filter, handle, true, false); }
EXPORTED void consan_name_kernel(struct Filter *filter, uint64_t handle) { see_kernel(filter, handle, false, true); }

EXPORTED uint64_t consan_take_count(struct Filter *filter, uint64_t handle) {
    struct SeenKernel *found = seen_kernel(filter, handle);
    return found ? __atomic_exchange_n(&found->count, 0, __ATOMIC_SEQ_CST) : 0;
}

// A node of a graph has a CUfunction, or a CUkernel.
static bool read_kernel(const struct CallRule *rule, const char *parameters, uint64_t *handle) {
    if (!rule->kernel || !read_handle(parameters, rule->kernel - 1, rule->inside, handle)) return false;
    if (!*handle && rule->inside >= 0) read_handle(parameters, rule->kernel - 1, rule->inside + TO_KERNEL, handle);
    return *handle != 0;
}

static void count_launch(struct Filter *filter, const struct CallRule *rule, const char *parameters) {
    uint64_t handle;
    if (made_launches > 0 || !read_kernel(rule, parameters, &handle)) return;
    struct SeenKernel *found = seen_kernel(filter, handle);
    if (found && found->counted) __atomic_add_fetch(&found->count, 1, __ATOMIC_SEQ_CST);
}

// Launches into a stream may be dropped: Python has read all that was noted. Else it reads that first.
EXPORTED void consan_pass_over(struct Filter *filter, uint64_t stream, uint64_t context, uint64_t graph) {
    lock(filter);
    store(&filter->stream, UINT64_MAX);
    store(&filter->context, context), store(&filter->graph, graph);
    if (!filter->count) store(&filter->stream, stream);
    unlock(filter);
}

static bool is_passed_over(struct Filter *filter, const struct CallRule *rule, const struct CallbackData *data) {
    uint64_t stream = load(&filter->stream), graph = load(&filter->graph), found;
    if (stream == UINT64_MAX || rule->kind != (graph ? GRAPH : LAUNCH) || (uintptr_t)data->context != load(&filter->context)) return false;
    if (graph && (!data->parameters || memcmp(data->parameters, &graph, sizeof graph) != 0)) return false;
    return find_stream(rule, data->parameters, &found) && found == stream;
}

static bool is_pageable(const struct Filter *filter, uint64_t address) {
    unsigned int kind;
    own_calls++;
    bool unknown = !filter->attribute || filter->attribute(&kind, MEMORY_TYPE, address) != 0;
    own_calls--;
    return unknown;
}

static void copy_parameters(void *target, size_t most, uint32_t nbytes, const void *parameters) {
    memset(target, 0, most);
    if (nbytes && parameters) memcpy(target, parameters, nbytes < most ? nbytes : most);
}

// The host has waited for all that was noted: only events are of use.
static void forget(struct Filter *filter) {
    filter->launched = filter->operations = 0;
    if (!filter->events) filter->count = 0;
}

static bool append(struct Filter *filter, const struct NotedCall *call) {
    if (filter->count == MOST_NOTED) return false;
    filter->noted[filter->count++] = *call;
    return true;
}

// While there is one stream nothing runs at the same time: a launch stands for what comes behind it.
static bool note(struct Filter *filter, struct NotedCall *call) {
    if (call->kind == WAIT || call->kind == COPY_WAIT) forget(filter);
    if (call->kind == OPERATION && filter->operations == MOST_OPERATIONS && !filter->events) {
        forget(filter);
        call->kind = LAUNCH;
    }
    if (call->kind == LAUNCH && filter->launched) return true;
    if (!append(filter, call)) return false;
    filter->operations += call->kind == OPERATION;
    filter->launched = call->kind != EVENT && (filter->launched || call->kind == LAUNCH);
    filter->events += call->kind == EVENT || call->kind == EVENT_USE;
    return true;
}

// A graph that is launched again in a stream: what stands between are launches in this stream, so both come behind the same work.
static bool is_in_turn(const struct Filter *filter, const struct NotedCall *call) {
    for (uint32_t at = filter->count, tried = 0; at > 0 && tried < MOST_IN_TURN; tried++) {
        const struct NotedCall *before = &filter->noted[--at];
        if (memcmp(before, call, sizeof *call) == 0) return true;
        if ((before->kind != GRAPH && before->kind != LAUNCH) || before->words[1] != call->words[1]) return false;
    }
    return false;
}

// A call for one of several streams. One that says the same as the call before it adds nothing; so does a launch behind one in its stream.
static bool note_in_order(struct Filter *filter, const struct NotedCall *call) {
    const struct NotedCall *last = filter->count ? &filter->noted[filter->count - 1] : NULL;
    if (last && call->kind == LAUNCH && last->kind == LAUNCH && last->words[1] == call->words[1]) return true;
    if (call->kind == GRAPH && is_in_turn(filter, call)) return true;
    return (last && memcmp(last, call, sizeof *call) == 0) || append(filter, call);
}

static bool knows_stream(const struct Filter *filter, uint64_t stream) {
    for (uint32_t at = 0; at < filter->stream_count; at++)
        if (filter->streams[at] == stream) return true;
    return stream <= LEGACY;
}

// What is noted of a call. False: Python needs it at once, as far as can be said without the lock.
static bool read_call(struct Filter *filter, uint32_t number, const void *parameters, uint64_t stream, struct NotedCall *call) {
    const struct CallRule *rule = &filter->rules[number];
    call->number = number, call->kind = rule->kind;
    copy_parameters(call->words, sizeof call->words, rule->kind == LAUNCH ? 0 : rule->nbytes, parameters);
    if (rule->kind == LAUNCH) {
        call->words[1] = stream;
        return read_kernel(rule, parameters, &call->words[0]);
    }
    if (rule->kind == FREE) call->kind = WAIT;
    if (rule->kind == COPY) call->kind = is_pageable(filter, call->words[0]) || is_pageable(filter, call->words[1]) ? WAIT : OPERATION;
    return true;
}

static bool is_operation(enum CallKind kind) { return kind == OPERATION || kind == COPY || kind == COPY_WAIT; }

// Whether C notes calls of a kind, for a stream; the caller has the lock.
static bool notes_kind(struct Filter *filter, const struct NotedCall *call, enum CallKind kind, uint64_t stream) {
    if (!filter->everywhere) return stream <= LEGACY && kind != EVENT_WAIT && kind != GRAPH;
    if (kind == LAUNCH) {
        struct SeenKernel *found = made_launches > 0 ? NULL : seen_kernel(filter, call->words[0]);
        if (!found || !found->named) return false;
    }
    return !is_operation(kind) && knows_stream(filter, stream);
}

static bool is_noted(struct Filter *filter, uint32_t number, const struct CallbackData *data) {
    const struct CallRule *rule = &filter->rules[number];
    enum CallKind kind = rule->kind;
    struct NotedCall call;
    uint64_t stream;
    if (kind != AT_ONCE && kind != ALLOCATION && kind != FREE && __atomic_load_n(&filter->over, __ATOMIC_SEQ_CST)) return true;
    if (kind == AT_ONCE || kind == ALLOCATION || (uintptr_t)data->context != load(&filter->notes)) return false;
    if (is_operation(kind) && __atomic_load_n(&filter->everywhere, __ATOMIC_SEQ_CST)) return false;
    if (!find_stream(rule, data->parameters, &stream) || !read_call(filter, number, data->parameters, stream, &call)) return false;
    if (kind == FREE && !call.words[0]) return true;
    lock(filter);
    store(&filter->stream, UINT64_MAX);
    bool done = (uintptr_t)data->context == load(&filter->notes) && notes_kind(filter, &call, kind, stream);
    done = done && (filter->everywhere ? note_in_order(filter, &call) : note(filter, &call));
    unlock(filter);
    return done;
}

static uint32_t take(struct Filter *filter, struct NotedCall *calls) {
    uint32_t count = filter->count;
    memcpy(calls, filter->noted, count * sizeof *calls);
    filter->count = filter->launched = filter->operations = filter->events = 0;
    return count;
}

// Take what is noted. Gives how many calls that is.
EXPORTED uint32_t consan_take(struct Filter *filter, struct NotedCall *calls) {
    lock(filter);
    uint32_t count = take(filter, calls);
    unlock(filter);
    return count;
}

// The same. `notes`: the context whose calls are noted from now on; `everywhere`: those for these streams, too.
EXPORTED uint32_t consan_take_noted(struct Filter *filter, struct NotedCall *calls, uint64_t notes, uint64_t everywhere, const uint64_t *streams,
                                    uint64_t stream_count) {
    lock(filter);
    uint32_t count = take(filter, calls);
    store(&filter->notes, notes);
    filter->everywhere = everywhere != 0, filter->stream_count = (u32)stream_count;
    memcpy(filter->streams, streams, stream_count * sizeof *streams);
    unlock(filter);
    return count;
}

#include "armed.h"
#include "launcher.h"

struct Attribute {  // CUlaunchAttribute
    int number, unused;
    uint64_t value[8];
};
struct Config {  // CUlaunchConfig
    uint32_t sizes[7];
    void *stream;
    const struct Attribute *attributes;
    uint32_t count;
};

// A launch with attributes that records an event by one of them: Python has to know.
static bool records_event(const struct CallRule *rule, const void *parameters) {
    if (rule->kind != LAUNCH || rule->within < 0 || !parameters) return false;
    const struct Config *config = *(const struct Config *const *)parameters;  // the first parameter
    for (uint32_t at = 0; config && config->attributes && at < config->count; at++) {
        int number = config->attributes[at].number;
        if (number == PROGRAMMATIC_EVENT || number == LAUNCH_COMPLETION_EVENT) return true;
    }
    return false;
}

EXPORTED void consan_called(struct Filter *filter, int domain, uint32_t number, const struct CallbackData *data) {
    if (data->site != API_EXIT || own_calls > 0) return;
    if (number >= MOST_CALLBACKS) return;
    const struct CallRule *rule = &filter->rules[number];
    if (!data->status || !*data->status) count_launch(filter, rule, data->parameters);
    if (data->parameters || !rule->nbytes) {
        if (data->status && *data->status && !(rule->allocates && *data->status == OUT_OF_MEMORY)) return;
        if ((!data->status || !*data->status) && !records_event(rule, data->parameters)) {
            if (rule->kind == ALLOCATION || is_passed_over(filter, rule, data) || is_noted(filter, number, data)) return;
            if (rule->kind == LAUNCH && quiet_launches > 0) return;
        }
    }
    __atomic_add_fetch(&filter->reported, 1, __ATOMIC_SEQ_CST);
    filter->tell(NULL, domain, number, data);
}
